"""Utility against epsilon', under the shipped class of processes: what a release that keeps epsilon' low is worth.

python -m tools.make.session_frontier GAZE_DIR [--seeds 3] [--only NAME...] [--every G]

People at even positions of the sorted names calibrate and the others are released. For each target of epsilon' (of one
chunk, in a session of an hour) the largest epsilon of a chunk whose claim is at most that, to 1 %, and the explained
variance of the clipped rows (`frontier.py` has it): mean over seeds, 95 % interval over resampled people.
With --every G, every G-th chunk is released with more epsilon and the others are withheld: in their place stands what
the means of the released ones before and behind make of it, which is post-processing. CFPA and DCFPA with smoothing
(which shrinks) and clipping. Rows for docs/correlations-corpus.md.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.claims.correlation.published import session_claim
from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import build
from eyestream.rim.files.processes import load_process
from eyestream_lab.calibration import calibrate
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.study.population import finite_rows
from tools.make import everyday
from tools.make.frontier import Array, explained, release

TARGETS = (2.4, 4.8, 10.0, 24.0, 48.0, 100.0)
ROWS = 64
SHED = 1.0  # as in the shipped calibrations klt-one
RESAMPLES = 200


FILTERED = {"smooth": True, "clip": True}
KINDS: dict[str, tuple[Callable[[Corpus], Calibration], dict[str, Any]]] = {
    "klt": (lambda corpus: calibrate_joint(corpus, ranks=False), {}),
    "klt, one": (lambda corpus: calibrate_joint(corpus, shed_identity=SHED, ranks=False), {}),
    "cfpa": (lambda corpus: calibrate("cfpa", corpus), FILTERED),
    "dcfpa": (lambda corpus: calibrate("dcfpa", corpus), FILTERED),
}


def affordable(calibration: Calibration, given: dict[str, Any], target: float, every: int) -> float:
    """The largest epsilon of a chunk with which an hour tells no more than `target` of one chunk, to 1 %."""
    process, chunks = load_process("everyday"), -(-7200 // ROWS // every)

    def told(epsilon: float) -> float:
        mechanism = build(calibration, epsilon, **given)
        return session_claim(mechanism, process, ROWS / 2, chunks=chunks, touched=2, every=every).chunk

    low, high = target / chunks / 1.01, target
    while high > 1.01 * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if told(middle) <= target else (low, middle)
    return low


def released(calibration: Calibration, epsilon: float, given: dict[str, Any], person: Array, every: int) -> Array:
    """(C, F, n) every `every`-th of a person's chunks, and between them what their means make of the others."""
    private = release(calibration, epsilon, given, person[::every], False)
    if every == 1:
        return private
    means, at = private.mean(axis=2), np.arange(len(person))
    between = [np.interp(at, at[::every], means[:, feature]) for feature in range(means.shape[1])]
    whole = np.repeat(np.stack(between, axis=1)[:, :, None], person.shape[2], axis=2)
    whole[::every] = private
    return whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gaze", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--target", type=float, nargs="+", default=list(TARGETS))
    options = parser.parse_args()
    people = everyday.corpus(options.gaze)
    known, fresh = people[::2], people[1::2]
    corpus = Corpus.of(known, ROWS)
    usual = np.nanmedian(np.concatenate([r.features for r in known]), axis=0)
    raw = [whole_chunks(finite_rows(r.features, usual), ROWS) for r in fresh]
    for name in options.only:
        kind, given = KINDS[name]
        calibration = kind(corpus)
        groups = np.zeros(int((~calibration.constant).sum()), dtype=np.intp)  # one: the groups are not asked for
        for target in options.target:
            epsilon = affordable(calibration, given, target, options.every)
            whole = []
            for _ in range(options.seeds):
                private = [released(calibration, epsilon, given, chunks, options.every) for chunks in raw]
                whole.append(explained(calibration, groups, raw, private)[1])
            drawn = np.random.default_rng(2026).integers(len(raw), size=(RESAMPLES, len(raw)))
            spread = [explained(calibration, groups, [raw[i] for i in d], [private[i] for i in d])[1] for d in drawn]
            low, high = np.quantile(spread, (0.025, 0.975))
            figures = f"{np.mean(whole):.3f} | {low:.3f} to {high:.3f}"
            print(f"| {name} | {target:g} | {epsilon:.2g} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
