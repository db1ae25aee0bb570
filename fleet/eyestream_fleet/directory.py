"""The directory of a shard: made once, opened by one process at a time, moved as a whole."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from eyestream.core.charge import Ceilings
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.reservation import RowMark
from eyestream.errors import LedgerError, ShardError
from eyestream.rim.ledger.book import Book
from eyestream.rim.ledger.file import create_file
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.records import Header, write_header
from eyestream.rim.ledger.second_place import Lengths, Remembered, check_not_overtaken, check_not_shorter
from eyestream.streams import StreamKey
from eyestream_fleet.frames import Contents
from eyestream_fleet.outbox import DurableOutbox, create_outbox
from eyestream_fleet.resuming import Seal
from eyestream_fleet.shard import Shard
from eyestream_fleet.table import LEDGER

__all__ = ["LEDGER", "LIVES", "OUTBOX", "create_shard", "held_outbox", "opened_shard"]

OUTBOX, LIVES = "outbox", f"{LEDGER}.lives"
"""The tokens lie where those of a sidecar's ledger do, so `eyestream budget` changes no ledger of a shard by itself."""


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
def held_outbox(folder: Path, partition: int, partitions: int) -> Iterator[DurableOutbox]:
    """The outbox of the shard in `folder`: whoever holds it may ask the second place, and open the shard.

    Parameters
    ----------
    folder, partition, partitions
        As for `create_shard`, and the same as then: devices would meet a ledger that does not know them.

    Raises
    ------
    ShardError
        The shard is missing, was made for another partition, or its outbox is damaged.
    LedgerError
        It is in use by another process, or cannot be written.
    """
    if not (folder / LEDGER).exists():
        raise ShardError(
            f"{folder}: there is no shard; put its directory back if it had one, and else make it with "
            "`eyestream shard --new`"
        )
    with closing(DurableOutbox(folder / OUTBOX)) as outbox:
        made = outbox.contents.partition, outbox.contents.partitions
        if made != (partition, partitions):
            raise ShardError(
                f"{folder}: was made for partition {made[0]} of {made[1]}, not {partition} of {partitions}; the number "
                "of partitions is fixed for the life of the ledgers"
            )
        yield outbox


@contextmanager
def opened_shard(
    folder: Path,
    outbox: DurableOutbox,
    streams: Iterable[tuple[DeviceSettings, Mechanism]],
    *,
    ceilings: Ceilings,
    today: Callable[[], int],
    levels: int = 1,
    key: bytes | None = None,
    remembered: Remembered | None = None,
) -> Iterator[Shard]:
    """The shard in `folder`, held by this process alone.

    An end of its files that cannot be read was left half written, by a kill or a full disk, or was damaged later. The
    second place shows which: it learns how long both files are before anything of them is published. What it does not
    know has not left, so it is cut off and computed again. But bytes that are whole in the outbox will be sent: what
    the ledger has lost of them counts as spent, and is kept in its snapshot.

    Parameters
    ----------
    folder, outbox
        From `held_outbox`.
    streams, today, levels
        As for `Shard`.
    ceilings
        As for `Ledger`.
    key
        For `Seal`; None: the log has none.
    remembered
        What the second place says, asked while the outbox was held; None: there is none. Then what cannot be read at
        the end of a file counts as spent, and is never computed again. With one, `begin_life` comes next.

    Raises
    ------
    ShardError
        Its files do not belong together, or the outbox has a chunk of which the ledger knows nothing.
    LedgerError
        Its files are shorter than what is remembered, overtaken by a copy, in use by another process, or cannot be
        written.
    """

    def suffices(book: Book) -> bool:
        held = outbox.contents
        if remembered is None or ledger_name(book.header.ledger_id) != held.ledger:
            return False
        lengths = remembered.lengths
        long_enough = book.released >= lengths.ledger and held.frames >= lengths.outbox
        return long_enough and _knows_all(book.mark, held)

    with Ledger(folder / LEDGER, ceilings=ceilings, suffices=suffices) as ledger:
        if ledger_name(ledger.header.ledger_id) != outbox.contents.ledger:
            raise ShardError("the ledger and the outbox of a shard belong together; these do not")
        if remembered is not None:
            where, lengths = f"shard {outbox.contents.ledger}", Lengths(ledger.released, outbox.contents.frames)
            check_not_shorter(where, lengths, remembered.lengths)
            check_not_overtaken(where, folder / LIVES, remembered)
        if not _knows_all(ledger.mark, outbox.contents):
            raise ShardError(
                f"{folder / LEDGER}: is damaged: chunks in the outbox are of rows that it does not know; put the "
                "newest one in its place"
            )
        ledger.keep_damage()
        seal, guarded = None if key is None else Seal(key), remembered is not None
        yield Shard(streams, ledger, outbox, today=today, levels=levels, seal=seal, guarded=guarded)


def _knows_all(mark_of: Callable[[StreamKey], RowMark | None], contents: Contents) -> bool:
    """Whether every chunk that waits in the outbox is up to the mark of its stream."""
    for chunk in contents.waiting:
        mark = mark_of(StreamKey(chunk.device, chunk.stream))
        if mark is None or (mark.session, mark.last_row) < (chunk.session, chunk.last_row):
            return False
    return True
