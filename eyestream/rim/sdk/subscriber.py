"""For applications: released chunks, in three lines."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError, LinkError, PayloadError
from eyestream.rim.buffer import DropOldest
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message, RefusedError
from eyestream.streams import GAZE
from eyestream.wire import messages, topics
from eyestream.wire.release import CLAIM

__all__ = ["Chunk", "Chunks", "subscribe"]

_SESSIONS = 64
"""Latest sessions whose chunks are known again; more than there can be among chunks that are sent a second time."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """One released chunk of one device.

    Attributes
    ----------
    session
        The sidecar's random number of the session.
    index
        Number of the chunk in its session, from 0.
    names
        (F,) feature names.
    t
        (n,) seconds from the session's start, float64.
    values
        (F, n) released values, float32.
    epsilon, delta
        What this chunk cost, all features together.
    guarantee
        What is guaranteed, in words.
    at
        Seconds of the tracker's clock at the first column; None where the tracker does not tell its time.
    claim
        SHA-256 of the words under which it was released; None over MQTT 3.1.1. Another one than that of `guarantee`
        means that the sidecar was given other ceilings since.
    units
        (F,) of the features. Where each is ``probability``, the features are words, and the values are how likely each
        of them is, given what was released of this chunk alone (`eyestream.rim.sdk.words`).
    """

    session: int
    index: int
    names: tuple[str, ...]
    t: NDArray[np.float64]
    values: NDArray[np.float32]
    epsilon: float
    delta: float
    guarantee: str
    at: float | None = None
    claim: str | None = None
    units: tuple[str, ...] = ()

    @property
    def word(self) -> str | None:
        """The released word, the likeliest one; None where the features are no words."""
        return self.names[int(self.values[:, 0].argmax())] if set(self.units) == {"probability"} else None

    @property
    def times(self) -> NDArray[np.float64]:
        """(n,) seconds of the tracker's clock; from the session's start where the tracker does not tell its time.

        Of gaze slot by slot: the ends of the slots.
        """
        return self.t if self.at is None else self.at + (self.t - self.t[0])

    @property
    def gaze(self) -> NDArray[np.float32]:
        """(n, 2) where the eye looked in degrees, to the right and up; raises ConfigError for a stream of others."""
        return np.stack([self._of(name) for name in GAZE], axis=1)

    @property
    def gaze_error(self) -> NDArray[np.float32]:
        """(n,) degrees that the gaze is expected to be off: more in one half of the cases, less in the other."""
        return self._of("gaze_error")

    def _of(self, name: str) -> NDArray[np.float32]:
        """(n,) the feature of a name."""
        if name not in self.names:
            raise ConfigError(f"the stream has no {name}; it has {', '.join(self.names[:4])} and so on")
        row: NDArray[np.float32] = self.values[self.names.index(name)]
        return row


class Chunks:
    """The chunks of one stream of one device as they arrive; an async iterator. Made by `subscribe`."""

    def __init__(self, device: str, buffer: int, stream: str = topics.FEATURE_STREAM) -> None:
        self._topics = (
            topics.meta_topic(device, stream),
            topics.status_topic(device, stream),
            topics.private_topic(device, stream),
        )
        self._budget_topic = topics.budget_topic(device, stream)
        self._known = frozenset((*self._topics, self._budget_topic))
        self._arrived: DropOldest[Chunk] = DropOldest(buffer)
        # Kept by the broker, before the description:
        self._early: DropOldest[tuple[messages.PrivateChunk, str | None]] = DropOldest(buffer)
        self._last: dict[int, int] = {}  # last chunk of each of the latest sessions
        self._subscribed = asyncio.Event()
        self._told, self._changed = asyncio.Event(), asyncio.Event()
        self.meta: messages.Meta | None = None
        """What the sidecar says of the stream: names, units, mechanism, noise; None until it has said it."""
        self.status: messages.Status | None = None
        """The sidecar's last word on the device; None until it has said one."""
        self.budget: messages.Budget | None = None
        """What is left: told after each chunk; None until it was told, which a sidecar of 0.1.0 does not."""
        self.refused = 0
        """Messages that were no message of ours, or not of the stream that was described."""
        self.foreign = 0
        """Messages of topics that were not asked for: the client id has a session with other subscriptions."""

    def __aiter__(self) -> "Chunks":
        return self

    async def __anext__(self) -> Chunk:
        return await self._arrived.get()

    @property
    def exhausted(self) -> bool:
        """Whether a ceiling of the session, of the day or of all time withholds what comes, and all before has arrived.

        The sidecar says so in `status` at once; that `budget` has nothing left is said after the last chunk.
        """
        said, left = self.status, self.budget
        spent = said is not None and said.state == "exhausted" and said.reason != "window"
        return spent and (left is None or left.chunks == 0)

    async def until_exhausted(self) -> AsyncIterator[Chunk]:
        """The chunks as they arrive, until the budget is spent; `budget` says when there is more.

        It ends when `exhausted` holds and what has arrived is taken. Iterate again to wait for what comes later.

        Examples
        --------
        >>> async def watch(chunks):
        ...     async for chunk in chunks.until_exhausted():
        ...         print(chunk.values.mean(axis=1))
        ...     print(chunks.budget)
        """
        while True:
            if (chunk := self._arrived.take()) is not None:
                yield chunk
            elif self.exhausted:
                return
            else:
                await self._told.wait()

    async def changed(self) -> None:
        """Return when the sidecar has said something new of the stream: `meta`, `status` or `budget`."""
        await self._changed.wait()

    @property
    def dropped(self) -> int:
        """Chunks that were not taken in time; the oldest go first."""
        return self._arrived.dropped + self._early.dropped

    async def _serve(self, link: Link) -> None:
        await link.subscribe_all(self._topics, 1)  # the description first
        self._subscribed.set()
        with contextlib.suppress(RefusedError):  # rights of before there was this topic: all else works without it
            await link.subscribe(self._budget_topic, 1)
        await asyncio.Event().wait()

    def _deliver(self, message: Message) -> None:
        meta, status, private = self._topics
        if message.topic not in self._known:  # nobody asked for it here: another's is never taken for this device's
            self.foreign += 1
            return
        try:
            if message.topic == meta:
                self.meta = messages.decode_meta(message.payload)
                while (early := self._early.take()) is not None:
                    self._accept(*early)
            elif message.topic == status:
                self.status = messages.decode_status(message.payload)
            elif message.topic == private:
                self._accept(messages.decode_private(message.payload), dict(message.more.user).get(CLAIM))
            else:
                self.budget = messages.decode_budget(message.payload)
        except PayloadError:
            self.refused += 1
        self._tell(message.topic != private)

    def _tell(self, changed: bool) -> None:
        """Wake whoever waits for something new."""
        told, self._told = self._told, asyncio.Event()
        told.set()
        if changed:
            before, self._changed = self._changed, asyncio.Event()
            before.set()

    def _accept(self, chunk: messages.PrivateChunk, claim: str | None) -> None:
        if self.meta is None:
            self._early.put((chunk, claim))
            return
        if len(self.meta.names) != len(chunk.values):
            self.refused += 1
            return
        last = self._last.pop(chunk.session, -1)
        self._last[chunk.session] = max(last, chunk.chunk)
        if len(self._last) > _SESSIONS:
            del self._last[next(iter(self._last))]
        if chunk.chunk <= last:
            return  # at-least-once delivery: the same bytes again
        self._arrived.put(
            Chunk(
                session=chunk.session,
                index=chunk.chunk,
                names=tuple(self.meta.names),
                t=chunk.t0 + chunk.dt * np.arange(chunk.values.shape[1], dtype=np.float64),
                values=chunk.values,
                epsilon=chunk.epsilon,
                delta=chunk.delta,
                guarantee=self.meta.guarantee,
                at=chunk.at,
                claim=claim,
                units=tuple(self.meta.units),
            )
        )


@contextlib.asynccontextmanager
async def subscribe(
    broker: str | BrokerSettings,
    device: str,
    *,
    stream: str = topics.FEATURE_STREAM,
    client_id: str | None = None,
    buffer: int = 256,
    wait_s: float = 10.0,
) -> AsyncIterator[Chunks]:
    """Receive the private chunks of a stream of `device`: those published from now on; reconnects by itself.

    Parameters
    ----------
    broker
        URL of the private broker, ``mqtt://host[:port]``, or its settings when it asks for a login or TLS.
    device
        The tracker's pseudonym.
    stream
        Name of the stream in the sidecar's configuration.
    client_id
        A fixed one makes the session persistent: the broker keeps chunks while we are away. Each device has a session
        of its own, under the MQTT client id ``<client_id>:<device>``, and each stream of another name
        ``<client_id>:<device>:<stream>``.
    buffer
        Chunks held at most for a slow consumer; then the oldest are dropped and counted.
    wait_s
        How long to wait for the first connection.

    Raises
    ------
    ConfigError
        The URL, the device, the stream or an empty client id cannot be used.
    LinkError
        The broker cannot be reached within `wait_s`, or refuses the subscription.

    Examples
    --------
    >>> async def watch():
    ...     async with subscribe("mqtt://localhost", device="hmd-1") as chunks:
    ...         async for chunk in chunks:
    ...             print(chunk.names, chunk.values.mean(axis=1))
    """
    endpoint = Endpoint.of(BrokerSettings(broker) if isinstance(broker, str) else broker)
    chunks = Chunks(device, buffer, stream)
    if client_id == "":
        raise ConfigError("client_id: expected at least one character, or None")
    # A broker holds the subscriptions of a kept session until somebody ends each of them by name, and nobody can ask
    # which there are. Under one id for all devices, the one that was watched yesterday would go on coming today, and
    # two that are watched at once would take each other's connection over. No device has ':' in its name.
    place = device if stream == topics.FEATURE_STREAM else f"{device}:{stream}"
    session = None if client_id is None else f"{client_id}:{place}"
    link = ReconnectingLink(
        endpoint,
        chunks._serve,
        what="private",
        client_id=session,
        deliver=chunks._deliver,
        clean_session=client_id is None,
    )
    async with link.beside(wait_s):
        try:
            async with asyncio.timeout(wait_s):
                await chunks._subscribed.wait()
        except TimeoutError:
            raise LinkError(
                f"the broker at {endpoint} refused the subscription to {place}, or did not answer in {wait_s:g} s"
            ) from None
        yield chunks
