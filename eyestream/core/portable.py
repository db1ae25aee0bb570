"""Linear algebra that gives the same bits on every processor.

IEEE 754 rounds sums, differences, products, quotients and square roots correctly, so numpy's elementwise functions of
these are the same everywhere. Not the same are: the order in which BLAS, LAPACK, einsum and sums along an axis add;
whether a compiler makes one operation of a product and a sum; and exp, log, sine and powers, which each library rounds
in its own way. What a configuration decides (codes, directions, gains, expected errors) is therefore computed here, one
elementwise operation after the other, in an order that is written down. Two machines with one configuration then agree
in every bit.
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_HELD = 2.0**-40
"""Least pivot, as a share of the diagonal's largest entry. Below it there is nothing but rounding."""

_ALIKE = 2.0**-10
"""Largest cosine that a sweep of rotations may have met for it to be the last one. What it leaves is about the square
of that."""

_MOST_SWEEPS = 40
_TINY = float(np.finfo(np.float64).tiny)


def total(terms: Array) -> Array:
    """(..., k) sums of `terms` (..., m, k) over m, at least 1: of halves, of halves of these, and so on."""
    count = terms.shape[-2]
    while count > 1:
        half = count // 2
        folded: Array = terms[..., :half, :] + terms[..., half : 2 * half, :]
        if count % 2:
            folded[..., 0, :] += terms[..., -1, :]
        terms, count = folded, half
    return terms[..., 0, :]


def product(left: Array, right: Array) -> Array:
    """(..., n, k) the matrix product of (..., n, m) and (..., m, k), added up from the first of m to the last."""
    out: Array = left[..., :, :1] * right[..., :1, :]
    term = np.empty_like(out)
    for i in range(1, left.shape[-1]):
        np.multiply(left[..., :, i, None], right[..., None, i, :], out=term)
        np.add(out, term, out=out)
    return out


def transposed(matrix: Array) -> Array:
    """A view of (..., m, n) as (..., n, m)."""
    return matrix.swapaxes(-1, -2)


def eliminated(matrix: Array, beside: Array) -> tuple[Array, Array]:
    """Gauss' elimination of a positive `matrix` (d, d), and of `beside` (d, k) with it.

    Returns
    -------
    :
        L', upper triangular, and L^-1 times `beside`, where L L' = `matrix`. Where a pivot is below 2^-40 of the
        largest entry of the diagonal it counts as that much: a direction of no variance stays finite.
    """
    d = len(matrix)
    rows = np.concatenate([matrix, beside], axis=1)
    least = max(_HELD * float(np.diagonal(matrix).max()), _TINY)
    for i in range(d):
        row = rows[i]
        row /= math.sqrt(max(row[i], least))
        rows[i + 1 :] -= row[i + 1 : d, None] * row
    return np.triu(rows[:, :d]), rows[:, d:]


def solved(matrix: Array, right: Array) -> Array:
    """(d, k) what the positive `matrix` (d, d) takes to `right` (d, k); pivots held as above."""
    d = len(matrix)
    _, both = eliminated(matrix, np.concatenate([np.eye(d), right], axis=1))
    return product(both[:, :d].T, both[:, d:])


def is_positive(matrix: Array) -> bool:
    """Whether a symmetric matrix (d, d) has no eigenvalue at or below 0, as far as rounding lets elimination see.

    >>> is_positive(np.eye(2)), is_positive(np.ones((2, 2)))
    (True, False)
    """
    rows = matrix.copy()
    for i, row in enumerate(rows):
        if not row[i] > 0:
            return False
        rows[i + 1 :] -= (row[i + 1 :, None] / row[i]) * row
    return True


def quarter_sine(share: Array) -> Array:
    """sin(pi `share`), `share` from 0 to 1/2, by its series."""
    angle = np.pi * share
    square, term = angle * angle, angle
    sine = angle
    for i in range(2, 26, 2):
        term = term * square / -(i * (i + 1))
        sine = sine + term
    return sine


def decay(nats: Array) -> Array:
    """e^-`nats`, of 0 or more; of more than 64 as of 64."""
    part = np.minimum(nats, 64.0) / 256
    term = series = np.ones(np.shape(part))
    for i in range(1, 12):
        term = term * part / -i
        series = series + term
    for _ in range(8):
        series = series * series
    return series


def principal(columns: Array, beside: Array) -> tuple[Array, Array]:
    """Turn `columns` (k, d) until they are nearly orthogonal, the longest first, and `beside` (m, d) with them.

    Jacobi's rotations from one side (Hestenes, J. SIAM 6(1), 1958), d/2 disjoint pairs at a time, in the order of a
    tournament in which each meets each (Brent and Luk, SIAM J. Sci. Stat. Comput. 6(1), 1985). They begin where the
    columns are, so nothing is left open: no sign, and no order of what is equally long.

    Returns
    -------
    :
        (d,) squared lengths, falling, and (m, d) what `beside` became: of an identity, the rotation, whose columns are
        eigenvectors of columns' columns.
    """
    width, count = columns.shape
    both = np.concatenate([columns, beside])
    if count % 2:  # somebody rests in each round
        both = np.concatenate([both, np.zeros((len(both), 1))], axis=1)
    for _ in range(_MOST_SWEEPS):
        both, cosine = _swept(both, width)
        if cosine <= _ALIKE:
            break
    both = both[:, :count]
    squares = total(both[:width] * both[:width])
    order = np.argsort(-squares, kind="stable")
    return squares[order], both[width:, order]


def _swept(both: Array, width: int) -> tuple[Array, float]:
    """Each pair of columns of (c, n) turned once, by their first `width` entries; and the largest cosine that was met.

    Of two columns with squared lengths a and b and inner product c, tan(2 angle) = 2 c / (a - b).
    """
    size, count = both.shape
    half, turn = count // 2, _next_round(count // 2)
    squares = total(both[:width] * both[:width])
    inner, scales = np.empty((2, count - 1, half))
    tangents, moved = np.empty((2, half)), np.empty((size, 2, half))
    for number in range(count - 1):
        pairs = both.reshape(size, 2, half)
        twice = 2 * total(pairs[:width, 0] * pairs[:width, 1])
        apart = squares[:half] - squares[half:]
        inner[number] = crossed = twice * twice
        scales[number] = squares[:half] * squares[half:]
        below = np.maximum(np.abs(apart) + np.sqrt(apart * apart + crossed), _TINY)
        tangent = twice / np.copysign(below, apart)
        tangents[0], tangents[1] = tangent, -tangent
        np.multiply(pairs[:, ::-1], tangents, out=moved)
        np.add(moved, pairs, out=moved)
        np.multiply(moved, 1 / np.sqrt(1 + tangent * tangent), out=moved)
        squares = (squares + (tangents * (0.5 * twice)).ravel())[turn]
        both = moved.reshape(size, count).take(turn, axis=1)
    return both, math.sqrt((inner / np.maximum(4 * scales, _TINY)).max())


def _next_round(half: int) -> NDArray[np.intp]:
    """Seats in the next round of a tournament: the first stays, the others move on around the table."""
    table = [*range(half), *reversed(range(half, 2 * half))]
    turn = np.empty(2 * half, dtype=np.intp)
    turn[table] = [table[0], table[-1], *table[1:-1]]
    return turn
