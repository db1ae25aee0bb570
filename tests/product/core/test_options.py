"""Options are refused by name when a mechanism does not take them, and the registry knows all mechanisms."""

import re
from typing import Any

import numpy as np
import pytest

from eyestream.core.calibration import JointTables, PerFeatureTables
from eyestream.core.mechanisms import CFPA, build, register
from eyestream.core.mechanisms.entry import Entry, NoOptions
from eyestream.core.mechanisms.registry import entries, entry_of, names
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.files import calibrations
from eyestream_lab.calibration import calibrate
from eyestream_lab.parts import part_of
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.small_corpus import calibrated, corpus

OURS = ("lpa", "cfpa", "dcfpa", "klt")
FOURIER = "shrink, clip, smooth, k, fill_band, transform"


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("klt", {"clip": False}, "klt has no option clip; it takes focus"),
        ("klt", {"k": 1}, "klt has no option k; it takes focus"),
        ("klt", {"shrink": True}, "klt has no option shrink; it takes focus"),
        ("lpa", {"k": 3}, "lpa has no option k; it takes shrink, clip, smooth"),
        ("lpa", {"fill_band": True}, "lpa has no option fill_band"),
        ("cfpa", {"rows": 3}, f"cfpa has no option rows; it takes {FOURIER}"),
        ("dcfpa", {"seed": 1}, f"dcfpa has no option seed; it takes {FOURIER}"),
        ("cfpa", {"k": "3"}, 'cfpa: option k: expected a whole number, found "3"'),
        ("cfpa", {"k": 2.5}, "cfpa: option k: expected a whole number, found 2.5"),
        ("cfpa", {"k": True}, "cfpa: option k: expected a whole number, found true"),
        ("cfpa", {"clip": 1}, "cfpa: option clip: expected true or false, found 1"),
        ("cfpa", {"transform": "fft"}, "cfpa: option transform: expected"),
        ("lpa", {"transform": "basis"}, "lpa has no option transform"),
        ("lpa", {"smooth": True, "shrink": False}, "smooth = true shrinks as well"),
        ("cfpa", {"smooth": True, "fill_band": False}, "fill_band = false cannot be given"),
        ("cfpa", {"shrink": True, "fill_band": False}, "fill_band = false cannot be given"),
    ],
)
def test_an_option_that_is_not_taken_is_refused_by_name(name: str, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        build(calibrations.load(f"everyday-{name}-32"), 4.8, **options)
    assert str(refusal.value).startswith(complaint) or complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not re.search("got|enum|`", str(refusal.value)), "words of the library that reads tables"


@pytest.mark.parametrize("name", OURS)
def test_what_is_not_said_is_not_refused(name: str) -> None:
    nothing = dict.fromkeys(("k", "shrink", "clip", "smooth", "fill_band", "anything"))
    made = build(calibrations.load(f"everyday-{name}-32"), 4.8, **nothing)
    assert made.options == {}


def test_false_is_what_is_done_when_nothing_is_said() -> None:
    chunk = corpus().chunks[0]
    said, unsaid = (
        build(calibrated("cfpa"), 4.8, noise=SeededNoise(1), **options).release(chunk)
        for options in ({"shrink": False, "clip": False, "smooth": False, "fill_band": False}, {})
    )
    np.testing.assert_array_equal(said, unsaid)


def test_every_shipped_calibration_has_its_entry() -> None:
    assert [entry.name for entry in entries()][:4] == list(OURS)
    for name in calibrations.shipped():
        calibration = calibrations.load(name)
        entry = entry_of(calibration.mechanism)
        assert type(calibration.tables) is entry.tables
        assert type(build(calibration, 4.8)) is entry.mechanism
    for entry in entries():
        protection = entry.mechanism.protection
        assert all(getattr(protection, part) for part in protection.__slots__ if part != "use")
        assert all(value is None for value in (getattr(entry.options(), f) for f in entry.options.__struct_fields__))
    assert len({form.label for name in names() for form in part_of(name).forms}) == sum(
        len(part_of(name).forms) for name in names()
    )


@pytest.mark.parametrize("name", OURS)
def test_the_registry_calibrates_what_it_builds(name: str) -> None:
    seen: list[tuple[int, int]] = []
    made = calibrate(name, corpus(), description="mine", progress=lambda done, total: seen.append((done, total)))
    assert (made.mechanism, made.provenance.corpus) == (name, "mine")
    assert isinstance(made.tables, JointTables if name == "klt" else PerFeatureTables)
    assert seen[-1][0] == seen[-1][1] > 0
    assert build(made, 4.8).release(corpus().chunks[0]).shape == (5, 32)
    with pytest.raises(ConfigError, match=f"the calibration of {name} has no option (coverage|shed_identity); it"):
        calibrate(name, corpus(), **({"coverage": 0.5} if name == "klt" else {"shed_identity": 1.0}))


def test_an_unknown_mechanism_and_a_second_one_of_a_name_are_refused() -> None:
    with pytest.raises(CalibrationError, match=r"no mechanism 'fpa'; there are lpa, cfpa, dcfpa, klt"):
        entry_of("fpa")
    register(entry_of("klt"))  # the same again is fine

    class Other(CFPA):
        pass

    with pytest.raises(ConfigError, match="there is a mechanism cfpa already"):
        register(Entry(Other, NoOptions, PerFeatureTables))
    assert entry_of("cfpa").mechanism is CFPA


@pytest.mark.parametrize("name", ["cfpa", "dcfpa"])
@pytest.mark.parametrize("k", [1, 9, 16])
def test_both_transforms_release_the_same_under_one_noise(name: str, k: int) -> None:
    """To rounding: a value near the middle of two integers may fall on either side, a step of 2^-20 of the noise."""
    made = {
        way: build(calibrated(name), 4.8, noise=SeededNoise(1), k=k, **({} if way is None else {"transform": way}))
        for way in (None, "auto", "fftw", "basis")
    }
    chunk = corpus().chunks[0]
    released = {way: mechanism.release(chunk) for way, mechanism in made.items()}
    scale = np.abs(released[None]).max()
    np.testing.assert_array_equal(released[None], released["auto"])
    for way in ("fftw", "basis"):
        np.testing.assert_allclose(released[way], released[None], atol=1e-5 * scale)
    ways = {way: type(mechanism.core.step().transform._fourier._way).__name__ for way, mechanism in made.items()}
    assert (ways["fftw"], ways["basis"]) == ("_Transformed", "_Basis")
    assert ways[None] == ways["auto"] == "_Basis"


def test_a_transform_that_is_not_there_is_refused_in_python_too() -> None:
    with pytest.raises(ConfigError, match="one of auto, fftw, basis, not 'fast'"):
        CFPA(calibrated("cfpa"), 4.8, transform="fast")
