"""Maps of features from a corpus, and groups of features that say the same."""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.maps import RankMap
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.calibration.redundancy import group_sizes, groups_of
from eyestream_lab.calibration.standard import KNOTS, rank_knots
from tests.rigs.small_corpus import recordings

Array = NDArray[np.float64]
N = 32


def skewed(rows: int = 4000) -> Array:
    """(rows, 3): exponential, normal, and mostly zero."""
    rng = np.random.default_rng(2)
    rare = np.where(rng.random(rows) < 0.3, rng.exponential(size=rows), 0.0)
    return np.stack([rng.exponential(size=rows), rng.normal(size=rows), rare], axis=1)


def test_maps_rise_and_can_be_undone() -> None:
    rows = skewed()
    lo, hi = rows.min(axis=0), rows.max(axis=0)
    knots, levels = rank_knots(rows, lo, hi)
    assert knots.shape == levels.shape == (3, KNOTS)
    assert (np.diff(knots) > 0).all()
    assert (np.diff(levels) > 0).all()
    lines = RankMap(knots, levels)
    np.testing.assert_allclose(lines.back(lines.there(rows.T)), rows.T, rtol=1e-9, atol=1e-9)
    beyond = lines.back(np.array([[1e9, -1e9], [np.inf, -np.inf], [0.0, 1e300]]))
    assert (beyond <= hi[:, None]).all()
    assert (beyond >= lo[:, None]).all()


def test_maps_are_half_of_each() -> None:
    """A skewed feature becomes less skewed, and not quite normal; a normal one stays what it is."""
    rows = skewed()
    lines = RankMap(*rank_knots(rows, rows.min(axis=0), rows.max(axis=0)))
    levels = lines.there(rows.T)
    skew = [float((((x - x.mean()) / x.std()) ** 3).mean()) for x in (rows[:, 0], levels[0])]
    assert skew[0] > 1.7
    assert 0.3 < skew[1] < 0.7 * skew[0]
    normal = (rows[:, 1] - rows[:, 1].mean()) / rows[:, 1].std()
    np.testing.assert_allclose(levels[1][abs(normal) < 2], normal[abs(normal) < 2], atol=0.1)


def test_missing_values_and_constants_have_maps_too() -> None:
    rows = skewed(300)
    rows[::2, 0] = np.nan
    rows[:, 1] = 7.0
    rows[:, 2] = np.nan
    knots, levels = rank_knots(rows, np.zeros(3), np.full(3, 9.0))
    assert (np.diff(knots) > 0).all()
    assert (np.diff(levels) > 0).all()


def test_features_that_follow_from_each_other_are_one_group() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 500))
    z = x + 0.1 * rng.normal(size=500)
    chain = z + 0.15 * rng.normal(size=500)
    rows = np.stack([x, y, -3 * x + 1, z, np.zeros(500), chain], axis=1)
    rows[3:9, 0] = np.nan
    group = groups_of(rows)
    assert group[0] == group[2] == group[3] == group[5]
    assert len({group[0], group[1], group[4]}) == 3
    assert group_sizes(rows).tolist() == [4, 1, 4, 4, 1, 4]
    assert groups_of(rows, 0.99999)[0] != groups_of(rows, 0.99999)[3]


def test_copies_of_a_feature_do_not_take_bits_from_the_others() -> None:
    """With a feature there five times, the code of the others is nearly what it was without the copies."""

    def errors(copies: int) -> Array:
        made = [
            type(r)(r.t, np.concatenate([r.features, *[r.features[:, :1]] * copies], axis=1),
                    (*r.names, *(f"copy_{i}" for i in range(copies))), r.path)
            for r in recordings()
        ]  # fmt: skip
        return build(calibrate_joint(Corpus.of(made, N)), 4.8).noise_sd[:5]

    np.testing.assert_allclose(errors(4), errors(0), rtol=0.02)
