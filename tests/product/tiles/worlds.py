"""Small calibrations and recordings, and the exact law of what a whole path releases."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Law
from eyestream.core.noise.response import ResponseLaw
from eyestream.core.tiles import Field, TileCalibration
from eyestream.gaze.samples import Samples
from eyestream.gaze.slots import Slots
from eyestream_lab.calibration.tiles import calibrate_tiles
from eyestream_lab.samples.tile_response import TileResponse, TileSession

SLOT_US = 1_000_000
SMALL = Field(columns=8, rows=4, cell_deg=5.0)
LARGE = Field(columns=36, rows=28, cell_deg=2.0)
MOMENTS = (0.0, 0.5, 1.0, 1.5)
PLACES = ((-15.0, -5.0), (2.0, 5.0), (np.nan, np.nan))

Release = Callable[[TileSession, NDArray[np.int64]], int]
Recording = tuple[int, ...]
"""Which of PLACES each of MOMENTS has."""
ExactLaw = dict[tuple[int, ...], Fraction]


def walk(field: Field, slots: int, seed: int) -> NDArray[np.int64]:
    """(slots, cells + 1) occupancies of somebody who moves on, jumps and is lost now and then."""
    rng = np.random.default_rng(seed)
    edge = np.array([field.columns, field.rows]) * field.cell_deg / 2
    place, content = rng.uniform(-0.5, 0.5, 2) * edge, []
    for _ in range(slots):
        place = rng.uniform(-0.8, 0.8, 2) * edge if rng.random() < 0.4 else place + rng.normal(0, 3, 2)
        x, y = place[:, None] + rng.normal(0, 2, (2, 20))
        content.append(field.occupancy(x, y, np.full(20, rng.random() > 0.1)))
    return np.stack(content)


def calibration(field: Field = SMALL, slots: int = 60) -> TileCalibration:
    """Of two simulated people."""
    people = [walk(field, slots, seed) for seed in (1, 2)]
    return calibrate_tiles(people, field, SLOT_US, prior_slots=30, source="a test")


class GivenDraws:
    """Noise that gives the draws of a list, in order."""

    def __init__(self) -> None:
        self.draws: list[tuple[int, int]] = []

    def draw(self, law: Law) -> NDArray[np.int64]:
        """The next of the list."""
        return np.array(self.draws.pop(0))


def every_draw(law: ResponseLaw, words: int, slots: int) -> Iterator[tuple[list[tuple[int, int]], Fraction]]:
    """All draws of so many slots, with their exact probabilities."""
    replaced = Fraction(law._threshold, 2**128)
    one = [((0, 0), 1 - replaced), *(((1, word), replaced / words) for word in range(words))]
    for draws in product(one, repeat=slots):
        chance = Fraction(1)
        for _, own in draws:
            chance *= own
        yield [draw for draw, _ in draws], chance


def as_it_is(session: TileSession, occupancy: NDArray[np.int64]) -> int:
    """The release of a slot."""
    return session.release(occupancy)[0]


def contents(recording: Recording) -> NDArray[np.int64]:
    """The slots of a recording, as they are counted from its samples by the clock."""
    x, y = np.array([PLACES[place] for place in recording]).T
    slots = Slots(SMALL, SLOT_US, origin_s=0.0)
    return slots.advance(2.0, Samples.of(MOMENTS, x, y)).values.astype(np.int64)


def released_law(epsilon: float, occupancies: NDArray[np.int64], release: Release = as_it_is) -> ExactLaw:
    """The exact probability of every sequence of words that is released of these slots."""
    noise = GivenDraws()
    mechanism = TileResponse(_CALIBRATION, epsilon, noise=noise)
    law: ExactLaw = {}
    for draws, chance in every_draw(mechanism.code.law, mechanism.code.words, len(occupancies)):
        noise.draws = list(draws)
        session = mechanism.session()
        words = tuple(release(session, occupancy) for occupancy in occupancies)
        law[words] = law.get(words, Fraction(0)) + chance
    return law


SHARES = np.array([[16000, 0, 0, 0, 384], [0, 8192, 0, 4096, 4096], [0, 0, 0, 0, 16384]], np.int32)
"""A still mode, one between, and one that jumps alone."""
_CALIBRATION = replace(calibration(), shares=SHARES)
