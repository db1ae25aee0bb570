"""Utility against identity: sums over people, prices, pace and progress."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream_lab.study import frontier_summary
from eyestream_lab.study.cells import Pace, how_far
from eyestream_lab.study.fidelity import Yardstick, fidelity, spread_over_people
from eyestream_lab.study.prices import price, with_prices

Array = NDArray[np.float64]
NAMES = ("a", "a twice", "b", "constant")
N = 8


def people(count: int, seed: int) -> list[Array]:
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        slow = np.cumsum(rng.normal(size=(80, 2)), axis=0) / 5 + 3 * rng.normal(size=2)
        found.append(np.stack([slow[:, 0], 2 * slow[:, 0], slow[:, 1], np.ones(80)], axis=1))
    return found


@pytest.fixture(scope="module")
def yardstick() -> Yardstick:
    return Yardstick.of(np.concatenate(people(20, 2)), NAMES, np.array([0, 1, 2]))


def trial(names: list[str], areas: list[float]) -> dict[str, Any]:
    same = {"firsts": [1.0] * len(names), "ranks": [1.0] * len(names), "p": 0.01, "null_sd": 0.05}
    return {"people": names, "areas": areas} | same


def record(yardstick: Yardstick, raw: list[Array], released: list[Array], **changes: Any) -> dict[str, Any]:
    """A cell's record, of all people at once."""
    sums = spread_over_people(yardstick, raw, released)
    names = [f"P{i}" for i in range(len(raw))]
    told = fidelity(yardstick, raw, released, N)
    tables = zip(sums.error, sums.base, sums.own_error, sums.own_base, strict=True)
    made = {"label": "klt", "n": 64, "minute": 18.0, "epsilon": 9.6, "measured": "release"}
    made |= {"people": {name: [list(t) for t in four] for name, four in zip(names, tables, strict=True)}}
    made |= {"names": list(NAMES), "group": yardstick.group.tolist(), "coverage": told.coverage}
    made |= {
        "correlation": told.correlation.tolist(),
        "partial": told.partial.tolist(),
        "nmse": [0.1, 0.2, 0.3, np.nan],
    }
    areas = {"weak": [0.5] * len(raw), "strong": [0.9] * len(raw)}
    return made | {"trials": {name: trial(names, own) for name, own in areas.items()}} | changes


def test_the_summary_says_what_the_measure_says_with_an_interval_over_people(yardstick: Yardstick) -> None:
    raw = people(12, 3)
    rng = np.random.default_rng(4)
    released = [r + rng.normal(size=r.shape) for r in raw]
    told = fidelity(yardstick, raw, released, N)
    row = frontier_summary.summarise([record(yardstick, raw, released)], 2.0)[0]
    assert row["explained"] == pytest.approx(told.distinct)
    assert row["own"] == pytest.approx(told.distinct_own)
    assert (row["explained_middle"], row["own_middle"]) == pytest.approx((told.middle, told.middle_own))
    assert row["every"] == pytest.approx(np.nanmean(told.explained))
    assert row["explained_low"] < row["explained"] < row["explained_high"]
    assert row["explained_high"] - row["explained_low"] < 0.5
    assert (row["attacker"], row["area"], row["attackers"]) == ("strong", pytest.approx(0.9), 2)
    assert row["p_all"] == pytest.approx(2 * 0.02)  # twice the median over trials, and twice for two attackers
    assert row["nmse"] == pytest.approx(0.2)
    assert row["second"] == price(9.6, 64, 2.0).second == 2 * 9.6
    features = frontier_summary.by_feature([record(yardstick, raw, released)], 64, 18.0)
    assert [f["feature"] for f in features] == ["a", "a twice", "b"]
    np.testing.assert_allclose([f["explained"] for f in features], told.explained[:3])
    assert frontier_summary.by_feature([record(yardstick, raw, released)], 64, 9.0) == []


def test_what_is_not_released_raises_nothing(yardstick: Yardstick) -> None:
    raw = people(6, 5)
    whole = frontier_summary.summarise([record(yardstick, raw, raw)], 2.0)[0]
    holes = [np.where(np.arange(80)[:, None] % 2 == 0, np.nan, r) for r in raw]
    left_out = frontier_summary.summarise([record(yardstick, raw, holes)], 2.0)[0]
    assert left_out["coverage"] == pytest.approx(0.5)
    assert left_out["explained"] < 0.7 < whole["explained"]


def test_one_person_who_has_all_of_a_feature_does_not_blow_the_interval_up(yardstick: Yardstick) -> None:
    raw = people(8, 6)
    for r in raw[1:]:
        r[:, 2] = 1e-6 * r[:, 2]
    rng = np.random.default_rng(7)
    released = [r + 0.1 * rng.normal(size=r.shape) for r in raw]
    row = frontier_summary.summarise([record(yardstick, raw, released)], 2.0)[0]
    assert row["own_low"] > -3
    assert row["explained_low"] <= row["explained"] <= row["explained_high"] < 3


def test_prices_stand_beside_every_epsilon() -> None:
    class People:
        starts, rate_hz = np.array([0, 1200, 2400]), 2.0

    rows = [{"source": "CFPA", "n": 32, "epsilon": 4.8}, {"source": "FPA", "n": 32, "epsilon": 4.8}, {"source": "raw"}]
    priced = with_prices(rows, People(), ["FPA"])
    assert (priced[0]["minute"], priced[0]["second"]) == (pytest.approx(18.0), pytest.approx(3 * 4.8))
    assert (priced[1]["minute"], priced[1]["second"]) == (pytest.approx(0.48), 4.8)  # ten minutes, and any second all
    assert "minute" not in priced[2]


def test_the_pace_knows_that_parts_take_different_times(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    pace = Pace(Counter({"slow": 3, "quick": 11, "unseen": 1}), began=0.0)
    now[0] = 5.5  # two at a time
    pace.done("slow", 10.0)
    pace.done("quick", 1.0)
    # 2 slow ones, 10 quick ones, and one of a part that counts as the mean, 5.5: at two seconds of work a second
    assert pace.left() == pytest.approx((20 + 10 + 5.5) / 2)
    assert how_far(3, 9, 600.0) == "3 of 9 cells done, about 10 min left"
    assert how_far(9, 9, 0.0) == "9 of 9 cells done"
