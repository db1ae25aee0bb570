"""A mechanism of a test: one category a slot, chunks of one row, released as they are. It has a price alone."""

from collections.abc import Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.kinds import Loss, NoClaim
from eyestream.core.protection import additive_protection
from eyestream.core.release_type import OutputSchema, Rows

__all__ = ["LOST", "Relay"]

Array = NDArray[np.float64]

LOST = 9.0
"""The word of a slot without an eye."""


class Relay:
    """The mechanism.

    Parameters
    ----------
    epsilon
        That a chunk is charged at.
    names
        Of the features.
    """

    name, delta, n, k, gain, baseline_chunks = "relay", 0.0, 1, (), None, 0
    sessions, domain = 0, Rows(powers_of_two=False)
    promised = NoClaim("the noise comes from a test source")
    guarantee = promised.statement
    protection = additive_protection("none")
    domain = Rows(powers_of_two=False)
    noise = None
    state = follows = None
    awaits_baseline = False

    def __init__(self, epsilon: float, names: Sequence[str]) -> None:
        self.epsilon, self.features = epsilon, len(names)
        self.loss = Loss("chunk", Fraction(str(epsilon)), Fraction(0))
        self.noise_sd = np.zeros(len(names))
        self.options: dict[str, Any] = {}
        units, places = ("1",) * len(names), np.zeros(len(names))
        self.schema = OutputSchema(tuple(names), units, (len(names), 1), 0.5)
        self.calibration = SimpleNamespace(
            takes_off=None, names=tuple(names), units=units, rate_hz=2.0, content_hash="0" * 64, lo=places, hi=places
        )

    def facts(self, seconds: float) -> tuple[()]:
        """Nothing that is its own."""
        return ()

    def session(self, snapshot: bytes | None = None) -> "Relay":
        """Sessions have no state."""
        return self

    def continue_session(self, session: "Relay", /) -> "Relay":
        """Likewise."""
        return session

    def faded(self, level: int) -> "Relay":
        """The same on every level."""
        return self

    def release(self, chunk: Array, /) -> Array:
        """The chunk, with a word where there is no number."""
        return np.nan_to_num(chunk, nan=LOST)
