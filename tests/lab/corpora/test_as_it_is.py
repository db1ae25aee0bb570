"""What every system copies of raw recordings without a change stands in its claim, and no file has a person's rate.

A system that is added to the registry is tested too: it needs options here, or the first test fails.
"""

import functools
import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.claims import EVENTS, FIRST, KEPT, LANDINGS, MISSING, WHO, Promise
from eyestream_lab.corpora.claims import ROWS as NUMBERS
from eyestream_lab.corpora.events import events_of
from eyestream_lab.corpora.run import release_with
from eyestream_lab.datasets import (
    MAPS,
    ROWS,
    SYSTEMS,
    Dataset,
    gaze_kind,
    make_system,
    open_corpus,
    privatize_corpus,
)
from eyestream_lab.simulation.people import NAMES
from tests.lab.corpora.worlds import RATE_HZ, _simulated, gaze_of, participants, seeded
from tests.rigs.noise import any_noise_taken

Array = NDArray[np.float64]
Said = set[str]

calibration = functools.cache(calibrations.load)
ROWS_HZ = 2.0
OPTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "k-same-select": lambda: {"k": 2},
    "k-same-select-one-partition": lambda: {"k": 2},
    "marginals-pd": lambda: {"k": 2},
    "marginals-noised": lambda: {"calibration": calibration("everyday-lpa-32"), "epsilon": 10.0, "delta": 1e-3},
    "exponential-dp": lambda: {"calibration": calibration("everyday-lpa-32"), "epsilon": 10.0},
    "exponential-dp-as-printed": lambda: {"epsilon": 100.0, "as_published": True},
    "k-same-synth": lambda: {"k": 2},
    "k-same-synth-timed": lambda: {"k": 2},
    **dict.fromkeys(
        ("event-synth-pd", "event-synth-pd-centred", "event-synth-pd-vae"), lambda: {"k": 2, "gamma": 1000.0}
    ),
    "saliency-gaussian": lambda: {"epsilon": 10.0, "delta": 1e-4},
    "kaleido": lambda: {"epsilon": 10.0},
    "kaleido-as-published": lambda: {"epsilon": 10.0, "as_published": True},
    "tile": lambda: {"calibration": calibration("everyday-tile"), "epsilon": 3.0},
    "gaussian": lambda: {"sd_deg": 1.0},
    "temporal": lambda: {"k": 2},
    "temporal-held": lambda: {"k": 2},
    "spatial": lambda: {"level": 16},
    "smoothing": lambda: {"b": 10},
    "smoothing-twice": lambda: {"first": 3, "second": 5},
    "kalman": lambda: {"sd_deg": 1.0, "push": 500.0},
    "fpa": lambda: {"calibration": calibration("everyday-cfpa-32"), "epsilon": 48.0},
    "chunks": lambda: {"calibration": calibration("everyday-klt-32"), "epsilon": 48.0},
    "level-synth": lambda: {"calibration": calibration("everyday-klt-32"), "epsilon": 10.0},
    **{
        name: functools.partial(lambda name: {"calibration": calibration(f"everyday-{name}-32"), "epsilon": 48.0}, name)
        for name in ("lpa", "cfpa", "dcfpa", "klt")
    },
}
DETECTED = {WHO, NUMBERS, MISSING, EVENTS, LANDINGS, KEPT, FIRST}
"""Lines of claims that a release shows to be true; a claim may not have them for nothing."""
LONG = ("event-synth-pd-vae", "klt", "chunks", "fpa", "level-synth", "event-synth-pd")
NAMED = [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in SYSTEMS]


def test_every_system_is_tried() -> None:
    assert set(OPTIONS) == set(SYSTEMS)


def times(rng: np.random.Generator, count: int, rate_hz: float, fault: float) -> Array:
    """Moments at a rate, from a moment of its own, jittered by up to `fault` periods."""
    return np.asarray((np.arange(count) + rng.uniform(0, fault, count) + 20 * fault) / rate_hz)


def rows_corpus(folder: Path, own_hz: float, fault: float) -> Dataset[Recording]:
    """Six people with other lengths and gaps each; the first person's times are at another rate."""
    folder.mkdir()
    lines = []
    for person in range(6):
        for at, task in enumerate(("READ", "PLAY")):
            index, rng = 2 * person + at, np.random.default_rng((6, person, at))
            rows = _simulated(12)[index][: 70 + index].astype(np.float64)
            rows[10 + person : 20 + 2 * person, 3 + person] = np.nan
            t = times(rng, len(rows), *((own_hz, fault) if person == 0 else (ROWS_HZ, 0.0)))
            name = f"P{person}_{task}.npz"
            made = Recording(t, rows, NAMES, simulated=True, simulation=(1, 700 + index))
            recordings.save(made, folder / name)
            lines.append((f"P{person}", name, task))
    participants(folder, lines)
    return open_corpus(folder, ROWS)


def gaze_corpus(folder: Path, own_hz: float, fault: float) -> Dataset[GazeRecording]:
    """Four people with other lengths and losses each; the first person's times are at another rate."""
    folder.mkdir()
    lines = []
    for person in range(4):
        rng = np.random.default_rng((5, person))
        xy = gaze_of(rng, 8.0 + person, 0.1, np.array([2.0 * person, 0.0]))
        xy[100 + 7 * person : 112 + 9 * person] = np.nan
        t = times(rng, len(xy), *((own_hz, fault) if person == 0 else (RATE_HZ, 0.0)))
        cells = [f"{at:.6f},{x:.4f},{y:.4f}".replace("nan", "") for at, (x, y) in zip(t.tolist(), xy, strict=True)]
        name = f"P{person}_READ.csv.gz"
        (folder / name).write_bytes(gzip.compress("\n".join(["t_s,x_deg,y_deg", *cells]).encode()))
        lines.append((f"P{person}", name, "READ"))
    participants(folder, lines)
    return open_corpus(folder, gaze_kind(load_profile("degrees").at_rate(RATE_HZ)))


@dataclass(frozen=True)
class Neighbours:
    """Neighbours: the same values, and other times of the first person."""

    rows: tuple[Dataset[Recording], Dataset[Recording]]
    gaze: tuple[Dataset[GazeRecording], Dataset[GazeRecording]]
    folder: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Neighbours:
    folder = tmp_path_factory.mktemp("neighbours")
    return Neighbours(
        (rows_corpus(folder / "rows", ROWS_HZ, 0.0), rows_corpus(folder / "rows-2", 2.013, 1e-3)),
        (gaze_corpus(folder / "gaze", RATE_HZ, 0.0), gaze_corpus(folder / "gaze-2", 60.4, 1e-2)),
        folder,
    )


def release(world: Neighbours, name: str, neighbour: int = 0) -> tuple[Dataset[Any], Dataset[Any], Promise]:
    """Raw and released, made once; the promise is what it would be with numbers of the operating system."""
    raw: Dataset[Any] = (world.gaze if SYSTEMS[name].reads == "gaze" else world.rows)[neighbour]
    system, out = make_system(name, **OPTIONS[name]()), world.folder / f"{name}-{neighbour}"
    if not out.exists():
        with any_noise_taken():
            release_with(seeded(11), system, raw, out)
    kind = gaze_kind(load_profile("degrees")) if SYSTEMS[name].reads == "gaze" else ROWS
    return raw, open_corpus(out, system.released_kind or kind), system.promise(raw, raw.survey())


@pytest.mark.parametrize("name", NAMED)
def test_what_is_copied_stands_in_the_claim_and_nothing_else_does(world: Neighbours, name: str) -> None:
    raw, released, promise = release(world, name)
    found = copied(raw, released)
    assert found - set(promise.as_it_is) == set()
    assert (set(promise.as_it_is) & DETECTED) - found == set()
    page = (released.folder / "CLAIM.md").read_text()
    assert all(f"- {one}\n" in page for one in (*promise.as_it_is, *promise.not_promised))


@pytest.mark.parametrize("name", NAMED)
def test_a_persons_rate_and_times_are_in_no_file(world: Neighbours, name: str) -> None:
    """Times are whole periods of the public rate: those of a neighbour too, whose first person has another one."""
    if name == "saliency-gaussian":
        return
    found = [release(world, name, i)[1] for i in (0, 1)]
    step = 2 if name == "temporal" else 1
    for part in found[0].parts:
        own, other = (moments(corpus.load(part)) for corpus in found)
        count = min(len(own), len(other))
        assert count > 50
        np.testing.assert_array_equal(own[:count], other[:count])
        public = RATE_HZ if SYSTEMS[name].reads == "gaze" else ROWS_HZ
        np.testing.assert_allclose(own, np.arange(len(own)) * step / public, atol=1e-6)


def moments(recording: Recording | GazeRecording) -> Array:
    return recording.t if isinstance(recording, Recording) else recording.samples.t


def copied(raw: Dataset[Any], released: Dataset[Any]) -> Said:
    """What of the raw recordings is in the release without a change, in the words of claims or in others."""
    if released.kind == MAPS:
        return set()
    found = {WHO} if who(raw) == who(released) else set()
    pairs = [(raw.load(a), released.load(b)) for a, b in zip(raw.parts, released.parts, strict=True)]
    detectors = of_rows if raw.kind == ROWS else of_gaze
    return found | set(detectors(pairs))


def who(corpus: Dataset[Any]) -> list[tuple[str, str]]:
    return [(part.person, part.task) for part in corpus.parts]


def of_rows(pairs: list[tuple[Recording, Recording]]) -> Iterator[str]:
    if all(len(raw.t) == len(own.t) for raw, own in pairs):
        yield NUMBERS
        if all((np.isnan(raw.features) == np.isnan(own.features)).all() for raw, own in pairs):
            yield MISSING
    everybody = Counter(value for raw, _ in pairs for value in set(raw.features.ravel().tolist()))
    for raw, own in pairs:
        if len(raw.t) == len(own.t) and np.allclose(np.diff(raw.t), np.diff(own.t), rtol=1e-6) and np.ptp(raw.t) % 0.5:
            yield "times"
        values = [value for value in raw.features.ravel().tolist() if everybody[value] == 1]
        if np.isin(values, own.features).mean() > 0.01:
            yield "values"
        if own.simulation is not None or own.front_end is not None or own.others:
            yield "what a file says of its origin"


def of_gaze(pairs: list[tuple[GazeRecording, GazeRecording]]) -> Iterator[str]:
    if all(len(raw.samples) == len(own.samples) for raw, own in pairs):
        yield NUMBERS
    if any(all(lost_alike(raw, own, k) for raw, own in pairs) for k in (1, 2)):
        yield MISSING
    kept, landed, first, timed = [], [], [], []
    for raw, own in pairs:
        assert np.isnan(own.samples.pupil_mm).all()
        known = {place: i for i, place in enumerate(places(raw)) if place is not None}
        there = [place for place in places(own) if place is not None]
        same = [place for place in there if place in known]
        events = events_of(raw)
        landings = {tuple(np.round(place, 4).tolist()) for place in events.landing}
        beginning = next(place for place in places(raw) if place is not None)
        kept.append(len(same) / max(len(there), 1))
        landed.append(len(landings & set(same)) / len(landings))
        first.append(there[:1] == [beginning])
        line = events.timeline
        own_events = set(zip(line.begin.tolist(), line.end.tolist(), strict=True))
        timed.append(len(own_events & runs(own)) / len(own_events))
        if kept[-1] < 0.9 and len(set(same) - landings - {beginning}) > 2:
            yield "raw samples"
    if min(kept) > 0.9:
        yield KEPT
    elif max(landed) > 0.2:
        yield LANDINGS
    elif all(first):
        yield FIRST
    if max(timed) > 0.2:
        yield EVENTS


def lost_alike(raw: GazeRecording, own: GazeRecording, k: int) -> bool:
    """Whether one sample in k is there, once or k times, and lost where it was."""
    valid = raw.samples.valid
    held = valid[np.arange(len(valid)) // k * k]
    return any(np.array_equal(known, own.samples.valid) for known in (valid[::k], held))


def places(recording: GazeRecording) -> list[tuple[float, float] | None]:
    samples = recording.samples
    rounded = zip(np.round(samples.x, 4).tolist(), np.round(samples.y, 4).tolist(), strict=True)
    return [place if valid else None for place, valid in zip(rounded, samples.valid.tolist(), strict=True)]


def runs(recording: GazeRecording) -> set[tuple[int, int]]:
    """Begin and end of the stretches of one label."""
    assert recording.labels is not None
    edges = np.flatnonzero(recording.labels[1:] != recording.labels[:-1]) + 1
    whole = [0, *edges.tolist(), len(recording.labels)]
    return set(pairwise(whole))


def test_claims_of_systems_that_copy_are_found_wrong_without_their_lines(world: Neighbours) -> None:
    """The detectors see what they are for: each line that a claim could forget."""
    expected = {
        "event-synth-pd-centred": {WHO, NUMBERS, EVENTS, LANDINGS},
        "k-same-synth": {WHO, NUMBERS, EVENTS},
        "temporal": {WHO, MISSING, KEPT},
        "smoothing": {WHO, NUMBERS, MISSING, FIRST},
        "kaleido": {WHO, NUMBERS},
        "k-same-select": {WHO},
        "exponential-dp-as-printed": {WHO, NUMBERS, MISSING},
    }
    for name, lines in expected.items():
        raw, released, _ = release(world, name)
        assert copied(raw, released) == lines, name
    assert copied(world.rows[0], world.rows[0]) >= {"values", "what a file says of its origin"}


def test_gaze_whose_rate_nobody_declared_is_not_released(world: Neighbours, tmp_path: Path) -> None:
    raw = open_corpus(world.gaze[0].folder, gaze_kind(load_profile("degrees")))
    for name in SYSTEMS:
        if SYSTEMS[name].reads == "gaze" and name not in ("saliency-gaussian", *LONG):
            with pytest.raises(ConfigError, match="expected --rate-hz, such as --rate-hz 60"):
                privatize_corpus(make_system(name, **OPTIONS[name]()), raw, tmp_path / "out")
