"""Releases of version 0.1.0 under a recorded noise tape: which ones, from which inputs, and how they are compared.

The tape is a fixed stream of words (SHAKE-256 of a label), the inputs are made of another one by exact arithmetic, and
the calibrations are those that 0.1.0 shipped: `calibrations` beside this file. `outputs.npz` has some columns of what
0.1.0 released from them; of `klt`, of what 0.2.0 does, because in 0.1.0 the signs of its directions were
LAPACK's, which no rule gives. All columns must agree to 1e-9.

`outputs.json` has hashes of what this version releases. Matrix products and FFTs of a release round differently on
another processor. So a fingerprint of one machine's arithmetic stands beside the hashes, and where it is the same,
every bit must be; but for cases with many coefficients: FFTW times its plans and chooses another one from run to run.
`record.py` made both files.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CALIBRATIONS", "CHUNKS", "Case", "Tape", "cases", "columns", "digest", "fingerprint", "inputs"]

Array = NDArray[np.float64]

HERE = Path(__file__).parent
CALIBRATIONS = HERE / "calibrations"
CHUNKS = 5
EPSILONS = (0.48, 4.8, 48.0)


class Tape:
    """The recorded words, in order; the same label gives the same tape."""

    def __init__(self, label: str) -> None:
        self._stream = hashlib.shake_256(label.encode())
        self._block = 1 << 16
        self._data = self._stream.digest(4 * self._block)
        self.taken = 0

    def words(self, count: int) -> NDArray[np.uint32]:
        """The next (count,) words."""
        while self.taken + count > self._block:
            self._block *= 2
            self._data = self._stream.digest(4 * self._block)
        words = np.frombuffer(self._data, "<u4", count, 4 * self.taken)
        self.taken += count
        return words


@dataclass(frozen=True)
class Case:
    """One session of CHUNKS chunks, or one whole recording (fpa)."""

    calibration: str
    epsilon: float
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Key of the case in the files, and label of its tape."""
        options = ",".join(f"{key}={value}" for key, value in sorted(self.options.items()))
        return f"{self.calibration} {self.epsilon:g} {options}".strip()

    @property
    def planned(self) -> bool:
        """Whether FFTW transforms it: its last bits depend on the plan that it finds fastest."""
        return self.options.get("k", 1) > 12


def cases() -> Iterator[Case]:
    """Every case of the tape."""
    for n in (32, 64, 128):
        for epsilon in EPSILONS:
            for joint in ("klt", "klt-shed"):
                yield Case(f"everyday-{joint}-{n}", epsilon)
            for additive in ("lpa", "cfpa", "dcfpa"):
                name = f"everyday-{additive}-{n}"
                yield Case(name, epsilon)
                yield Case(name, epsilon, {"clip": True, "shrink": True})
                yield Case(name, epsilon, {"smooth": True})
            for fourier in ("cfpa", "dcfpa"):
                for k in (3, n // 2 + 1):
                    yield Case(f"everyday-{fourier}-{n}", epsilon, {"k": k})
            yield Case(f"everyday-cfpa-{n}", epsilon, {"fill_band": True, "k": 2})
    for epsilon in EPSILONS:
        yield Case("everyday-cfpa-32", epsilon, {"whole": 300})


def inputs(lo: Array, hi: Array, n: int) -> list[Array]:
    """CHUNKS chunks (F, n): two inside the range [lo, hi] (F,), one beyond it, one with holes, one all missing."""
    words = Tape(f"inputs {n}").words(CHUNKS * len(lo) * n).reshape(CHUNKS, len(lo), n)
    share = (words >> 8).astype(np.float64) / 2.0**24
    low, width = lo[:, None], (hi - lo)[:, None]
    chunks = [low + share[0] * width, low + (0.25 + 0.5 * share[1]) * width, low + (3 * share[2] - 1) * width]
    holes = low + share[3] * width
    holes[share[3] < 0.3] = np.nan
    holes[share[3] > 0.95] = np.inf
    return [*chunks, holes, np.full_like(holes, np.nan)]


def columns(released: Array) -> Array:
    """(.., 3) the first, the middle and the last row of each released chunk."""
    n = released.shape[-1]
    return released[..., [0, n // 2, n - 1]]


def digest(released: Array) -> str:
    """Hash of released values, every bit of them."""
    return hashlib.blake2b(np.ascontiguousarray(released, "<f8").tobytes(), digest_size=12).hexdigest()


def fingerprint() -> str:
    """Hash of what this machine makes of a product, an eigenproblem, a solution and functions of fixed numbers."""
    size = 48
    numbers = (Tape("fingerprint").words(size * size) / 2.0**32).reshape(size, size)
    values, vectors = np.linalg.eigh(numbers + numbers.T)
    parts = [numbers @ numbers.T, values, vectors, np.linalg.solve(numbers + np.eye(size), numbers)]
    parts += [np.exp(-numbers), np.logaddexp(0.0, numbers), np.sqrt(numbers), np.cos(6.25 * numbers)]
    return digest(np.concatenate([part.reshape(-1) for part in parts]))
