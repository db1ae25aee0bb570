"""The shipped class of processes: how long chunks of one person resemble each other, with margins, from the corpus.

python -m tools.make.process_class GAZE_DIR

Chunks of 32 rows. For each feature the mean of a chunk, and each score of the shipped klt calibration, about the
person's own mean; the correlation with the next chunk pooled over people, corrected for the mean that was taken off
(Kendall, Biometrika 41, 1954: an estimate from T chunks is too small by (1 + 3 rho) / T). tau = -16 s / log rho, of the
slowest feature or score. The margin is the 95 % quantile over resampled people of the slower half, rounded up to 5 s.

A first rule took that quantile on the half at even positions of the sorted names alone, 125 s, and was looked at on the
other half, which has 189 s: margins from 15 people did not hold for the next 15. Hence the slower half. There are no
people left on which this one could be checked.

The slowest feature stands for all, and lag 1 for all lags: correlations at longer lags must lie below exp(-lag / tau),
which is checked too. What is pooled over people is no bound for each of them.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.rim.files import calibrations
from eyestream_lab.study.population import Population
from tools.make import everyday

Array = NDArray[np.float64]
TARGET = Path(__file__).resolve().parents[2] / "eyestream/data/processes/everyday.toml"
ROWS = 32
LAGS = 6
SCORES = 24
ABOUT = (
    "The time constant is that of the slowest feature (for klt, of the slowest score), with a margin: the 95 % "
    "quantile over the slower half of {people} people's everyday gaze (Hoppe et al. 2018), pooled; one person may be "
    "slower"
)
RESAMPLES = 2000


def series(population: Population, people: Sequence[int]) -> list[Array]:
    """For each person (T, M) chunk means of the clamped features, and scores."""
    made = []
    calibration = calibrations.load(f"everyday-klt-{ROWS}")
    mechanism = build(calibration, 4.8)
    assert isinstance(mechanism.core, JointCore)
    step, active = mechanism.core.step(), mechanism.frame.active
    for person in people:
        rows = np.clip(population.recording(person), calibration.lo, calibration.hi)[:, active]
        chunks = rows[: len(rows) // ROWS * ROWS].reshape(-1, ROWS, len(active)).transpose(0, 2, 1)
        made.append(np.hstack([chunks.mean(axis=2), np.array([step.scores(chunk) for chunk in chunks])]))
    return made


def sums(all_series: list[Array], lag: int) -> tuple[Array, Array, Array]:
    """For each person products (P, M), squares (P, M) and chunks (P,) of the correlation at a lag."""
    around = [x - x.mean(axis=0) for x in all_series]
    products = np.array([(x[lag:] * x[:-lag]).sum(axis=0) * len(x) / (len(x) - lag) for x in around])
    return products, np.array([(x**2).sum(axis=0) for x in around]), np.array([len(x) for x in around], dtype=float)


def correlation(products: Array, squares: Array, lengths: Array, weights: Array) -> Array:
    """(..., M) corrected correlation, people weighted (..., P)."""
    plain = (weights @ products) / (weights @ squares)
    chunks = ((weights @ lengths) / weights.sum(axis=-1))[..., None]
    corrected: Array = (plain * chunks + 1) / (chunks - 3)
    return corrected


def seconds(rho: Array) -> Array:
    """Time constant of the slowest."""
    slowest: Array = -ROWS * 0.5 / np.log(np.clip(rho.max(axis=-1), 1e-6, 1 - 1e-6))
    return slowest


def limits(found: list[Array]) -> tuple[float, float]:
    """Time constant of the slowest, and its 95 % quantile over resampled people."""
    first, one = sums(found, 1), np.ones(len(found))
    draws = np.random.default_rng(2026).multinomial(len(found), one / len(found), size=RESAMPLES).astype(float)
    upper = float(np.quantile(seconds(correlation(*first, draws)), 0.95))
    return float(seconds(correlation(*first, one))), upper


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("gaze", type=Path)
    options = parser.parse_args()
    population = Population.of(everyday.corpus(options.gaze))
    upper, upper_scores = 0.0, 0.0
    for half in (population.calibrating, population.released):
        slowest, quantile = limits(series(population, half))
        print(f"{len(half)} people: tau {slowest:.1f} s, 95 % {quantile:.1f} s")
        upper = max(upper, quantile)
        slowest, quantile = limits([x[:, -SCORES:] for x in series(population, half)])
        print(f"{len(half)} people: tau of scores {slowest:.1f} s, 95 % {quantile:.1f} s")
        upper_scores = max(upper_scores, quantile)
    found = series(population, range(len(population.people)))
    one = np.ones(len(found))
    tau, tau_scores = 5 * np.ceil(upper / 5), 5 * np.ceil(upper_scores / 5)
    for lag in range(1, LAGS + 1):
        rho = correlation(*sums(found, lag), one)
        least = correlation(*sums([x[:, -SCORES:] for x in found], lag), one).max()
        print(f"lag {lag * ROWS / 2:g} s: of scores {least:.3f}, limit {np.exp(-lag * ROWS / 2 / tau_scores):.3f}")
        print(
            f"lag {lag * ROWS / 2:g} s: largest correlation {rho.max():.3f}, limit {np.exp(-lag * ROWS / 2 / tau):.3f}"
        )
    scores = [x[:, -SCORES:] - x[:, -SCORES:].mean(axis=0) for x in found]
    whole = np.concatenate(scores)
    inside = np.abs(whole / whole.std(axis=0)) <= 3
    print(
        f"scores within 3 standard deviations of the level: {inside.mean():.4f}; "
        f"first score {inside[:, 0].mean():.4f}; chunks with all of them inside: {inside.all(axis=1).mean():.4f}"
    )
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text(float(tau), float(tau_scores), len(found)), encoding="utf-8")
    print(TARGET)


def text(tau: float, tau_scores: float, people: int) -> str:
    return f"""# How long chunks resemble each other, for what `eyestream guarantee` says of a whole session.
# Made by tools/make/process_class.py from the corpus of the shipped calibrations.

name = "everyday"
time_constant_s = {tau:g}
score_time_constant_s = {tau_scores:g}
range_sd = 3
about = "{ABOUT.format(people=people)}"
"""


if __name__ == "__main__":
    main()
