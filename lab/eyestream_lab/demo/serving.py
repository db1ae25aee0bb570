"""The sidecar of a demo, with its source in its own process, and the application beside it."""

import asyncio
import contextlib
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from eyestream.core.mechanisms.entry import Beginning
from eyestream.gaze.features import WINDOW_S
from eyestream.rim.config import (
    BrokerSettings,
    BudgetSettings,
    DeviceEntry,
    PrivacySettings,
    Settings,
    SidecarSettings,
    StreamSettings,
)
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources.source import Feeder, Source
from eyestream.sdk.subscriber import Chunks, subscribe
from eyestream.streams import StreamKey
from eyestream.wire.topics import FEATURE_STREAM

Result = TypeVar("Result")


def demo_settings(
    url: str, folder: Path, stream: str, beginning: Beginning, epsilon: float, *, features: list[str] | None = None
) -> Settings:
    """A configuration of one device and one stream, whose ceilings nobody reaches; its ledger is in `folder`."""
    options: dict[str, Any] = dict.fromkeys(beginning.switched_on, True)
    privacy = PrivacySettings(calibration=beginning.calibration, epsilon=epsilon, features=features, **options)
    window_s = WINDOW_S if stream == FEATURE_STREAM else None  # the source delivers rows: no front end says it
    return Settings(
        sidecar=SidecarSettings(name="demo", ledger=folder / "ledger"),
        private=BrokerSettings(url),
        stream=(StreamSettings(name=stream, privacy=privacy, window_s=window_s),),
        budget=BudgetSettings(session_epsilon=1e6, day_epsilon=1e6),
        device=(DeviceEntry(f"hmd-{secrets.token_hex(5)}"),),
    )


@contextlib.asynccontextmanager
async def serving(settings: Settings, source: Source | Feeder) -> AsyncIterator[Chunks]:
    """Run a sidecar of `settings`, with a new ledger, beside the body, which gets the chunks of an application."""
    create_ledger(settings.sidecar.ledger, created=int(time.time()))
    key, stop = StreamKey(settings.device[0].id, settings.stream[0].name), asyncio.Event()
    with assemble(resolved(settings), lambda: int(time.time()) // 86_400, {key: source}) as made:
        async with asyncio.TaskGroup() as group:
            try:
                # The application comes first: the first chunk may follow at once, and the broker does not keep it.
                async with subscribe(settings.private.url, key.device, stream=key.stream) as chunks:
                    group.create_task(made.sidecar.run(stop), name="sidecar")
                    yield chunks
            finally:
                # The sidecar ends by itself, in its own order: cancelled, it would leave without its last status.
                stop.set()


def run_until_stopped(body: Coroutine[Any, Any, Result]) -> Result:
    """Run `body`; SIGTERM cancels it, as Ctrl-C does, and exits with 143 when everything is tidied up.

    A handler that raised would break off the loop wherever it is: asyncio then cancels all tasks at once, the broker's
    in the middle of a connection too, and they complain.
    """

    async def cancellable() -> Result:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        signal.signal(signal.SIGTERM, lambda number, frame: loop.call_soon_threadsafe(task.cancel))
        return await body

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
