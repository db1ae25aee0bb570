"""Every shipped calibration builds, claims, releases, fades and looks back at every epsilon.

`tools/verification/every_epsilon.py` has the whole grid, from 0.01 to 110 in steps of 0.01 with all levels. A part of
it stands here: always where the book of three bits once had a singular matrix on some processors, and more behind
markers. Of noise that is added, an epsilon below what the sampler's precision allows is refused, in one line.
"""

import numpy as np
import pytest

from eyestream.core.charge import LEVELS
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.codebook import coded_by
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream_lab.files.books import shipped_books
from eyestream_lab.testing.mechanisms import check_life

WITH_BOOKS = [name for name in calibrations.shipped() if "mapped" in name or "anchored" in name]
ONCE_SINGULAR = (0.4, 4.0, 8.8, 16.0, *np.round(np.arange(37.8, 38.85, 0.1), 1).tolist())


@pytest.mark.parametrize("number", range(len(ONCE_SINGULAR)))
def test_where_the_matrix_of_the_book_of_three_bits_was_singular(number: int) -> None:
    for name in WITH_BOOKS[number % 2 :: 2]:
        check_life(build(calibrations.load(name), ONCE_SINGULAR[number]))


@pytest.mark.parametrize("name", ["everyday-klt-anchored-64", "everyday-cfpa-64"])
@pytest.mark.parametrize("epsilon", [0.02, 4.0, 110.0])
def test_all_levels(name: str, epsilon: float) -> None:
    check_life(build(calibrations.load(name), epsilon), LEVELS)


def test_what_the_sampler_cannot_hold_is_refused() -> None:
    for name, least in (("lpa-32", 0.005), ("lpa-64", 0.01), ("lpa-128", 0.02), ("cfpa-128", 0.0002)):
        calibration = calibrations.load(f"everyday-{name}")
        check_life(build(calibration, least))
        with pytest.raises(ConfigError, match="epsilon is too small for the precision of the sampler"):
            build(calibration, 0.75 * least)


@pytest.mark.long
@pytest.mark.parametrize(("turn", "name"), list(enumerate(calibrations.shipped())))
def test_every_shipped_calibration(turn: int, name: str) -> None:
    """At the ends, and at epsilons that are hard to meet by chance: one a decade in turns, and all levels of one."""
    calibration = calibrations.load(name)
    for epsilon in (0.02, *((0.05, 0.31, 2.93, 31.7), (0.1, 1.07, 9.41))[turn % 2], 110.0):
        check_life(build(calibration, epsilon))
    check_life(build(calibration, 38.2), LEVELS)


@pytest.mark.long
def test_the_codes_of_the_shipped_books_on_the_whole_grid() -> None:
    """From 0.01 to 110 in steps of 0.01: what they explain of a score lies between nothing and all of it."""
    rows = [(one,) for one in shipped_books() if one.first == 0]
    rows += [(one, other) for (one,) in rows for other in shipped_books() if other.first == one.end]
    assert len(rows) == 27
    for number in range(1, 11_001):
        for row in rows[number % 9 :: 9] + rows[:1]:  # each at every ninth, and the one of three bits at all
            explained = np.diagonal(coded_by(row, number / 100).known)
            assert (explained > 0).all()
            assert (explained < 1).all()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", calibrations.shipped())
def test_the_grid_in_steps_of_a_quarter(name: str) -> None:
    calibration = calibrations.load(name)
    for number in range(1, 441):
        check_life(build(calibration, number / 4), LEVELS if number % 20 == 0 else 1)
