"""How much of a feature's estimate to release, where people differ much in how far they move.

The model has one covariance for everybody. But how far a feature moves differs between people by large factors: of some
features a few people have nearly all the variance. Whoever stands still there gets an estimate all the same, told by
the features that usually move with it, as far as the covariance of all says. Beside that person's own spread its error
is enormous, and in the mean over features it outweighs what comes through of all others.

Let person p's feature go v_p far (variance of its values). Its scale has heavy tails over people: the precision has a
gamma law, as in Student's t, and given v_p the expected precision is proportional to 1 / (v_p + k v). v is the median
of v_p, which a few large ones do not move, and k what the law's shape makes of it. Error is counted in units of each
person's own scale. So of the estimate's distance from the mean that share w is released which misses least,

    sum_p E_p (x - x_w)^2 / (v_p + k v),

x_w the value that w times the estimate's level stands for, both around the person's own mean. With k infinite that is
least squares, and w about 1.

w is a figure of the people who calibrate, and what it is multiplied with is a function of released words. A reader who
knows the calibration can undo it: it hides nobody.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import JointTables
from eyestream.core.mechanisms.klt.maps import RankMap
from eyestream.core.mechanisms.klt.schedule import Schedule
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.calibration.standard import Standard

Array = NDArray[np.float64]

TAILS = 0.5
"""k."""

TRIED = np.array([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])
"""Shares; values are no straight lines of levels, so they are compared and not solved for."""

RELEASES = 4
"""Releases of each session: who stands still is missed most where a word is replaced, which is seldom."""

EPSILON_PER_MINUTE = 18.0
"""At which calibrations are tried on the people who make them: bits are few then, and count where they are spent."""


def reference(tables: JointTables, corpus: Corpus) -> Schedule:
    """The schedule at that price."""
    return Schedule(tables, EPSILON_PER_MINUTE * corpus.n / (60 * corpus.rate_hz))


def told(tables: JointTables, schedule: Schedule, modes: Array, seed: int | None = None) -> Array:
    """(T, A M) estimates of the modes (T, A M) of one session, its words released as `seed` has it; None: as they are.

    Not private: a seed is no entropy. For people whose recordings are public.
    """
    components, random = len(tables.poles), np.random.default_rng(seed)
    state, found = np.zeros(len(schedule.motion.stays)), np.empty_like(modes)
    for turn, chunk in enumerate(modes):
        step = schedule.steps[min(turn, len(schedule.steps) - 1)]
        predicted = schedule.motion.forward(state) if turn else state
        expected = predicted.reshape(components, -1).sum(axis=0)
        word = step.word(step.directions @ (chunk @ tables.basis - expected))
        if seed is not None and random.random() < step.law.replace:
            word = [int(random.integers(len(points))) for points in step.points]
        state = predicted + step.gain @ step.value(word)
        found[turn] = (tables.weights @ state.reshape(components, -1)) @ tables.expand
    return found


def shares_of(tables: JointTables, standard: Standard, corpus: Corpus) -> Array:
    """(F,) shares for a calibration with maps, from the people who made it; 1 where a feature is not released."""
    schedule = reference(tables, corpus)
    each = [_errors(tables, schedule, standard, corpus.person == one) for one in np.unique(corpus.person)]
    missed, moved = (np.array(part) for part in zip(*each, strict=True))
    usual = np.array([np.median(own[own > 0]) if (own > 0).any() else 1.0 for own in moved.T])
    weight = (moved > 0) / (moved + TAILS * usual)
    total = np.einsum("pa,pwa->wa", weight, missed)[::-1]
    shares = np.ones(len(standard.mean))
    shares[standard.active] = TRIED[::-1][np.argmin(total, axis=0)]  # of equal ones the largest
    return shares


def _errors(tables: JointTables, schedule: Schedule, standard: Standard, own: NDArray[np.bool_]) -> tuple[Array, Array]:
    """(W, A) variance of one person's error with every share tried, and (A,) of the values; 0 where there are none."""
    assert standard.knots is not None
    assert standard.levels is not None
    active, count = standard.active, np.count_nonzero(own)
    lines = RankMap(standard.knots[active], standard.levels[active])
    mean, sd = standard.mean[active][:, None], standard.sd[active][:, None]
    chunks = standard.chunks[own]
    modes = (chunks @ standard.modes.T).reshape(count, -1)
    values = lines.back(mean + sd * chunks.transpose(1, 0, 2).reshape(len(active), -1))
    missed = np.zeros((len(TRIED), len(active)))
    for seed in range(RELEASES):
        rows = told(tables, schedule, modes, seed).reshape(count, len(active), -1) @ standard.modes
        guess = sd * rows.transpose(1, 0, 2).reshape(len(active), -1)
        missed += [(values - lines.back(mean + share * guess)).var(axis=1) for share in TRIED]
    there = standard.present[own].any(axis=0)
    return missed * there / RELEASES, np.asarray(values.var(axis=1) * there)
