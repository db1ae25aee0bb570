"""For applications: released chunks, in three lines, with asyncio or without."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from eyestream.errors import ConfigError, LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.sdk.chunk import Chunk
from eyestream.sdk.chunks import Chunks
from eyestream.sdk.odometer import OdometerWatch
from eyestream.wire import topics

__all__ = ["Chunk", "Chunks", "listen", "subscribe"]

Result = TypeVar("Result")


@contextlib.asynccontextmanager
async def subscribe(
    broker: str | BrokerSettings,
    device: str,
    *,
    stream: str = topics.FEATURE_STREAM,
    client_id: str | None = None,
    buffer: int = 256,
    wait_s: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
    odometer: OdometerWatch | None = None,
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
    clock
        The clock of `Chunk.when` and `Chunk.received`, in seconds: the one of your own events, for example
        `time.time`. One that is set moves the moments.
    odometer
        What an earlier subscription heard, so that a ledger that went back meanwhile is noticed too.

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
    chunks = Chunks(device, buffer, stream, clock, odometer)
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


def listen(
    broker: str | BrokerSettings,
    device: str,
    *,
    stream: str = topics.FEATURE_STREAM,
    client_id: str | None = None,
    wait_s: float = 10.0,
    silent_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    odometer: OdometerWatch | None = None,
) -> Iterator[Chunk]:
    """Private chunks as they arrive, for programs without asyncio; the connection ends with the loop over them.

    Parameters
    ----------
    broker, device, stream, client_id, wait_s, clock, odometer
        As for `subscribe`.
    silent_s
        End after so many seconds without a chunk; by default never.

    Raises
    ------
    ConfigError, LinkError
        As `subscribe`, when the first chunk is asked for.

    Examples
    --------
    >>> def watch():
    ...     for chunk in listen("mqtt://localhost", device="hmd-1"):
    ...         print(chunk.to_pandas().mean())
    """
    with _loop_beside() as loop:
        subscription = subscribe(
            broker, device, stream=stream, client_id=client_id, wait_s=wait_s, clock=clock, odometer=odometer
        )
        chunks = _done(loop, subscription.__aenter__())
        try:
            while (chunk := _done(loop, _next(chunks, silent_s))) is not None:
                yield chunk
        finally:
            _done(loop, subscription.__aexit__(None, None, None))


def _done(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work` in the loop beside; Ctrl-C here ends it there."""
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    finally:
        future.cancel()


async def _next(chunks: Chunks, silent_s: float | None) -> Chunk | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(silent_s):
            return await anext(chunks)
    return None


@contextlib.contextmanager
def _loop_beside() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread while the body does."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="eyestream", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
