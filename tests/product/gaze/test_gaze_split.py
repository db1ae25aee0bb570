"""How samples arrive does not matter, and what comes out is what the definitions say."""

from pathlib import Path

import numpy as np
import pytest

from eyestream.gaze.features import NAMES
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples, TimedRows
from tests.product.gaze import gaze_reference as reference
from tests.rigs.gaze_people import PEOPLE, gaze, person, profile

WHOLE = ("nonzero", "max", "min", "range")
COUNTS = [
    i
    for i, name in enumerate(NAMES)
    if name.startswith(("rate", "ratio")) or name == "blink_rate" or (name.startswith("wb") and name.endswith(WHOLE))
]


def pieces(samples: Samples, seed: int) -> list[Samples]:
    """Ragged parts, some of them empty, some of one sample."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0, 1, 1, 2, 7, 30, 250, 4000], size=len(samples))
    edges = np.minimum(np.concatenate(([0], np.cumsum(sizes))), len(samples))
    edges = edges[: int(np.argmax(edges == len(samples))) + 1]
    return [samples[a:b] for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def run(made: Profile, parts: list[Samples]) -> TimedRows:
    front_end = FrontEnd(made)
    return joined([front_end.feed(part) for part in parts])


def joined(rows: list[TimedRows]) -> TimedRows:
    return TimedRows(np.concatenate([r.t for r in rows]), np.concatenate([r.values for r in rows]))


def assert_same(found: TimedRows, wanted: TimedRows) -> None:
    np.testing.assert_array_equal(found.t, wanted.t)
    np.testing.assert_array_equal(found.values, wanted.values)


def broken(samples: Samples, seed: int) -> Samples:
    """Losses of many lengths, missing samples, pupils that are lost alone."""
    rng = np.random.default_rng(seed)
    valid, pupil, there = samples.valid.copy(), samples.pupil_mm.copy(), np.ones(len(samples), dtype=bool)
    rate = 1.0 / np.median(np.diff(samples.t))
    x = samples.x.copy()
    x[len(x) // 3 : len(x) // 3 + int(rate) : 2] += 4.0  # flicker
    y, t = samples.y.copy(), samples.t
    for lid in (0.1, 0.2, 0.35):  # down and up, without a loss
        y -= 6.0 * ((t - t[0]) % (20.0 * lid + 1.0) < lid)
    for where in rng.integers(1, len(samples), len(samples) // int(2 * rate)).tolist():
        length = int(rng.choice([1, 1, 2, 3, 0.04 * rate, 0.1 * rate, 0.5 * rate, 1.5 * rate])) + 1
        what = rng.integers(0, 3)
        if what == 0:
            valid[where : where + length] = False
        elif what == 1:
            there[where : where + length] = False
        else:
            pupil[where : where + length] = np.nan
    s = Samples(samples.t, x, y, pupil, valid)
    return Samples(s.t[there], s.x[there], s.y[there], s.pupil_mm[there], s.valid[there])


@pytest.mark.parametrize("algorithm", [1, 2])
@pytest.mark.parametrize(
    ("rate_hz", "seconds", "seed"), [(60.0, 90, 1), (62.5, 60, 2), (30.0, 90, 3), (250.0, 45, 4), (1000.0, 34, 5)]
)
def test_whole_ragged_and_one_by_one_are_the_same_bits(rate_hz: float, seconds: int, seed: int, algorithm: int) -> None:
    made = profile(rate_hz, frozen_s=1.0, algorithm=algorithm)
    samples = broken(gaze(rate_hz, seconds, seed, jitter_s=0.2 / rate_hz)[0], seed)
    whole = run(made, [samples])
    assert len(whole) == 2 * (seconds - 30)
    assert np.isfinite(whole.values).all(axis=1).any()
    for ragged in (1, 2, 3):
        assert_same(run(made, pieces(samples, ragged)), whole)
    assert_same(run(made, [samples[i : i + 1] for i in range(len(samples))]), whole)


@pytest.mark.parametrize("algorithm", [1, 2])
@pytest.mark.parametrize(("rate_hz", "seconds", "seed"), [(60.0, 60, 1), (30.0, 60, 3), (250.0, 40, 4)])
def test_asking_for_what_is_due_in_between_changes_no_bit(
    rate_hz: float, seconds: int, seed: int, algorithm: int
) -> None:
    """As live gaze does: rows of moments between two samples, also in the middle of a loss."""
    made = profile(rate_hz, frozen_s=1.0, algorithm=algorithm)
    samples = broken(gaze(rate_hz, seconds, seed, jitter_s=0.2 / rate_hz)[0], seed)
    whole = FrontEnd(made)
    wanted = [whole.feed(samples), whole.advance(float(samples.t[-1]) + 2.0)]
    rng = np.random.default_rng(seed)
    for longest in (3, int(0.4 * rate_hz), 400):
        asked, found, begin = FrontEnd(made), [], 0
        while begin < len(samples):
            end = min(begin + int(rng.integers(1, longest + 1)), len(samples))
            found.append(asked.feed(samples[begin:end]))
            after = float(samples.t[end]) if end < len(samples) else float(samples.t[-1]) + 2.0
            found.append(asked.advance(samples.t[end - 1] + rng.uniform(0.1, 0.9) * (after - samples.t[end - 1])))
            begin = end
        found.append(asked.advance(float(samples.t[-1]) + 2.0))
        assert_same(joined(found), joined(wanted))


@pytest.mark.parametrize(
    ("rate_hz", "seconds", "seed"),
    [(60.0, 120, 6), (30.0, 60, 7), (62.5, 60, 8), (250.0, 45, 9), (500.0, 40, 10), (1000.0, 34, 11)],
)
@pytest.mark.parametrize("algorithm", [1, 2])
def test_the_definitions_computed_another_way_give_the_same_rows(
    rate_hz: float, seconds: int, seed: int, algorithm: int
) -> None:
    made = profile(rate_hz, algorithm=algorithm)
    samples = broken(gaze(rate_hz, seconds, seed, jitter_s=0.2 / rate_hz)[0], seed)
    ends, wanted = reference.rows(samples, made)
    found = run(made, [samples])
    assert len(ends) > 5
    np.testing.assert_allclose(found.t, samples.t[0] + ends / 1e6, rtol=0, atol=1e-9)
    assert_close(found.values, wanted)


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[:, COUNTS], wanted[:, COUNTS])
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def check_person(shared_data: Path, name: str, seed: int) -> None:
    made, samples = person(shared_data, name)
    whole = run(made, [samples])
    assert len(whole) > 900
    assert_same(run(made, pieces(samples, seed)), whole)
    assert_same(run(made, [samples]), whole)
    _, wanted = reference.rows(samples[:9000], made)
    assert_close(run(made, [samples[:9000]]).values, wanted)


@pytest.mark.long
@pytest.mark.parametrize("name", ["P01", "P17"])
def test_a_person_split_at_random(shared_data: Path, name: str) -> None:
    check_person(shared_data, name, seed=int(name[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("name", PEOPLE)
def test_every_person_split_at_random(shared_data: Path, name: str) -> None:
    check_person(shared_data, name, seed=100 + int(name[1:]))
