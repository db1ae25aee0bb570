"""Losses and ceilings in fixed point, so that sums are exact.

Epsilon is an integer in units of 1e-12, delta in units of 1e-18. A charge is rounded up and a ceiling down, from the
exact value of the decimal that was written; a float is taken as its shortest decimal (``repr``), so that ten charges of
0.1 fit a ceiling of 1.
"""

import dataclasses
from decimal import Decimal, InvalidOperation
from fractions import Fraction

__all__ = ["DELTA_UNITS", "EPSILON_UNITS", "MOST_UNITS", "Ceilings", "Charge", "ceiling_units", "charge_units"]

EPSILON_UNITS = 10**12
"""Units in an epsilon of 1."""

MOST_UNITS = 10**19
"""The largest epsilon of one release, 10^7: a record of the ledger has 64 bits for it."""

DELTA_UNITS = 10**18
"""Units in a delta of 1."""

Number = float | str | Decimal | Fraction


def charge_units(value: Number, units: int = EPSILON_UNITS) -> int:
    """`value` in fixed point, rounded up: never less than what is spent.

    Raises
    ------
    ValueError
        Not a finite number, or negative.
    """
    return -((-_exact(value) * units) // 1)


def ceiling_units(value: Number, units: int = EPSILON_UNITS) -> int:
    """`value` in fixed point, rounded down: never more than what is allowed. Raises as `charge_units`."""
    return _exact(value) * units // 1


def _exact(value: Number) -> Fraction:
    try:
        if isinstance(value, float):
            value = repr(float(value))  # float() first: the repr of a numpy scalar is not a number
        fraction = Fraction(value if isinstance(value, Fraction) else Decimal(value))
    except (InvalidOperation, ValueError, OverflowError):
        raise ValueError("expected a finite number") from None
    if fraction < 0:
        raise ValueError("expected a number that is not negative")
    return fraction


@dataclasses.dataclass(frozen=True, slots=True)
class Charge:
    """The loss of one release, in fixed point: `epsilon` in 1 / EPSILON_UNITS, `delta` in 1 / DELTA_UNITS."""

    epsilon: int
    delta: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.epsilon <= MOST_UNITS and 0 <= self.delta <= DELTA_UNITS):
            raise ValueError("expected a charge with 0 < epsilon <= 10^19 units and 0 <= delta <= 1")

    @classmethod
    def of(cls, epsilon: Number, delta: Number = 0) -> "Charge":
        """The charge for a loss in plain numbers, rounded up."""
        return cls(charge_units(epsilon), charge_units(delta, DELTA_UNITS))


@dataclasses.dataclass(frozen=True, slots=True)
class Ceilings:
    """What epsilon may sum to, in fixed point; None: no such ceiling.

    Parameters
    ----------
    window_chunks
        w, in slots; 0 when windows are not looked at.
    window
        Of any w consecutive slots of one (device, stream).
    session
        Of one session of the tracker.
    day
        Of one UTC day of the host.
    """

    window_chunks: int = 0
    window: int | None = None
    session: int | None = None
    day: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.window_chunks < 2**32 or (self.window is not None and self.window_chunks == 0):
            raise ValueError("expected the ceiling of a window together with its length, at least one chunk")

    def within(self, other: "Ceilings") -> bool:
        """Whether these ceilings, of windows of the same length, allow nothing that `other` does not."""
        pairs = ((self.window, other.window), (self.session, other.session), (self.day, other.day))
        lower = all(theirs is None or (ours is not None and ours <= theirs) for ours, theirs in pairs)
        return lower and self.window_chunks == other.window_chunks

    @classmethod
    def of(
        cls,
        window_chunks: int = 0,
        window: Number | None = None,
        session: Number | None = None,
        day: Number | None = None,
    ) -> "Ceilings":
        """The ceilings in plain numbers, rounded down."""
        parts = [None if value is None else ceiling_units(value) for value in (window, session, day)]
        return cls(window_chunks, *parts)
