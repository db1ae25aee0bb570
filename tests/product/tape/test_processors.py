"""Two machines with one configuration have one law, code, filter, expected error, claim and, of one tape, one word."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.product.tape.decided import ALL, FEW, STORED, configurations, decided
from tests.product.tape.environments import ROOT, answer, environments

ENVIRONMENTS = environments()
SOME = [name for name in ENVIRONMENTS if name in ("OpenBLAS Nehalem", "OpenBLAS Haswell", "numpy without SIMD")]
RECORDED: dict[str, dict[str, str]] = json.loads(STORED.read_text())["decided"]

AS_BLAS_HAS_IT = """
import numpy, sys
from eyestream.core.mechanisms.klt import schedule
schedule.product = numpy.matmul
from tests.product.tape.decided import decided, fingerprint
import json
print(json.dumps({"arithmetic": fingerprint(), "decided": decided("FEW")}))
"""


def assert_the_same(found: dict[str, dict[str, str]]) -> None:
    differ = [
        f"{name}: {part}" for name, own in found.items() for part, one in own.items() if one != RECORDED[name][part]
    ]
    assert not differ


def test_this_machine_decides_what_is_stored() -> None:
    """Made with `python -m tests.product.tape.decided > tests/product/tape/decided.json`."""
    assert sorted(configurations(ALL)) == sorted(RECORDED)
    assert_the_same(decided(FEW))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_this_machine_decides_what_is_stored_for_every_shipped_calibration() -> None:
    assert_the_same(decided(ALL))


@pytest.mark.parametrize("name", SOME)
def test_so_do_other_kernels(name: str) -> None:
    assert_the_same(answer(ENVIRONMENTS[name], "-m", "tests.product.tape.decided", FEW)["decided"])


@pytest.mark.parametrize(
    ("name", "which"),
    [
        *(
            pytest.param(name, f"{turn}/{len(ENVIRONMENTS)}", marks=pytest.mark.long)
            for turn, name in enumerate(ENVIRONMENTS)
        ),
        *(pytest.param(name, ALL, marks=[pytest.mark.slow, pytest.mark.timeout(600)]) for name in ENVIRONMENTS),
    ],
)
def test_so_do_all_kernels_for_every_shipped_calibration(name: str, which: str) -> None:
    """In turns: each configuration under one of them; under all of them before a release."""
    assert_the_same(answer(ENVIRONMENTS[name], "-m", "tests.product.tape.decided", which)["decided"])


@pytest.mark.long
@pytest.mark.needs("kernels")
def test_arithmetic_that_differs_would_be_seen() -> None:
    """One product by BLAS, in the place of the written order, and the kernels do not agree any more."""
    oldest, *_, newest = (own for name, own in ENVIRONMENTS.items() if name.startswith("OpenBLAS"))
    found: list[dict[str, Any]] = [answer(own, "-c", AS_BLAS_HAS_IT) for own in (oldest, newest)]
    assert len({one["arithmetic"] for one in found}) > 1
    directions = {one["decided"]["everyday-klt-anchored-64 4"]["directions"] for one in found}
    assert len(directions) > 1


@pytest.mark.slow
@pytest.mark.needs("apt")
@pytest.mark.timeout(1200)
def test_so_does_another_architecture() -> None:
    """aarch64 under emulation; on a Debian host with network."""
    command = [sys.executable, "-m", "tools.verification.aarch64"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
