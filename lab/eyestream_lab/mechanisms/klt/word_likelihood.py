"""Likelihoods of code words for each candidate, under the public model, schedule and response.

Scores of chunk t are s_t = u + v_t, as the calibration has it: u stays with the person, v forgets. A candidate is what
the labelled session left of u; the unknown session is scored by the probability of its words given that, chunk by
chunk. For one chunk and a Gaussian belief about the scores, with the word's cell low <= H s < high,

    P(word) = keep P(cell) + floor,    keep = 1 - rho,  floor = rho / K,

rho the chance of replacement out of K words: the response law, exact. The belief after the word is the mixture of the
belief inside the cell (weight keep P(cell)) and of what it was before (weight floor); it is held Gaussian with the
mixture's mean and covariance, coordinates of the word taken in one after the other (assumed-density filter: Maybeck,
Stochastic Models, Estimation and Control 2, 1982, chapter 12). So it is exact for the first chunk of a word of one
coordinate, and nearly so later.

A cell of a book is no box. For scores y of the standard normal law, which the points of a book are made for, it has a
share p, a mean q and a covariance W, taken from a seeded sample. As a function of y,

    p N(y; q, W) / N(y; 0, 1) = p |W|^(-1/2) exp(-q' W^-1 q / 2) exp(eta' y - y' L y / 2),   L = W^-1 - 1, eta = W^-1 q,

has under the standard normal law the mass, mean and covariance of the indicator of the cell. L is positive: a cell is
convex, and no convex set is wider than the normal law that is cut by it (Brascamp and Lieb, J. Funct. Anal. 22, 1976).
Times a belief N(y; mu, S) it is Gaussian again, with N = 1 + L S and r = N^-1 (eta - L mu):

    mean mu + S r,   covariance S - S N^-1 L S,
    log of the integral: log p - (log |W| + q' W^-1 q + log |N| - r' mu - eta' (mu + S r)) / 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.klt.books import ScoreBook
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream_lab.mechanisms.klt.words import Evidence, decode, schedule_step
from eyestream_lab.study.people.galleries import Gallery
from eyestream_lab.study.people.white_box import WhiteBox

Array = NDArray[np.float64]

_DRAWS, _MOST_DRAWS, _SEED, _BLOCK = 512, 2**18, 22, 4096
"""Draws of the sample for each point, and at most; seed; draws at once."""
_BORROWED = 2.0
"""Draws for each score by which a cell's covariance is drawn toward the mean of all cells'."""
_KEPT = 32
"""Books whose cells are kept, at most 1 MB each: twice the shipped ones."""
_WIDEST = 1 - 1e-6
"""Variance of a cell in any direction: where it says nothing, the sample must not say the opposite."""


@dataclass(frozen=True, eq=False)
class BookCells:
    """The cells of a book of K points for q scores.

    Attributes
    ----------
    log_mass : (K,) what of the logarithm does not depend on the belief.
    pull : (K, q) eta.
    press : (K, q, q) L.
    """

    log_mass: Array
    pull: Array
    press: Array

    def weigh(
        self, mean: Array, covariance: Array, observed: Array, centre: Array, words: NDArray[np.intp]
    ) -> tuple[Array, Array, Array]:
        """Means, covariances and log-probabilities (B,) of beliefs whose scores lie in the cells of `words` (B,).

        Parameters
        ----------
        mean, covariance
            (B, D) and (B, D, D) of beliefs about a state.
        observed
            (q, D) takes the state to scores.
        centre
            (B, q) what is taken off before.
        """
        toward = covariance @ observed.T  # (B, D, q)
        spread = observed @ toward
        at = mean @ observed.T - centre
        pull, press = self.pull[words], self.press[words]
        whole = np.eye(len(observed)) + press @ spread
        shift = np.asarray(np.linalg.solve(whole, (pull - _times(press, at))[:, :, None])[:, :, 0], np.float64)
        logs = self.log_mass[words] - np.linalg.slogdet(whole)[1] / 2
        logs += ((shift * at).sum(axis=1) + (pull * (at + _times(spread, shift))).sum(axis=1)) / 2
        narrowed = toward @ np.linalg.solve(whole, press) @ toward.transpose(0, 2, 1)
        return mean + _times(toward, shift), covariance - (narrowed + narrowed.transpose(0, 2, 1)) / 2, logs


def cells_of(book: ScoreBook) -> BookCells:
    """The cells of `book`, from some hundred draws of the standard normal law for each point.

    Every mechanism has books of its own, most of them with the same points: cells are kept by what is in a book.
    """
    return _cells(book.points.shape, book.points.tobytes(), book.weights.tobytes())


@lru_cache(maxsize=_KEPT)
def _cells(shape: tuple[int, int], of_points: bytes, of_weights: bytes) -> BookCells:
    count, size = shape
    points, weights = np.frombuffer(of_points).reshape(shape), np.frombuffer(of_weights)
    rng, root = np.random.default_rng(_SEED), np.sqrt(weights)
    hits, sums, squares = np.zeros(count), np.zeros((count, size)), np.zeros((count, size * size))
    weighted = (points * root).T
    half = (weighted**2).sum(axis=0) / 2
    for _ in range(max(1, min(_MOST_DRAWS, _DRAWS * count) // _BLOCK)):
        draws = rng.standard_normal((_BLOCK, size))
        order = np.argmax((draws * root) @ weighted - half, axis=1)
        at = np.argsort(order, kind="stable")
        own, start = np.unique(order[at], return_index=True)
        sorted_draws = draws[at]
        outer = (sorted_draws[:, :, None] * sorted_draws[:, None, :]).reshape(_BLOCK, -1)
        hits += np.bincount(order, minlength=count)
        sums[own] += np.add.reduceat(sorted_draws, start)
        squares[own] += np.add.reduceat(outer, start)
    means = np.where(hits[:, None] > 0, sums / np.maximum(hits, 1)[:, None], points)
    inside = squares.reshape(count, size, size) - hits[:, None, None] * means[:, :, None] * means[:, None, :]
    borrowed = _BORROWED * size
    typical = inside.sum(axis=0) / hits.sum()
    covariance = (inside + borrowed * typical) / (hits + borrowed)[:, None, None]
    values, vectors = np.linalg.eigh(covariance)
    values = np.clip(values, 1e-6, _WIDEST)
    precise = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
    pull = _times(precise, means)
    share = np.maximum(hits, 0.5) / hits.sum()
    log_mass = np.log(share) - (np.log(values).sum(axis=1) + (means * pull).sum(axis=1)) / 2
    return BookCells(log_mass, pull, precise - np.eye(size))


def _times(matrices: Array, vectors: Array) -> Array:
    """(B, p) of matrices (B, p, q) and vectors (B, q)."""
    product: Array = np.einsum("bpq,bq->bp", matrices, vectors)
    return product


@dataclass(eq=False)
class Beliefs:
    """Gaussian beliefs about the stacked components of the scores.

    Attributes
    ----------
    mean : (B, D).
    covariance : (B, D, D).
    """

    mean: Array
    covariance: Array

    def take(self, rows: NDArray[np.intp]) -> "Beliefs":
        """Those of `rows`, copied."""
        return Beliefs(self.mean[rows], self.covariance[rows])


def prior(core: JointCore, count: int) -> Beliefs:
    """The public belief about each of `count` people of whom nothing was seen."""
    covariance = core.schedule.motion.stationary
    return Beliefs(np.zeros((count, len(covariance))), np.tile(covariance, (count, 1, 1)))


def next_session(core: JointCore, beliefs: Beliefs) -> Beliefs:
    """Rest of beliefs in another session: what stays with the person; the rest is as if nothing was seen."""
    fresh = prior(core, len(beliefs.mean))
    stays = core.schedule.motion.stays
    both = np.logical_and.outer(stays, stays)
    return Beliefs(np.where(stays, beliefs.mean, fresh.mean), np.where(both, beliefs.covariance, fresh.covariance))


def believe(core: JointCore, beliefs: Beliefs, sessions: Sequence[Sequence[Evidence]]) -> tuple[Beliefs, Array]:
    """Take in one session (of any length) for each belief; the beliefs after it, and (B,) log-probabilities of it."""
    held, total = beliefs.take(np.arange(len(beliefs.mean))), np.zeros(len(beliefs.mean))
    motion = core.schedule.motion
    for turn in range(max(map(len, sessions))):
        on = np.array([i for i, session in enumerate(sessions) if turn < len(session)])
        now = held.take(on)
        if turn:
            carried = motion.forward(motion.forward(now.covariance).swapaxes(-1, -2))  # of many: quicker than `spread`
            now = Beliefs(motion.forward(now.mean), carried + motion.drive)
        told = [sessions[i][turn] for i in on]
        there = np.array([e.decoded for e in told])
        after, logs = _word(core, turn, now, told)
        held.mean[on] = np.where(there[:, None], after.mean, now.mean)
        held.covariance[on] = np.where(there[:, None, None], after.covariance, now.covariance)
        total[on] += np.where(there, logs, 0.0)
    return held, total


def tell_scores(core: JointCore, belief: Beliefs, scores: Array) -> Beliefs:
    """One belief after somebody told the exact scores (t, d) of a session's first chunks: Kalman's filter."""
    motion = core.schedule.motion
    total = np.tile(np.eye(scores.shape[1]), len(core.tables.poles))
    mean, covariance = belief.mean[0], belief.covariance[0]
    for turn, told in enumerate(scores):
        if turn:
            mean, covariance = motion.forward(mean), motion.spread(covariance)
        seen = total @ covariance @ total.T
        gain = np.linalg.lstsq(seen, total @ covariance, rcond=None)[0].T
        mean = mean + gain @ (told - total @ mean)
        covariance = covariance - gain @ total @ covariance
    return Beliefs(mean[None], (covariance + covariance.T)[None] / 2)


def _word(core: JointCore, turn: int, before: Beliefs, told: Sequence[Evidence]) -> tuple[Beliefs, Array]:
    """Beliefs after a word each, and the log-probabilities (B,) of the words; of one not decoded, anything."""
    step = schedule_step(core, turn)
    rho = step.law.replace
    words = np.prod([len(points) for points in step.points], dtype=np.float64)
    observed = step.directions @ np.tile(np.eye(step.directions.shape[1]), len(core.tables.poles))  # (m, D)
    if step.books:
        inside, cell = _book_cells(step.books, before, observed, told)
    else:
        there = np.array([e.decoded for e in told])[:, None]
        low, high = np.array([e.low for e in told]), np.array([e.high for e in told])
        inside, cell = _cell(before, observed, np.where(there, low, 0.0), np.where(there, high, 1.0))
    kept, replaced = np.log1p(-rho) + cell, np.log(rho) - np.log(words)
    logs = np.logaddexp(kept, replaced)
    share = np.exp(kept - logs)[:, None]
    moved = inside.mean - before.mean
    mean = before.mean + share * moved
    spread = (share * (1 - share))[:, :, None] * moved[:, :, None] * moved[:, None, :]
    covariance = before.covariance + share[:, :, None] * (inside.covariance - before.covariance) + spread
    return Beliefs(mean, covariance), logs


def _book_cells(
    books: Sequence[ScoreBook], before: Beliefs, observed: Array, told: Sequence[Evidence]
) -> tuple[Beliefs, Array]:
    """The same as `_cell` for the cells of books, taken in one after the other."""
    inside, total = before, np.zeros(len(told))
    for place, book in enumerate(books):
        own = slice(book.first, book.end)
        centre = np.array([one.expected[own] for one in told])
        word = np.array([max(int(one.word[place]), 0) for one in told])
        mean, covariance, logs = cells_of(book).weigh(inside.mean, inside.covariance, observed[own], centre, word)
        inside, total = Beliefs(mean, covariance), total + logs
    return inside, total


def _cell(before: Beliefs, observed: Array, low: Array, high: Array) -> tuple[Beliefs, Array]:
    """Beliefs given that every observed coordinate lies in its interval, and the log-probability (B,) of that."""
    mean, covariance = before.mean.copy(), before.covariance.copy()
    total = np.zeros(len(mean))
    for i, row in enumerate(observed):
        toward = covariance @ row  # (B, D)
        variance = np.maximum(toward @ row, 1e-12)
        sd = np.sqrt(variance)
        centre = mean @ row
        log_mass, shift, shrink = _truncated((low[:, i] - centre) / sd, (high[:, i] - centre) / sd)
        total += log_mass
        mean += toward * (shift / sd)[:, None]
        covariance -= (toward[:, :, None] * toward[:, None, :]) * ((1 - shrink) / variance)[:, None, None]
    return Beliefs(mean, covariance), total


def _truncated(low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Log-mass, mean and variance of the standard normal law on [low, high), also far out in its tails."""
    mirrored = low + high > 0  # the tail that is computed exactly is the left one
    a, b = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    upper, lower = log_ndtr(b), log_ndtr(a)
    log_mass = upper + np.log1p(-np.exp(np.minimum(lower - upper, -1e-12)))
    at_a = np.where(np.isfinite(a), np.exp(-0.5 * np.square(np.where(np.isfinite(a), a, 0.0)) - log_mass), 0.0)
    at_b = np.where(np.isfinite(b), np.exp(-0.5 * np.square(np.where(np.isfinite(b), b, 0.0)) - log_mass), 0.0)
    at_a, at_b = at_a / np.sqrt(2 * np.pi), at_b / np.sqrt(2 * np.pi)
    mean = at_a - at_b
    ends = np.where(np.isfinite(a), a, 0.0) * at_a - np.where(np.isfinite(b), b, 0.0) * at_b
    variance = np.clip(1 + ends - mean**2, 1e-9, 1.0)
    return log_mass, np.where(mirrored, -mean, mean), variance


def word_scores(core: JointCore, candidates: Beliefs, unknown: Sequence[Sequence[Evidence]]) -> Array:
    """(U, C) log of P(unknown session | candidate) / P(unknown session), for beliefs about C candidates."""
    people, count = len(candidates.mean), len(unknown)
    pairs = next_session(core, candidates).take(np.tile(np.arange(people), count))
    _, logs = believe(core, pairs, [session for session in unknown for _ in range(people)])
    _, alone = believe(core, prior(core, count), unknown)
    scores: Array = logs.reshape(count, people) - alone[:, None]
    return scores


def _labelled(gallery: Gallery, sessions: Sequence[NDArray[np.float32]]) -> Array:
    mechanism, core = _known(gallery)
    told = [decode(mechanism, chunks) for chunks in sessions]
    candidates, _ = believe(core, prior(core, len(told)), told)
    return word_scores(core, candidates, [decode(mechanism, chunks) for chunks in gallery.unknown])


def _seen_raw(gallery: Gallery) -> Array:
    mechanism, core = _known(gallery)
    step, frame = core.step(), mechanism.frame
    scores = [[step.scores(np.clip(chunk[frame.active], *frame.range)) for chunk in raw] for raw in gallery.minutes]
    nobody = prior(core, 1)
    told = [tell_scores(core, nobody, np.array(own)) for own in scores]
    candidates = Beliefs(np.concatenate([b.mean for b in told]), np.concatenate([b.covariance for b in told]))
    return word_scores(core, candidates, [decode(mechanism, chunks) for chunks in gallery.unknown])


def _known(gallery: Gallery) -> tuple[Mechanism, JointCore]:
    assert gallery.mechanism is not None
    core = gallery.mechanism.core
    assert isinstance(core, JointCore)
    return gallery.mechanism, core


WHITE_BOX = WhiteBox(_labelled, _seen_raw)
