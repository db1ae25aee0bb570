"""Exact arithmetic for the counterexamples: transforms of four samples, Laplace odds, tables of probabilities.

Powers of the fourth root of unity are 1, i, -1 and -i, so that the Fourier transform of four integers is exact in pairs
of integers (real part, imaginary part).
"""

from collections.abc import Sequence
from fractions import Fraction

_POWERS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # i^0 .. i^3
Number = int | Fraction
Pair = tuple[Number, Number]
Table = dict[object, Fraction]


def dft4(x: Sequence[Number]) -> list[Pair]:
    """Unnormalised Fourier transform of four samples, F_j = sum_t x_t (-i)^(j t)."""
    turns = [[_POWERS[-j * t % 4] for t in range(4)] for j in range(4)]
    return [
        (sum(v * p[0] for v, p in zip(x, row, strict=True)), sum(v * p[1] for v, p in zip(x, row, strict=True)))
        for row in turns
    ]


def inverse4(spectrum: Sequence[Pair]) -> list[Pair]:
    """Inverse of `dft4`, complex in general."""
    samples: list[Pair] = []
    for t in range(4):
        real = imaginary = Fraction(0)
        for j, (a, b) in enumerate(spectrum):
            c, d = _POWERS[j * t % 4]
            real += a * c - b * d
            imaginary += a * d + b * c
        samples.append((real / 4, imaginary / 4))
    return samples


def kept_reals(x: Sequence[Number], k: int) -> list[Number]:
    """The k + (k - 1) real numbers that describe the k lowest frequencies of four real samples; k <= 3.

    F_0 and F_2 are real; F_1 is complex.
    """
    spectrum = dft4(x)
    return [spectrum[0][0], *spectrum[1], spectrum[2][0]][: (1, 3, 4)[k - 1]]


def distance_1(one: Sequence[Number], other: Sequence[Number]) -> Number:
    """L1 distance."""
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def energy(x: Sequence[Number]) -> Number:
    """Square of the L2 norm."""
    return sum(v * v for v in x)


def log_odds(output: Sequence[Number], one: Sequence[Number], other: Sequence[Number], scale: Number) -> Fraction:
    """Exact log of p(output | one) / p(output | other) when independent Laplace noise of `scale` is added."""
    return Fraction(distance_1(output, other) - distance_1(output, one)) / Fraction(scale)


def worst_odds(one: Table, other: Table) -> Fraction | None:
    """Largest ratio of the probabilities of one output under two inputs; None when it is infinite."""
    ratios = []
    for output, probability in one.items():
        if probability and not other.get(output):
            return None
        if probability:
            ratios.append(probability / other[output])
    return max(ratios)
