"""Chunks without asyncio: a loop of its own in a thread beside the caller's."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from eyestream.rim.config import BrokerSettings
from eyestream.sdk.chunk import Chunk
from eyestream.sdk.subscriber import Chunks, subscribe
from eyestream.wire.topics import FEATURE_STREAM

__all__ = ["listen"]


def listen(
    broker: str | BrokerSettings,
    device: str,
    *,
    stream: str = FEATURE_STREAM,
    client_id: str | None = None,
    wait_s: float = 10.0,
    silent_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Chunk]:
    """Private chunks as they arrive, for programs without asyncio; the connection ends with the loop over them.

    Parameters
    ----------
    broker, device, stream, client_id, wait_s, clock
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
        subscription = subscribe(broker, device, stream=stream, client_id=client_id, wait_s=wait_s, clock=clock)
        chunks = _done(loop, subscription.__aenter__())
        try:
            while (chunk := _done(loop, _next(chunks, silent_s))) is not None:
                yield chunk
        finally:
            _done(loop, subscription.__aexit__(None, None, None))


Result = TypeVar("Result")


def _done(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Result]) -> Result:
    """What `work` gives in the loop beside; Ctrl-C here ends it there."""
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
