"""Residual rows: what cancels to the last bit, what is independent from session to session, and what fails."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.errors import CalibrationError
from eyestream_lab.words.history import History, Remembering, SessionLevel
from tests.rigs.linking.pseudonyms import raw_levels, residual_map

Array = NDArray[np.float64]
F, N = 3, 8
PUBLIC = Remembering(sessions=6, shift=np.array([20, 16, 24]), spread=np.array([1.0, 10.0, 0.1]), trust=np.inf)


def sessions(rng: np.random.Generator, count: int, chunks: int = 2) -> list[Array]:
    """Chunks (C, F, N) of sessions, on the features' scales."""
    scale = np.array([1.0, 10.0, 0.1])[:, None]
    return [scale * (rng.standard_normal((F, 1)) + rng.standard_normal((chunks, F, N))) for _ in range(count)]


def level_of(chunks: Array, remembering: Remembering = PUBLIC) -> SessionLevel:
    level = SessionLevel(remembering)
    for chunk in chunks:
        level.take(chunk)
    return level


def walked(given: Sequence[Array], remembering: Remembering = PUBLIC) -> list[Array]:
    """Residual chunks (C, F, N) of each session that is not withheld."""
    history, out = History.begun(remembering), []
    for chunks in given:
        if not history.withholds:
            out.append(np.array([history.off(chunk) for chunk in chunks]))
        history = history.after(level_of(chunks, remembering))
    return out


def on_grid(values: Array, remembering: Remembering = PUBLIC) -> Array:
    return remembering.values(remembering.steps(values))


# What cancels


@pytest.mark.parametrize("trust", [0.0, 2.0, np.inf])
@pytest.mark.parametrize("drift", [0.0, 0.3])
def test_a_constant_of_the_grid_cancels_to_the_last_bit(trust: float, drift: float) -> None:
    rng = np.random.default_rng(1)
    public = replace(PUBLIC, trust=trust, drift=drift)
    given = sessions(rng, 5)
    constant = on_grid(np.array([1234.567, -98765.4, 3.21]), public)[:, None]
    moved = [on_grid(chunks.transpose(1, 0, 2), public).transpose(1, 0, 2) + constant for chunks in given]
    for one, other in zip(walked(given, public), walked(moved, public), strict=True):
        np.testing.assert_array_equal(one, other)


def test_control_a_constant_in_one_session_alone_does_not_cancel() -> None:
    given = sessions(np.random.default_rng(1), 3)
    moved = [given[0] + 1.0, *given[1:]]
    assert not any((a == b).any() for a, b in zip(walked(given), walked(moved), strict=True))


def test_a_factor_of_all_rows_cancels_where_the_spread_is_the_wearers_own() -> None:
    public = replace(PUBLIC, trust=0.0)
    given = sessions(np.random.default_rng(2), 5, chunks=4)
    wider = [4.0 * on_grid(chunks.transpose(1, 0, 2), public).transpose(1, 0, 2) for chunks in given]
    for one, other in zip(walked(given, public), walked(wider, public), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)  # the mean is rounded down to a finer step
    left = walked(given), walked(wider)
    assert np.median([np.median(b / a) for a, b in zip(*left, strict=True)]) == pytest.approx(4.0, rel=1e-3)


def test_without_drift_the_mean_of_all_earlier_sessions_is_taken_off() -> None:
    given = sessions(np.random.default_rng(3), 5)
    levels = [chunks.mean(axis=(0, 2)) for chunks in given]
    for t, residual in enumerate(walked(given), start=1):
        np.testing.assert_allclose(residual, given[t] - np.mean(levels[:t], axis=0)[:, None], atol=1e-3)


def test_with_drift_later_sessions_count_more() -> None:
    history = History.begun(replace(PUBLIC, drift=1.0))
    for level in (0.0, 0.0, 0.0, 1.0):
        history = history.after(level_of(np.full((1, F, N), level), history.remembering))
    assert history.offset[0] == pytest.approx(residual_gain(1.0, 3), rel=1e-6)
    assert 0.6 < history.offset[0] < 0.7  # the steady gain of the golden ratio, (sqrt 5 - 1) / 2, is near


def residual_gain(drift: float, turns: int) -> float:
    error = 1.0 + drift
    for _ in range(turns):
        gain = error / (error + 1)
        error = gain + drift
    return gain


# The theorem: independent sessions


def residual_levels(rng: np.random.Generator, people: int, count: int, walk: Callable[[Array], Array]) -> Array:
    """(people, T - 1) residual levels of one feature: person, of any size, and independent normal sessions."""
    levels = 5 * rng.standard_normal((people, 1)) + rng.standard_normal((people, count))
    return np.array([walk(own) for own in levels])


def by_history(levels: Array) -> Array:
    chunks = [np.broadcast_to(level, (1, F, N)).copy() for level in levels]
    public = replace(PUBLIC, sessions=len(levels) + 1)
    return np.array([residual[0, 0, 0] for residual in walked(chunks, public)])


def by_a_fixed_first_session(levels: Array) -> Array:
    return np.asarray(levels[1:] - levels[0])


def largest_correlation(residuals: Array) -> float:
    return float(np.abs(np.corrcoef(residuals.T) - np.eye(residuals.shape[1])).max())


PEOPLE, SESSIONS = 1500, 5
LIMIT = 4.0 / np.sqrt(PEOPLE)
"""Each of six correlations of independent sessions is beyond it with a chance of 6e-5: a false alarm in 2,500 seeds."""


def test_residual_levels_are_independent_of_each_other_and_of_the_person() -> None:
    found = residual_levels(np.random.default_rng(4), PEOPLE, SESSIONS, by_history)
    assert largest_correlation(found) < LIMIT
    np.testing.assert_allclose(found.var(axis=0), 1 + 1 / np.arange(1, SESSIONS), rtol=0.15)


def test_a_fixed_first_session_is_seen() -> None:
    found = residual_levels(np.random.default_rng(4), PEOPLE, SESSIONS, by_a_fixed_first_session)
    assert largest_correlation(found) > 0.4  # one half, by theory


def test_a_history_that_counts_the_first_session_twice_is_seen() -> None:
    def wrong(levels: Array) -> Array:
        return np.array([levels[t] - (levels[:t].sum() + levels[0]) / (t + 1) for t in range(1, len(levels))])

    assert largest_correlation(residual_levels(np.random.default_rng(4), PEOPLE, SESSIONS, wrong)) > LIMIT


def test_a_wearer_who_moves_on_needs_a_history_that_forgets() -> None:
    rng, drift, count = np.random.default_rng(5), 0.5, 6
    moves = np.sqrt(drift) * rng.standard_normal((PEOPLE, count))
    levels = 5 * rng.standard_normal((PEOPLE, 1)) + np.cumsum(moves, axis=1) + rng.standard_normal((PEOPLE, count))
    assert largest_correlation(levels @ residual_map(count, drift).T) < LIMIT
    assert largest_correlation(levels @ residual_map(count).T) > 0.15


def test_sessions_of_unlike_length_are_correlated_as_the_derivation_says() -> None:
    rng, variances = np.random.default_rng(6), np.array([1.0, 4.0, 1.0])
    levels = np.sqrt(variances) * rng.standard_normal((40_000, 3))
    residuals = levels @ residual_map(3).T
    assert np.cov(residuals.T)[0, 1] == pytest.approx(-(variances[1] - variances[0]) / 2, abs=0.1)


# Residuals are an invertible map of all contrasts


@pytest.mark.parametrize("drift", [0.0, 0.4])
def test_residuals_say_every_contrast_and_the_map_is_that_of_the_history(drift: float) -> None:
    rng = np.random.default_rng(7)
    levels = rng.standard_normal((5, F))
    public = replace(PUBLIC, drift=drift)
    chunks = [np.broadcast_to(level[:, None], (1, F, N)).copy() for level in levels]
    residuals = np.array([residual[0, :, 0] for residual in walked(chunks, public)])
    np.testing.assert_allclose(residual_map(5, drift) @ levels, residuals, atol=1e-3)
    assert np.linalg.matrix_rank(residual_map(5, drift)) == 4
    found = raw_levels(residuals, 2, levels[2], drift)
    np.testing.assert_allclose(found, levels, atol=1e-2)  # the raw level of one released session gives all others


# Missing values, pseudonyms


def test_what_is_missing_stays_missing_and_moves_nothing() -> None:
    given = sessions(np.random.default_rng(8), 3)
    history = History.begun(PUBLIC)
    empty = np.full((2, F, N), np.nan)
    lost = given[0].copy()
    lost[:, 1] = np.nan
    history = history.after(level_of(lost))
    assert np.isnan(history.off(given[1][0])[1]).all()
    np.testing.assert_array_equal(history.after(level_of(empty)).off(given[1][0]), history.off(given[1][0]))
    later = history.after(level_of(given[1]))
    np.testing.assert_allclose(later.off(given[2][0])[1], given[2][0][1] - given[1][:, 1].mean(), atol=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_any_number_may_come(value: float) -> None:
    given = sessions(np.random.default_rng(9), 3)
    given[0][0, 0, 0] = given[1][1, 2, 3] = value
    history = History.begun(PUBLIC).after(level_of(given[0]))
    residual = history.off(given[1][1])
    assert np.isfinite(residual[2, 3]) == np.isfinite(value)
    assert np.isfinite(history.after(level_of(given[1])).offset).all()


def test_nothing_is_released_of_a_first_session() -> None:
    with pytest.raises(RuntimeError, match="withheld"):
        History.begun(PUBLIC).off(np.zeros((F, N)))


def test_a_pseudonym_ends_by_count_whatever_its_rows() -> None:
    for value in (0.0, np.nan):
        history, withheld = History.begun(PUBLIC), []
        for _ in range(13):
            withheld.append(history.withholds)
            history = history.after(level_of(np.full((1, F, N), value)))
        assert [i for i, held in enumerate(withheld) if held] == [0, 6, 12]


def test_a_new_pseudonym_knows_nothing_of_the_old_one() -> None:
    rng = np.random.default_rng(10)
    old, other, new = (sessions(rng, 6) for _ in range(3))
    np.testing.assert_array_equal(walked([*old, *new])[5:], walked([*other, *new])[5:])


def test_a_stated_task_enters_the_residual_and_not_the_history() -> None:
    given = sessions(np.random.default_rng(11), 3)
    task = np.array([3.0, 30.0, 0.3])
    plain = History.begun(PUBLIC).after(level_of(given[0]))
    stated = History.begun(PUBLIC).after(level_of(given[0] + on_grid(task)[:, None]), task)
    np.testing.assert_allclose(stated.off(given[1][0]), plain.off(given[1][0]), atol=1e-5)
    np.testing.assert_allclose(
        stated.off(given[1][0] + task[:, None]), plain.off(given[1][0]) + task[:, None], atol=1e-3
    )


def test_an_erased_history_holds_nothing() -> None:
    history = History.begun(PUBLIC).after(level_of(np.full((1, F, N), 7.25)))
    history.erase()
    assert np.isnan([history.first, history.offset, history.square, history.error]).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sessions": 1}, "at least 2 sessions"),
        ({"drift": -0.1}, "drift"),
        ({"trust": np.nan}, "trust"),
        ({"spread": np.zeros(F)}, "spread"),
        ({"spread": np.ones(2)}, "same features"),
    ],
)
def test_public_figures_out_of_range_are_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(CalibrationError, match=said):
        replace(PUBLIC, **change)
