"""``eyestream demo --stream gaze``: coarse gaze beside the raw gaze that it was made of, as a moving picture."""

import argparse
import asyncio
import contextlib
import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eyestream.cli.stopped import run_until_stopped
from eyestream.core.mechanisms.entry import Beginning
from eyestream.errors import ConfigError
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
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources.gaze_recording import GazePlayer
from eyestream.sdk.subscriber import Chunk, Chunks, subscribe
from eyestream.streams import StreamKey
from eyestream.wire.topics import GAZE_STREAM
from eyestream_lab.cli.demo_gaze import RATE_HZ, GazeSeen
from eyestream_lab.embedded import embedded_broker
from eyestream_lab.recordings.gaze import front_end_of
from eyestream_lab.simulation.gaze import gaze_of, gaze_person

__all__ = ["EPSILON", "GazeShown", "demo_gaze"]

EPSILON = 10.0 / 3.0
"""Of a slot of 1 s: 10 in any 2 s of a recording."""

_PICTURES_A_SECOND = 10.0
_HEIGHT = 13


@dataclass
class GazeShown:
    """What happened so far. The raw side is known only because the demo has the tracker in its own process."""

    gaze: GazeSeen = field(default_factory=GazeSeen)
    slots: int = 0
    epsilon: float = 0.0
    chunk: Chunk | None = None
    apart_deg: list[float] = field(default_factory=list)
    """From the middle of a slot's raw gaze to what was released of it."""

    def received(self, chunk: Chunk) -> None:
        """The application has a slot in its hands."""
        self.chunk, self.slots, self.epsilon = chunk, self.slots + 1, self.epsilon + chunk.epsilon
        if self.gaze.trail:
            raw = np.median(list(self.gaze.trail)[-round(RATE_HZ) :], axis=0)
            self.apart_deg.append(float(np.hypot(*(chunk.gaze[-1] - raw))))

    def line(self) -> str:
        """What the application knows, in one line."""
        if self.chunk is None:
            return "private: no slot yet"
        (x, y), error = self.chunk.gaze[-1].tolist(), float(self.chunk.gaze_error[-1])
        where = f"{abs(x):.1f} deg {'right' if x >= 0 else 'left'}, {abs(y):.1f} deg {'up' if y >= 0 else 'down'}"
        return f"private slot {self.slots}: {where}, +- {error:.1f} deg   epsilon {self.epsilon:.3g} so far   goes out"

    def picture(self) -> str:
        """Both in one field."""
        private = None
        if self.chunk is not None:
            private = (*self.chunk.gaze[-1].tolist(), float(self.chunk.gaze_error[-1]))
        return "\n".join(
            (self.gaze.line(), *self.gaze.picture(_HEIGHT, private), self.line(), "@ raw   X private   + its error")
        )

    def as_json(self) -> dict[str, object]:
        """What ``--json`` prints."""
        apart = float(np.median(self.apart_deg)) if self.apart_deg else None
        return {
            "samples": self.gaze.samples,
            "slots": self.slots,
            "epsilon_per_slot": None if self.chunk is None else self.chunk.epsilon,
            "epsilon_session": self.epsilon,
            "median_deg_from_raw": apart,
        }


Show = Callable[[GazeShown, bool], object]
"""Draws; told whether a slot has come."""


def demo_gaze(options: argparse.Namespace, beginning: Beginning, folder: Path) -> None:
    """Play a simulated person, and show what is released of where they look.

    Raises
    ------
    ConfigError
        An option is of the demo of features.
    """
    if options.source is not None:
        raise ConfigError("--source: the demo of gaze plays a simulated person; leave it out")
    shown = GazeShown()
    with _screen(plain=options.json) as show:
        run_until_stopped(_played(options, beginning, folder, shown, show))
    if options.json:
        print(json.dumps(shown.as_json()))
        return
    if shown.chunk is None:
        print("the time was over before the first slot: take longer, with --seconds")
        return
    print(f"\n{shown.slots} slots, epsilon {shown.chunk.epsilon:.3g} each, {shown.epsilon:.4g} in all: losses add up.")
    print(f"half of them lie within {np.median(shown.apart_deg):.1f} degrees of the middle of the raw gaze.")
    print(shown.chunk.guarantee.partition("\nunit")[0])


@contextmanager
def _screen(*, plain: bool) -> Iterator[Show]:
    """Where pictures go: a terminal, lines elsewhere, nowhere with --json."""
    if plain:
        yield lambda shown, new: None
    elif not sys.stdout.isatty():
        yield lambda shown, new: print(f"{shown.gaze.line()}\n{shown.line()}", flush=True) if new else None
    else:
        try:
            from rich.live import Live  # noqa: PLC0415  an extra
        except ImportError:
            raise ConfigError("the live view is not installed: pip install eyestream-lab") from None
        with Live(auto_refresh=False) as live:
            yield lambda shown, new: live.update(shown.picture(), refresh=True)


async def _played(
    options: argparse.Namespace, beginning: Beginning, folder: Path, shown: GazeShown, show: Show
) -> None:
    """Broker, sidecar with its source, and application side by side, until the gaze is over."""
    seconds, speed = options.seconds or 20.0, options.speed or 1.0
    calibration = calibrations.load(beginning.calibration)
    entry = front_end_of(calibration)
    rng = np.random.default_rng()
    samples, _ = gaze_of(gaze_person(rng), RATE_HZ, seconds * speed + entry.step_s, rng)
    player = GazePlayer(samples, load_profile("degrees").at_rate(RATE_HZ), speed, watch=shown.gaze.watch, entry=entry)
    async with embedded_broker(options.port) as url:
        settings = _settings(url, folder, beginning)
        create_ledger(settings.sidecar.ledger, created=int(time.time()))
        device, stop = settings.device[0].id, asyncio.Event()
        with assemble(
            resolved(settings), lambda: int(time.time()) // 86_400, {StreamKey(device, GAZE_STREAM): player}
        ) as made:
            async with asyncio.TaskGroup() as group:
                try:
                    async with subscribe(url, device, stream=GAZE_STREAM) as chunks:
                        group.create_task(made.sidecar.run(stop), name="sidecar")
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(seconds + 1.5):
                                await _watched(chunks, shown, show)
                finally:
                    stop.set()


async def _watched(chunks: Chunks, shown: GazeShown, show: Show) -> None:
    """Take every slot, and draw between them."""
    while True:
        new = False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1 / _PICTURES_A_SECOND):
                shown.received(await anext(chunks))
                new = True
        show(shown, new)


def _settings(url: str, folder: Path, beginning: Beginning) -> Settings:
    privacy = PrivacySettings(calibration=beginning.calibration, epsilon=EPSILON)
    return Settings(
        sidecar=SidecarSettings(name="demo", ledger=folder / "ledger"),
        private=BrokerSettings(url),
        stream=(StreamSettings(name=GAZE_STREAM, privacy=privacy),),
        budget=BudgetSettings(session_epsilon=1e6, day_epsilon=1e6),
        device=(DeviceEntry(f"hmd-{secrets.token_hex(5)}"),),
    )
