"""Exact laws of whole recordings in a small world: slots by the clock, response, adaptive tilings, windows of time.

Two slots of 1 s, two samples each, of which every one is at one of two places or lost: 81 recordings, and all of them
are compared with all, over all sequences of released words.
"""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.tiles import slots_touched
from eyestream.core.tiles.response import word_of
from eyestream_lab.calibration.tiles import MODES
from eyestream_lab.samples.tile_response import TileSession
from tests.product.tiles import worlds
from tests.product.tiles.worlds import (
    MOMENTS,
    PLACES,
    SLOT_US,
    ExactLaw,
    Recording,
    Release,
    as_it_is,
    contents,
    released_law,
)

EPSILON = 1.5
RECORDINGS = list(product(range(len(PLACES)), repeat=len(MOMENTS)))
Laws = dict[Recording, ExactLaw]


def power(slots: int) -> Fraction:
    """e^(slots epsilon), rounded up in the 60th digit."""
    with localcontext() as context:
        context.prec = 80
        return Fraction((Decimal(EPSILON) * slots).exp()) * (1 + Fraction(1, 10**60))


def laws(release: Release = as_it_is, count: Callable[..., NDArray[np.int64]] = contents) -> Laws:
    """Of every recording; those with the same slots have one law."""
    slots = {recording: count(recording) for recording in RECORDINGS}
    own: dict[bytes, ExactLaw] = {}
    for counted in slots.values():
        if counted.tobytes() not in own:
            own[counted.tobytes()] = released_law(EPSILON, counted, release)
    return {recording: own[counted.tobytes()] for recording, counted in slots.items()}


def worst(all_laws: Laws, moments: set[int]) -> Fraction | float:
    """Largest ratio of a release's probabilities under two recordings that differ at these moments at most."""
    worst_yet: Fraction | float = Fraction(1)
    for one, other in product(RECORDINGS, repeat=2):
        if {i for i in range(len(MOMENTS)) if one[i] != other[i]} <= moments:
            for words in all_laws[one].keys() | all_laws[other].keys():
                below = all_laws[other].get(words, Fraction(0))
                above = all_laws[one].get(words, Fraction(0))
                if above:
                    worst_yet = max(worst_yet, above / below if below else float("inf"))
    return worst_yet


@pytest.fixture(scope="module")
def as_they_are() -> Laws:
    return laws()


def test_probabilities_sum_to_one(as_they_are: Laws) -> None:
    assert {sum(law.values()) for law in as_they_are.values()} == {1}


@pytest.mark.parametrize("slot", [{0, 1}, {2, 3}])
def test_a_slot_costs_epsilon_and_uses_nearly_all_of_it(as_they_are: Laws, slot: set[int]) -> None:
    assert power(1) * Fraction(999999, 1000000) < worst(as_they_are, slot) <= power(1)


def test_a_window_costs_the_slots_that_it_touches(as_they_are: Laws) -> None:
    """A window of 0.6 s that begins at 0.45 s has moments of two slots; a floor would count one."""
    touched = slots_touched(0.6, SLOT_US)
    ratio = worst(as_they_are, {1, 2})
    assert power(1) < ratio <= power(touched)
    counted_by_floor = int(0.6 * 1_000_000 // SLOT_US) + 1
    assert ratio > power(counted_by_floor)


def a_model_that_sees_the_true_word(session: TileSession, occupancy: NDArray[np.int64]) -> int:
    """The next slot's tiling then tells of this one's gaze."""
    reader, code = session._reader, session._mechanism.code
    word = word_of(occupancy, reader.labels, code.lost_word)
    replaced, drawn = session._mechanism.noise.draw(code.law).tolist()
    reader.take(word)
    return drawn if replaced else word


def modes_by_the_gaze(session: TileSession, occupancy: NDArray[np.int64]) -> int:
    """A slot whose samples lie apart is of the restless mode, whatever was released."""
    word, _ = session.release(occupancy)
    reader, own = session._reader, np.zeros(MODES)
    own[-1 if np.count_nonzero(occupancy[:-1]) > 1 else 0] = 1
    reader.belief = replace(reader.belief, seen=np.maximum(reader.belief.seen * own[:, None, None], 1.0))
    return word


def a_lost_slot_without_noise(session: TileSession, occupancy: NDArray[np.int64]) -> int:
    """As if "lost" told nothing of the eye."""
    code = session._mechanism.code
    word, _ = session.release(occupancy)
    return code.lost_word if occupancy[:-1].sum() == 0 else word


def a_response_of_the_tiles_alone(session: TileSession, occupancy: NDArray[np.int64]) -> int:
    """Who replaces a word draws a tile, never "lost"."""
    code = session._mechanism.code
    word = word_of(occupancy, session._reader.labels, code.lost_word)
    replaced, drawn = session._mechanism.noise.draw(code.law).tolist()
    released = drawn % code.lost_word if replaced else word
    session._reader.take(released)
    return released


@pytest.mark.parametrize(
    "fault",
    [a_model_that_sees_the_true_word, modes_by_the_gaze, a_lost_slot_without_noise, a_response_of_the_tiles_alone],
)
def test_faults_of_the_release_pass_epsilon(fault: Release) -> None:
    faulty = laws(release=fault)
    assert max(worst(faulty, {0, 1}), worst(faulty, {2, 3})) > power(1)


def a_lost_sample_stands_where_the_last_one_stood(recording: Recording) -> NDArray[np.int64]:
    """Imputation across the border of a slot."""
    filled: list[int] = []
    for place in recording:
        filled.append(filled[-1] if place == 2 and filled else place)
    return contents(tuple(filled))


def only_slots_with_gaze(recording: Recording) -> NDArray[np.int64]:
    """Nothing is released of a lost slot, so its absence tells."""
    slots = contents(recording)
    return slots[slots[:, :-1].sum(axis=1) > 0]


@pytest.mark.parametrize("fault", [a_lost_sample_stands_where_the_last_one_stood, only_slots_with_gaze])
def test_faults_of_the_slots_pass_epsilon(fault: Callable[..., NDArray[np.int64]]) -> None:
    faulty = laws(count=fault)
    assert max(worst(faulty, {0, 1}), worst(faulty, {2, 3})) > power(1)


def test_tilings_follow_what_was_released() -> None:
    first = worlds.TileResponse(worlds.calibration(worlds.LARGE), 5.0).session()._reader
    before = first.labels.copy()
    first.take(0)
    assert (first.labels != before).any()
