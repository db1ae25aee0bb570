"""The figures of docs/correlations.md, computed again. Run as a program it prints the tables."""

from collections.abc import Iterable

import numpy as np

from eyestream.correlation.published import session_claim
from eyestream.lab.correlation.attack import strongest
from eyestream.lab.correlation.autoregressive import Autoregressive, box_loss
from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.emissions import fourier_coordinates, fourier_scale, laplace
from eyestream.lab.correlation.ordered import ordered_profile
from eyestream.lab.correlation.profile import profile
from eyestream.lab.correlation.rows import first_coefficient
from eyestream.lab.correlation.schedules import balanced, constant, markov_bound, spaced
from eyestream.lab.correlation.second import Windows, touched_loss, window_loss
from eyestream.privacy.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream.rim.files.processes import load_process
from tests.correlation.small_worlds import (
    cao,
    chunk_emission,
    exact_second,
    exact_total,
    own_words,
    pairs_of_rows,
    stay_or_move,
)

Row = tuple[float | str, ...]

EVEN = {stay: MarkovClass.exact(stay_or_move(stay)) for stay in (0.5, 0.8, 0.95)}
SLOW = Autoregressive(0.98, 0.0, 1.0).grid(5, 0.1)
"""Five ordered values of one feature, rows half a second apart: a chunk of 32 rows halves the correlation."""


def five_chunks() -> Iterable[Row]:
    """Stay, epsilon; Cao et al., randomised response, CFPA, DCFPA, DCFPA rescaled, plain sum."""
    for stay, epsilon in ((0.5, 1), (0.8, 1), (0.8, 4), (0.95, 1), (0.95, 4)):
        pairs, chunks = pairs_of_rows(stay)
        yield (
            stay,
            epsilon,
            2 * cao(stay_or_move(stay), epsilon, 2) - epsilon,
            exact_total(EVEN[stay], own_words(epsilon), 5, 2),
            exact_total(pairs, chunk_emission(chunks, epsilon, differences=False), 5, 2),
            exact_total(pairs, chunk_emission(chunks, epsilon, differences=True), 5, 2),
            exact_total(pairs, chunk_emission(chunks, epsilon, differences=True, own=True), 5, 2),
            5 * epsilon,
        )


def vulnerable(epsilons: tuple[float, ...] = (0.48, 4.8, 48.0)) -> Iterable[Row]:
    """Rows, n, epsilon; epsilon' of CFPA; own loss and epsilon' of DCFPA; that with own loss epsilon; its ratio.

    The sixth of eleven chunks; the published scales, and for the last but one column less noise.
    """
    for name, process in (("even, 0.8", EVEN[0.8]), ("even, 0.95", EVEN[0.95]), ("slow", SLOW)):
        span = process.states - 1
        for n in (2, 8, 32):
            for epsilon in epsilons:
                scales = [fourier_scale(n, 1, span * d, epsilon) for d in (np.sqrt(n), np.sqrt(4 * n - 3))]
                plain = first_coefficient(process, n, scales[0], differences=False, side=5).total
                other = first_coefficient(process, n, scales[1], differences=True, side=5)
                equal = first_coefficient(process, n, span / epsilon, differences=True, side=5).total
                yield name, n, epsilon, plain, other.own, other.total, equal, equal / plain


def more_coefficients() -> Iterable[Row]:
    """k; own loss over epsilon and epsilon' over own loss by coupling, CFPA and DCFPA; n = 32, a = 0.98, 41 chunks."""
    process, n = Autoregressive(0.98, 0.0, 1.0), 32
    for k in (1, 2, 4, 8):
        found: list[float] = []
        for differences in (False, True):
            analysis = fourier_coordinates(np.eye(n), k, differences=differences).T
            scale = fourier_scale(n, k, np.sqrt(4 * n - 3 if differences else n), 1.0)
            own = min(1.0, float(box_loss(analysis, np.ones(n))) / float(scale))
            found += [own, float(process.chunks(analysis, scale, own, 41)[20]) / own]
        yield k, *found


def scalar() -> Iterable[Row]:
    """a, T, epsilon; coupling bound, exact value on seven states, their ratio."""
    for a, length, epsilon in ((0.5, 5, 1.0), (0.8, 5, 4.0), (0.95, 5, 4.0), (0.95, 101, 4.0)):
        process = Autoregressive(a, 0.0, 1.0)
        bound = float(process.profile([epsilon] * length)[length // 2])
        emissions = [laplace(np.linspace(0, 1, 7), 1 / epsilon)] * length
        exact = float(ordered_profile(process.grid(7, 0.1), emissions).total[length // 2])
        yield a, length, epsilon, bound, exact, bound / exact


def schedules() -> Iterable[Row]:
    """Stay, schedule; largest epsilon, sum, sum of squares; target 4.8, 200 chunks (40 for the balanced one)."""
    for stay, process in EVEN.items():
        bound = markov_bound(process, own_words)
        for name, found in (
            ("every chunk", constant(4.8, 200, bound, precision=1e-4)),
            ("every 4th", spaced(4.8, 200, 4, bound, precision=1e-4)),
            ("every 8th", spaced(4.8, 200, 8, bound, precision=1e-4)),
        ):
            yield stay, name, float(found.max()), float(found.sum()), float((found**2).sum())


def margins() -> Iterable[Row]:
    """Margin; epsilon' bound of five chunks, third; attained by the chain in the middle and by the slowest member."""
    for margin in (0.0, 0.01, 0.02, 0.05):
        centre = stay_or_move(0.8)
        members = MarkovClass.within(centre - margin, centre + margin) if margin else EVEN[0.8]
        slowest = MarkovClass.exact(stay_or_move(0.8 + margin))
        bound = float(profile(members, [own_words(1.0)] * 5).total[2])
        yield margin, bound, strongest(slowest, [own_words(1.0)] * 5, 2).log_odds


def balanced_ends() -> Iterable[Row]:
    """First, second and middle epsilon of the balanced schedule of 10 chunks, and the constant one; target 4.8."""
    for stay, process in EVEN.items():
        bound = markov_bound(process, own_words)
        found, equal = balanced(4.8, 10, bound), constant(4.8, 10, bound)
        yield stay, *(float(found[i]) for i in (0, 1, 4)), float(equal[0])


def seconds_of_gaze() -> Iterable[Row]:
    """Stay, window, hop, epsilon; own losses of touched chunks, exact, by program, by sum; a second in the middle."""
    for stay, seconds, hop, epsilon, chunks in ((0.8, 2, 1, 1, 5), (0.6, 2, 1, 3, 5), (0.9, 3, 2, 1, 4)):
        windows = Windows(MarkovClass.exact(stay_or_move(stay, 2)), seconds, hop)
        emission = laplace(windows.contents.mean(axis=1), 1 / epsilon)
        session = [emission] * chunks
        found, second = profile(windows.chain(), session), (seconds + (chunks - 1) * hop) // 2
        touched = windows.touched(second, chunks)
        yield (
            stay,
            seconds,
            hop,
            epsilon,
            sum(session[c].loss for c in touched),
            exact_second(windows, emission, chunks, second),
            window_loss(windows, found, session, second),
            touched_loss(found, session, touched),
        )


def an_hour() -> Iterable[Row]:
    """What the shipped class says of an hour of the shipped calibrations."""
    process = load_process("everyday")
    for name in ("lpa", "cfpa", "dcfpa", "klt", "klt-one"):
        for n in (32, 64, 128):
            made = [build(calibrations.load(f"everyday-{name}-{n}"), epsilon) for epsilon in (0.48, 4.8, 48.0)]
            claims = [session_claim(m, process, n / 2, chunks=7200 // n, touched=2) for m in made]
            yield name, n, f"{claims[0].most:.3f}", *(f"{c.chunk:.3g} of {c.plain:.4g}" for c in claims)


TABLES = {
    "an hour": an_hour,
    "second": seconds_of_gaze,
    "five chunks": five_chunks,
    "vulnerable": vulnerable,
    "more coefficients": more_coefficients,
    "scalar": scalar,
    "margins": margins,
    "schedules": schedules,
    "balanced": balanced_ends,
}


def cell(value: float | str) -> str:
    """As it stands on the page."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.2g}"


if __name__ == "__main__":
    for title, rows in TABLES.items():
        print(f"\n<!-- {title} -->")
        for row in rows():
            print("| " + " | ".join(map(cell, row)) + " |", flush=True)
