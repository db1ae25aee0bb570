"""What timing and metadata of published chunks tell: blinks, lost rows, and where a session begins and ends.

The device core is fed with rows as a tracker sends them, one message a row, with jitter. The attacker sees when a
private payload is published, its size, and all its fields but the values, and says whether something happened in that
chunk. Everything is virtual time: nothing waits.
"""

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.chunking.chunks import DueChunk
from eyestream.core.chunking.device import Device
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.wire.raw import RawRows
from eyestream.wire.release import PrivateChunk, encode_private
from eyestream_lab.study.cells import Record
from eyestream_lab.study.sources import World

Array = NDArray[np.float64]
ReleaseTime = Literal["on_row", "on_clock"]

_EVENTS = ("blink", "last row lost")
_GRACE_S = 0.5

FIELDS = ("time since the last chunk", "payload bytes", "t0 against the grid", "chunk index")
"""What the attacker sees of a published chunk, its values apart."""


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
    return [_reconstruct(world, settings, made, event, seed) for event in _EVENTS]


def _reconstruct(world: World, settings: DeviceSettings, mechanism: Mechanism, event: str, seed: int) -> Record:
    """The best field and direction are chosen on half of the recordings and used on the other half."""
    n, traces, truths, lengths = settings.n, [], [], []
    for recording in world.population.released:
        rng = np.random.default_rng((seed, recording))
        rows = world.population.recording(recording)
        rows = rows[: len(rows) - int(rng.integers(0, n))]
        struck = rng.random(len(rows) // n) < 0.5
        trace = observe(settings, mechanism, rows, struck, event=event, seed=recording)
        lengths.append(abs(len(trace) * n - len(rows)) / settings.rate_hz)
        traces.append(trace[: len(struck)])
        truths.append(struck)
    first, second = (np.concatenate(traces[half::2]) for half in (0, 1))
    known, unknown = (np.concatenate(truths[half::2]) for half in (0, 1))
    learned = [area(first[:, i], known) - 0.5 for i in range(first.shape[1])]
    best = int(np.argmax(np.abs(learned)))
    found = area(second[:, best] * np.sign(learned[best]), unknown)
    chunks = min(unknown.sum(), len(unknown) - unknown.sum())
    return {
        "event": event,
        "field": FIELDS[best],
        "area": found,
        "standard_error": float(1 / np.sqrt(6 * chunks)),  # of an area when nothing is told: sqrt((m + n + 1) / 12 m n)
        "length_error_s": float(np.mean(lengths)),
        "chunk_s": settings.chunk_s,
    }


def observe(
    settings: DeviceSettings, mechanism: Mechanism, rows: Array, struck: NDArray[np.bool_], *, event: str, seed: int
) -> Array:
    """Metadata (C, 4) of the published chunks, the columns `FIELDS`.

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
        if hit and event == "last row lost" and place == n - 1 and index < len(rows) - 1:
            continue
        sent = np.full_like(row, np.nan) if hit and event == "blink" and n // 3 <= place < 2 * n // 3 else row
        message = RawRows(1, index, sent[None].astype(np.float32), end=index == len(rows) - 1)
        seen += [(now, chunk) for chunk in device.feed(message, now)]
    while (due := device.next_due()) is not None:
        seen += [(due, chunk) for chunk in device.tick(due)]
    return _metadata(settings, mechanism, seen)


def _metadata(settings: DeviceSettings, mechanism: Mechanism, seen: list[tuple[float, DueChunk]]) -> Array:
    rows: list[tuple[float, ...]] = []
    before = 0.0
    for at, chunk in seen:
        values = mechanism.release(chunk.values).astype(np.float32)
        dt, index = 1 / settings.rate_hz, chunk.span.index
        payload = encode_private(PrivateChunk(7, index, chunk.t0, dt, values, mechanism.epsilon, mechanism.delta))
        off = chunk.t0 - index * settings.chunk_s
        rows.append((round(at - before, 9) if rows else 0.0, len(payload), off, index))
        before = at
    return np.array(rows, dtype=np.float64)


def area(values: Array, truth: NDArray[np.bool_]) -> float:
    """Area under the ROC curve of telling `truth` by large `values`; 0.5 is guessing."""
    yes, no = values[truth], values[~truth]
    if len(yes) == 0 or len(no) == 0:
        return 0.5
    return float((yes[:, None] > no[None]).mean() + (yes[:, None] == no[None]).mean() / 2)


def device(release, world):
    names = world.population.names
    return DeviceSettings("d", "features", 1, names, 2.0, 32, 0.5, 30.0, 8, release)


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_blinks_leave_no_trace_in_metadata(world, release):
    mechanism = build(world.calibrations["cfpa", 32], 4.8)
    rows, none = world.population.recording(1)[:300], np.zeros(9, dtype=bool)
    seen = [observe(device(release, world), mechanism, rows, struck, event="blink", seed=3) for struck in (none, ~none)]
    assert len(seen[0]) == 10
    np.testing.assert_array_equal(seen[0], seen[1])


def test_lost_rows_show_when_chunks_are_released_on_their_rows_and_not_on_the_clock(world):
    found = {}
    for release in ("on_row", "on_clock"):
        settings = {"mechanism": "cfpa", "n": 32, "epsilon": 4.8, "seed": 1}
        found[release] = {r["event"]: r for r in measure(world, release=release, **settings)}
    assert found["on_row"]["last row lost"]["area"] > 0.75
    for event, release in (("blink", "on_row"), ("blink", "on_clock"), ("last row lost", "on_clock")):
        record = found[release][event]
        assert abs(record["area"] - 0.5) < 4 * record["standard_error"]
    assert found["on_row"]["blink"]["length_error_s"] < 16.0


def test_area_under_the_curve_by_hand():
    truth = np.array([True, True, False, False])
    assert area(np.array([3.0, 1.0, 2.0, 0.0]), truth) == 0.75
    assert area(np.ones(4), truth) == 0.5
