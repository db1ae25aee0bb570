"""A fleet out of its configuration: its log, its second place, and the life of one shard.

Messages beside the chunks of a worker: descriptions and statuses, retained at the log's MQTT listener.

They go by MQTT, as those of a sidecar do, because NATS keeps retained messages for MQTT alone. No chunk waits for them.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from eyestream.core.charge import Ceilings
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism, require_real_noise
from eyestream.core.release.stream import StreamRelease
from eyestream.errors import ConfigError, LinkError, ShardError
from eyestream.rim.config import Settings
from eyestream.rim.ledger.file import read_pieces
from eyestream.rim.ledger.guarded import Copy, released_in
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.ledger.second_place import (
    FilePlace,
    Lengths,
    Remembered,
    check_not_overtaken,
    check_not_shorter,
    lives_in,
)
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Backoff, Link, Will
from eyestream.rim.plan import Plan
from eyestream.rim.sidecar.boards import LAST_WILL, STOPPED, StatusBoard
from eyestream.rim.sidecar.sender import Outbox, Sender
from eyestream.streams import StreamKey
from eyestream.wire.release import encode_meta
from eyestream.wire.status import encode_status
from eyestream.wire.topics import meta_topic, status_topic
from eyestream_fleet.directory import LEDGER, LIVES, OUTBOX, create_shard, held_outbox, opened_shard
from eyestream_fleet.frames import unpack
from eyestream_fleet.nats.bucket import Rolls, bucket_name
from eyestream_fleet.nats.opening import Opened, opened, rolls_of, second_place
from eyestream_fleet.roll import Roll, by_partition, followed, read_roll, unpack_roll
from eyestream_fleet.second_place import Life, SecondPlace, begin_life, recalled
from eyestream_fleet.shard import Shard
from eyestream_fleet.table import FleetSettings, fleet_of
from eyestream_fleet.worker import PAUSE_S, ShardWorker

FOLLOW_S = 2.0
"""From one look at a roll to the next: a device that is enrolled waits so long at most."""

_LOG = logging.getLogger("eyestream.shard")

Answer = TypeVar("Answer")

_PAUSE_S = 1.0
"""Between two statuses of a stream, at least: a window may withhold every other chunk."""

_AGAIN_S = 10.0
_GOODBYE_S = 3.0


class ShardStatus:
    """Publishes descriptions and statuses of one shard, retained.

    Parameters
    ----------
    plan
        Of a fleet; the shard's own status is that of ``[sidecar] name``, a hyphen and the partition.
    partition, shard
        Which one.
    worker
        Serves it.
    """

    def __init__(self, plan: Plan, partition: int, shard: Shard, worker: ShardWorker) -> None:
        self._shard, self._worker = shard, worker
        self._sender = Sender(Outbox(1, 1.0))  # chunks go by the log
        self._name, self._known = f"{plan.settings.sidecar.name}-{partition}", dict[StreamKey, StreamRelease]()
        self._metas = {name: encode_meta(stream.meta) for name, stream in plan.streams.items()}
        self._follow()
        self._link = ReconnectingLink(
            Endpoint.of(plan.settings.private),
            self._serve,
            what="private broker",
            client_id=None,
            deliver=lambda message: None,
            will=Will(self._status.own_topic, LAST_WILL, 0),
        )

    def _follow(self) -> None:
        """Describe the streams that are served by now; those that are served no more have stopped."""
        before, self._known = self._known, self._shard.streams
        self._status = StatusBoard(self._name, self._known, self._sender.retain)
        for key in self._known.keys() - before.keys():
            self._sender.retain(meta_topic(*key), self._metas[key.stream])
        for key in before.keys() - self._known.keys():
            self._sender.retain(status_topic(*key), encode_status(STOPPED))

    async def run(self, stop: asyncio.Event) -> None:
        """Say how each stream is until `stop` is set; then that it has stopped, if the broker can be reached."""
        async with asyncio.TaskGroup() as group:
            link = group.create_task(self._link.run(), name="private link")
            saying = group.create_task(self._say(), name="status")
            await stop.wait()
            saying.cancel()
            self._sender.leave(self._status.goodbye())
            self._link.leave()
            await asyncio.wait([link], timeout=_GOODBYE_S if self._link.links else 0)
            link.cancel()

    async def _serve(self, link: Link) -> None:
        """Serve; state again what the last will of the life before may have overwritten."""
        again = asyncio.get_running_loop().call_later(_AGAIN_S, self._sender.resend, self._status.own_topic)
        try:
            await self._sender.serve(link)
        finally:
            again.cancel()

    async def _say(self) -> None:
        worker = self._worker
        while True:
            worker.changed.clear()
            if self._shard.streams is not self._known:
                self._follow()
            streams = self._known
            self._status.update(
                stands=lambda key: worker.stands,
                ledger=True,
                condition=lambda key, streams=streams: streams[key].condition,  # type: ignore[misc]
            )
            await asyncio.sleep(_PAUSE_S)
            await worker.changed.wait()


async def found_shard(plan: Plan, partition: int, created: int) -> None:
    """Make a shard, at `created` seconds since 1970, and what the second place remembers of it.

    Raises
    ------
    ConfigError
        The fleet is missing, or something else cannot be used. Nothing was made.
    LedgerError
        The shard is there already, or cannot be written.
    LinkError
        The log cannot be reached. Nothing was made.
    """
    fleet = fleet_of(plan.settings)
    folder = _shard_in(fleet.folder, fleet, partition)
    async with opened(fleet, partition, new=True) as log:
        if fleet.second_place is None and (held := await log.place.holder()) is not None:
            raise ShardError(
                f"partition {partition}: has shard {held}, as {bucket_name(partition)} of NATS says: put its directory "
                "back. If it is lost for ever, what its devices spent is not known: give them new pseudonyms, and take "
                f"the bucket away with `nats kv del {bucket_name(partition)} --force`. If this fleet never had it, "
                "[fleet] servers are those of another fleet"
            )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = create_shard(folder, partition, fleet.partitions, created=created)
        if fleet.second_place is not None:
            fleet.second_place.mkdir(mode=0o700, parents=True, exist_ok=True)
            FilePlace.create(_shard_in(fleet.second_place, fleet, partition))
        with _second_place(fleet, partition, log.place) as place:
            await place.write(name, Remembered(Lengths(0, 0)))


async def accept_shard(plan: Plan, partition: int) -> tuple[Path, Lengths, Lengths]:
    """Let the second place remember the shard as it is, and refuse all its copies; it is made where there is none.

    What cannot be read at the end of its files counts as spent, and is never computed again.

    Returns
    -------
    tuple
        The shard's folder, how long it was to be until now, and how long it is.

    Raises
    ------
    ConfigError
        As `found_shard`.
    ShardError, LedgerError
        The shard cannot be used, or is in use.
    LinkError
        The log cannot be reached, or did not answer: accept once more.
    """
    fleet = fleet_of(plan.settings)
    folder = _shard_in(fleet.folder, fleet, partition)
    async with opened(fleet, partition, new=True) as log:
        with contextlib.ExitStack() as stack:
            outbox = stack.enter_context(held_outbox(folder, partition, fleet.partitions))
            if fleet.second_place is not None and not _shard_in(fleet.second_place, fleet, partition).exists():
                fleet.second_place.mkdir(mode=0o700, parents=True, exist_ok=True)
                FilePlace.create(_shard_in(fleet.second_place, fleet, partition))
            place = stack.enter_context(_second_place(fleet, partition, log.place))
            shard = stack.enter_context(opened_shard(folder, outbox, (), ceilings=Ceilings(), today=lambda: 0))
            had = await place.read(shard.name) or Remembered(Lengths(0, 0))
            now = had._replace(lengths=shard.lengths)
            await begin_life(folder / LIVES, now, lambda new: place.write(shard.name, new))
            return folder, had.lengths, now.lengths


async def change_shard(plan: Plan, partition: int, change: Callable[[OperatedLedger], Answer]) -> Answer:
    """Change the ledger of a shard, and give what `change` gives. No copy of the shard from before goes on any more.

    The change leaves the ledger as long as it was. Two lives tell copies apart, as for a sidecar's ledger: the first
    one refuses a shard that is itself a copy, and the second one overtakes what was copied until the change was made.

    Raises
    ------
    ConfigError, ShardError, LinkError
        As `accept_shard`.
    LedgerError
        As `change`, or the shard is older than what was released, was overtaken, or is in use.
    """
    fleet = fleet_of(plan.settings)
    folder = _shard_in(fleet.folder, fleet, partition)
    async with opened(fleet, partition, new=False) as log:
        with (
            held_outbox(folder, partition, fleet.partitions) as outbox,
            _second_place(fleet, partition, log.place) as place,
            OperatedLedger(folder / LEDGER, ceilings=Ceilings()) as ledger,
        ):
            name = outbox.contents.ledger
            if ledger_name(ledger.header.ledger_id) != name:
                raise ShardError("the ledger and the outbox of a shard belong together; these do not")

            async def live() -> None:
                remembered = await recalled(place, name)
                lengths = Lengths(ledger.released, outbox.contents.frames)
                check_not_shorter(f"shard {name}", lengths, remembered.lengths)
                check_not_overtaken(f"shard {name}", folder / LIVES, remembered)
                await begin_life(folder / LIVES, remembered, lambda new: place.write(name, new))

            await live()
            given = change(ledger)
            await live()
            return given


async def copies_of_shard(plan: Plan, partition: int, folders: Sequence[Path]) -> tuple[list[Copy], Remembered | None]:
    """Copies of a shard in `folders`, by default in its own, and what the second place holds of it. Nothing is changed.

    Raises
    ------
    ConfigError, LinkError
        As `found_shard`.
    ShardError, LedgerError
        One of them is no shard, or cannot be read; or they are different shards.
    """
    fleet = fleet_of(plan.settings)
    copies = [_copy(folder) for folder in folders or [_shard_in(fleet.folder, fleet, partition)]]
    if len({one.name for one in copies}) > 1:
        raise ShardError(f"{', '.join(str(one.where) for one in copies)}: are different shards, not copies of one")
    if fleet.second_place is not None:
        path = _shard_in(fleet.second_place, fleet, partition)
        return copies, FilePlace.look(path, copies[0].name) if path.exists() else None
    async with second_place(fleet, partition) as place:
        return copies, await place.read(copies[0].name)


def _copy(folder: Path) -> Copy:
    """A shard that may be in use."""
    if not (folder / LEDGER).exists():
        raise ShardError(f"{folder}: there is no shard")
    reading, lives = read_ledger(folder / LEDGER), lives_in(folder / LIVES)
    try:
        contents, _, _ = unpack(b"".join(read_pieces(folder / OUTBOX)))
    except ShardError as error:
        raise ShardError(f"{folder / OUTBOX} {error}") from None
    return Copy(folder, ledger_name(reading.header.ledger_id), Lengths(released_in(reading), contents.frames), lives)


async def run_shard(
    plan: Plan,
    partition: int,
    today: Callable[[], int],
    stop: asyncio.Event,
    beside: Callable[[ShardWorker], contextlib.AbstractAsyncContextManager[object]] = contextlib.nullcontext,
) -> ShardWorker:
    """Serve a shard until `stop` is set; gives its worker, whose work is done. `beside` it something else is open.

    Raises
    ------
    ConfigError
        The fleet is missing, or something else cannot be used; noise has a seed.
    ShardError, LedgerError
        The shard cannot be used.
    LinkError
        The end came before the log could be reached.
    """
    fleet = fleet_of(plan.settings)
    require_real_noise(plan.mechanisms.values())
    async with contextlib.AsyncExitStack() as stack:
        log, key = await _patiently("log", lambda: _joined(stack, fleet, partition), stop)
        place = stack.enter_context(_second_place(fleet, partition, log.place))
        folder = _shard_in(fleet.folder, fleet, partition)
        outbox = stack.enter_context(held_outbox(folder, partition, fleet.partitions))
        remembered = await _patiently("second place", lambda: recalled(place, outbox.contents.ledger), stop)
        if fleet.second_place is not None:
            await _patiently("log", lambda: log.rolls.claim(partition, outbox.contents.ledger), stop)
        roll = await _patiently("log", lambda: _first_roll(plan, log.rolls, partition), stop)
        shard = stack.enter_context(
            opened_shard(
                folder,
                outbox,
                _streams(plan, roll),
                ceilings=plan.ceilings,
                today=today,
                levels=plan.settings.budget.levels,
                key=key,
                remembered=remembered,
            )
        )
        name = shard.name

        def set_to(new: Remembered) -> Awaitable[None]:
            return _patiently("second place", lambda: place.write(name, new), stop)

        life = Life(place, name, await begin_life(folder / LIVES, remembered, set_to))
        worker = ShardWorker(shard, log.log, life)
        await stack.enter_async_context(beside(worker))
        async with asyncio.TaskGroup() as group:
            group.create_task(ShardStatus(plan, partition, shard, worker).run(stop), name="status")
            if roll is not None:
                group.create_task(_follow(plan, log.rolls, roll, worker, stop), name="roll")
            await worker.run(stop)
            return worker


async def _patiently(whom: str, attempt: Callable[[], Awaitable[Answer]], stop: asyncio.Event) -> Answer:
    """The result of `attempt`; a server that is away is waited for until `stop` is set. Raises LinkError then."""
    backoff = Backoff(PAUSE_S)
    while True:
        try:
            return await attempt()
        except LinkError as error:
            if stop.is_set():
                raise
            _LOG.warning("%s: %s; trying again until it is back", whom, error)
            await backoff.wait()


async def _first_roll(plan: Plan, rolls: Rolls, partition: int) -> Roll | None:
    """The roll that a worker begins with; None: its file names the devices. Raises ShardError as `read_roll`."""
    if plan.settings.device:
        return None
    partitions = fleet_of(plan.settings).partitions
    held = await rolls.read(partition)
    if held is None:
        _LOG.warning("no device of partition %d is enrolled yet: `eyestream enrol`", partition)
        return Roll(partition, partitions)
    return read_roll(held[1], partition, partitions)


def _streams(plan: Plan, roll: Roll | None) -> Iterable[tuple[DeviceSettings, Mechanism]]:
    if roll is None:
        return [(device, stream.mechanism) for device, stream in plan.served.values()]
    return [(stream.device(name), stream.mechanism) for name in roll.devices for stream in plan.streams.values()]


async def _follow(plan: Plan, rolls: Rolls, roll: Roll, worker: ShardWorker, stop: asyncio.Event) -> None:
    """Serve the devices of the newest roll. One that is lost, wrong or older leaves those that are served."""
    known = roll.pack()
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOLLOW_S):
                await stop.wait()
        try:
            held = await rolls.read(roll.partition)
            if held is None or held[1] == known:
                continue
            known = held[1]
            fresh = followed(roll, known)
        except LinkError:  # the worker's own reading says so
            continue
        except ShardError as error:
            _LOG.error("%s; the devices of the roll before it are served", error)
            continue
        old, new = set(roll.devices), set(fresh.devices)
        _LOG.info("%d devices come, %d go, %d are served", len(new - old), len(old - new), len(new))
        roll = fresh
        worker.serve(_streams(plan, roll))


async def enrol(settings: Settings, devices: Collection[str], *, remove: bool, now: int) -> tuple[dict[int, Roll], int]:
    """Add devices to the rolls of a fleet, or remove them.

    Returns
    -------
    tuple
        The rolls that have changed, by partition, and how many devices all rolls have.

    Raises
    ------
    ConfigError
        The fleet is missing, its file names its devices, or one cannot be a name.
    ShardError
        A roll is damaged, or is that of another fleet.
    LinkError
        The log cannot be reached, or somebody else writes too: the same command goes on.
    """
    fleet = fleet_of(settings)
    if settings.device:
        raise ConfigError("[[device]]: the file names the devices of the fleet; take the tables out, and enrol them")
    own = {} if remove else by_partition(devices, fleet.partitions)
    changed, count = dict[int, Roll](), 0
    async with rolls_of(fleet) as rolls:
        for partition in range(fleet.partitions):
            held = await rolls.read(partition)
            roll = Roll(partition, fleet.partitions)
            if held is not None:
                roll = unpack_roll(held[1], partition, fleet.partitions)
            # A device may stand in a wrong roll, where a hand has put it: it is taken out of all of them.
            fresh = roll.changed([], devices, now) if remove else roll.changed(own.get(partition, ()), [], now)
            if fresh is not roll:
                if not await rolls.write(partition, fresh.pack(), 0 if held is None else held[0]):
                    raise LinkError(f"the roll of partition {partition}: somebody else has changed it; once more")
                changed[partition] = fresh
            count += len(fresh.devices)
    return changed, count


async def _joined(
    stack: contextlib.AsyncExitStack, fleet: FleetSettings, partition: int
) -> tuple[Opened, bytes | None]:
    """The fleet of `opened`, entered on the stack, with the log's secret."""
    async with contextlib.AsyncExitStack() as attempt:
        log = await attempt.enter_async_context(opened(fleet, partition, new=False))
        key = await log.log.secret()
        stack.push_async_exit(attempt.pop_all())
        return log, key


@contextlib.contextmanager
def _second_place(fleet: FleetSettings, partition: int, bucket: SecondPlace) -> Iterator[SecondPlace]:
    if fleet.second_place is not None:
        with contextlib.closing(FilePlace(_shard_in(fleet.second_place, fleet, partition))) as place:
            yield place
    else:
        yield bucket


def _shard_in(folder: Path, fleet: FleetSettings, partition: int) -> Path:
    if not 0 <= partition < fleet.partitions:
        raise ConfigError(f"--partition {partition}: expected 0 to {fleet.partitions - 1}")
    return folder / f"shard-{partition}"
