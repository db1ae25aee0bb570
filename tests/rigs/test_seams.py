"""The seams for planted faults are where the table says, and a table that is wrong is noticed."""

import pytest

from eyestream.core.noise.laws import LaplaceLaw
from tests.rigs.seams import SEAMS, Seam, faults_of, original, replaced


@pytest.mark.parametrize("name", SEAMS)
def test_each_seam_is_there_with_its_parameters(name: str) -> None:
    assert faults_of(name, SEAMS[name]) == []


@pytest.mark.parametrize(
    ("seam", "said"),
    [
        (Seam("eyestream.nowhere", "f"), "eyestream.nowhere is gone"),
        (Seam("eyestream.core.noise.laws:Gauss", "sample"), "eyestream.core.noise.laws:Gauss is gone"),
        (Seam("eyestream.core.noise.laws:LaplaceLaw", "draw"), "has no draw"),
        (Seam("eyestream.core.noise.laws:LaplaceLaw", "sample", "self"), "are (self, bits), not (self)"),
        (Seam("eyestream.core.noise.laws:LaplaceLaw", "sample", "self, bits", ("_gone",)), "is called _gone"),
    ],
)
def test_a_seam_that_is_gone_or_changed_is_said_by_name(seam: Seam, said: str) -> None:
    (fault,) = faults_of("mine", seam)
    assert "seam 'mine'" in fault
    assert said in fault


def test_what_is_replaced_comes_back() -> None:
    before = LaplaceLaw.clamp
    assert original("LaplaceLaw.clamp") is before
    with replaced("LaplaceLaw.clamp", 7):
        assert vars(LaplaceLaw)["clamp"] == 7
    assert LaplaceLaw.clamp is before


def test_a_place_that_is_not_declared_cannot_be_replaced() -> None:
    with pytest.raises(KeyError, match=r"LaplaceLaw\.sd"), replaced("LaplaceLaw.sd", 7):
        pass
