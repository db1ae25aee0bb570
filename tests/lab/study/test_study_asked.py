"""Asked features in the study: words are read from what is published, and attackers find who can be found."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.asked.chain import GRID
from eyestream.core.noise import Law
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream_lab.mechanisms.asked import read
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.study import asked
from eyestream_lab.study.limit import one_shot
from eyestream_lab.study.people.few import ATTACKERS, attack_all
from eyestream_lab.study.people.inference import trial
from eyestream_lab.study.plan import FULL, QUICK
from eyestream_lab.study.population import Population
from eyestream_lab.study.sources import World
from eyestream_lab.study.ways import Few
from eyestream_lab.testing.noise import SeededNoise

Array = NDArray[np.float64]


class Drawn:
    """Noise that replaces every word, and keeps by what."""

    def __init__(self, cells: int, features: int) -> None:
        self._rng, self._shape, self.words = np.random.default_rng(3), (cells, features), list[list[int]]()

    def draw(self, law: Law) -> NDArray[np.int64]:
        self.words.append(self._rng.integers(0, self._shape[0], self._shape[1]).tolist())
        return np.array([1, *self.words[-1]], dtype=np.int64)


@pytest.mark.parametrize(
    ("features", "epsilon", "cells"),
    [
        (["blink_rate"], 4.8, 6),
        (["rate_saccades", "blink_rate"], 4.8, 3),
        (["rate_saccades", "mean_saccade_amplitude", "ratio_positive_saccades"], 19.2, 32),
    ],
)
def test_words_are_read_from_what_is_published(features: list[str], epsilon: float, cells: int) -> None:
    noise = Drawn(cells, len(features))
    mechanism = build(calibrations.load("everyday-asked-64"), epsilon, noise=noise, features=features)
    session = mechanism.session()
    chunks = np.zeros((14, 52, 64))
    for chunk in chunks[:2]:
        session.anchor(chunk)
    seen = read(mechanism, [session.release(chunk) for chunk in chunks[2:]])
    np.testing.assert_array_equal(seen.words, np.array(noise.words) * 8 // max(cells, 8))
    assert seen.likely is not None
    assert seen.likely.shape == (12, len(features), len(GRID))
    assert (seen.likely.max(axis=2) > 10 * seen.likely.min(axis=2)).mean() > 0.9  # but in cells that nothing reaches


def sessions(spreads: Array, seed: int) -> list[Few]:
    """Of people whose one feature moves so far."""
    rng, found = np.random.default_rng(seed), []
    for spread in spreads:
        values = spread * rng.normal(size=(12, 1))
        words = np.clip(np.floor(2 * values) + 4, 0, 7).astype(np.int64)
        likely = np.exp(-0.5 * ((GRID - values[:, :, None]) / 0.5) ** 2) + 0.05
        found.append(Few(values, words, likely))
    return found


def areas(spreads: Array, slots: int, names: tuple[str, ...]) -> dict[str, float]:
    """Mean area of each attacker over six galleries."""
    found: dict[str, list[float]] = {name: [] for name in names}
    people = [str(person) for person in range(len(spreads))]
    for seed in range(6):
        known = [sessions(spreads, 100 * seed + slot) for slot in range(slots)]
        for name in names:
            scores = ATTACKERS[name](known, sessions(spreads, 100 * seed + 50), seed)
            found[name].append(float(np.mean(trial([(people, scores)], seed, 1).areas)))
    return {name: float(np.mean(own)) for name, own in found.items()}


def test_attackers_find_how_far_people_move_and_nobody_who_moves_as_all() -> None:
    cheap = tuple(name for name in ATTACKERS if name not in ("forest", "logistic"))
    apart, alike = (areas(spreads, 1, cheap) for spreads in (np.geomspace(0.2, 3.0, 10), np.ones(10)))
    for name in ("variance", "steps", "mean, variance, steps", "word counts", "chains", "law of words"):
        assert apart[name] > 0.75, name
    assert max(apart.values()) > 0.85
    assert abs(np.mean(list(alike.values())) - 0.5) < 0.05
    assert max(alike.values()) < 0.68


def test_several_known_sessions_tell_more() -> None:
    spreads, names = np.geomspace(0.4, 2.0, 10), ("variance", "chains")
    one, five = areas(spreads, 1, names), areas(spreads, 5, names)
    assert five["variance"] > one["variance"]
    assert five["chains"] > one["chains"] + 0.02


def test_more_than_twenty_attackers_and_all_of_them_together() -> None:
    known, unknown = [sessions(np.ones(4), 1)], sessions(np.ones(4), 2)
    scores = attack_all(known, unknown, 0)
    assert len(scores) == len(ATTACKERS) + 1 > 20
    assert all(own.shape == (4, 4) and np.isfinite(own).all() for own in scores.values())
    wordless = [Few(own.values, own.words) for own in unknown]
    assert scores.keys() - attack_all([wordless], wordless, 0).keys() == {"chains"}


def test_eight_words_leave_little_more_than_any_release_must() -> None:
    assert one_shot(4.8) < asked.left_by_words(4.8) < 1.06 * one_shot(4.8)
    assert one_shot(4.8) == pytest.approx(0.161, abs=0.001)
    assert one_shot(0.5) == pytest.approx(asked.left_by_words(0.5), abs=0.001)


@pytest.fixture(scope="module")
def world() -> World:
    drawn = simulate(load_statistics(), 6, 700.0, 7)
    recordings = [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES, f"sim-{i}.npz", simulated=True)
        for i, rows in enumerate(drawn)
    ]
    return World(Population.of(recordings), {})


def test_the_least_epsilon_has_every_way_and_all_have_the_divisions(world: World) -> None:
    work = asked.cells(FULL, world)
    at = {minute: [cell for cell in work if cell.settings["minute"] == minute] for minute in FULL.minutes}
    assert len(at[9.0]) > len(at[18.0]) == len(at[36.0]) > 0
    assert at[90.0] == []
    for way in (asked.ASKED, "cfpa, the same features"):
        for minute in (9.0, 18.0, 36.0):
            assert {cell.settings["split"] for cell in at[minute] if cell.settings["way"] == way} == set(range(6))
    assert [len({cell.settings["way"] for cell in at[minute]}) for minute in (9.0, 18.0)] == [8, 4]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_cell_measures_what_comes_through_and_who_is_recognised(world: World) -> None:
    work = [cell for cell in asked.cells(QUICK, world) if cell.settings["set"] in ("blinks", "comfort")]
    ways = {cell.settings["way"] for cell in work}
    assert ways == {"asked", "asked, a chunk later", "cfpa, the same features", "asked, a stream each"}
    # one trial is noisy: over 40 of them blinks lost .03 of r to another feature, with an SD of .03
    seeded = replace(world, noise=SeededNoise(1))
    records = [
        {name: value for name, value in cell.settings.items() if isinstance(value, str | float | int)} | record
        for cell in work
        for record in asked.measure(seeded, **cell.settings)
    ]
    rows = asked.summarise(records)
    r = {(row["set"], row["way"], row["feature"]): row["r"] for row in rows if not row["known"]}
    assert r["blinks", "asked", "blink_rate"] > 0.8
    assert r["blinks", "asked", "blink_rate"] > r["blinks", "cfpa, the same features", "blink_rate"] + 0.1
    assert r["blinks", "asked, a chunk later", "blink_rate"] > r["blinks", "asked", "blink_rate"] - 0.03
    assert r["comfort", "asked", "blink_rate"] < r["blinks", "asked", "blink_rate"]
    identity = [row for row in rows if row["known"]]
    assert {row["known"] for row in identity} == {1, 2}
    assert all(0.3 < row["control"] <= 1 and row["chunks"] >= 3 for row in identity)
    page = asked.asked_page(records)
    assert page.count("| blinks | asked |") == 3


def test_sessions_of_a_gallery_are_as_long_and_share_no_gaze(world: World) -> None:
    """Lengths of halves would name recordings: whoever is longer is cut, and 30 s lie between two of one recording."""
    whole = asked._cut(world.population, [0], 1, 0)[0]
    first, second = sorted(asked._cut(world.population, [0], 2, 0), key=lambda own: own[0, 0, 0] != whole[0, 0, 0])
    assert len(first) == len(second) == (len(whole) - 1) // 2
    np.testing.assert_array_equal(first[0], whole[0])
    np.testing.assert_array_equal(second[0], whole[len(first) + 1])
    assert asked._cut(world.population, [0, 1], 3, 0) == []
