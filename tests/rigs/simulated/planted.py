"""Wrong versions of the product, which the histories must find: a function of it is replaced, and nothing else."""

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import msgspec
import numpy as np

from eyestream.core import wearers
from eyestream.core.accountant import Account
from eyestream.core.meter import Meter
from eyestream.core.release.order import ReleaseOrder
from eyestream.core.release.stream import Outcome, StreamRelease
from eyestream.core.reservation import NO_SLOT, Granted
from eyestream.core.wearers import Wearers
from eyestream.errors import LedgerError
from eyestream.rim.ledger import file as file_module
from eyestream.rim.ledger import second_place
from eyestream.rim.ledger.file import LedgerFile
from eyestream.rim.ledger.guarded import GuardedLedger
from eyestream.rim.ledger.identity import odometer_start
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.writer import Writer
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.sidecar import off, wearing
from eyestream.rim.sidecar.boards import Odometers
from eyestream.rim.sidecar.pipeline import Pipeline
from eyestream.rim.sidecar.sender import Outbox, OutboxEntry, Sender
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sidecar.spending import Spending
from eyestream.sdk import chunks as chunks_module
from eyestream.sdk.chunks import Chunks
from eyestream.wire.release import PrivateChunk, decode_private, encode_private
from eyestream.wire.status import Reading
from eyestream_fleet import directory
from eyestream_fleet import roll as rolls
from eyestream_fleet import second_place as fleet_place
from eyestream_fleet import shard as shard_module
from eyestream_fleet.outbox import DurableOutbox
from eyestream_fleet.second_place import RevisedPlace
from eyestream_fleet.shard import Shard

__all__ = ["PLANTED"]

Patches = list[tuple[Any, str, Any]]

PLANTED: dict[str, tuple[str, Callable[[], contextlib.AbstractContextManager[None]]]] = {}
"""By name: which part of the world must find it, and what plants it."""


def _in(part: str) -> Callable[[Callable[[], Patches]], Callable[[], Patches]]:
    def add(make: Callable[[], Patches]) -> Callable[[], Patches]:
        @contextlib.contextmanager
        def plant() -> Iterator[None]:
            with contextlib.ExitStack() as stack:
                for home, name, wrong in make():
                    stack.enter_context(mock.patch.object(home, name, wrong))
                yield

        PLANTED[make.__name__] = part, plant
        return make

    return add


def _nothing(*given: object, **named: object) -> None:
    pass


@_in("inside")
def fresh_noise_at_replay() -> Patches:
    """Rows that an earlier life reserved are released again."""
    real = Account.obstacle

    def obstacle(self: Account, *given: Any) -> Any:
        found = real(self, *given)
        return None if found == "rows" else found

    return [(Account, "obstacle", obstacle), (Account, "mark", _nothing)]


@_in("inside")
def publish_before_reserve() -> Patches:
    """A chunk that is due does not wait for the answer of the ledger."""
    real = ReleaseOrder._settle

    def settle(self: ReleaseOrder) -> Any:
        for chunk in self._due:
            self._answers.setdefault(chunk.span, Granted(self._request(chunk.span)))
        return real(self)

    return [(ReleaseOrder, "_settle", settle)]


@_in("inside")
def ceiling_read_before_a_grant_is_written() -> Patches:
    """All requests of a batch are weighed by the sums from before it."""
    reserve, obstacle = Ledger.reserve, Account.obstacle
    before: dict[int, Account] = {}

    def batch(self: Ledger, *given: Any) -> Any:
        before.clear()
        before.update({id(one): Account.restored(one.state()) for one in self._book.accounts.values()})
        return reserve(self, *given)

    def weigh(self: Account, *given: Any) -> Any:
        found = obstacle(self, *given)
        return found if found in NO_SLOT or id(self) not in before else obstacle(before[id(self)], *given)

    return [(Ledger, "reserve", batch), (Account, "obstacle", weigh)]


@_in("inside")
def day_is_the_latest_that_was_shown() -> Patches:
    def day_of(self: Ledger, today: int) -> int:
        self._book.days.pass_over(max(today, self._book.days.latest))
        return self._book.days.last

    return [(Ledger, "_day_of", day_of)]


@_in("inside")
def granted_before_the_disk() -> Patches:
    def sync(self: Writer) -> None:
        self._unsynced = 0

    return [(Writer, "sync", sync)]


@_in("inside")
def failed_sync_is_taken_for_one() -> Patches:
    def sync(self: Writer) -> None:
        with contextlib.suppress(OSError):
            self._file.sync()
        self._unsynced = 0

    return [(Writer, "sync", sync)]


@_in("inside")
def baseline_is_used_twice() -> Patches:
    """Another session goes on with the baseline of the one before."""
    real = StreamRelease._begin_if_first

    def begin(self: StreamRelease, span: Any) -> None:
        if span.index == 0 and self._session is not None and self._mechanism.baseline_chunks:
            self._private_session = self._new_session()
        else:
            real(self, span)

    return [(StreamRelease, "_begin_if_first", begin)]


@_in("inside")
def history_of_another_wearer() -> Patches:
    """All who wear a device have one pseudonym."""
    real, first = StreamRelease._remembered, ReleaseOrder._first_of_pseudonym
    return [
        (StreamRelease, "_remembered", lambda self, wearer, before: real(self, 0, self._last.get(0))),
        (ReleaseOrder, "_first_of_pseudonym", lambda self, wearer: first(self, 0)),
    ]


@_in("inside")
def torn_end_is_taken_for_unsent() -> Patches:
    real = Ledger.__init__

    def begin(self: Ledger, path: Any, **given: Any) -> None:
        real(self, path, **given | {"suffices": lambda book: True})

    return [(Ledger, "__init__", begin)]


@_in("inside")
def session_number_is_not_new() -> Patches:
    real = StreamRelease._open

    def begin(self: StreamRelease, wearer: int) -> Any:
        session = real(self, wearer)
        self._private_session = 7
        return session

    return [(StreamRelease, "_open", begin)]


@_in("inside")
def ceiling_is_passed_by_one() -> Patches:
    real = Meter.obstacle

    def obstacle(self: Meter, ceilings: Any, charge: Any, *given: Any) -> Any:
        more = {name: old + charge.epsilon for name in ("session", "lifetime") if (old := getattr(ceilings, name))}
        return real(self, dataclasses.replace(ceilings, **more), charge, *given)

    return [(Meter, "obstacle", obstacle)]


@_in("inside")
def wearers_have_no_ceiling() -> Patches:
    return [(Wearers, "forbids", lambda *given: False)]


@_in("inside")
def rewriting_forgets_the_day() -> Patches:
    real = Meter.state
    return [(Meter, "state", lambda self: real(self)._replace(day_epsilon=0))]


@_in("inside")
def names_are_not_durable() -> Patches:
    return [(file_module, "_sync_directory", _nothing)]


@_in("inside")
def new_file_is_not_durable() -> Patches:
    return [(file_module, "_sync_whole", _nothing)]


@_in("inside")
def memory_of_the_system_is_trusted() -> Patches:
    """As it was before this tool found it: what a failed sync has left is read, and not written again."""
    return [(LedgerFile, "write_again", _nothing)]


@_in("inside")
def name_of_an_opened_file_is_trusted() -> Patches:
    """As it was before this tool found it: a file that was renamed and no more is written into."""
    begin, real, opening = LedgerFile.__init__, file_module._sync_directory, [False]

    def opened(self: LedgerFile, *given: Any) -> None:
        opening[0] = True
        try:
            begin(self, *given)
        finally:
            opening[0] = False

    def sync(path: Any) -> None:
        if not opening[0]:
            real(path)

    return [(LedgerFile, "__init__", opened), (file_module, "_sync_directory", sync)]


@_in("inside")
def second_place_hears_nothing() -> Patches:
    return [(GuardedLedger, "reserve", lambda self, requests, day: self._ledger.reserve(requests, day))]


@_in("inside")
def lifetime_does_not_fade() -> Patches:
    """A later level is charged, and the first one released."""
    return [(StreamRelease, "_on_level", lambda self, granted, session: session)]


@_in("inside")
def raw_where_a_mechanism_fails() -> Patches:
    real = StreamRelease._payload

    def payload(self: StreamRelease, session: Any, chunk: Any) -> bytes:
        try:
            return real(self, session, chunk)
        except ArithmeticError:
            values = np.asarray(chunk.values, np.float32)
            session, index = self._private_session, chunk.span.index
            return encode_private(PrivateChunk(session, index, chunk.t0, 0.5, values, 0.5, 0.0))

    return [(StreamRelease, "_payload", payload)]


@_in("whole")
def second_place_is_written_by_two() -> Patches:
    """Whoever has it open writes into it, whoever wrote since."""
    return [(LedgerFile, "is_there", lambda self, size: True)]


@_in("whole")
def granted_before_the_thread_has_asked() -> Patches:
    real = Spending.reserve

    async def reserve(self: Spending, requests: Any, day: int) -> Any:
        asking = asyncio.get_running_loop().create_task(real(self, requests, day))
        asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return [Granted(request) for request in requests]

    return [(Spending, "reserve", reserve)]


@_in("whole")
def fresh_noise_on_the_next_link() -> Patches:
    """What was under way when a link was lost is drawn again for the next one."""
    real = Outbox.recall

    def recall(self: Outbox) -> None:
        real(self)
        for place, entry in enumerate(self._waiting):
            said = decode_private(entry.payload)
            values = np.array(said.values)
            values[1] += 1 << 20
            payload = encode_private(dataclasses.replace(said, values=values))
            self._waiting[place] = dataclasses.replace(entry, payload=payload)

    return [(Outbox, "recall", recall)]


@_in("whole")
def newest_first() -> Patches:
    def put(self: Outbox, topic: str, payload: bytes, now: float) -> None:
        self._waiting.appendleft(OutboxEntry(topic, payload, now + self._lifetime_s))

    return [(Outbox, "put", put)]


@_in("whole")
def goodbye_is_not_said() -> Patches:
    real = Sender.leave
    return [(Sender, "leave", lambda self, goodbye: real(self, []))]


@_in("whole")
def budget_is_of_the_start() -> Patches:
    """What is said to be left is what was left when the sidecar began."""
    return [(Spending, "spent", lambda self, device: self._ledger.odometer("nobody"))]


@_in("whole")
def ledger_that_failed_is_ignored() -> Patches:
    real = Ledger.reserve

    def reserve(self: Ledger, requests: Any, day: int) -> Any:
        try:
            return real(self, requests, day)
        except LedgerError:
            return [Granted(request) for request in requests]

    return [(Ledger, "reserve", reserve)]


@_in("whole")
def odometer_is_of_a_life() -> Patches:
    """It counts what was spent since the process began."""
    real = Odometers.reading

    def reading(self: Odometers, key: Any, odometer: Any) -> Reading:
        said = real(self, key, odometer)
        first = vars(self).setdefault("_first", {}).setdefault(key, said.reads)
        start = odometer_start(self._ledger_id, key)
        return msgspec.structs.replace(said, began=start + said.began - first, reads=start + said.reads - first)

    return [(Odometers, "reading", reading)]


@_in("whole")
def odometer_is_of_a_session() -> Patches:
    real = Odometers.reading

    def reading(self: Odometers, key: Any, odometer: Any) -> Reading:
        if odometer is not None:
            less = msgspec.structs.replace
            own = {name: less(one, epsilon=one.session_epsilon) for name, one in odometer.streams.items()}
            odometer = less(odometer, streams=own)
        return real(self, key, odometer)

    return [(Odometers, "reading", reading)]


@_in("whole")
def odometer_never_goes_back() -> Patches:
    """Whatever the ledger has, a life goes on from what was said last: nobody hears that it went back."""
    real, said = Odometers.reading, dict[Any, int]()

    def reading(self: Odometers, key: Any, odometer: Any) -> Reading:
        found = real(self, key, odometer)
        if found.reads == odometer_start(self._ledger_id, key):  # another history
            said.pop(found.ledger, None)
        began = self._began[key] = max(found.began, said.get(found.ledger, 0) if found.reads == found.began else 0)
        said[found.ledger] = reads = max(began, found.reads)
        return msgspec.structs.replace(found, began=began, reads=reads)

    return [(Odometers, "reading", reading)]


@_in("whole")
def reload_holds_from_the_next_life() -> Patches:
    """Applications are told of lower ceilings, and the ledger of this life does not know of them."""
    return [(Ledger, "lower", _nothing)]


@_in("whole")
def subscriber_gives_a_chunk_twice() -> Patches:
    """What comes a second time is taken for another chunk."""
    real = Chunks._accept

    def accept(self: Chunks, *given: Any) -> None:
        self._last.clear()
        real(self, *given)

    return [(Chunks, "_accept", accept)]


@_in("whole")
def subscriber_asks_again_at_once() -> Patches:
    """As it was before this tool found it: who waits for silence wakes an instant too early, without an end."""
    return [(chunks_module, "_EARLY_S", 0.0)]


@_in("whole")
def subscriber_begins_a_new_session() -> Patches:
    """The broker forgets an application that is away, although it has a fixed client id."""
    real = ReconnectingLink.__init__

    def init(self: ReconnectingLink, *given: Any, **named: Any) -> None:
        real(self, *given, **named | {"clean_session": True})

    return [(ReconnectingLink, "__init__", init)]


@_in("worn")
def pause_is_not_remembered() -> Patches:
    return [(off, "remember_pause", _nothing)]


@_in("worn")
def released_chunks_outlive_a_pause() -> Patches:
    """What waits for the link leaves after the pause."""
    return [(Outbox, "pause", _nothing)]


@_in("worn")
def open_chunk_goes_on_after_a_pause() -> Patches:
    return [(StreamRelease, "pause", lambda *given: Outcome())]


@_in("worn")
def chunk_that_was_reserved_leaves_in_a_pause() -> Patches:
    return [(Sidecar, "_publish", lambda self, topic, payload: self._sender.post(topic, payload))]


@_in("worn")
def rows_after_a_pause_have_gaze_of_it() -> Patches:
    """As it was before: rows are taken again at once, and each describes some time before it."""
    return [(Pipeline, "resume", lambda self, now: setattr(self, "paused", False))]


@_in("worn")
def rows_after_a_switch_have_gaze_of_before() -> Patches:
    real = Pipeline._of_wearer

    def take(self: Pipeline, served: Any, rows: Any, at: float) -> Any:
        served.since = -1e9
        return real(self, served, rows, at)

    return [(Pipeline, "_of_wearer", take)]


@_in("worn")
def session_goes_on_over_a_switch() -> Patches:
    """The open chunk of one wearer is released under the next one."""
    real = Pipeline.switch

    def switch(self: Pipeline, device: str, now: float) -> int:
        with mock.patch.object(StreamRelease, "pause", return_value=Outcome()):
            return real(self, device, now)

    return [(Pipeline, "switch", switch)]


@_in("worn")
def switch_is_not_remembered() -> Patches:
    return [(wearing, "put", _nothing)]


@_in("worn")
def handle_that_comes_back_is_new() -> Patches:
    fresh = itertools.count(1)
    return [(Sidecar, "number", lambda *given: next(fresh))]


@_in("worn")
def known_wearers_have_no_ceiling() -> Patches:
    return [(Wearers, "forbids", lambda *given: False)]


@_in("worn")
def every_handle_is_known() -> Patches:
    """So a day has room for any number of new ones."""
    return [(wearers, "_is_new", lambda meter: False)]


@_in("worn")
def forgotten_history_is_kept() -> Patches:
    return [(StreamRelease, "forget", _nothing)]


@_in("worn")
def debt_is_forgotten() -> Patches:
    """With the diary of a wearer, what the wearer has spent."""
    return [(Wearers, "melt", lambda self, *given: self._meters.clear())]


@_in("fleet")
def lengths_in_the_place_of_tokens() -> Patches:
    return [(directory, "check_not_overtaken", _nothing)]


@_in("fleet")
def second_place_has_the_token_first() -> Patches:
    """The token is written beside the ledger when the second place has it."""

    async def begin(path: Any, remembered: Any, write: Any) -> str:
        token = second_place.announce(path.with_name("elsewhere"), remembered)
        await write(remembered._replace(life=token))
        second_place.settle(path, token)
        return token

    return [(fleet_place, "begin_life", begin)]


@_in("fleet")
def second_place_is_written_over() -> Patches:
    """Whatever is in it."""
    write = RevisedPlace.write

    async def over(self: RevisedPlace, ledger: str, remembered: Any) -> None:
        held = await self._get(ledger)
        self._revision = 0 if held is None else held[0]
        await write(self, ledger, remembered)

    return [(RevisedPlace, "write", over)]


@_in("fleet")
def second_place_is_written_over_a_token_alone() -> Patches:
    """A writing is conditional on the token that was read or written last, not on all that is there."""
    write, read = RevisedPlace.write, RevisedPlace.read

    async def noted(self: Any, ledger: str) -> Any:
        found = await read(self, ledger)
        self.token = "" if found is None else found.life
        return found

    async def over(self: Any, ledger: str, remembered: Any) -> None:
        held = await self._get(ledger)
        if held is not None and fleet_place._unpacked(ledger, held[1]).life == self.token:
            self._revision = held[0]
        await write(self, ledger, remembered)
        self.token = remembered.life

    return [(RevisedPlace, "read", noted), (RevisedPlace, "write", over)]


@_in("fleet")
def tokens_are_not_durable() -> Patches:
    real = file_module.put

    def put(path: Any, data: bytes) -> None:
        with (
            mock.patch.object(file_module, "_sync_whole", _nothing),
            mock.patch.object(file_module, "_sync_directory", _nothing),
        ):
            real(path, data)

    return [(second_place, "put", put)]


@_in("fleet")
def published_before_the_outbox() -> Patches:
    """The outbox is durable after the bytes have left: a life that ends between computes them again."""
    return [(DurableOutbox, "append", lambda self, step: step.apply(self.contents))]


@_in("fleet")
def reservation_of_an_earlier_life_is_forgotten() -> Patches:
    """What was reserved and never released is asked for again, and is refused for ever."""
    return [(Shard, "_again", _nothing)]


@_in("fleet")
def log_is_read_from_after_the_last_message() -> Patches:
    """Rows of chunks that are open when a life ends do not come again."""
    real = Shard._note

    def note(self: Shard, *given: Any) -> None:
        real(self, *given)
        self._began.clear()

    return [(Shard, "_note", note)]


@_in("fleet")
def acknowledged_before_it_is_published() -> Patches:
    """What waits in the outbox is forgotten with the next step."""
    real = DurableOutbox.append

    def append(self: DurableOutbox, step: Any) -> None:
        real(self, step)
        self.acknowledge(step.released)

    return [(DurableOutbox, "append", append)]


@_in("fleet")
def clock_is_turned_back_by_what_is_read_again() -> Patches:
    """As it was before this tool found it: a message from before a stream's border reaches the stream."""
    return [(StreamRelease, "has_passed", lambda self, now: False)]


@_in("fleet")
def late_rows_are_forgotten() -> Patches:
    """As it was before this tool found it: a border is written when a chunk settles, and not when rows came late."""
    real = Shard._write

    def write(self: Shard) -> Any:
        self._changed.clear()
        return real(self)

    return [(Shard, "_write", write)]


@_in("moves")
def device_is_served_by_two_partitions() -> Patches:
    """Whatever a roll names is served."""

    def own(device: str, partitions: int) -> int:
        return Shard.partition  # type: ignore[attr-defined, no-any-return]

    def serve(self: Shard, streams: Any) -> None:
        Shard.partition = self._outbox.contents.partition  # type: ignore[attr-defined]
        with mock.patch.object(shard_module, "partition_of", own):
            real(self, streams)

    real = Shard.serve
    return [(rolls, "read_roll", rolls.unpack_roll), (Shard, "serve", serve)]


@_in("moves")
def older_roll_is_taken() -> Patches:
    """A directory that is read from an old place."""
    return [(rolls, "followed", lambda roll, data: rolls.read_roll(data, roll.partition, roll.partitions))]


@_in("moves")
def moved_device_is_served_where_it_was() -> Patches:
    """An old roll names it, and the ledger that it left is not asked."""
    real = Ledger.reserve

    def reserve(self: Ledger, requests: Any, day: int) -> Any:
        exported, self._book.exported = self._book.exported, {}
        try:
            return real(self, requests, day)
        finally:
            self._book.exported = exported

    return [(Shard, "_is_moved", lambda self, device: False), (Ledger, "reserve", reserve)]


@_in("moves")
def reservations_move_with_a_device() -> Patches:
    """As it was before this tool found it: what one shard has reserved, and perhaps released, another one computes."""
    real = OperatedLedger.export_device

    def export(self: OperatedLedger, device: str, to: str, *, must_be_known: bool = True) -> Any:
        given = real(self, device, to, must_be_known=must_be_known)
        return msgspec.structs.replace(given, line=given.line._replace(facts=self._book.line(device).facts))

    return [(OperatedLedger, "export_device", export)]


@_in("moves")
def stream_that_comes_back_begins_again() -> Patches:
    """A device that was removed and comes back is a new one, with its reservations of before."""
    real = Shard.serve

    def serve(self: Shard, streams: Any) -> None:
        borders, self._outbox.contents.borders = self._outbox.contents.borders, {}
        try:
            real(self, streams)
        finally:
            self._outbox.contents.borders = borders

    return [(Shard, "serve", serve)]
