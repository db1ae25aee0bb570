"""Utility against identity: explained variance and white-box re-identification of every mechanism and epsilon.

python -m tools.make.frontier GAZE_DIR [--release odd|even] [--seeds 5] [--chunk 32] [--epsilon E ...] [--csv FILE]

People sorted by name; those at the even positions calibrate and those at the odd ones are released, or the reverse.
Explained variance: 1 - mean over features of mean squared error / mean squared distance to the calibration mean, whole
chunks, values that are there; of rows as they are, of rows clipped to the calibration's range, of these the 40 distinct
features alone, from which the other 8 follow, and of these over groups of features that say nearly the same (joined
where the correlation in the rows of the people who calibrate is above 0.95 or below -0.95; the mean of each group
counts once). Attack: a random forest learns who is who from the private
chunks of the first half of each recording and names the private chunks of the second half; per chunk, and by majority
vote. Needs scikit-learn.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from eyestream.core.calibration import Calibration, JointTables, PerFeatureTables
from eyestream.core.mechanisms import build
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration import calibrate
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.calibration.redundancy import groups_of
from eyestream_lab.study.population import finite_rows
from tools.make import everyday

Array = NDArray[np.float64]
FOLLOWING = ("rate_large_saccades", "rate_negative_saccades", "ratio_large_saccades", "ratio_negative_saccades",
             "wb1_mean", "wb2_range", "wb3_range", "wb4_range")  # fmt: skip
EPSILONS = (0.48, 2.4, 4.8, 9.6, 24.0, 48.0)


def calibrations(corpus: Corpus) -> Iterator[tuple[str, Calibration, dict[str, bool]]]:
    yield "klt", calibrate_joint(corpus, ranks=False), {}
    yield "mapped klt", calibrate_joint(corpus), {}
    for weight in (1, 4, 32):
        yield f"klt one {weight}", calibrate_joint(corpus, shed_identity=weight, ranks=False), {}
    for name in ("cfpa", "dcfpa", "lpa"):
        calibration = calibrate(name, corpus)
        yield name, calibration, {}
        yield f"{name} shrink", calibration, {"shrink": True}


def release(calibration: Calibration, epsilon: float, options: dict[str, Any], person: Array, split: bool) -> Array:
    """Private chunks (C, F, n) of chunks (C, F, n); a session, or one for each half."""
    mechanism = build(calibration, epsilon, **options)
    half = len(person) // 2
    parts = (person[:half], person[half:]) if split else (person,)
    return np.array([session.release(c) for part in parts for session in [mechanism.session()] for c in part])


def groups_in(calibration: Calibration, known: list[Recording]) -> NDArray[np.intp]:
    """(A,) groups of the features that are released, in rows of those who calibrate, clipped."""
    rows = np.concatenate([r.features for r in known])[:, ~calibration.constant]
    active = ~calibration.constant
    clipped = np.clip(rows, calibration.lo[active], calibration.hi[active])
    return groups_of(clipped)


def explained(
    calibration: Calibration, groups: NDArray[np.intp], raw: list[Array], private: list[Array]
) -> tuple[float, float, float, float]:
    """Of rows as they are, clipped, clipped of distinct features alone, and clipped over groups."""
    tables = calibration.tables
    assert isinstance(tables, JointTables | PerFeatureTables)
    mean = calibration.fill if isinstance(tables, JointTables) else tables.mean.mean(axis=1)
    active = ~calibration.constant
    distinct = active & ~np.isin(calibration.names, FOLLOWING)
    shares = []
    for lo, hi in ((np.full_like(mean, -np.inf), np.full_like(mean, np.inf)), (calibration.lo, calibration.hi)):
        wanted = [np.clip(x, lo[:, None], hi[:, None]) for x in raw]
        error = sum(np.nansum((y - x) ** 2, axis=(0, 2)) for x, y in zip(wanted, private, strict=True))
        base = sum(np.nansum((x - mean[:, None]) ** 2, axis=(0, 2)) for x in wanted)
        shares.append(1 - error / np.where(active, base, 1.0))
    each = np.bincount(groups, shares[1][active]) / np.bincount(groups)
    plain, clipped, apart = shares[0][active].mean(), shares[1][active].mean(), shares[1][distinct].mean()
    return float(plain), float(clipped), float(apart), float(each.mean())


def describe(chunks: Array) -> Array:
    """What the attacker looks at: mean of each feature, and its change from the chunk's first half to its second."""
    half = chunks.shape[2] // 2
    return np.concatenate([chunks.mean(axis=2), chunks[:, :, half:].mean(axis=2) - chunks[:, :, :half].mean(axis=2)], 1)


def identify(people: list[Array], seed: int) -> tuple[float, float]:
    """Rate per chunk and by vote at which the second halves are told apart."""
    halves = [(describe(p[: len(p) // 2]), describe(p[len(p) // 2 :])) for p in people]
    who = np.repeat(np.arange(len(people)), [len(first) for first, _ in halves])
    forest = RandomForestClassifier(100, random_state=seed).fit(np.concatenate([first for first, _ in halves]), who)
    named = [forest.predict(second) for _, second in halves]
    chunk = np.mean([np.mean(names == i) for i, names in enumerate(named)])
    vote = np.mean([np.bincount(names, minlength=len(people)).argmax() == i for i, names in enumerate(named)])
    return float(chunk), float(vote)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gaze", type=Path)
    parser.add_argument("--release", choices=("odd", "even"), default="odd")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--chunk", type=int, default=32)
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--only", help="mechanisms whose name begins so")
    parser.add_argument("--utility", action="store_true", help="no attack")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    people = everyday.corpus(options.gaze)
    known, fresh = (people[::2], people[1::2]) if options.release == "odd" else (people[1::2], people[::2])
    corpus = Corpus.of(known, options.chunk)
    usual = np.nanmedian(np.concatenate([r.features for r in known]), axis=0)
    raw = [whole_chunks(r.features, options.chunk) for r in fresh]
    held = [whole_chunks(finite_rows(r.features, usual), options.chunk) for r in fresh]
    chance = 1 / len(raw)
    bound = chance + 2 * np.sqrt(chance * (1 - chance) / len(raw))
    print(
        f"{len(known)} people calibrate, {len(raw)} are released; chance {chance:.3f}, two errors above it {bound:.3f}"
    )
    print(
        "raw: per chunk, voted",
        *(f"{v:.3f}" for v in np.mean([identify(held, seed) for seed in range(options.seeds)], axis=0)),
    )
    rows = []
    for name, calibration, extra in calibrations(corpus):
        if options.only and not name.startswith(options.only):
            continue
        groups = groups_in(calibration, known)
        for epsilon in options.epsilon:
            for split in (False,) if options.utility else (False, True):
                runs = []
                for seed in range(options.seeds):
                    private = [release(calibration, epsilon, extra, x, split) for x in raw]  # NaN and all
                    told = () if options.utility else identify(private, seed)
                    runs.append((*explained(calibration, groups, raw, private), *told))
                figures = np.mean(runs, axis=0)
                rows.append([name, epsilon, "halves apart" if split else "one session", *figures.round(4)])
                print(f"{name:14s} epsilon {epsilon:5.2f} {rows[-1][2]:12s} EV {figures[0]:9.3f}, ", end="")
                print(f"clipped {figures[1]:.3f}, distinct {figures[2]:.3f}, ", end="")
                print(f"{groups.max() + 1} groups {figures[3]:.3f}", *figures[4:].round(3), flush=True)
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            attack = [] if options.utility else ["per_chunk", "voted"]
            writer.writerow(["mechanism", "epsilon", "sessions", "explained", "clipped", "distinct", "groups", *attack])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
