"""The directory of a shard: made once, opened by one process at a time, moved as a whole."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from eyestream.chunking.settings import DeviceSettings
from eyestream.errors import LedgerError, ShardError
from eyestream.privacy.charge import Ceilings
from eyestream.release.ports import Mechanism
from eyestream.rim.ledger.checksum import Header, write_header
from eyestream.rim.ledger.file import create_file
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.shard.frames import Contents
from eyestream.rim.shard.outbox import DurableOutbox, create_outbox
from eyestream.rim.shard.resuming import Seal
from eyestream.rim.shard.shard import Shard

__all__ = ["LEDGER", "OUTBOX", "create_shard", "opened_shard"]

LEDGER, OUTBOX = "ledger", "outbox"


def create_shard(folder: Path, partition: int, partitions: int, *, created: int) -> str:
    """Make the files of a shard that has released nothing, and give its name.

    Parameters
    ----------
    folder
        Exists, and has no such files.
    partition, partitions
        Which part of the log it reads, of how many.
    created
        Seconds since 1970; 0: not known.

    Raises
    ------
    ShardError
        There is no such partition.
    LedgerError
        The files are there already, or cannot be written.
    """
    if not 0 <= partition < partitions:
        raise ShardError(f"partition {partition}: expected 0 to {partitions - 1}")
    ledger_id = secrets.token_bytes(16)
    create_file(folder / LEDGER, write_header(Header(ledger_id, created)))
    name = ledger_name(ledger_id)
    try:
        create_outbox(folder / OUTBOX, Contents(name, partition, partitions))
    except LedgerError:
        (folder / LEDGER).unlink()  # nothing was ever in it, and with it there the shard could not be made again
        raise
    return name


@contextmanager
def opened_shard(
    folder: Path,
    partition: int,
    partitions: int,
    streams: Iterable[tuple[DeviceSettings, Mechanism]],
    *,
    ceilings: Ceilings,
    today: Callable[[], int],
    levels: int = 1,
    key: bytes | None = None,
    guarded: bool = False,
) -> Iterator[Shard]:
    """The shard in `folder`, held by this process alone.

    Parameters
    ----------
    folder, partition, partitions
        As for `create_shard`, and the same as then: devices would meet a ledger that does not know them.
    streams, today, levels, guarded
        As for `Shard`.
    ceilings
        As for `Ledger`.
    key
        For `Seal`; None: the log has none.

    Raises
    ------
    ShardError
        It is missing, was made for another partition, or its files do not belong together, or are damaged.
    LedgerError
        Its files are in use by another process, or cannot be written.
    """
    if not (folder / LEDGER).exists():
        raise ShardError(
            f"{folder}: there is no shard; put its directory back if it had one, and else make it with "
            "`eyestream shard --new`"
        )
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(folder / LEDGER, ceilings=ceilings))
        outbox = DurableOutbox(folder / OUTBOX)
        stack.callback(outbox.close)
        made = outbox.contents.partition, outbox.contents.partitions
        if made != (partition, partitions):
            raise ShardError(
                f"{folder}: was made for partition {made[0]} of {made[1]}, not {partition} of {partitions}; the number "
                "of partitions is fixed for the life of the ledgers"
            )
        seal = None if key is None else Seal(key)
        yield Shard(streams, ledger, outbox, today=today, levels=levels, seal=seal, guarded=guarded)
