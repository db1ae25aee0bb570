"""For trackers: rows or samples of gaze in, raw messages out."""

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, RefusedError
from eyestream.wire import messages, topics

__all__ = ["Publisher"]

_LOG = logging.getLogger("eyestream.link")

GOODBYE_SECONDS = 3.0
"""Wait for the end message to be taken before leaving without it."""


@dataclass(eq=False, slots=True)
class _Pending:
    topic: str
    payload: bytes
    taken: "asyncio.Future[bool]"


class Publisher:
    """Publishes the rows of one tracker, or its gaze; an async context manager.

    It numbers rows one by one from 0 in a session of its own: one number is one nominal period, whether or not the eye
    was seen, and no row is over gaze from before the session. Send a row of NaN for a lost eye; pass `seq` to leave
    numbers out. While the broker is away rows are lost, counted in `lost`, and numbered all the same, so that the
    receiver sees the gap.

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
    stream
        Name of the stream, as in the sidecar's configuration.
    schema
        Schema number, as in the sidecar's configuration: of its stream, or of its source of gaze.
    wearer
        Who wears the device, as a number from 1 to 2^32 - 1 that means nothing outside; 0: not known. When somebody
        else puts it on, name them with `end_session`.
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
        stream: str = topics.FEATURE_STREAM,
        schema: int = 1,
        wearer: int = 0,
        wait_s: float = 10.0,
    ) -> None:
        if names and not 0 < rate < float("inf"):
            raise ConfigError("rate: expected rows a second, above 0")
        self._endpoint = Endpoint.of(BrokerSettings(broker) if isinstance(broker, str) else broker)
        self._topic, self._gaze_topic = topics.raw_topic(device, stream), topics.gaze_topic(device)
        self._schema, self._wearer = schema, _handle(wearer)
        self._wait_s = wait_s
        self._pending: asyncio.Queue[_Pending] = asyncio.Queue(1)
        self._stack = contextlib.AsyncExitStack()
        self._up = asyncio.Event()
        self._refused = False
        self.names = tuple(names)
        self.rate = rate
        self.session = time.time_ns()
        """Number of the session; larger for every later one, also after a restart."""
        self.next_seq = 0
        """Number of the next row."""
        self.lost = 0
        """Rows and samples that no broker took."""

    async def __aenter__(self) -> Self:
        link = ReconnectingLink(self._endpoint, self._serve, what="raw", client_id=None, deliver=lambda message: None)
        await self._stack.enter_async_context(link.beside(self._wait_s))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._up.is_set() and self.names:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GOODBYE_SECONDS):
                        await self.end_session()
        finally:
            await self._stack.aclose()

    async def send(self, rows: ArrayLike, *, seq: int | None = None, t: ArrayLike | None = None) -> bool:
        """Publish `rows`, numbered from `seq` (default: on from the last one).

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
            Whether the broker has acknowledged them.

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
        self.next_seq = first + len(block)
        payload = messages.encode_raw(self.session, first, block, self._schema, t=times, wearer=self._wearer)
        return await self._hand_over(self._topic, payload, len(block))

    async def send_gaze(self, t: ArrayLike, values: ArrayLike) -> bool:
        """Publish samples of gaze; a lost eye is a sample of NaN.

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
            Whether the broker has acknowledged them.

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
        payload = messages.encode_gaze(times, block, self._schema)
        return await self._hand_over(self._gaze_topic, payload, len(block))

    async def end_session(self, *, wearer: int | None = None) -> bool:
        """Tell the sidecar that the session is over, and number the next rows from 0 in a new one, of `wearer`.

        The next wearer is the same one by default. Begin the next session with gaze of its own: a row over gaze of the
        old one would tell of that gaze once more. Raises ConfigError for a handle that cannot be one.
        """
        following = self._wearer if wearer is None else _handle(wearer)
        nothing = np.empty((0, len(self.names)), dtype=np.float32)
        payload = messages.encode_raw(self.session, self.next_seq, nothing, self._schema, end=True, wearer=self._wearer)
        self.session = max(self.session + 1, time.time_ns())
        self.next_seq, self._wearer = 0, following
        return await self._hand_over(self._topic, payload, 0)

    async def _hand_over(self, topic: str, payload: bytes, count: int) -> bool:
        """Whether the broker has taken it; if not, `count` rows or samples are lost."""
        taken = False
        if self._up.is_set():
            entry = _Pending(topic, payload, asyncio.get_running_loop().create_future())
            await self._pending.put(entry)
            taken = await entry.taken
        self.lost += 0 if taken else count
        return taken

    def _note(self, refusal: RefusedError) -> None:
        """Say once what the broker has against our rows."""
        if not self._refused:
            _LOG.warning("raw: %s", refusal)
        self._refused = True

    async def _serve(self, link: Link) -> None:
        """Publish one entry after the other for as long as the link stands."""
        self._up.set()
        entry: _Pending | None = None
        try:
            while True:
                entry = await self._pending.get()
                try:
                    await link.publish(entry.topic, entry.payload, qos=topics.QOS)
                except RefusedError as refusal:
                    self._note(refusal)
                    _answer(entry, taken=False)
                else:
                    _answer(entry, taken=True)
        finally:
            self._up.clear()
            _answer(entry, taken=False)
            while not self._pending.empty():
                _answer(self._pending.get_nowait(), taken=False)


def _handle(wearer: int) -> int:
    if not 0 <= wearer <= messages.MAX_WEARER:
        raise ConfigError(f"wearer: expected a number from 0 to {messages.MAX_WEARER}")
    return wearer


def _answer(entry: _Pending | None, *, taken: bool) -> None:
    if entry is not None and not entry.taken.done():
        entry.taken.set_result(taken)
