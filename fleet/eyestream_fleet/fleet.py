"""A fleet out of its configuration: its log, its second place, and the life of one shard."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from eyestream.core.charge import Ceilings
from eyestream.errors import ConfigError, LinkError, ShardError
from eyestream.rim.config import Settings
from eyestream.rim.config.tables import FleetSettings
from eyestream.rim.ledger.file import read_pieces
from eyestream.rim.ledger.guarded import Copy, released_in
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered, lives_in
from eyestream.rim.mqtt.transport import Backoff
from eyestream.rim.plan import Plan
from eyestream_fleet.directory import LEDGER, LIVES, OUTBOX, create_shard, held_outbox, opened_shard
from eyestream_fleet.frames import unpack
from eyestream_fleet.log import Log
from eyestream_fleet.nats.opening import opened, second_place
from eyestream_fleet.second_place import Life, SecondPlace, begin_life, recalled
from eyestream_fleet.status import ShardStatus
from eyestream_fleet.worker import PAUSE_S, ShardWorker

__all__ = ["accept_shard", "copies_of_shard", "found_shard", "run_shard"]

_LOG = logging.getLogger("eyestream.shard")

Answer = TypeVar("Answer")


async def found_shard(plan: Plan, partition: int, created: int) -> None:
    """Make a shard, and what the second place remembers of it.

    Parameters
    ----------
    plan
        Of a configuration with a fleet.
    partition
        Of the shard.
    created
        Seconds since 1970.

    Raises
    ------
    ConfigError
        The fleet is missing, or something else cannot be used. Nothing was made.
    LedgerError
        The shard is there already, or cannot be written.
    LinkError
        The log cannot be reached. Nothing was made.
    """
    fleet = _fleet(plan.settings)
    folder = _shard_in(fleet.folder, fleet, partition)
    async with opened(fleet, partition, new=True) as (_, bucket):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = create_shard(folder, partition, fleet.partitions, created=created)
        if fleet.second_place is not None:
            fleet.second_place.mkdir(mode=0o700, parents=True, exist_ok=True)
            FilePlace.create(_shard_in(fleet.second_place, fleet, partition))
        with _second_place(fleet, partition, bucket) as place:
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
    fleet = _fleet(plan.settings)
    folder = _shard_in(fleet.folder, fleet, partition)
    async with opened(fleet, partition, new=True) as (_, bucket):
        with contextlib.ExitStack() as stack:
            outbox = stack.enter_context(held_outbox(folder, partition, fleet.partitions))
            if fleet.second_place is not None and not _shard_in(fleet.second_place, fleet, partition).exists():
                fleet.second_place.mkdir(mode=0o700, parents=True, exist_ok=True)
                FilePlace.create(_shard_in(fleet.second_place, fleet, partition))
            place = stack.enter_context(_second_place(fleet, partition, bucket))
            shard = stack.enter_context(opened_shard(folder, outbox, (), ceilings=Ceilings(), today=lambda: 0))
            had = await place.read(shard.name) or Remembered(Lengths(0, 0))
            now = had._replace(lengths=shard.lengths)
            await begin_life(folder / LIVES, now, lambda new: place.write(shard.name, new))
            return folder, had.lengths, now.lengths


async def copies_of_shard(plan: Plan, partition: int, folders: Sequence[Path]) -> tuple[list[Copy], Remembered | None]:
    """Copies of a shard in `folders`, by default in its own, and what the second place holds of it. Nothing is changed.

    Raises
    ------
    ConfigError, LinkError
        As `found_shard`.
    ShardError, LedgerError
        One of them is no shard, or cannot be read; or they are different shards.
    """
    fleet = _fleet(plan.settings)
    copies = [_copy(folder) for folder in folders or [_shard_in(fleet.folder, fleet, partition)]]
    if len({one.name for one in copies}) > 1:
        raise ShardError(f"{', '.join(str(one.where) for one in copies)}: are different shards, not copies of one")
    if fleet.second_place is not None:
        path = _shard_in(fleet.second_place, fleet, partition)
        return copies, FilePlace.look(path, copies[0].name) if path.exists() else None
    async with second_place(fleet) as place:
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
        The fleet is missing, or something else cannot be used.
    ShardError, LedgerError
        The shard cannot be used.
    LinkError
        The end came before the log could be reached.
    """
    fleet = _fleet(plan.settings)
    streams = [(device, stream.mechanism) for device, stream in plan.served.values()]
    async with contextlib.AsyncExitStack() as stack:
        log, bucket, key = await _patiently("log", lambda: _joined(stack, fleet, partition), stop)
        place = stack.enter_context(_second_place(fleet, partition, bucket))
        folder = _shard_in(fleet.folder, fleet, partition)
        outbox = stack.enter_context(held_outbox(folder, partition, fleet.partitions))
        remembered = await _patiently("second place", lambda: recalled(place, outbox.contents.ledger), stop)
        shard = stack.enter_context(
            opened_shard(
                folder,
                outbox,
                streams,
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
        worker = ShardWorker(shard, log, life)
        await stack.enter_async_context(beside(worker))
        async with asyncio.TaskGroup() as group:
            group.create_task(ShardStatus(plan, partition, shard, worker).run(stop), name="status")
            await worker.run(stop)
            return worker


async def _patiently(whom: str, attempt: Callable[[], Awaitable[Answer]], stop: asyncio.Event) -> Answer:
    """What `attempt` gives; a server that is away is waited for until `stop` is set. Raises LinkError then."""
    backoff = Backoff(PAUSE_S)
    while True:
        try:
            return await attempt()
        except LinkError as error:
            if stop.is_set():
                raise
            _LOG.warning("%s: %s; trying again until it is back", whom, error)
            await backoff.wait()


async def _joined(
    stack: contextlib.AsyncExitStack, fleet: FleetSettings, partition: int
) -> tuple[Log, SecondPlace | None, bytes | None]:
    """As `opened`, opened on the stack, with the log's secret."""
    async with contextlib.AsyncExitStack() as attempt:
        log, bucket = await attempt.enter_async_context(opened(fleet, partition, new=False))
        key = await log.secret()
        stack.push_async_exit(attempt.pop_all())
        return log, bucket, key


@contextlib.contextmanager
def _second_place(fleet: FleetSettings, partition: int, bucket: SecondPlace | None) -> Iterator[SecondPlace]:
    if fleet.second_place is not None:
        with contextlib.closing(FilePlace(_shard_in(fleet.second_place, fleet, partition))) as place:
            yield place
    else:
        assert bucket is not None, "a log without one is refused before"
        yield bucket


def _fleet(settings: Settings) -> FleetSettings:
    if settings.fleet is None:
        raise ConfigError("[fleet]: missing; it says where the log is and how it is cut")
    return settings.fleet


def _shard_in(folder: Path, fleet: FleetSettings, partition: int) -> Path:
    if not 0 <= partition < fleet.partitions:
        raise ConfigError(f"--partition {partition}: expected 0 to {fleet.partitions - 1}")
    return folder / f"shard-{partition}"
