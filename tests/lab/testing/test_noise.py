"""Noises of the harness: each does what it says, and none of the false ones passes for the real one."""

import numpy as np
import pytest

from eyestream.core.mechanisms import build
from eyestream.core.noise.laws import LaplaceLaw
from eyestream.core.noise.response import ResponseLaw
from eyestream_lab.testing.noise import FixedNoise, ScaledNoise, SeededNoise, WatchedNoise, WordNoise, ZeroNoise
from tests.rigs.calibrations import few_features

LAW = LaplaceLaw(np.array([0.01]), 20_000, largest=64)
FALSE = {
    "fixed": FixedNoise(3),
    "zero": ZeroNoise(),
    "seeded": SeededNoise(1),
    "words": WordNoise(SeededNoise(1)),
    "scaled": ScaledNoise(0.5, 1),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_released_with_a_false_noise_has_no_guarantee(name: str) -> None:
    mechanism = build(few_features(), 4.8, noise=FALSE[name])
    assert mechanism.guarantee.startswith("none: ")
    assert mechanism.release(np.zeros((mechanism.features, mechanism.n))).shape == (3, 4)


def test_the_watched_noise_is_the_real_one_and_tells_each_draw() -> None:
    drawn: list[None] = []
    mechanism = build(few_features(), 4.8, noise=WatchedNoise(lambda: drawn.append(None)))
    assert "differential privacy" in mechanism.guarantee
    zeros = np.zeros((mechanism.features, mechanism.n))
    assert not np.array_equal(mechanism.release(zeros), mechanism.release(zeros))
    assert len(drawn) == 2


def test_the_same_seed_and_the_same_words_give_the_same_draw() -> None:
    drawn = SeededNoise(5).draw(LAW)
    np.testing.assert_array_equal(drawn, SeededNoise(5).draw(LAW))
    np.testing.assert_array_equal(drawn, WordNoise(SeededNoise(5)).draw(LAW))
    assert not np.array_equal(drawn, SeededNoise(6).draw(LAW))


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_scaled_noise_has_its_scale(factor: float) -> None:
    drawn = ScaledNoise(factor, 2).draw(LAW)
    assert np.std(drawn) == pytest.approx(factor * float(LAW.sd[0]), rel=0.05)
    assert set(np.unique(FixedNoise(3).draw(LAW))) == {3}


def test_a_scaled_noise_knows_one_law() -> None:
    with pytest.raises(TypeError, match="ResponseLaw"):
        ScaledNoise(1.0, 1).draw(ResponseLaw((4,), 1.0))
