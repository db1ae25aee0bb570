"""What comes through of features that are asked for, of people who calibrated nothing.

python -m tools.make.asked_figures DATA [--releases 4]     DATA holds hoppe2018/ and gazegraph/

Chunks of 64 rows at epsilon 4.8, live. Everyday gaze: each third of the people is released with calibrations of the
others. Another tracker (GazeGraph): each half is released with what the other half adapted. `r` is between the means of
chunks, released and true, after the baseline; `explained` is the share of the variance of rows. Both are pooled over
people, each recording's own mean subtracted. In brackets: 95 % intervals over people.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.entry import referred
from eyestream.ops.asked_sets import FEATURE_SETS
from eyestream.rim.files import calibrations
from eyestream.rim.files.extraction import load_rows
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.files.books import shipped_books
from eyestream_lab.parts import calibrate, part_of
from tools.make.everyday import corpus
from tools.verification.release_systems import gazegraph

Array = NDArray[np.float64]
Maker = Callable[[list[Recording]], Mechanism]
Made = Callable[[str, list[Recording]], Calibration]
Folds = Sequence[Sequence[list[Recording]]]
"""Who calibrates, and who is released."""

N, EPSILON, WITHHELD = 64, 4.8, 2
SETS = {
    "saccades": ["rate_saccades"],
    "blinks": ["blink_rate"],
    "fixations": ["mean_fixation_duration"],
    "amplitude": ["mean_saccade_amplitude"],
    "pupil": ["mean_mean_diameter"],
    **{name: list(features) for name, features in FEATURE_SETS.items()},
}


def sums_of(mechanism: Mechanism, recording: Recording, names: Sequence[str], bounds: Array) -> Array:
    """(d, 5) of one release of a recording: products and squares of chunk means; errors and squares of rows."""
    of = [recording.names.index(name) for name in names]
    chunks, session, truth, found = list(whole_chunks(recording.features, N)), mechanism.session(), [], []
    kept = [mechanism.schema.names.index(name) for name in names]
    for turn, chunk in enumerate(chunks):
        own = chunk[[recording.names.index(name) for name in mechanism.calibration.names]]
        if session.awaits_baseline:
            session.anchor(own)
        elif turn < WITHHELD:
            session.release(own)
        else:
            released = session.release(own)[kept]
            truth.append(np.clip(chunk[of], *bounds[:, of, None]))
            found.append(np.broadcast_to(released, truth[-1].shape) if released.shape[1] == 1 else released)
    if len(truth) < 3:
        return np.zeros((len(of), 5))
    x, y = np.concatenate(truth, axis=1), np.concatenate(found, axis=1)
    there = np.isfinite(x)
    x, y = (np.where(there, part, np.nan) for part in (x, y))
    x, y = (part - np.nanmean(part, axis=1, keepdims=True) for part in (x, y))
    means = [np.nanmean(part.reshape(len(of), -1, N), axis=2) for part in (x, y)]
    a, b = (part - np.nanmean(part, axis=1, keepdims=True) for part in means)
    return np.nan_to_num(
        np.stack([np.nansum(part, axis=1) for part in (a * b, a * a, b * b, (x - y) ** 2, x * x)], axis=1)
    )


def pooled(people: Array) -> str:
    """`r .90 [.88, .92], explained .60 [.55, .64]` for each feature, of (P, d, 5)."""
    rng = np.random.default_rng(1)
    picks = [np.arange(len(people)), *rng.integers(0, len(people), (400, len(people)))]
    sums = np.array([people[pick].sum(axis=0) for pick in picks])
    both = sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2] + 1e-300), 1 - sums[..., 3] / sums[..., 4]
    said = []
    for each in zip(*(part.T for part in both), strict=True):
        r, explained = ("{:.2f} [{:.2f}, {:.2f}]".format(of[0], *np.nanpercentile(of[1:], [2.5, 97.5])) for of in each)
        said.append(f"r {r}, explained {explained}")
    return "; ".join(said)


def measured(folds: Folds, make: Maker, names: list[str], releases: int) -> Array:
    """(P, d, 5) sums of every person."""
    found: dict[str, Array] = {}
    for others, own in folds:
        mechanism = make(others)
        rows = np.concatenate([recording.features for recording in others])
        bounds = np.nanpercentile(np.where(np.isfinite(rows), rows, np.nan), [0.5, 99.5], axis=0)
        for recording in own:
            person = Path(recording.path).name.partition(".")[0].partition("_")[0]
            for _ in range(releases):
                found[person] = found.get(person, 0) + sums_of(mechanism, recording, names, bounds)
    return np.array(list(found.values()))


def only(recordings: list[Recording], names: Sequence[str]) -> list[Recording]:
    """The recordings with some features alone; those without a value of any of them left out."""
    found = []
    for recording in recordings:
        features = recording.features[:, [recording.names.index(name) for name in names]]
        if np.isfinite(features[: len(features) // N * N]).any():
            found.append(replace(recording, features=features, names=tuple(names)))
    return found


def ways(names: list[str], made: Made) -> dict[str, Maker]:
    """What is compared for a set of features."""
    smooth: dict[str, Any] = {"smooth": True, "clip": True}
    return {
        "asked": lambda others: build(made("asked", others), EPSILON, features=names),
        "klt, all features": lambda others: build(made("klt-anchored", others), EPSILON),
        "cfpa, the same features": lambda others: build(
            calibrate("cfpa", Corpus.of(only(others, names), N)), EPSILON, **smooth
        ),
    }


def remembering(make: Made) -> Made:
    """The same, each made once."""
    known: dict[tuple[str, int], Calibration] = {}

    def made(name: str, others: list[Recording]) -> Calibration:
        if (name, id(others)) not in known:
            known[name, id(others)] = make(name, others)
        return known[name, id(others)]

    return made


def anew(name: str, others: list[Recording]) -> Calibration:
    """A calibration of these people alone."""
    options: dict[str, Any] = {"anchored": True, "books": shipped_books()} if name == "klt-anchored" else {}
    return calibrate(name.partition("-")[0], Corpus.of(others, N), **options)


def adapted(name: str, others: list[Recording]) -> Calibration:
    """The shipped calibration, for the tracker of these recordings."""
    base = calibrations.load(f"everyday-{name}-{N}")
    made: Calibration = referred(part_of(base.mechanism).adapt)(base, Corpus.of(others, N))[0]
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--releases", type=int, default=4)
    options = parser.parse_args()
    people = corpus(options.data / "hoppe2018" / "gaze")
    places = np.random.default_rng(5).permutation(len(people)) % 3
    folds = [
        tuple([person for person, own in zip(people, places, strict=True) if (own == third) == mine] for mine in (0, 1))
        for third in range(3)
    ]
    print(f"everyday, {len(people)} people, epsilon {EPSILON} a chunk of {N} rows", flush=True)
    table(folds, remembering(anew), SETS, options.releases)
    with tempfile.TemporaryDirectory() as folder:
        gazegraph(options.data, Path(folder))
        profile = load_profile("degrees").at_rate(30.0)
        rows = [load_rows(path, profile) for path in sorted(Path(folder).glob("P*.csv.gz"))]
    halves = [[r for r in rows if int(Path(r.path).name[1]) % 2 == side] for side in (0, 1)]
    print(f"another tracker, {len(rows)} recordings of 7 people, adapted", flush=True)
    chosen = {name: SETS[name] for name in ("saccades", "fixations", "amplitude", "attention", "reading")}
    table([(halves[0], halves[1]), (halves[1], halves[0])], remembering(adapted), chosen, options.releases)


def table(folds: Folds, made: Made, sets: dict[str, list[str]], releases: int) -> None:
    """A line for each set and way."""
    for label, names in sets.items():
        for way, make in ways(names, made).items():
            print(f"{label:10} {way:24} {pooled(measured(folds, make, names, releases))}", flush=True)


if __name__ == "__main__":
    main()
