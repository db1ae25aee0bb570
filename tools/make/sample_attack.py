"""Gaze of one session that is released, and who is recognised in another one; the table of docs/coarse-gaze-figures.md.

python -m tools.make.sample_attack CORPUS [--only NAME ...] [--steps N]

CORPUS is a folder of people with the tasks `first` and `second`, as `tools.verification.release_systems --corpus nlgem`
makes it. Attackers learn from the released first session of each person, which is about a minute, so this is the
exemplar scenario too. They name the second one, raw (the papers' scenario) and released. Saliency is of all people's
gaze in a session: one kind of stimuli for all. Intervals are Wilson's, 95 %, over people. Needs the extra `deep`.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files import calibrations
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.kinds import on_grid
from eyestream_lab.corpora.samples import Samplewise
from eyestream_lab.datasets import gaze_kind, make_system, open_corpus
from eyestream_lab.releases.deep import recognised_by_samples
from eyestream_lab.releases.gaze import GazePeople, events_in, places, recognised_by_events, saliency, saliency_kl
from eyestream_lab.study.people.deep import LearningSettings
from eyestream_lab.testing.noise import SeededNoise

Release = Callable[[GazeRecording], GazeRecording]
SEED = 1
SPLIT = [(["first"], ["second"])]
RATE_HZ = 60.0
WINDOW_S = 2.0


def released_by(name: str, **options: object) -> Release:
    """By a system for whole corpora, with noise that can be repeated."""
    system, draws = make_system(name, **options), Draws(SeededNoise(SEED))
    assert isinstance(system, Samplewise)
    return lambda recording: on_grid(system.treat(recording, draws), recording.profile.fixed_rate_hz)


def tile(epsilon: float) -> Release:
    """This epsilon in any 2 s, which enter three slots."""
    return released_by("tile", calibration=calibrations.load("everyday-tile"), epsilon=epsilon / 3)


def kaleido(epsilon: float, r_deg: float) -> Release:
    """This epsilon in any 2 s, for movements of r."""
    return released_by("kaleido", epsilon=epsilon, w=int(WINDOW_S * RATE_HZ), skip=int(0.05 * RATE_HZ), r_deg=r_deg)


RELEASES: dict[str, Release] = {
    "raw": lambda recording: recording,
    "tile, epsilon 10": tile(10.0),
    "tile, epsilon 20": tile(20.0),
    "Kaleido, epsilon 10, r 2": kaleido(10.0, 2.0),
    "Kaleido, epsilon 10, r 10": kaleido(10.0, 10.0),
    "Gaussian, 10 degrees": released_by("gaussian", sd_deg=10.0),
    "spatial, L 64": released_by("spatial", level=64),
    "temporal, K 3": released_by("temporal-held", k=3),
    "smoothing, 10 and 50": released_by("smoothing-twice", first=10, second=50),
    "Kalman, 0.5 degrees, 500 degrees/s2": released_by("kalman", sd_deg=0.5, push=500.0),
}


def told(right: NDArray[np.float64]) -> str:
    """Share of people and its interval: Wilson, JASA 22 (1927), 95 %."""
    z, people, share = 1.96, len(right), float(right.mean())
    middle, width = share + z * z / (2 * people), z * np.sqrt(share * (1 - share) / people + z * z / (4 * people**2))
    low, high = ((middle + way * width) / (1 + z * z / people) for way in (-1, 1))
    return f"{share:.2f} [{low:.2f}, {high:.2f}]"


def row(name: str, raw: GazePeople, settings: type[LearningSettings]) -> str:
    """One line of the table."""
    found = {who: {task: RELEASES[name](one) for task, one in own.items()} for who, own in raw.items()}
    apart = [
        np.hypot(*(places(found[who][task]) - places(one)).T) for who, own in raw.items() for task, one in own.items()
    ]
    cells = [f"{np.nanmedian(np.concatenate(apart)):.1f}", f"{saliency_kl(saliency(raw), saliency(found)):.2f}"]
    events = events_in(found)
    cells += map(told, recognised_by_events(events, (events_in(raw), events), SPLIT))
    cells += map(told, recognised_by_samples(found, (raw, found), SPLIT, settings))
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--only", nargs="+", choices=tuple(RELEASES), default=tuple(RELEASES))
    parser.add_argument("--steps", type=int, default=LearningSettings.steps, help="in which the network learns")
    options = parser.parse_args()
    corpus = open_corpus(options.corpus, gaze_kind(load_profile("degrees")))
    raw: dict[str, dict[str, GazeRecording]] = {}
    for part in corpus.parts:
        raw.setdefault(part.person, {})[part.task] = corpus.load(part)
    settings = type("Given", (LearningSettings,), {"steps": options.steps})
    print(f"{len(raw)} people, chance {1 / len(raw):.3f}", flush=True)
    heads = [
        f"{who}, {tested} tested" for who in ("networks on events", "dense network") for tested in ("raw", "released")
    ]
    print(f"| release | median distance, degrees | KL of saliency | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 3) + "|", flush=True)
    for name in options.only:
        print(row(name, raw, settings), flush=True)


if __name__ == "__main__":
    main()
