"""For trackers: rows or samples of gaze in, raw messages out."""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eyestream.core.anchor import BASELINE_S, LEAST_SEEN
from eyestream.errors import ConfigError, PayloadError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.messages import NO_PROPERTIES
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message, Properties, RefusedError
from eyestream.wire import gaze, topics
from eyestream.wire.raw import MAX_WEARER, ROWS, encode_raw, rows_hash, rows_per_message
from eyestream.wire.release import decode_meta

GOODBYE_SECONDS = 3.0
"""Wait for the end message to be taken before leaving without it."""

_Part = tuple[bytes, int]
"""A message, and how many rows or samples it has."""

_LONGEST_S = 30.0
"""Rows of so many seconds are held at most: less than half of the silence after which a session ends by default."""

_LOG = logging.getLogger("eyestream.link")


class Publisher:
    """Publishes the rows of one tracker, or its gaze; an async context manager.

    It numbers rows one by one from 0 in a session of its own: one number is one nominal period, whether or not the eye
    was seen, and no row is over gaze from before the session. Send a row of NaN for a lost eye; pass `seq` to leave
    numbers out. While the broker is away rows are lost, counted in `lost`, and numbered all the same, so that the
    receiver sees the gap.

    Rows are held until their chunk is whole, and go as one message. That is a sixth of the work at the other end, and
    no chunk is later, for it is released when its last row is there. The length of a chunk is in the description of the
    stream (`meta`), which the broker must let the tracker read. Until it comes each call is a message, and so is the
    first call of a session. Nothing is held for more than 30 s of rows.

    Where a baseline is taken off each session, one that was mostly lost leaves a session that says little, at full
    price. The sidecar tells nobody, as that would tell whether the eye was seen. The tracker can know: `baseline_seen`.

    A tracker that has no features sends its gaze instead (`send_gaze`), and needs neither names nor rate.

    Parameters
    ----------
    broker
        URL of the raw broker, ``mqtt://host[:port]``, or its settings when it asks for a login or TLS.
    device
        Pseudonym of the tracker, as in the sidecar's configuration.
    names
        Feature names, in column order; none for a tracker that sends gaze alone.
    rate
        Rows a second (nominal); beside names.
    units
        Of the features, one each, as in the sidecar's calibration; none: not told. A hash of names, units and rate goes
        with the rows where the broker speaks MQTT 5, and the sidecar refuses rows that are others than its own.
    stream
        Name of the stream, as in the sidecar's configuration.
    schema
        Schema number, as in the sidecar's configuration: of its stream, or of its source of gaze.
    wearer
        Who wears the device, as a number from 1 to 2^32 - 1 that means nothing outside; 0: not known. When somebody
        else puts it on, name them with `end_session`.
    hold
        Whether rows are held.
    gaze_s
        Samples of gaze go together until they span so many seconds of the tracker's clock.
    wait_s
        How long entering waits for the first connection before it gives up.

    Raises
    ------
    ConfigError
        A parameter cannot be used.
    LinkError
        On entering: the broker cannot be reached within `wait_s`.

    Examples
    --------
    >>> async def track(rows):
    ...     async with Publisher("mqtt://localhost", "hmd-1", names=["pupil", "speed"], rate=2.0) as publisher:
    ...         await publisher.send(rows)
    """

    def __init__(
        self,
        broker: str | BrokerSettings,
        device: str,
        names: list[str] | tuple[str, ...] = (),
        rate: float = 0.0,
        *,
        units: list[str] | tuple[str, ...] = (),
        stream: str = topics.FEATURE_STREAM,
        schema: int = 1,
        wearer: int = 0,
        hold: bool = True,
        gaze_s: float = 0.05,
        wait_s: float = 10.0,
    ) -> None:
        if names and not 0 < rate < float("inf"):
            raise ConfigError("rate: expected rows a second, above 0")
        if units and len(units) != len(names):
            raise ConfigError(f"units: expected {len(names)}, one for each name, got {len(units)}")
        self._endpoint = Endpoint.of(BrokerSettings(broker) if isinstance(broker, str) else broker)
        self._topic, self._gaze_topic = topics.raw_topic(device, stream), topics.gaze_topic(device)
        self._meta_topic = topics.meta_topic(device, stream)
        self._schema, self._wearer = schema, _handle(wearer)
        said = ((ROWS, rows_hash(tuple(names), tuple(units), rate)),) if names else ()
        self._more = Properties(user=said)
        self._asks, self._gaze_s = hold and bool(names), gaze_s
        self._chunk = 0
        self._rows, self._gaze = _HeldRows(), _HeldGaze()
        self._wait_s = wait_s
        self._carrier = _Carrier()
        self._stack = contextlib.AsyncExitStack()
        self.names = tuple(names)
        self.rate = rate
        self.session = time.time_ns()
        """Number of the session; larger for every later one, also after a restart."""
        self.next_seq = 0
        """Number of the next row."""
        self._begun = False
        self.lost = 0
        """Rows and samples that no broker took."""
        self._minute = math.ceil(BASELINE_S * rate) if names else 0
        self._seen = 0

    @property
    def baseline_seen(self) -> float | None:
        """Share of the rows of the session's first minute that had at least half of their values.

        None before that minute is over. Raw data, for the tracker and its wearer: nothing of it is sent or logged.
        Below a half, the wearer may put the device right and begin again (`end_session`), with another baseline.
        Applications see that a session began again, as they see every beginning.
        """
        return self._seen / self._minute if 0 < self._minute <= self.next_seq else None

    async def __aenter__(self) -> Self:
        link = ReconnectingLink(self._endpoint, self._serve, what="raw", client_id=None, deliver=self._hear)
        await self._stack.enter_async_context(link.beside(self._wait_s))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._carrier.stands:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GOODBYE_SECONDS):
                        await self._hand_over(self._gaze_topic, self._packed_gaze())
                        if self.names:
                            await self.end_session()
        finally:
            await self._stack.aclose()

    async def send(self, rows: ArrayLike, *, seq: int | None = None, t: ArrayLike | None = None) -> bool:
        """Take `rows`, numbered from `seq` (default: on from the last one), and publish what makes chunks whole.

        Parameters
        ----------
        rows
            (m, F) or, for one row, (F,). NaN is a missing value.
        seq
            Number of the first row; below `next_seq` it is refused.
        t
            Seconds of the tracker's clock at each row, finite; applications are then told when a chunk began.

        Returns
        -------
        bool
            Whether the broker has acknowledged what was to be published now; True for rows that are held.

        Raises
        ------
        ValueError
            Another width than there are names, a number that was used, or times that are not one for each row.
        """
        if not self.names:
            raise ValueError("rows: this publisher was made without names of features")
        block = np.atleast_2d(np.asarray(rows, dtype=np.float32))
        if block.ndim != 2 or block.shape[1] != len(self.names):
            raise ValueError(f"rows: expected (m, {len(self.names)}), got {block.shape}")
        first = self.next_seq if seq is None else seq
        if first < self.next_seq:
            raise ValueError(f"seq: expected {self.next_seq} or more, got {first}")
        times = None if t is None else np.atleast_1d(np.asarray(t, dtype=np.float64))
        if times is not None and (times.shape != (len(block),) or not np.isfinite(times).all()):
            raise ValueError(f"t: expected {len(block)} finite numbers, one for each row")
        parts = [] if self._rows.fits(first, times) else self._packed_rows(len(self._rows))
        self.next_seq = first + len(block)
        early = block[: max(self._minute - first, 0)]
        self._seen += int(np.count_nonzero(np.isfinite(early).mean(axis=1) >= LEAST_SEEN))
        self._rows.add(first, block, times)
        return await self._hand_over(self._topic, [*parts, *self._packed_rows(self._due())])

    def _due(self) -> int:
        """How many of the rows that are held go now."""
        held = len(self._rows)
        most = min(rows_per_message(len(self.names)), int(_LONGEST_S * self.rate))
        if not self._chunk or not self._begun or held >= most:
            return held
        return max(0, held - self.next_seq % self._chunk)

    def _packed_rows(self, count: int) -> list[_Part]:
        """The first `count` rows that are held; nothing is awaited, so calls from several tasks do not mix."""
        if not count:
            return []
        first, block, times = self._rows.take(count)
        self._begun = True
        return [(encode_raw(self.session, first, block, self._schema, t=times, wearer=self._wearer), count)]

    async def send_gaze(self, t: ArrayLike, values: ArrayLike) -> bool:
        """Take samples of gaze, and publish them when they span `gaze_s`; a lost eye is a sample of NaN.

        Parameters
        ----------
        t
            (m,) or one number: seconds of the tracker's own clock, one a sample, at which the eye was seen.
        values
            (m, C) or, for one sample, (C,): the columns of the profile that the sidecar's source is configured with;
            of `mqtt` x and y in degrees (right and up), and optionally the pupil's diameter in mm.

        Returns
        -------
        bool
            Whether the broker has acknowledged what was to be published now; True for samples that are held.

        Raises
        ------
        ValueError
            There is not one time for each sample.
        """
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        block = np.asarray(values, dtype=np.float32)
        block = block[None, :] if block.ndim == 1 else block
        if block.ndim != 2 or times.shape != block.shape[:1]:
            raise ValueError(f"gaze: expected one time for each sample, got {times.shape} and {block.shape}")
        fits = self._gaze.fits(block, rows_per_message(block.shape[1]))
        parts = [] if fits else self._packed_gaze()
        self._gaze.add(times, block)
        if self._gaze.span >= self._gaze_s:
            parts += self._packed_gaze()
        return await self._hand_over(self._gaze_topic, parts)

    def _packed_gaze(self) -> list[_Part]:
        """The samples that are held."""
        if not self._gaze.held:
            return []
        times, block = self._gaze.take()
        return [(gaze.encode_gaze(times, block, self._schema), len(block))]

    async def end_session(self, *, wearer: int | None = None) -> bool:
        """Tell the sidecar that the session is over, and number the next rows from 0 in a new one, of `wearer`.

        The next wearer is the same one by default. Begin the next session with gaze of its own: a row over gaze of the
        old one would tell of that gaze once more. Raises ConfigError for a handle that cannot be one.
        """
        following = self._wearer if wearer is None else _handle(wearer)
        parts = self._packed_rows(len(self._rows))
        nothing = np.empty((0, len(self.names)), dtype=np.float32)
        payload = encode_raw(self.session, self.next_seq, nothing, self._schema, end=True, wearer=self._wearer)
        self.session = max(self.session + 1, time.time_ns())
        self.next_seq, self._seen, self._wearer, self._begun = 0, 0, following, False
        return await self._hand_over(self._topic, [*parts, (payload, 0)])

    async def _hand_over(self, topic: str, parts: list[_Part]) -> bool:
        """Whether the broker has taken all; what it has not is lost."""
        more = self._more if topic == self._topic else NO_PROPERTIES
        taken = [await self._carrier.hand_over(topic, payload, more) for payload, _ in parts]
        self.lost += sum(count for (_, count), one in zip(parts, taken, strict=True) if not one)
        return all(taken)

    def _hear(self, message: Message) -> None:
        """The description of the stream, which has the length of a chunk."""
        if message.topic == self._meta_topic:
            with contextlib.suppress(PayloadError):
                self._chunk = decode_meta(message.payload).n

    async def _ask(self, link: Link) -> None:
        """Subscribe to the description; a broker that ends the link over that is not asked again."""
        if self._asks:
            self._asks = False
            with contextlib.suppress(RefusedError):
                await link.subscribe(self._meta_topic, 1)
            self._asks = True

    async def _serve(self, link: Link) -> None:
        """Publish one entry after the other for as long as the link stands."""
        await self._carrier.serve(link, self._ask)


def _handle(wearer: int) -> int:
    if not 0 <= wearer <= MAX_WEARER:
        raise ConfigError(f"wearer: expected a number from 0 to {MAX_WEARER}")
    return wearer


@dataclass(eq=False, slots=True)
class _HeldRows:
    """Rows with consecutive numbers that wait, and their times, if they have any."""

    first: int = 0
    blocks: list[NDArray[np.float32]] = field(default_factory=list)
    times: list[NDArray[np.float64]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def fits(self, first: int, times: NDArray[np.float64] | None) -> bool:
        """Whether rows from number `first` on, with or without times, go into one message with those that wait."""
        return not self.blocks or (first == self.first + len(self) and (times is None) == (not self.times))

    def add(self, first: int, block: NDArray[np.float32], times: NDArray[np.float64] | None) -> None:
        """Let them wait too."""
        if not self.blocks:
            self.first = first
        self.blocks.append(block)
        if times is not None:
            self.times.append(times)

    def take(self, count: int) -> tuple[int, NDArray[np.float32], NDArray[np.float64] | None]:
        """The first `count`; the others wait on."""
        first, block = self.first, np.concatenate(self.blocks)
        times = np.concatenate(self.times) if self.times else None
        self.first, self.blocks, self.times = first + count, [], []
        if count < len(block):
            self.add(self.first, block[count:], None if times is None else times[count:])
        return first, block[:count], None if times is None else times[:count]


@dataclass(eq=False, slots=True)
class _HeldGaze:
    """Samples that wait, with their times."""

    blocks: list[NDArray[np.float32]] = field(default_factory=list)
    times: list[NDArray[np.float64]] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Whether some wait."""
        return bool(self.blocks)

    @property
    def span(self) -> float:
        """Seconds from the first to the last; infinite where the clock went back, stands still or is none."""
        t = np.concatenate(self.times)
        seconds = float(t[-1] - t[0]) if len(t) else np.inf
        return seconds if seconds > 0 or len(t) == 1 else np.inf

    def fits(self, block: NDArray[np.float32], most: int) -> bool:
        """Whether they go into one message of `most` samples with those that wait."""
        return not self.blocks or (
            self.blocks[0].shape[1] == block.shape[1] and sum(map(len, self.blocks)) + len(block) <= most
        )

    def add(self, times: NDArray[np.float64], block: NDArray[np.float32]) -> None:
        """Let them wait too."""
        self.times.append(times)
        self.blocks.append(block)

    def take(self) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Times and samples; none waits on."""
        found = np.concatenate(self.times), np.concatenate(self.blocks)
        self.times, self.blocks = [], []
        return found


@dataclass(eq=False, slots=True)
class _Pending:
    topic: str
    payload: bytes
    more: Properties
    taken: "asyncio.Future[bool]"


class _Carrier:
    """Publishes while a link stands; what is handed over while none does is not taken."""

    def __init__(self) -> None:
        self._pending: asyncio.Queue[_Pending] = asyncio.Queue(1)
        self._refused = self.stands = False

    async def hand_over(self, topic: str, payload: bytes, more: Properties = NO_PROPERTIES) -> bool:
        """Whether the broker has taken it."""
        if not self.stands:
            return False
        entry = _Pending(topic, payload, more, asyncio.get_running_loop().create_future())
        await self._pending.put(entry)
        if not self.stands:  # the link went while this waited for room: nobody reads the queue, which holds this alone
            _answer(self._pending.get_nowait(), taken=False)
        return await entry.taken

    async def serve(self, link: Link, first: Callable[[Link], Awaitable[None]]) -> None:
        """Publish one entry after the other for as long as the link stands, after `first`, for which entries wait."""
        self.stands = True
        entry: _Pending | None = None
        try:
            await first(link)
            while True:
                entry = await self._pending.get()
                try:
                    await link.publish(entry.topic, entry.payload, qos=topics.QOS, more=entry.more)
                except RefusedError as refusal:
                    self._note(refusal)
                    _answer(entry, taken=False)
                else:
                    _answer(entry, taken=True)
        finally:
            # Also where the link is cancelled in the middle of a message: whoever waits for its fate must not wait on.
            self.stands = False
            _answer(entry, taken=False)
            while not self._pending.empty():
                _answer(self._pending.get_nowait(), taken=False)

    def _note(self, refusal: RefusedError) -> None:
        """Say once what the broker has against our rows."""
        if not self._refused:
            _LOG.warning("raw: %s", refusal)
        self._refused = True


def _answer(entry: _Pending | None, *, taken: bool) -> None:
    if entry is not None and not entry.taken.done():
        entry.taken.set_result(taken)
