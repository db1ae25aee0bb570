"""Measures that do not flatter: what would raise a plain score must not raise these."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.study.fidelity import Yardstick, fidelity
from eyestream_lab.study.prices import price

Array = NDArray[np.float64]
NAMES = ("rate_saccades", "copy", "other", "constant")
N = 8


def people(count: int = 6, rows: int = 400, seed: int = 1) -> list[Array]:
    """A level per person and a slow change; the copy is the first feature, nearly."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        slow = np.cumsum(rng.normal(size=(rows, 2)), axis=0) / 5 + 3 * rng.normal(size=2)
        first, other = slow.T
        found.append(np.stack([first, 2 * first + 0.01 * rng.normal(size=rows), other, np.ones(rows)], axis=1))
    return found


@pytest.fixture(scope="module")
def raw() -> list[Array]:
    return people()


@pytest.fixture(scope="module")
def yardstick() -> Yardstick:
    return Yardstick.of(np.concatenate(people(20, seed=2)), NAMES, np.array([0, 1, 2]))


def test_the_signal_itself_scores_one_and_the_common_mean_nothing(yardstick: Yardstick, raw: list[Array]) -> None:
    clipped = [np.clip(r, yardstick.lo, yardstick.hi) for r in raw]
    whole = fidelity(yardstick, raw, clipped, N)
    np.testing.assert_allclose([whole.distinct, whole.distinct_own, whole.coverage], 1.0)
    np.testing.assert_allclose(whole.correlation[:3], 1.0)
    np.testing.assert_allclose(whole.partial[1:3], 1.0)
    assert np.isnan(whole.explained[3])
    assert np.isnan(whole.partial[0])
    mean = np.concatenate(clipped).mean(axis=0)
    nothing = fidelity(yardstick, raw, [np.broadcast_to(mean, r.shape) for r in raw], N)
    np.testing.assert_allclose([nothing.distinct, nothing.distinct_own], 0.0, atol=1e-12)
    np.testing.assert_allclose(nothing.correlation[:3], 0.0)


def test_people_without_their_behaviour_score_against_the_common_mean_alone(
    yardstick: Yardstick, raw: list[Array]
) -> None:
    """Each person's own mean and nothing else: all of it is identity."""
    own = [np.broadcast_to(np.clip(r, yardstick.lo, yardstick.hi).mean(axis=0), r.shape) for r in raw]
    found = fidelity(yardstick, raw, own, N)
    assert found.distinct > 0.3
    np.testing.assert_allclose(found.distinct_own, 0.0, atol=1e-9)


def test_behaviour_without_the_person_scores_against_the_own_mean_alone(yardstick: Yardstick, raw: list[Array]) -> None:
    clipped = [np.clip(r, yardstick.lo, yardstick.hi) for r in raw]
    moved = [c - c.mean(axis=0) + 50.0 for c in clipped]
    found = fidelity(yardstick, raw, moved, N)
    assert found.distinct < 0
    np.testing.assert_allclose(found.distinct_own, 1.0)


def test_copies_count_once(yardstick: Yardstick, raw: list[Array]) -> None:
    assert yardstick.group[0] == yardstick.group[1] != yardstick.group[2]
    mean = np.concatenate([np.clip(r, yardstick.lo, yardstick.hi) for r in raw]).mean(axis=0)
    released = [np.clip(r, yardstick.lo, yardstick.hi) for r in raw]
    for rows in released:
        rows[:, 2] = mean[2]
    found = fidelity(yardstick, raw, released, N)
    np.testing.assert_allclose(found.distinct, 0.5)
    np.testing.assert_allclose(np.nanmean(found.explained), 2 / 3)


def test_one_feature_that_stands_still_sinks_the_mean_and_not_the_median() -> None:
    """Released: noise of a tenth of what moves, also where nothing moves; and copies count once in the median too."""
    names, group = ("a", "a again", "a once more", "still", "b"), np.array([0, 0, 0, 1, 2])
    rng, raw, released = np.random.default_rng(9), [], []
    for _ in range(5):
        moved = rng.normal(size=(400, 5)) * (1, 1, 1, 0.01, 1)
        raw.append(moved)
        released.append(moved + rng.normal(size=moved.shape) * (0.1, 0.1, 0.1, 0.1, 0.3))
    found = fidelity(Yardstick(names, np.full(5, -9.0), np.full(5, 9.0), group), raw, released, N)
    assert found.distinct < -10
    assert found.distinct_own < -10
    np.testing.assert_allclose([found.middle, found.middle_own], 0.91, atol=0.02)  # 0.99 would count copies


def test_outliers_do_not_carry_a_score(yardstick: Yardstick, raw: list[Array]) -> None:
    """A mechanism that knows one event of a million and else nothing."""
    spoiled = [r.copy() for r in raw]
    spoiled[0][5, 2] = 1e6
    mean = np.concatenate([np.clip(r, yardstick.lo, yardstick.hi) for r in raw]).mean(axis=0)
    released = [np.broadcast_to(mean, r.shape).copy() for r in raw]
    released[0][5, 2] = 1e6
    error = sum(((x - y)[:, 2] ** 2).sum() for x, y in zip(spoiled, released, strict=True))
    plain = 1 - error / sum(((x - mean)[:, 2] ** 2).sum() for x in spoiled)
    assert plain > 0.9
    assert fidelity(yardstick, spoiled, released, N).explained[2] < 0.01


def test_a_missing_value_raises_no_score(yardstick: Yardstick, raw: list[Array]) -> None:
    """Leaving out the chunks that went worst must not pay."""
    rng = np.random.default_rng(4)
    released = [np.clip(r, yardstick.lo, yardstick.hi) + rng.normal(size=r.shape) for r in raw]
    before = fidelity(yardstick, raw, released, N)
    for rows in released:
        rows[: len(rows) // 2] = np.nan
    after = fidelity(yardstick, raw, released, N)
    assert after.coverage == pytest.approx(0.5)
    assert after.distinct < before.distinct
    assert after.distinct_own < before.distinct_own
    for rows in released:
        rows[:] = np.nan
    nothing = fidelity(yardstick, raw, released, N)
    assert nothing.coverage == 0
    np.testing.assert_allclose([nothing.distinct, nothing.distinct_own], 0.0, atol=1e-12)


def test_what_was_not_recorded_is_not_asked_for(yardstick: Yardstick, raw: list[Array]) -> None:
    holes = [r.copy() for r in raw]
    holes[0][:, 2] = np.nan
    found = fidelity(yardstick, holes, [np.clip(r, yardstick.lo, yardstick.hi) for r in raw], N)
    np.testing.assert_allclose([found.coverage, found.distinct, found.correlation[2]], 1.0)


def test_one_factor_dressed_as_all_features_has_no_partial_correlation(yardstick: Yardstick) -> None:
    rng = np.random.default_rng(8)
    raw = []
    for _ in range(40):
        walk = np.repeat(rng.normal(size=(60, 2)), N, axis=0)
        other = walk[:, 0] + 0.5 * walk[:, 1]
        raw.append(np.stack([walk[:, 0], 2 * walk[:, 0], other, np.ones(len(walk))], axis=1))
    dressed = [np.stack([r[:, 0], 2 * r[:, 0], 0.8 * r[:, 0], r[:, 3]], axis=1) for r in raw]
    found = fidelity(Yardstick(NAMES, np.full(4, -9.0), np.full(4, 9.0), yardstick.group), raw, dressed, N)
    assert found.correlation[2] > 0.8
    assert abs(found.partial[2]) < 0.05


def test_shapes_must_agree(yardstick: Yardstick, raw: list[Array]) -> None:
    for wrong in (raw[1:], [r[1:] for r in raw]):
        with pytest.raises(ConfigError, match="as many released rows"):
            fidelity(yardstick, raw, wrong, N)


def test_epsilon_does_not_hide_behind_long_chunks() -> None:
    """The same epsilon a chunk is half a minute's when chunks are twice as long; reach 31.5 s."""
    short, long = price(4.8, 32, 2.0), price(4.8, 64, 2.0)
    assert (short.minute, long.minute) == pytest.approx((18.0, 9.0))
    assert short.worst_minute == pytest.approx(4.8 * ((2 * 91.5 - 2) // 32 + 2))
    assert short.second == pytest.approx(4.8 * ((2 * 32.5 - 2) // 32 + 2))
    assert short.worst_minute > short.minute
