"""How well saccades are found: on simulated eyes by rate and noise, and beside losses in recordings.

REMoDNaV is compared where it can be imported (`pip install remodnav`). Its filters need samples enough, so it is left
out below 200 Hz. Nothing is promised here: the tests hold which algorithm is better.
"""

import argparse
import functools
import importlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np

from eyestream.gaze.events import Saccade
from eyestream.gaze.profile import TICKS_PER_S, Algorithm, Profile
from eyestream.gaze.samples import Samples
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.events.labels import detect
from tests.rigs.labelled_gaze import BLINKS, Eye, Spans, Tally, recording, saccades, tally

RATES_HZ = (30.0, 60.0, 120.0, 250.0, 500.0, 1000.0)
NOISES_DEG = (0.02, 0.08, 0.25)
_BESIDE_S = 0.2

Finder = Callable[[Samples, float], Spans]


def remodnav() -> Finder | None:
    """REMoDNaV as it comes, if it is there."""
    try:
        EyegazeClassifier = importlib.import_module("remodnav").EyegazeClassifier
    except ImportError:
        return None

    def find(samples: Samples, rate_hz: float) -> Spans:
        if rate_hz < 200.0:
            return []
        classifier = EyegazeClassifier(px2deg=1.0, sampling_rate=rate_hz)
        data = np.zeros(len(samples), dtype=[("x", float), ("y", float)])
        data["x"], data["y"] = samples.x, samples.y
        odd = 2 * round(0.0095 * rate_hz) + 1  # 19 ms, its usual filter, in an odd number of samples
        found = classifier(classifier.preproc(data.view(np.recarray), savgol_length=(odd + 0.5) / rate_hz))
        spans = [(e["start_time"], e["end_time"]) for e in found if e["label"] in {"SACC", "ISAC"}]
        return sorted((round(a * rate_hz), round(b * rate_hz)) for a, b in spans)

    return find


def scored(finders: dict[str, Finder], eye: Eye, seconds: float, people: int, seed: int) -> dict[str, Tally]:
    """Sums over people."""
    out = dict.fromkeys(finders, Tally())
    for person in range(people):
        samples, truth = recording(eye, seconds, np.random.default_rng((seed, person)))
        for name, find in finders.items():
            out[name] += tally(truth, find(samples, eye.rate_hz))
    return out


def beside_losses(path: Path, profile: Profile, algorithm: Algorithm) -> tuple[int, int]:
    """Saccades of a recording; those within 200 ms of a loss of 50 ms and more that the tracker reports."""
    gaze = load_gaze(path, profile)
    t, valid = gaze.samples.t, gaze.samples.valid
    edges = np.flatnonzero(np.diff(np.concatenate(([0], (~valid).astype(np.int8), [0]))))
    losses = [(t[a], t[min(b, len(t) - 1)]) for a, b in edges.reshape(-1, 2).tolist()]
    losses = [(a, b) for a, b in losses if b - a >= 0.05]
    events, _ = detect(gaze.profile, gaze.samples, algorithm)
    spans = [(t[0] + e.start / TICKS_PER_S, t[0] + e.end / TICKS_PER_S) for e in events if isinstance(e, Saccade)]
    near = sum(any(a - end < _BESIDE_S and start - b < _BESIDE_S for a, b in losses) for start, end in spans)
    return len(spans), near


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rates", type=float, nargs="*", default=RATES_HZ)
    parser.add_argument("--noises", type=float, nargs="*", default=NOISES_DEG)
    parser.add_argument("--profile", help="count saccades beside losses in FILES of this profile instead")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    if options.profile:
        for algorithm in get_args(Algorithm):
            counts = [beside_losses(path, load_profile(options.profile), algorithm) for path in options.files]
            every, near = (sum(column) for column in zip(*counts, strict=True))
            print(f"algorithm {algorithm}: {every} saccades, {near} within 200 ms of a loss")
        return
    finders: dict[str, Finder] = {str(one): functools.partial(saccades, algorithm=one) for one in get_args(Algorithm)}
    if peer := remodnav():
        finders["REMoDNaV"] = peer
    print(f"Hz, noise, blinks, pupil | of {', '.join(finders)}: F1 (half overlap), F1 (first), in blinks, split | true")
    whole = dict.fromkeys(finders, Tally())
    for rate, noise, (blinks, pupil) in itertools.product(
        options.rates, options.noises, [*((kind, False) for kind in BLINKS), ("kept", True)]
    ):
        told = scored(finders, Eye(rate, noise, blinks, pupil), options.seconds, options.people, options.seed)
        whole = {name: whole[name] + told[name] for name in finders}
        print(f"{rate:5g} {noise:5g} {blinks:5} {'pupil' if pupil else '-':5} | {_line(told)}", flush=True)
    print(f"all | {_line(whole)}")


def _line(told: dict[str, Tally]) -> str:
    parts = [f"{one.f1:.3f} {one.f1_first:.3f} {one.in_blinks:4d} {one.splits:4d}" for one in told.values()]
    return "   ".join(parts) + f"   {next(iter(told.values())).true}"


if __name__ == "__main__":
    main()
