"""Under one noise tape the mechanisms release what version 0.1.0 released; `klt`, what 0.2.0 does."""

import json
import sys

import numpy as np
import pytest

from tests.product.tape.cases import HERE, Case, cases, columns, digest, fingerprint
from tests.product.tape.play import played

RECORDED = json.loads((HERE / "outputs.json").read_text())
ALL = list(cases())


def test_every_recorded_case_is_played() -> None:
    assert sorted(case.name for case in ALL) == sorted(RECORDED["outputs"])


@pytest.mark.parametrize("number", range(len(ALL)), ids=lambda number: ALL[number].name)
def test_releases_are_those_of_version_0_1_0(number: int) -> None:
    """To 1e-9; and to the last bit those of this version, on the arithmetic that recorded them."""
    case = ALL[number]
    released = played(case)
    with np.load(HERE / "outputs.npz") as some:
        np.testing.assert_allclose(columns(released), some[f"case{number}"], rtol=1e-9, atol=1e-12)
    if not case.planned and fingerprint() == RECORDED["fingerprint"]:
        assert digest(released) == RECORDED["outputs"][case.name]


def test_another_tape_is_noticed() -> None:
    """What would pass with any noise would show nothing."""
    case = ALL[0]
    other = played(Case(case.calibration, case.epsilon, {"noise_label": "another"}))
    assert digest(other) != RECORDED["outputs"][case.name]


def test_without_fftw_the_messages_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float64 differs in its last bits before it is rounded; of these sessions float32 does not."""
    planned = [case for case in ALL if case.planned]
    with_fftw = [played(case) for case in planned]
    monkeypatch.setitem(sys.modules, "pyfftw", None)
    for case, other in zip(planned, with_fftw, strict=True):
        np.testing.assert_array_equal(played(case).astype(np.float32), other.astype(np.float32), err_msg=case.name)
