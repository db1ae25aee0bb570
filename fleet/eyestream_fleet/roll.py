"""The devices of a partition, as a list that lies in the log: a worker follows it while it runs. Pure.

Where a fleet's file has no ``[[device]]``, each partition has a *roll*: one value in a bucket of the log, which
`eyestream enrol` writes and the partition's worker reads. So no worker reads about the devices of others, and one more
headset restarts nobody.

Nothing that privacy needs lies in a roll. A device in a roll of another partition is refused by its name's hash, one
that was moved away by the ledger, and one that comes back meets what it has spent.
"""

from collections.abc import Collection, Iterable

import msgspec

from eyestream.errors import ConfigError, ShardError
from eyestream.wire.topics import is_name
from eyestream_fleet.log import partition_of


class Roll(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The devices of one partition.

    Attributes
    ----------
    partition, partitions
        Whose they are, of how many.
    serial
        Grows with each change, also where a roll is lost and made again: when it was made, in seconds since 1970.
    devices
        Their names, sorted.
    """

    partition: int
    partitions: int
    serial: int = 0
    devices: tuple[str, ...] = ()

    def changed(self, add: Collection[str], remove: Collection[str], now: int) -> "Roll":
        """The next roll, made at `now`; the same one where nothing changes."""
        devices = tuple(sorted({*self.devices, *add} - {*remove}))
        if devices == self.devices:
            return self
        return Roll(self.partition, self.partitions, max(self.serial + 1, now), devices)

    def pack(self) -> bytes:
        """Bytes for the log."""
        return msgspec.json.encode(self)


def unpack_roll(data: bytes, partition: int, partitions: int) -> Roll:
    """The roll of a partition, as it is.

    Raises
    ------
    ShardError
        It is of another fleet or partition, or no roll.
    """
    where = f"the roll of partition {partition} of {partitions}"
    try:
        roll = msgspec.json.decode(data, type=Roll)
    except msgspec.DecodeError:
        raise ShardError(f"{where}: is damaged, or of another version of eyestream") from None
    if (roll.partition, roll.partitions) != (partition, partitions):
        raise ShardError(
            f"{where}: the log has that of partition {roll.partition} of {roll.partitions}; [fleet] servers are those "
            "of another fleet, or [fleet] partitions was changed"
        )
    return roll


def read_roll(data: bytes, partition: int, partitions: int) -> Roll:
    """The roll of a partition, for its worker. Raises ShardError as `unpack_roll`, or names a device of another one."""
    roll = unpack_roll(data, partition, partitions)
    for device in roll.devices:
        own = partition_of(device, partitions) if is_name(device) else None
        if own != partition:
            why = "cannot be the name of a device" if own is None else f"is of partition {own}, and of no other"
            raise ShardError(
                f"the roll of partition {partition} of {partitions} names {device!r}, which {why}; "
                f"`eyestream enrol --config FILE --remove {device}` takes it out"
            )
    return roll


def followed(roll: Roll, data: bytes) -> Roll:
    """The roll to serve once `data` was read, while `roll` is served. Raises ShardError: it is wrong, or older."""
    fresh = read_roll(data, roll.partition, roll.partitions)
    if fresh.serial < roll.serial:
        raise ShardError(f"the roll of partition {roll.partition} in the log is older than the one that was taken")
    return fresh


def by_partition(devices: Iterable[str], partitions: int) -> dict[int, list[str]]:
    """Names of devices by their partition; raises ConfigError for what cannot be a name."""
    found: dict[int, list[str]] = {}
    for device in devices:
        if not is_name(device):
            raise ConfigError(f"{device!r}: cannot be the name of a device: expected 1 to 64 of A-Z a-z 0-9 _ -")
        found.setdefault(partition_of(device, partitions), []).append(device)
    return found
