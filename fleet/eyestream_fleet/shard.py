"""A shard: ledger, outbox and offset in one directory under one lock, and all streams of one partition of a log.

**Order of effects**, for what one call of `take` is given: reserve durably in the ledger; compute, with noise from
entropy fresh at that moment; append the released bytes and the next offset durably to the outbox. Only what `take`
returns may be published.

**After a crash** the log is read again from the outbox's offset, which lies at or before the first message of every
chunk that is not settled. A chunk with bytes in the outbox is before the border of its stream: its rows are refused,
and its bytes are sent again. One that is reserved and has no bytes there has not left: it is computed under the same
reservation. One that the budget withheld is refused by the ledger, for ever.

**Failure.** A write or `fdatasync` that fails closes the shard: nothing is released any more in this process.

**Clocks.** Chunks close by the clock of the log, so that reading again closes them at the same times. The day of the
budget is that of the host, and never goes back (`eyestream.rim.ledger.ledger`).

How far a shard has read its log, and whether that is still the log that was read.

A log may lose its newest messages, and give their offsets again to others: as NATS does where servers go on from what
they still have. Its name and its end do not say so once it is as long again. So the newest message that was read is
read again first. While it is in its place, taken at the same time, nothing before it was replaced. Else the log is read
from its beginning: what was released of it stays refused, and what nobody has read is not missed.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager

import msgspec

from eyestream.core.chunking.session import RowCounters
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.release.stream import ChunkCounters, Condition, Outcome, StreamRelease
from eyestream.core.reservation import Granted, Request, RowMark, Withheld
from eyestream.errors import ConfigError, LedgerError, LinkError, PayloadError, ShardError
from eyestream.rim.ledger.book import no_collection
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.second_place import Lengths
from eyestream.rim.sidecar.moments import Timers
from eyestream.streams import StreamKey
from eyestream.wire.raw import decode_raw
from eyestream_fleet.frames import Border, ReleasedChunk, Step
from eyestream_fleet.log import Bounds, Entry, partition_of
from eyestream_fleet.outbox import DurableOutbox
from eyestream_fleet.resuming import ChunkKey, Seal, last_rows, reserved, resumed

_LOG = logging.getLogger("eyestream.shard")

_NONE = (-1, 0.0)


class Position:
    """Where a shard is in its log.

    Parameters
    ----------
    epoch, next, newest
        As `Contents` has them: the life of the log, the first offset to read, and the newest message that was read.

    Attributes
    ----------
    epoch, next, newest : as given, at any moment.
    losses : how often the log was found without messages that it had, by name.
    missing : offsets that were not read: the log forgot them before, or left them out.
    """

    def __init__(self, epoch: str, next: int, newest: tuple[int, float]) -> None:
        self.epoch, self.next, self.newest = epoch, next, newest
        self.losses, self.missing = {"made_again": 0, "cut_off": 0, "forgotten": 0}, 0
        self._expects = self._replaced = False

    def begin(self, bounds: Bounds) -> bool:
        """Take what the log has; whether it is another one than before, whose offsets are of other messages."""
        if self.epoch != bounds.epoch:
            if self.epoch:
                self._lose("made_again", "the log is a new one; what the old one held is lost")
        elif self._replaced or max(self.next, self.newest[0] + 1) > bounds.end:
            self._lose("cut_off", "the log was cut off: messages that it had are lost; it is read from its beginning")
        else:
            self._pass_over(bounds.first)
            self._expects = self.newest[0] >= bounds.first
            return False
        self.epoch, self.next, self.newest = bounds.epoch, bounds.first, _NONE
        self._expects = self._replaced = False
        return True

    @property
    def start(self) -> int:
        """From which offset on the log is to be read after `begin`."""
        return min(self.next, self.newest[0]) if self._expects else self.next

    def recognised(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries to take of `entries`, which follow one another from `start` on.

        Raises
        ------
        LinkError
            Another message is in the place of the newest one that was read. `begin` comes next.
        """
        newest, at = self.newest
        if not self._expects or not entries or entries[-1].offset < newest:
            return entries
        if [entry.at for entry in entries if entry.offset == newest] != [at]:
            self._replaced = True
            raise LinkError("another message is in the place of the newest one that was read")
        self._expects = False
        return [entry for entry in entries if entry.offset >= self.next]

    def take(self, entry: Entry) -> bool:
        """Go past `entry`; whether it comes for the first time."""
        if entry.offset < self.next:
            return False
        self._pass_over(entry.offset)
        self.next, self.newest = entry.offset + 1, max(self.newest, (entry.offset, entry.at))
        return True

    def _pass_over(self, offset: int) -> None:
        """Go to `offset` where it lies ahead."""
        if self.next < offset:
            self.missing += offset - self.next
            self._lose("forgotten", f"the log has forgotten {offset - self.next} offsets that were not read")
            self.next = offset

    def _lose(self, kind: str, words: str) -> None:
        self.losses[kind] += 1
        _LOG.warning(words)


class Shard:
    """One life of a shard. For one caller at a time.

    Parameters
    ----------
    streams
        As for `serve`.
    ledger, outbox
        Open, ours alone, and made together.
    today
        Days since 1970, UTC.
    levels
        Of a lifetime that fades; 1: it does not.
    seal
        For sessions with a baseline, which begin again in each life without one.
    guarded
        Whether a second place was asked, and the files are no shorter than it remembers. Then a frame of the outbox
        that cannot be read was never sent.

    Attributes
    ----------
    position : how far its log is read.
    taken, rejected : messages whose rows went to their stream, and those refused, by reason.
    waiting : what an earlier life released and nobody acknowledged, to be published first.
    changes : how often the condition of a stream has become another one.
    former : counters of streams that are not served any more: of their chunks, and of their rows.

    Raises
    ------
    ShardError, LedgerError
        As `serve`.
    """

    def __init__(
        self,
        streams: Iterable[tuple[DeviceSettings, Mechanism]],
        ledger: Ledger,
        outbox: DurableOutbox,
        *,
        today: Callable[[], int],
        levels: int = 1,
        seal: Seal | None = None,
        guarded: bool = False,
    ) -> None:
        self._ledger, self._outbox, self._today, self._seal = ledger, outbox, today, seal
        self._secret, held = ledger.header.ledger_id, outbox.contents
        self.name = ledger_name(self._secret)
        self._usable, self._released = True, ledger.released
        if outbox.torn and guarded:
            _LOG.warning("the end of the outbox cannot be read, and nothing of it was sent; it is computed again")
        elif outbox.torn:
            _LOG.error("the end of the outbox cannot be read: chunks that are reserved and not in it are withheld")
        with self._writing():
            outbox.begin(last_rows(ledger) if outbox.torn and not guarded else {})
        self._open = reserved(ledger, held)
        self._served, self._sealed = dict[StreamKey, StreamRelease](), set[StreamKey]()
        self._levels = levels
        self._timers: Timers[StreamKey] = Timers()
        self._requests: list[Request] = []
        self._unwritten: list[ReleasedChunk] = []
        self._began: dict[ChunkKey, int] = {}
        self._granted: set[ChunkKey] = set()
        self._touched: dict[StreamKey, None] = {}
        self._changed: dict[StreamKey, None] = {}
        self.position = Position(held.epoch, held.offset, held.newest)
        self._read_before = held.newest[0]
        self.taken, self.rejected, self.changes = 0, Counter[str](), 0
        self._conditions: dict[StreamKey, Condition] = {}
        self.former: list[tuple[ChunkCounters, RowCounters]] = []
        self.waiting = list(held.waiting)
        self.serve(streams)

    @property
    def streams(self) -> dict[StreamKey, StreamRelease]:
        """Streams that are served here; to be read only. Another dictionary after each change."""
        return self._served

    def serve(self, streams: Iterable[tuple[DeviceSettings, Mechanism]]) -> None:
        """Serve these streams, and no others, from the next message on. Those that are served already go on.

        A stream that ends leaves its open chunk behind: charged, and not released. One that comes back goes on where
        its border is, and computes that chunk under the old reservation from the rows that come then, if any do.

        Parameters
        ----------
        streams
            Settings of every stream of the fleet, and the mechanism that releases its chunks. Those of other partitions
            are left out, and so are devices that were moved to another ledger.

        Raises
        ------
        ShardError
            A stream takes histories off.
        LedgerError
            The outbox cannot be written.
        """
        wanted, held = dict[StreamKey, tuple[DeviceSettings, Mechanism]](), self._outbox.contents
        for settings, mechanism in streams:
            if mechanism.sessions:
                raise ShardError(f"{settings.key}: a shard keeps no history of wearers, eyestream run does")
            if partition_of(settings.id, held.partitions) == held.partition and not self._is_moved(settings.id):
                wanted[settings.key] = settings, mechanism
        with self._writing(), no_collection():
            self._drop(self._served.keys() - wanted.keys())
            unreleased = Counter[StreamKey]()
            for (key, _, _), request in self._open.items():
                unreleased[key] += request.charge.epsilon
            served = dict[StreamKey, StreamRelease]()
            for key, (settings, mechanism) in wanted.items():
                served[key] = self._served.get(key) or resumed(
                    settings,
                    mechanism,
                    held.borders.get(str(key)),
                    self._ledger,
                    unreleased=unreleased[key],
                    seal=self._seal,
                    levels=self._levels,
                )
                if mechanism.baseline_chunks:
                    self._sealed.add(key)
                if key not in self._served:
                    self._timers.set(key, served[key].next_due())
                    self._conditions[key] = served[key].condition
            self._served = served

    def _is_moved(self, device: str) -> bool:
        try:
            self._ledger.refuse_moved(device, "device")
        except ConfigError as error:
            _LOG.error("%s; it is not served here", error)
            return True
        return False

    def _drop(self, gone: Set[StreamKey]) -> None:
        """Serve these streams no more."""
        if gone & self._changed.keys():
            self._touched = dict.fromkeys(gone & self._changed.keys())
            self._write()  # nothing is released by it: what is due was settled by the call before
        for key in gone:
            self.former.append((self._served[key].counters, self._served[key].rows))
            del self._conditions[key]
        if gone:
            # The log need not be read again for what they have begun, and their reservations stay open for their rows.
            self._began = {chunk: at for chunk, at in self._began.items() if chunk[0] not in gone}
            self._granted = {chunk for chunk in self._granted if chunk[0] not in gone}
            self._open |= {
                chunk: one for chunk, one in reserved(self._ledger, self._outbox.contents).items() if chunk[0] in gone
            }

    @property
    def lengths(self) -> Lengths:
        """How long its files are: for the second place, before anything is published."""
        return Lengths(self._released, self._outbox.contents.frames)

    def begin(self, bounds: Bounds) -> int:
        """From which offset on the log is to be read: what it has lost is missing in the chunks."""
        if self.position.begin(bounds):
            self._began = dict.fromkeys(self._began, bounds.first)
            self._read_before = -1
        return self.position.start

    def take(self, entries: Sequence[Entry], now: float | None = None) -> list[ReleasedChunk]:
        """Take messages of the log and, where nothing more waits in it, the time by its clock.

        Returns
        -------
        list
            Released bytes, durable in the outbox: to be published in order, after those before.

        Raises
        ------
        LedgerError
            Ledger or outbox could not be written, now or before: nothing can be released any more.
        """
        with self._writing():
            for entry in entries:
                self._feed(entry)
            if now is not None:
                for key in self._timers.due(now):
                    if key in self._served:
                        self._note(key, self._served[key].tick(now))
            self._reserve()
            return self._write()

    def acknowledge(self, chunks: Iterable[ReleasedChunk]) -> None:
        """The log has them."""
        self._outbox.acknowledge(chunks)

    def _feed(self, entry: Entry) -> None:
        if not self.position.take(entry):
            self.rejected["offset"] += 1
            return
        stream = None if entry.key is None else self._served.get(entry.key)
        if stream is None or entry.key is None:
            self.rejected["topic" if entry.key is None or self._is_ours(entry.key) else "partition"] += 1
            return
        if entry.offset <= self._read_before and stream.has_passed(entry.at):
            return  # from before its border: read again for another stream, it would turn back the clock of this one
        try:
            rows = decode_raw(entry.payload, stream.settings.features, stream.settings.schema)
            self.taken += 1
            late = stream.rows.late
            self._note(entry.key, stream.feed(rows, entry.at), entry.offset)
            if rows.end or stream.rows.late > late:  # no chunk of it says that it is to be read again
                self._changed[entry.key] = None
        except PayloadError as error:
            self.rejected[error.reason] += 1

    def _is_ours(self, key: StreamKey) -> bool:
        held = self._outbox.contents
        return partition_of(key.device, held.partitions) == held.partition

    def _note(self, key: StreamKey, outcome: Outcome, offset: int | None = None) -> None:
        for request in outcome.requests:
            self._began[key, request.session, request.last_row] = self.position.next if offset is None else offset
            self._requests.append(msgspec.structs.replace(request, write_ahead=True))
        for chunk in outcome.settled:
            whose = (key, chunk.span.session, chunk.span.last_row)
            self._began.pop(whose, None)
            self._touched[key] = None
            if chunk.payload is not None:
                self._unwritten.append(ReleasedChunk(self._id(whose), *key, *whose[1:], chunk.payload))
        if outcome.fault is not None:
            _LOG.error("a chunk is dropped: the mechanism failed with %s", outcome.fault)
        stream = self._served[key]
        self._timers.set(key, stream.next_due())
        if stream.condition != self._conditions[key]:
            self._conditions[key] = stream.condition
            self.changes += 1

    def _id(self, chunk: ChunkKey) -> str:
        """The id of the message with the bytes of a chunk: one for its life, which says nothing to others."""
        text = "/".join(map(str, chunk)).encode()
        return hashlib.blake2b(text, key=self._secret, digest_size=16, person=b"shard message").hexdigest()

    def _reserve(self) -> None:
        """Reserve what is new; what an earlier life reserved, and never released, is granted already."""
        requests, self._requests = self._requests, []
        answers: list[Granted | Withheld] = []
        asked = []
        for request in requests:
            granted = self._again(request)
            if granted is None:
                asked.append(request)
            else:
                answers.append(granted)
        asked_now = self._ledger.reserve(asked, self._today()) if asked else []
        answers += map(_of_a_baseline, asked_now)
        own: dict[StreamKey, list[Granted | Withheld]] = {}
        for answer in answers:
            own.setdefault(answer.request.key, []).append(answer)
            if isinstance(answer, Granted) and answer.spent is not None:
                self._granted.add(_chunk_key(answer.request))
        self._released += sum(isinstance(one, Granted) and one.spent is not None for one in asked_now)
        for key, its in own.items():
            self._note(key, self._served[key].answer(its))

    def _again(self, request: Request) -> Granted | None:
        """The grant of an earlier life for the same rows at a price of today; None: there is none."""
        known = self._open.pop(_chunk_key(request), None)
        if known is None or known.first_row != request.first_row or known.charge not in request.charges:
            return None
        return Granted(request, request.charges.index(known.charge))

    def _write(self) -> list[ReleasedChunk]:
        """Make durable what was settled: bytes, borders, and the next offset."""
        if not self._touched:
            return []
        released, self._unwritten = self._unwritten, []
        touched, self._touched, self._changed = self._touched | self._changed, {}, {}
        borders = {str(key): self._border(key) for key in touched}
        log = self.position
        offset = next(iter(self._began.values()), log.next)
        self._outbox.append(Step(log.epoch, offset, borders, released, self._outbox.acknowledged, log.newest))
        for chunk in [chunk for chunk in self._granted if chunk not in self._began]:
            key, session, last_row = chunk
            self._ledger.settle(key, RowMark(session, last_row), self._outbox.contents.frames)
            self._granted.discard(chunk)
        return released

    def _border(self, key: StreamKey) -> Border:
        """Where the stream goes on; one with a baseline leaves no readable byte of it."""
        stream, name = self._served[key], str(key)
        if key not in self._sealed:
            return Border(stream.settings.n, stream.border())
        return Border(stream.settings.n, None if self._seal is None else self._seal.close(stream.border(), name))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Usable again only when the body ran to its end."""
        if not self._usable:
            raise LedgerError("the shard is closed, or failed before; nothing can be released any more")
        self._usable = False
        try:
            yield
        except OSError as error:
            raise LedgerError(f"cannot write the outbox durably: {error.strerror}") from None
        self._usable = True


def _of_a_baseline(answer: Granted | Withheld) -> Granted | Withheld:
    """Grant a replayed baseline chunk again: nothing was released of it."""
    again = isinstance(answer, Withheld) and answer.obstacle == "rows" and answer.request.unreleased
    return Granted(answer.request) if again else answer


def _chunk_key(request: Request) -> ChunkKey:
    return request.key, request.session, request.last_row
