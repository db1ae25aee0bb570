"""The gaze of the demo: of a simulated person, or of a real tracker; and what of it is seen."""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.core.calibration import Calibration
from eyestream.errors import ConfigError
from eyestream.gaze.entry import USUAL, FrontEndEntry
from eyestream.gaze.features import NAMES, STEP_S, WINDOW_S
from eyestream.gaze.profile_text import front_end_mark
from eyestream.gaze.samples import Samples
from eyestream.ops.find_sources import find_sources
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import DeliverGaze, GazeFeeder, UndecodedGaze
from eyestream.rim.sources.gaze_recording import GazePlayer
from eyestream.rim.sources.registry import make_sources, named_source
from eyestream.rim.sources.source import Deliver
from eyestream.streams import StreamSpec
from eyestream.wire.raw import RawRows
from eyestream_lab.simulation.gaze import gaze_of, gaze_person

RATE_HZ = 120.0
_TRAIL = 240
_WIDE_DEG, _HIGH_DEG, _COLUMNS = 20.0, 12.0, 61


@dataclass
class GazeSeen:
    """Gaze that has come in so far."""

    samples: int = 0
    lost: int = 0
    pupil_mm: float = float("nan")
    trail: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_TRAIL))
    """The latest tracked directions in degrees, right and up."""

    def watch(self, samples: Samples) -> None:
        """Samples have come in."""
        self.samples += len(samples)
        self.lost += int((~samples.valid).sum())
        self.trail.extend(zip(samples.x[samples.valid].tolist(), samples.y[samples.valid].tolist(), strict=True))
        sized = samples.pupil_mm[np.isfinite(samples.pupil_mm)]
        if len(sized):
            self.pupil_mm = float(sized[-1])

    def line(self) -> str:
        """Where the eye looks, in one line."""
        if not self.trail:
            return f"gaze   {self.samples} samples, no eye yet"
        x, y = self.trail[-1]
        pupil = "" if np.isnan(self.pupil_mm) else f"   pupil {self.pupil_mm:.1f} mm"
        return (
            f"gaze   {self.samples} samples, {self.lost} of them lost   {direction_words(x, y)}{pupil}   stays inside"
        )

    def picture(self, height: int, private: tuple[float, float, float] | None = None) -> list[str]:
        """The field of view with the latest gaze in it, the newest the largest: `height` lines between two edges.

        `private` is what was released of it, and its error: a cross with its reach on both axes.
        """
        cells = [[" "] * _COLUMNS for _ in range(height)]

        def put(x: float, y: float, mark: str, *, over: bool) -> None:
            column = round((x / _WIDE_DEG + 1.0) / 2.0 * (_COLUMNS - 1))
            row = round((1.0 - y / _HIGH_DEG) / 2.0 * (height - 1))
            if 0 <= column < _COLUMNS and 0 <= row < height and (over or cells[row][column] == " "):
                cells[row][column] = mark

        for age, (x, y) in enumerate(reversed(self.trail)):
            put(x, y, "@" if age == 0 else "o" if age < _TRAIL // 8 else ".", over=False)
        if private is not None:
            x, y, error = private
            for across, up in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                put(x + across * error, y + up * error, "+", over=True)
            put(x, y, "X", over=True)
        edge = "+" + "-" * _COLUMNS + "+"
        return [edge, *("|" + "".join(row) + "|" for row in cells), edge]


def direction_words(x: float, y: float) -> str:
    """A direction in degrees to the right and up, in words.

    >>> direction_words(-3.25, 1.0)
    '3.2 deg left, 1.0 deg up'
    """
    return f"{abs(x):.1f} deg {'right' if x >= 0 else 'left'}, {abs(y):.1f} deg {'up' if y >= 0 else 'down'}"


class WatchedSource:
    """A player whose gaze is seen from the beginning; its rows are noted, and delivered from when they may be.

    A window takes half a minute of gaze: what stands ready only later misses nothing.
    """

    def __init__(self, player: GazePlayer, note: Callable[[RawRows], None], ready: asyncio.Event) -> None:
        self._player, self._note, self._ready = player, note, ready
        self._made: asyncio.Queue[RawRows] = asyncio.Queue()

    async def play(self) -> None:
        """Play the gaze, whoever takes the rows."""
        await self._player.run(self._made.put_nowait)

    async def run(self, deliver: Deliver) -> None:
        """Hand the rows over, until the session ends."""
        await self._ready.wait()
        while True:
            rows = await self._made.get()
            self._note(rows)
            deliver(rows)
            if rows.end:
                return


class WatchedFeeder(GazeFeeder):
    """A source of gaze whose gaze is seen and whose rows are noted on their way, and that begins when it may."""

    def watched_by(
        self, watch: Callable[[Samples], None], note: Callable[[RawRows], None], ready: asyncio.Event
    ) -> None:
        """Say who watches; before it is run."""
        self._watch, self._note, self._ready = watch, note, ready

    async def run(self, deliver: DeliverGaze) -> None:
        """Keep to the source."""
        await self._ready.wait()
        await super().run(deliver)

    def take(self, records: GazeColumns | UndecodedGaze) -> None:
        """Records as they come."""
        for part in records.decoded() if isinstance(records, UndecodedGaze) else (records,):
            self._watch(self.samples_of(part))
            super().take(part)

    async def rows(self, deliver: Deliver) -> None:
        """Deliver rows at their moments."""

        def both(rows: RawRows) -> None:
            self._note(rows)
            deliver(rows)

        await super().rows(both)


def simulated_gaze(seconds: float, speed: float, seen: GazeSeen) -> tuple[GazePlayer, int]:
    """Gaze of a person who does not exist, and how many rows it makes.

    Raises
    ------
    ConfigError
        It is too short for one row.
    """
    rows = int((seconds - WINDOW_S) / STEP_S + 1e-9) + 1
    if rows < 1 or seconds < WINDOW_S:
        raise ConfigError(f"--seconds times --speed: expected at least {WINDOW_S:g}, the gaze of one row")
    return simulated_player(seconds + 1.5 / RATE_HZ, speed, seen), rows


def simulated_player(seconds: float, speed: float, seen: GazeSeen, entry: FrontEndEntry = USUAL) -> GazePlayer:
    """Plays gaze of a person who does not exist, through the front end `entry`."""
    return GazePlayer(
        _busy_gaze(seconds, np.random.default_rng()),
        load_profile("degrees").at_rate(RATE_HZ),
        speed,
        watch=seen.watch,
        entry=entry,
    )


def _busy_gaze(seconds: float, rng: np.random.Generator) -> Samples:
    """Gaze of somebody who turns to something else every minute or two, and then looks and blinks in another way."""
    person, parts, start_s = gaze_person(rng), [], 0.0
    while start_s < seconds:
        longer, oftener, wider = np.exp(rng.normal(0.0, 0.5, 3))
        task = replace(
            person,
            fixation_s=person.fixation_s * longer,
            blinks=min(person.blinks * oftener, 0.3),
            amplitude_deg=person.amplitude_deg * wider,
            pupil_mm=person.pupil_mm + float(rng.normal(0.0, 0.2)),
        )
        length_s = min(float(rng.integers(60, 120)), seconds - start_s)  # whole seconds have whole numbers of samples
        parts.append(gaze_of(task, RATE_HZ, length_s, rng, start_s=start_s)[0])
        start_s += length_s
    return Samples(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Samples)))


async def real_source(
    told: str,
    profile: str | None,
    rate_hz: float | None,
    calibration: Calibration,
    *,
    device: str = "demo",
    broker: str = "mqtt://localhost",
) -> WatchedFeeder:
    """The tracker that ``--source KIND:WHERE`` names; ``mqtt`` is one that publishes as `device` at `broker`.

    Raises
    ------
    ConfigError
        It is none, or its gaze cannot be taken.
    CalibrationError
        The calibration is of another front end.
    """
    kind, colon, where = told.partition(":")
    table: dict[str, Any]
    if told == "mqtt":
        table = {"kind": kind, "options": {}}
    elif not colon or not where:
        raise ConfigError(f"--source {told}: expected mqtt, lsl:NAME, neon:HOST[:PORT] or core:HOST[:PORT]")
    elif kind == "lsl":
        table = await _outlet(where)
    elif kind in {"neon", "core"}:
        host, _, port = where.partition(":")
        table = {"kind": kind, "options": {"host": host} | ({"port": int(port)} if port.isdecimal() else {})}
    else:
        raise ConfigError(f"--source {told}: a demo takes mqtt, lsl, neon or core")
    entry = SourceEntry(
        table["kind"],
        device,
        profile=profile or table.get("profile"),
        rate_hz=rate_hz or table.get("rate_hz"),
        options=table["options"],
    )
    spec = StreamSpec("features", 1, NAMES, ("1",) * len(NAMES), 1.0 / STEP_S, WINDOW_S)
    source = named_source(entry)
    (made,) = make_sources(source, [(spec, None)], Path(), BrokerSettings(broker))
    assert isinstance(made, GazeFeeder)
    assert source.profile is not None
    calibration.check_front_end(front_end_mark(source.profile))
    return WatchedFeeder(made.source, source.profile)


async def _outlet(name: str) -> dict[str, Any]:
    """The table that takes the outlet `name`."""
    found, missing = await find_sources((), 2.0)
    same = [one for one in found if one.kind == "lsl" and one.name == name]
    if not same:
        others = ", ".join(one.name for one in itertools.islice(found, 10)) or "none"
        raise ConfigError(
            f"--source lsl:{name}: no such outlet; there is {others}{'; ' + missing[-1] if missing else ''}"
        )
    if same[0].refused:
        raise ConfigError(f"--source lsl:{name}: {same[0].refused}")
    return same[0].source


async def gaze_comes(seen: GazeSeen, seconds: float) -> None:
    """Wait until gaze has come; raises ConfigError when none does."""
    try:
        async with asyncio.timeout(seconds):
            while seen.samples == 0:  # noqa: ASYNC110  what is seen has no event
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise ConfigError(f"no gaze came within {seconds:g} s; `eyestream sources` says what is there") from None
