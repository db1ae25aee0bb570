"""``eyestream demo``: everything in one process, over the real wire."""

import argparse
import asyncio
import json
import logging
import math
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eyestream.cli.demo_view import Figures, View, open_view, summary
from eyestream.cli.options import one_line_faults, positive, start_log
from eyestream.errors import ConfigError, LinkError
from eyestream.offline.corpus.simulation import load_statistics, simulate_person
from eyestream.privacy.charge import EPSILON_UNITS
from eyestream.privacy.mechanisms import build
from eyestream.rim.config import (
    BrokerSettings,
    BudgetSettings,
    DeviceEntry,
    PrivacySettings,
    Settings,
    SidecarSettings,
    StreamSettings,
)
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.embedded import embedded_broker
from eyestream.rim.sdk.publisher import Publisher
from eyestream.rim.sdk.replay import replay
from eyestream.rim.sdk.subscriber import Chunks, subscribe
from eyestream.rim.sidecar.assembly import assemble, new_ledger

__all__ = ["add_parser", "main"]

CALIBRATION = "everyday-klt-shed-32"
"""What the demo releases with."""

RIVAL = "everyday-cfpa-32"
"""What the demo shows beside it, for the same chunks and the same epsilon."""

EPSILON = 4.8

PATIENCE_SECONDS = 10.0
"""Wait for the first status, and for the last chunk, at most."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "demo",
        help="see it happen: broker, recording, sidecar and application in one terminal",
        description="Start a broker of our own on this machine, replay a simulated recording of a person who does not "
        "exist, release it privately chunk by chunk, and show what an application receives. Nothing is kept: the "
        "ledger is a temporary one.",
    )
    parser.add_argument("--seconds", type=positive, default=20.0, metavar="S", help="length by the clock (default 20)")
    parser.add_argument("--speed", type=positive, metavar="X", help="times real time (default: one chunk a second)")
    parser.add_argument("--json", action="store_true", help="print one line with one JSON object at the end instead")
    parser.add_argument("--port", type=int, metavar="N", help="port of the broker on 127.0.0.1 (default: a free one)")


def main(options: argparse.Namespace) -> None:
    """Run the demo.

    Raises
    ------
    ConfigError
        The extra that the demo needs is not installed, or nothing would be sent.
    LinkError
        The port is taken.
    """
    view = View() if options.json else open_view()
    start_log(logging.WARNING)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # by way of everything that tidies up
    with tempfile.TemporaryDirectory(prefix="eyestream-demo-") as folder:
        figures = asyncio.run(_demo(options, Path(folder), view))
    if options.json:
        print(json.dumps(figures.as_json()))
    else:
        print(summary(figures))


async def _demo(options: argparse.Namespace, folder: Path, view: View) -> Figures:
    one_line_faults()
    calibration = calibrations.load(CALIBRATION)
    speed = options.speed or calibration.n / calibration.rate_hz
    rows = math.floor(options.seconds * speed * calibration.rate_hz)
    if rows < 1:
        raise ConfigError(
            f"--seconds times --speed: expected at least {1 / calibration.rate_hz:g}, the time of one row"
        )
    person = simulate_person(load_statistics(), rows, np.random.default_rng())
    t = np.arange(rows) / calibration.rate_hz
    recording = Recording(t, person.astype(np.float64), calibration.names, simulated=True)
    async with embedded_broker(options.port) as url:
        settings = _settings(url, folder, calibration.names, calibration.rate_hz)
        new_ledger(settings, created=int(time.time()))
        rival = build(calibrations.load(RIVAL), EPSILON)
        figures = Figures(names=calibration.names, n=calibration.n, rows_total=rows, rival=rival)
        view.announce(
            f"broker at {url}; a simulated person at {speed:g} times real time: a private chunk of {calibration.n} "
            f"rows every {calibration.n / calibration.rate_hz / speed:.3g} s"
        )
        with view:
            await _play(settings, recording, speed, figures, view)
    odometers = read_ledger(settings.sidecar.ledger).odometers
    figures.epsilon_session = sum(odometer.epsilon for odometer in odometers.values()) / EPSILON_UNITS
    return figures


def _settings(url: str, folder: Path, names: tuple[str, ...], rate_hz: float) -> Settings:
    return Settings(
        sidecar=SidecarSettings(name="demo", ledger=folder / "ledger"),
        private=BrokerSettings(url),
        stream=(
            StreamSettings(
                name="features",
                schema=1,
                rate_hz=rate_hz,
                window_s=30.0,
                names=names,
                grace_s=1.0,
                idle_s=60.0,
                release="on_row",
                privacy=PrivacySettings(calibration=CALIBRATION, epsilon=EPSILON),
            ),
        ),
        budget=BudgetSettings(window_chunks=1, window_epsilon=EPSILON, session_epsilon=1e6, day_epsilon=1e6),
        device=(DeviceEntry(f"hmd-{secrets.token_hex(5)}"),),
    )


async def _play(settings: Settings, recording: Recording, speed: float, figures: Figures, view: View) -> None:
    """Sidecar, application and tracker side by side, until the last chunk has come."""
    device, url = settings.device[0].id, settings.private.url
    stop = asyncio.Event()
    with assemble(settings, today=lambda: int(time.time()) // 86_400) as made:
        async with asyncio.TaskGroup() as group:
            group.create_task(made.sidecar.run(stop), name="sidecar")
            try:
                async with subscribe(url, device) as chunks:
                    await _ready(chunks)
                    application = group.create_task(_listen(chunks, figures, view), name="application")
                    async with _Tracker(url, device, recording, figures) as tracker:
                        await replay(tracker, recording, speed=speed, progress=figures.sent)
                    await _complete(application, figures)
            finally:
                stop.set()


async def _ready(chunks: Chunks) -> None:
    """Wait until the sidecar says that it is online."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while chunks.status is None or chunks.status.state != "online":  # noqa: ASYNC110  a retained message, no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise LinkError("the sidecar did not come online") from None


async def _listen(chunks: Chunks, figures: Figures, view: View) -> None:
    """The application: takes every chunk, and notes how long it was under way."""
    loop = asyncio.get_running_loop()
    async for chunk in chunks:
        assert chunks.meta is not None
        figures.received(chunk, chunks.meta, loop.time())
        view.update(figures)
        if len(figures.latencies_ms) == figures.chunks_total:
            return


async def _complete(application: "asyncio.Task[None]", figures: Figures) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await application
    except TimeoutError:
        missing = figures.chunks_total - len(figures.latencies_ms)
        raise LinkError(f"{missing} of {figures.chunks_total} chunks did not arrive") from None


class _Tracker(Publisher):
    """A publisher that notes when the last row of each chunk is handed to it."""

    def __init__(self, url: str, device: str, recording: Recording, figures: Figures) -> None:
        super().__init__(url, device, recording.names, recording.rate_hz)
        self._figures = figures

    async def send(self, rows: ArrayLike, *, seq: int | None = None, t: ArrayLike | None = None) -> bool:
        first = self.next_seq if seq is None else seq
        self._figures.handed_over(np.asarray(rows, dtype=np.float64), first, asyncio.get_running_loop().time())
        return await super().send(rows, seq=seq, t=t)
