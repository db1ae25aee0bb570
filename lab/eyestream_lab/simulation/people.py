"""Simulated people: feature streams that look like the corpus and belong to nobody.

A *trait* is a number behind the stream that is free to vary: a count, a ratio, a mean, a maximum. Every trait has a
score that is standard normal over the population. The score is the sum of a person's own level (drawn once, correlated
over traits) and of a process in time (uncorrelated components, each as slow as measured on the corpus). The
trait's quantile function turns scores into values (a Gaussian copula), and the remaining features follow from their
definitions: ratios from counts, means of wordbooks from the number of saccades, range from maximum.

Simulation needs no secret: `numpy.random.Generator` with a seed is right here, and only here. Noise that protects
somebody comes from `eyestream.core.noise`.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.gaze.features import NAMES as FEATURES_52
from eyestream.rim.files import DATA

Floats = NDArray[np.float64]

GENERATOR = 2
"""Version of the generator: the same version, seed, number of people and length give the same rows."""

RATE_HZ = 2.0
LONGEST_S = 86_400
"""A day in memory at once is some hundred megabytes."""

WINDOW_S = 30.0
"""Span that one row summarises; a count is a rate times this."""

NAMES = FEATURES_52

CONSTANTS: tuple[str, ...] = tuple(f"wb{w}_min" for w in (1, 2, 3, 4))
"""Declared constants: always 0 here."""

TRAITS: tuple[str, ...] = (
    *("rate_fixations", "ratio_saccades_fixations", "ratio_small_saccades", "rightward"),
    *NAMES[11:28],
    *("wb1_nonzero", "wb1_max", "wb1_var", "wb2_repeats", "wb2_max", "wb2_dispersion", "wb3_repeats", "wb4_repeats"),
)
"""Drawn quantities; the features are computed from them.

Rightward = (positive - negative) / sqrt(saccades), in counts; repeats = 1 - nonzero / words; dispersion = var / mean.
"""

FOLLOWERS: dict[str, str] = {"wb3_max": "wb3_repeats", "wb4_max": "wb4_repeats"}
"""Traits without a score of their own: long words recur so rarely that one score says how many and how often."""

_PUPIL = NAMES[21:25]

_LAGS = 1024
_PARTS = (*((window, 0) for window in (6, 20, 40, 60, 90, 120, 200)), *((60, memory) for memory in (6, 12, 24, 48, 96)))
"""Length of the window and memory of the inner process, in rows; 60 rows are the window of the features."""


@dataclass(frozen=True)
class Statistics:
    """Figures of the corpus: 30 people together, no recording of anybody.

    Parameters
    ----------
    scores
        (q,) standard normal scores, increasing: the nodes of the quantile functions.
    quantiles
        (T + f, q) value of each trait, then of each follower, at each node, given that there are events to compute it.
    person
        (T, r) factor of the between-person covariance of the scores.
    basis
        (T, T) factor of the within-person covariance of the scores; a column is one component.
    shares
        (T, p) of each component's variance among the p processes of `windowed`; a row sums to 1.
    without_pupil
        Share of people whose tracker gives no pupil.
    people
        Number of people of the corpus.
    """

    scores: Floats
    quantiles: Floats
    person: Floats
    basis: Floats
    shares: Floats
    without_pupil: float
    people: int


def load_statistics() -> Statistics:
    """Statistics of the 30-person corpus, as shipped."""
    shipped = (DATA / "simulation.npz").read_bytes()
    with np.load(io.BytesIO(shipped), allow_pickle=False) as file:
        arrays = {name: file[name].astype(np.float64) for name in ("scores", "quantiles", "person", "basis", "shares")}
        return Statistics(**arrays, without_pupil=float(file["without_pupil"]), people=int(file["people"]))


def simulate(statistics: Statistics, people: int, seconds: float, seed: int) -> Iterator[NDArray[np.float32]]:
    """Recordings of `people` simulated people, one after the other.

    Parameters
    ----------
    people
        How many; person i is the same whatever the number of people.
    seconds
        Length of each recording; one row each 0.5 s, the part of a row is left out.
    seed
        0 or more; of the simulation only.

    Yields
    ------
    (m, 52) features of one person, columns as in `NAMES`.

    Raises
    ------
    ConfigError
        A number is out of range.
    """
    check_extent(people, seconds, seed)
    rows = int(seconds * RATE_HZ)
    for person in range(people):
        yield simulate_person(statistics, rows, np.random.default_rng((GENERATOR, seed, person)))


def check_extent(people: int, seconds: float, seed: int) -> None:
    """Raise ConfigError for a simulation of none, too short or too long, or with a negative seed."""
    if people < 1 or seed < 0 or not 1 / RATE_HZ <= seconds <= LONGEST_S:
        raise ConfigError(f"a simulation needs 1 person or more, 0.5 to {LONGEST_S} seconds and a seed of 0 or more")


def simulate_person(statistics: Statistics, rows: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw a new person and `rows` successive rows of the stream: (rows, 52), columns as in `NAMES`.

    A person without pupil data (a tracker that gives none) has NaN there, as in the corpus. Eyes are never lost here.
    """
    level, has_pupil = draw_person(statistics, rng)
    return rows_of(statistics, level, rows, rng, has_pupil=has_pupil)


def draw_person(statistics: Statistics, rng: np.random.Generator) -> tuple[Floats, bool]:
    """Level (T,) of a new person's scores, and whether their tracker gives pupils."""
    level = statistics.person @ rng.standard_normal(statistics.person.shape[1])
    return level, bool(rng.random() >= statistics.without_pupil)


def rows_of(
    statistics: Statistics, level: Floats, rows: int, rng: np.random.Generator, *, has_pupil: bool
) -> NDArray[np.float32]:
    """`rows` successive rows (rows, 52) of a person whose scores lie around `level`, (T,) or (T, rows)."""
    scores = level.reshape(len(TRAITS), -1) + statistics.basis @ _processes(statistics.shares @ windowed(), rows, rng)
    values = {}
    for name, quantiles in zip((*TRAITS, *FOLLOWERS), statistics.quantiles, strict=True):
        score = scores[TRAITS.index(FOLLOWERS.get(name, name))]
        values[name] = np.interp(score, statistics.scores, quantiles)
    if not has_pupil:
        values |= dict.fromkeys(_PUPIL, np.full(rows, np.nan))
    features = _features(values)
    return np.stack([features[name] for name in NAMES], axis=1).astype(np.float32)


def windowed() -> Floats:
    """(p, 1024) autocorrelation at lags 0..1023 rows of the processes that a component is made of.

    Each is the mean over a sliding window of an inner process, independent from row to row or of exponential memory:
    one row and the next share all of the window but one row, which is what makes the stream slow.
    """
    lags = np.arange(-_LAGS + 1, _LAGS)
    parts = []
    for window, memory in _PARTS:
        inner = np.exp(-np.abs(lags) / memory) if memory else (lags == 0).astype(np.float64)
        box = np.ones(window)
        outer = np.convolve(np.convolve(inner, box, "same"), box[::-1], "same")
        middle = int(outer.argmax())
        part = np.zeros(_LAGS)
        part[: len(outer) - middle] = (outer[middle:] / outer[middle])[:_LAGS]
        parts.append(part)
    return np.array(parts)


def _processes(autocorrelation: Floats, rows: int, rng: np.random.Generator) -> Floats:
    """(T, rows) independent stationary Gaussian processes of variance 1 with the given (T, K) autocorrelation.

    Circulant embedding (Davies and Harte 1987): the circle is longer than rows + K, so that no row meets itself again.
    """
    count, lags = autocorrelation.shape
    size = 1 << (rows + lags - 1).bit_length()
    circle = np.zeros((count, size))
    circle[:, :lags] = autocorrelation
    circle[:, size - lags + 1 :] = autocorrelation[:, :0:-1]
    power = np.maximum(np.fft.rfft(circle).real, 0.0)
    power *= size / (2 * power.sum(axis=1) - power[:, 0] - power[:, -1])[:, None]
    white = np.fft.rfft(rng.standard_normal((count, size)))
    return np.fft.irfft(np.sqrt(power) * white, size)[:, :rows]


def _features(traits: dict[str, Floats]) -> dict[str, Floats]:
    """All features from the traits, each (rows,); what has no event to be computed from is 0."""
    fixations = np.rint(traits["rate_fixations"] * WINDOW_S)
    blinks = np.rint(traits["blink_rate"] * WINDOW_S)
    saccades = np.rint(traits["ratio_saccades_fixations"] * fixations)
    small = np.rint(traits["ratio_small_saccades"] * saccades)
    positive = np.clip(np.rint((saccades + traits["rightward"] * np.sqrt(saccades)) / 2), 0, saccades)
    counts = {"saccades": saccades, "small_saccades": small, "large_saccades": saccades - small}
    counts |= {"positive_saccades": positive, "negative_saccades": saccades - positive}
    features = dict(traits)
    features |= {f"rate_{what}": count / WINDOW_S for what, count in counts.items()}
    features |= {
        f"ratio_{what}": count / np.maximum(saccades, 1) for what, count in counts.items() if what != "saccades"
    }
    features["rate_fixations"] = fixations / WINDOW_S
    features["blink_rate"] = blinks / WINDOW_S
    features["ratio_saccades_fixations"] = saccades / np.maximum(fixations, 1)
    for kind in ("saccade_amplitude", "fixation_duration"):
        features[f"max_{kind}"] = np.maximum(traits[f"max_{kind}"], traits[f"mean_{kind}"])
    for w in (1, 2, 3, 4):
        features |= _wordbook(w, saccades, traits)
    for names, events in ((NAMES[11:14], saccades), (NAMES[14:25], fixations), (NAMES[25:27], blinks)):
        features |= {name: np.where((events > 0) | np.isnan(features[name]), features[name], 0.0) for name in names}
    return features


def _wordbook(w: int, saccades: Floats, traits: dict[str, Floats]) -> dict[str, Floats]:
    """Features of the wordbook of `w`-grams of saccades: a row of s saccades holds s - w + 1 words, among 24^w."""
    words = np.maximum(saccades - (w - 1), 0.0)
    mean = words / 24.0**w
    distinct = traits["wb1_nonzero"] if w == 1 else words - np.rint(traits[f"wb{w}_repeats"] * words)
    distinct = np.clip(np.rint(distinct), np.minimum(words, 1), words)
    repeats = words - distinct
    most = np.clip(np.rint(traits[f"wb{w}_max"]), np.where(repeats > 0, 2, np.minimum(words, 1)), repeats + (words > 0))
    if w == 1:
        variance = traits["wb1_var"]
    elif w == 2:
        variance = traits["wb2_dispersion"] * mean
    else:  # one word `most` times, the other repeated ones twice: the sum of squared counts follows
        squares = words + most * (most - 1) + 2 * np.maximum(repeats - (most - 1), 0)
        variance = squares / 24.0**w - mean**2
    new = {"nonzero": distinct, "max": most, "min": np.zeros_like(mean), "range": most, "mean": mean}
    return {f"wb{w}_{what}": values for what, values in new.items()} | {
        f"wb{w}_var": np.where(words > 0, variance, 0.0)
    }
