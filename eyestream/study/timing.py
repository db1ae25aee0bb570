"""What timing and metadata tell: blinks, lost rows, and where a session begins and ends.

The device core is fed with rows as a tracker sends them, one message a row, with jitter. The attacker sees when a
private payload is published, its size, and all its fields but the values, and says whether something happened in that
chunk. Everything is virtual time: nothing waits.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eyestream.device.chunks import DueChunk
from eyestream.device.device import Device
from eyestream.device.settings import DeviceSettings
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.study.cells import Cell, Record
from eyestream.study.measures import mean_and_error
from eyestream.study.plan import Plan
from eyestream.study.sources import World
from eyestream.wire.raw import RawRows
from eyestream.wire.release import PrivateChunk, encode_private

__all__ = ["area", "cells", "measure", "observe"]

Array = NDArray[np.float64]
ReleaseTime = Literal["on_row", "on_clock"]

_EVENTS = ("blink", "last row lost")
_GRACE_S = 0.5


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each time of release."""
    return [
        Cell("timing", {"mechanism": "cfpa", "n": plan.chunks[0], "epsilon": 4.8, "release": release, "seed": 1})
        for release in ("on_row", "on_clock")
    ]


def measure(world: World, *, mechanism: str, n: int, epsilon: float, release: ReleaseTime, seed: int) -> list[Record]:
    """How well blinks and lost rows are told from metadata, and how well the length of the session."""
    made = build(world.calibrations[mechanism, n], epsilon)
    settings = DeviceSettings(
        id="d",
        stream="features",
        schema=1,
        names=world.population.names,
        rate_hz=world.population.rate_hz,
        n=n,
        grace_s=_GRACE_S,
        idle_s=30.0,
        jump_chunks=8,
        release=release,
    )
    records: list[Record] = []
    for event in _EVENTS:
        areas, lengths = [], []
        for recording in world.population.released:
            rng = np.random.default_rng((seed, recording))
            rows = world.population.recording(recording)
            chunks = len(rows) // n
            struck = rng.random(chunks) < 0.5
            cut = len(rows) - int(rng.integers(0, n))
            trace = observe(settings, made, rows[:cut], struck, event=event, seed=recording)
            whole = min(chunks, len(trace), cut // n)
            areas.append(max(area(trace[:whole, i], struck[:whole]) for i in range(trace.shape[1])))
            lengths.append(abs(len(trace) * n - cut) / settings.rate_hz)
        mean, error, _ = mean_and_error(areas)
        record = {"event": event, "area": mean, "area_error": error, "recordings": len(areas)}
        records.append(record | {"length_error_s": float(np.mean(lengths)), "chunk_s": settings.chunk_s})
    return records


def observe(
    settings: DeviceSettings, mechanism: Mechanism, rows: Array, struck: NDArray[np.bool_], *, event: str, seed: int
) -> Array:
    """Metadata (C, 4) of the published chunks: time since the last one, payload bytes, t0 against the grid, index.

    In a chunk that is struck, a blink makes a third of its rows missing (a lost eye is a row of NaN), or the last row
    is lost on the way and never arrives.
    """
    n, device = settings.n, Device(settings)
    seen: list[tuple[float, DueChunk]] = []
    late = np.random.default_rng(seed).normal(0.0, 0.01, len(rows))
    for index, row in enumerate(rows):
        now = index / settings.rate_hz + 1.0 + abs(float(late[index]))
        while (due := device.next_due()) is not None and due <= now:
            seen += [(due, chunk) for chunk in device.tick(due)]
        place, hit = index % n, index // n < len(struck) and bool(struck[index // n])
        if hit and event == "last row lost" and place == n - 1:
            continue
        sent = np.full_like(row, np.nan) if hit and event == "blink" and n // 3 <= place < 2 * n // 3 else row
        seen += [(now, c) for c in device.feed(RawRows(1, index, sent[None].astype(np.float32)), now)]
    while (due := device.next_due()) is not None:
        seen += [(due, chunk) for chunk in device.tick(due)]
    return _metadata(settings, mechanism, seen)


def _metadata(settings: DeviceSettings, mechanism: Mechanism, seen: list[tuple[float, DueChunk]]) -> Array:
    rows: list[tuple[float, ...]] = []
    before = 0.0
    for at, chunk in seen:
        values = mechanism.release(chunk.values).astype(np.float32)
        dt = 1 / settings.rate_hz
        payload = encode_private(PrivateChunk(7, chunk.index, chunk.t0, dt, values, mechanism.epsilon, mechanism.delta))
        off = chunk.t0 - chunk.index * settings.chunk_s
        rows.append((round(at - before, 9) if rows else 0.0, len(payload), off, chunk.index))
        before = at
    return np.array(rows, dtype=np.float64)


def area(values: Array, truth: NDArray[np.bool_]) -> float:
    """Area under the ROC curve of telling `truth` by `values`, in the better of both directions; 0.5 is guessing."""
    yes, no = values[truth], values[~truth]
    if len(yes) == 0 or len(no) == 0:
        return 0.5
    above = (yes[:, None] > no[None]).mean() + (yes[:, None] == no[None]).mean() / 2
    return float(max(above, 1 - above))
