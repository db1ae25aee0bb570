"""`calibrate` makes one book of the same rows, whatever kernels of linear algebra and of numpy a machine has."""

from typing import Any

import numpy as np
import pytest

from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration import calibrate
from eyestream_lab.calibration.corpus import Corpus
from tests.product.tape.environments import answer, environments

MADE = """import json
from tests.product.tape.test_calibration_kernels import made
print(json.dumps(made()))
"""
ENVIRONMENTS = environments()
SOME = ("OpenBLAS Nehalem", "2 threads", "numpy without SIMD")


def made() -> dict[str, Any]:
    """Tables of klt, as lists, for a dozen people who each have a level and change slowly."""
    rng = np.random.default_rng(1)
    names, t = ("a", "b", "c", "d"), np.arange(400) / 2.0
    people = [
        Recording(t, rng.normal(size=4) + np.cumsum(rng.normal(size=(400, 4)), axis=0) / 20, names, f"person {number}")
        for number in range(12)
    ]
    tables = vars(calibrate("klt", Corpus.of(people, 32)).tables)
    return {name: one.tolist() for name, one in tables.items() if isinstance(one, np.ndarray)}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in SOME else pytest.mark.long) for one in ENVIRONMENTS]
)
def test_another_kernel_makes_the_same_book(name: str) -> None:
    """Up to last bits: sums are rounded in another order."""
    here, there = made(), answer(ENVIRONMENTS[name], "-c", MADE)
    assert sorted(here) == sorted(there)
    for table, values in here.items():
        np.testing.assert_allclose(there[table], values, rtol=1e-6, atol=1e-9, err_msg=table)
