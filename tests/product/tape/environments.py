"""Other arithmetic on this machine: kernels of BLAS, of numpy and of the C library, and numbers of threads."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["ROOT", "answer", "environments"]

ROOT = Path(__file__).resolve().parents[3]

_KERNELS = {"Prescott": "pni", "Nehalem": "sse4_2", "Sandybridge": "avx", "Haswell": "avx2", "Zen": "avx2",
            "SkylakeX": "avx512f"}  # fmt: skip
"""Of OpenBLAS, and what a processor must have to run them, as Linux calls it."""


def environments() -> dict[str, dict[str, str]]:
    """Variables by name; of the kernels only those that this processor can run."""
    has = _features()
    found = {f"OpenBLAS {one}": {"OPENBLAS_CORETYPE": one} for one, needs in _KERNELS.items() if needs in has}
    found |= {f"{count} threads": {"OPENBLAS_NUM_THREADS": str(count)} for count in (1, 2)}
    core: Any = np._core._multiarray_umath  # type: ignore[attr-defined]
    simd = [one for one in core.__cpu_dispatch__ if core.__cpu_features__[one]]
    if simd:
        found["numpy without SIMD"] = {"NPY_DISABLE_CPU_FEATURES": " ".join(simd)}
    if "fma" in has:
        found["C library without FMA"] = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA_Usable,-AVX2_Usable"}
    return found


def answer(variables: dict[str, str], *command: str) -> dict[str, Any]:
    """What a Python process of these variables and this command prints, as JSON."""
    done = subprocess.run(
        [sys.executable, *command],
        env=os.environ | variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _features() -> set[str]:
    """Flags of this processor; none where it does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.partition(":")[2].split()}
