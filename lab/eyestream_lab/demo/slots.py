"""``eyestream demo --stream gaze``: coarse gaze beside the raw gaze that it was made of, as a moving picture."""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eyestream.core.mechanisms.entry import Beginning
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream.sdk.subscriber import Chunk, Chunks
from eyestream.wire.topics import GAZE_STREAM
from eyestream_lab.demo.gaze import RATE_HZ, GazeSeen, direction_words, simulated_player
from eyestream_lab.demo.serving import demo_settings, run_until_stopped, serving
from eyestream_lab.embedded import embedded_broker
from eyestream_lab.recordings.gaze import front_end_of

EPSILON = 10.0 / 3.0
"""Epsilon of a slot of 1 s: 10 in any 2 s of a recording."""

_PICTURES_A_SECOND = 10.0
_HEIGHT = 13


@dataclass
class GazeShown:
    """State of the demo. The raw side is known only because the demo has the tracker in its own process."""

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
        """The application's knowledge, in one line."""
        if self.chunk is None:
            return "private: no slot yet"
        (x, y), error = self.chunk.gaze[-1].tolist(), float(self.chunk.gaze_error[-1])
        where = f"{direction_words(x, y)}, +- {error:.1f} deg"
        return f"private slot {self.slots}: {where}   epsilon {self.epsilon:.3g} so far   goes out"

    def picture(self) -> str:
        """Both in one field."""
        private = None
        if self.chunk is not None:
            private = (*self.chunk.gaze[-1].tolist(), float(self.chunk.gaze_error[-1]))
        return "\n".join(
            (self.gaze.line(), *self.gaze.picture(_HEIGHT, private), self.line(), "@ raw   X private   + its error")
        )

    def as_json(self) -> dict[str, object]:
        """Output of ``--json``."""
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
        from rich.live import Live  # noqa: PLC0415  for a terminal

        with Live(auto_refresh=False) as live:
            yield lambda shown, new: live.update(shown.picture(), refresh=True)


async def _played(
    options: argparse.Namespace, beginning: Beginning, folder: Path, shown: GazeShown, show: Show
) -> None:
    """Broker, sidecar with its source, and application side by side, until the gaze is over."""
    seconds, speed = options.seconds or 20.0, options.speed or 1.0
    entry = front_end_of(calibrations.load(beginning.calibration))
    player = simulated_player(seconds * speed + entry.step_s, speed, shown.gaze, entry)
    async with (
        embedded_broker(options.port) as url,
        serving(demo_settings(url, folder, GAZE_STREAM, beginning, EPSILON), player) as chunks,
    ):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds + 1.5):
                await _watched(chunks, shown, show)


async def _watched(chunks: Chunks, shown: GazeShown, show: Show) -> None:
    """Take every slot, and draw between them."""
    while True:
        new = False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1 / _PICTURES_A_SECOND):
                shown.received(await anext(chunks))
                new = True
        show(shown, new)
