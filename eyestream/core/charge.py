"""Losses and ceilings in fixed point, so that sums are exact; `BUDGET.md` has the proofs.

Epsilon is an integer in units of 1e-12, delta in units of 1e-18. A charge is what is spent: a float counts at its exact
binary value, rounded up. A ceiling is what was written: a float counts as its shortest decimal, rounded down. So ten
charges of the float 0.1 do not fit a ceiling of 1, and a mechanism spends not `epsilon` as written but
`spendable(epsilon)`: k such charges fit every ceiling that is written as k times epsilon.

A lifetime may *fade*: epsilon of a chunk halves, level by level, as the lifetime's ceiling nears. Level j may be
charged up to L - L / 2^(j+1), the last level up to L. The level follows from charges in the ledger alone.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Protocol

import msgspec

EPSILON_UNITS = 10**12
"""Units in an epsilon of 1."""

MOST_UNITS = 10**19
"""The largest epsilon of one release, 10^7: a record of the ledger has 64 bits for it."""

DELTA_UNITS = 10**18
"""Units in a delta of 1."""

Number = float | str | Decimal | Fraction


@functools.lru_cache(maxsize=256)  # a worker of a fleet asks the same of thousands of streams
def charge_units(value: Number, units: int = EPSILON_UNITS) -> int:
    """`value` in fixed point, rounded up: never less than what is spent. A float counts at its exact binary value.

    >>> charge_units(0.1), charge_units("0.1"), ceiling_units(0.1)
    (100000000001, 100000000000, 100000000000)

    Raises
    ------
    ValueError
        Not a finite number, or negative.
    """
    return -((-_exact(float(value) if isinstance(value, float) else value) * units) // 1)


def ceiling_units(value: Number, units: int = EPSILON_UNITS) -> int:
    """`value` in fixed point, rounded down: never more than what is allowed.

    A float counts as its shortest decimal. Raises as `charge_units`.
    """
    return _exact(_written(value)) * units // 1


def spendable(value: float, units: int = EPSILON_UNITS) -> float:
    """The largest float that is charged at no more than the decimal of `value`, that decimal rounded down to units.

    A mechanism is calibrated to it, so that k releases fit a ceiling that is written as k times `value` (`BUDGET.md`).
    It is 0 when `value` is less than a unit. Raises as `charge_units`.

    >>> 10 * charge_units(0.1) <= ceiling_units(1.0), 10 * charge_units(spendable(0.1)) <= ceiling_units(1.0)
    (False, True)
    """
    most = Fraction(ceiling_units(value, units), units)
    nearest = float(most)
    return nearest if Fraction(nearest) <= most else math.nextafter(nearest, 0.0)


def decimal(amount: int, units: int = EPSILON_UNITS) -> str:
    """`amount` units as the exact decimal, without an exponent and trailing zeros.

    >>> decimal(charge_units(0.1))
    '0.100000000001'
    """
    text = f"{amount // units}.{amount % units:0{len(str(units)) - 1}d}"
    return text.rstrip("0").rstrip(".")


def _written(value: Number) -> Number:
    return repr(float(value)) if isinstance(value, float) else value  # float(): the repr of a numpy scalar is longer


def _exact(value: Number) -> Fraction:
    try:
        fraction = Fraction(Decimal(value) if isinstance(value, str) else value)
    except (InvalidOperation, ValueError, OverflowError):
        raise ValueError("expected a finite number") from None
    if fraction < 0:
        raise ValueError("expected a number that is not negative")
    return fraction


class Charge(msgspec.Struct, frozen=True):
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


class Priced(Protocol):
    """An object with the loss of one release: a mechanism, or a `Loss`."""

    @property
    def epsilon(self) -> Number:
        """Epsilon of one release."""
        ...

    @property
    def delta(self) -> Number:
        """Delta of one release."""
        ...


def charge_of(priced: Priced) -> Charge:
    """The charge that a ledger books for one release: its loss, rounded up.

    For a mechanism, neighbours are two inputs that differ in what its claim protects, which is one chunk unless it
    says otherwise. Nobody computes a charge in another way, so what is asked for, booked, refused and said is one
    figure. A chunk of which nothing is released by itself, as one of a baseline, has no charge (`Request.unreleased`).
    """
    return Charge.of(priced.epsilon, priced.delta)


NEW_WEARERS = 32
"""Handles of a device that may be new on one day, where nobody says another number."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ceilings:
    """Most that epsilon and delta may sum to, in fixed point; None: no such ceiling.

    They hold for a device over all its streams, or for one stream of it (`eyestream.core.accountant`), or for a
    wearer of it (`eyestream.core.wearers`).

    Parameters
    ----------
    window_chunks
        w, in slots; 0 when windows are not looked at.
    window, window_delta
        Of any w consecutive slots.
    session, session_delta
        Of one session of the tracker; for a device: of the current sessions of all its streams together.
    day, day_delta
        Of one UTC day of the host.
    lifetime, lifetime_delta
        Since the ledger began.
    levels
        Of a lifetime that fades (`eyestream.core.charge`); 1: epsilon of a chunk stays what it is until the end.
    wearer
        Of a device: the ceilings of each of its wearers, on days and lifetimes; None: wearers have none.
    streams
        Of a device: the ceilings of single streams beneath, by name. Both must hold.
    new_wearers
        Of a device: how many handles may be new on one day.
    """

    window_chunks: int = 0
    window: int | None = None
    session: int | None = None
    day: int | None = None
    lifetime: int | None = None
    window_delta: int | None = None
    session_delta: int | None = None
    day_delta: int | None = None
    lifetime_delta: int | None = None
    levels: int = dataclasses.field(default=1, kw_only=True)
    wearer: "Ceilings | None" = dataclasses.field(default=None, kw_only=True)
    streams: Mapping[str, "Ceilings"] = dataclasses.field(default_factory=dict, kw_only=True)
    new_wearers: int = dataclasses.field(default=NEW_WEARERS, kw_only=True)

    def __post_init__(self) -> None:
        if not (self.levels == 1 or (1 < self.levels <= 64 and self.lifetime is not None)):
            raise ValueError("expected 1 to 64 levels, and for more than one a ceiling of the lifetime")
        unlimited = self.window is None and self.window_delta is None
        if not 0 <= self.window_chunks < 2**32 or (self.window_chunks == 0 and not unlimited):
            raise ValueError("expected the ceiling of a window together with its length, at least one chunk")
        own = self.wearer
        if own is not None and own != Ceilings(
            day=own.day, lifetime=own.lifetime, day_delta=own.day_delta, lifetime_delta=own.lifetime_delta
        ):
            raise ValueError("expected ceilings of a wearer on a day and a lifetime, and no others")

    def on(self, scope: str) -> tuple[int | None, int | None]:
        """Ceilings of epsilon and of delta on a ``window``, ``session``, ``day`` or ``lifetime``."""
        return getattr(self, scope), getattr(self, f"{scope}_delta")

    def beneath(self, stream: str) -> "Ceilings":
        """Ceilings of one stream of the device."""
        return self.streams.get(stream, NO_CEILINGS)

    def raised_over(self, other: "Ceilings") -> list[str]:
        """Which of these allow what `other` does not, or cannot be compared; none: it is safe to take them over.

        Fields by name, those of a wearer and of a stream after a dot: ``day``, ``wearer.day``, ``streams.gaze.day``.
        """
        found = [name for name in ("window_chunks", "levels") if getattr(self, name) != getattr(other, name)]
        for name in _SUMS:
            ours, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None and (ours is None or ours > theirs):
                found.append(name)
        if self.new_wearers > other.new_wearers:
            found.append("new_wearers")
        names = {**self.streams, **other.streams}
        beneath = {f"streams.{name}": (self.beneath(name), other.beneath(name)) for name in names}
        if other.wearer is not None:
            beneath["wearer"] = self.wearer or NO_CEILINGS, other.wearer
        return found + [f"{where}.{name}" for where, (a, b) in beneath.items() for name in a.raised_over(b)]

    @classmethod
    def of(
        cls,
        window_chunks: int = 0,
        window: Number | None = None,
        session: Number | None = None,
        day: Number | None = None,
        lifetime: Number | None = None,
        *,
        window_delta: Number | None = None,
        session_delta: Number | None = None,
        day_delta: Number | None = None,
        lifetime_delta: Number | None = None,
        levels: int = 1,
        wearer: "Ceilings | None" = None,
        new_wearers: int = NEW_WEARERS,
    ) -> "Ceilings":
        """The ceilings in plain numbers, rounded down."""
        epsilons = [None if e is None else ceiling_units(e) for e in (window, session, day, lifetime)]
        deltas = (window_delta, session_delta, day_delta, lifetime_delta)
        limits = (None if d is None else ceiling_units(d, DELTA_UNITS) for d in deltas)
        return cls(window_chunks, *epsilons, *limits, levels=levels, wearer=wearer, new_wearers=new_wearers)


NO_CEILINGS = Ceilings()

_SUMS = tuple(f"{scope}{kind}" for kind in ("", "_delta") for scope in ("window", "session", "day", "lifetime"))

LEVELS = 8
"""Levels of a lifetime that fades: on the last one a chunk costs a 128th."""


def faded(epsilon: float, level: int) -> float:
    """Epsilon of a chunk on `level`, when it is `epsilon`, a mechanism's own, on level 0.

    That one stays as it is: `spendable` of what is spendable already may be a unit less, and less than a release costs.
    """
    return epsilon if level == 0 else spendable(epsilon / 2**level)


def charges_of(priced: Priced, levels: int) -> tuple[Charge, ...]:
    """The charge of one release on each level, as `charge_of`; delta, where there is one, is the same on all."""
    return tuple(Charge.of(faded(float(priced.epsilon), level), priced.delta) for level in range(levels))


def bounds(lifetime: int, levels: int) -> tuple[int, ...]:
    """Sum up to which each level may be charged, in the units of `lifetime`.

    >>> bounds(1000, 4)
    (500, 750, 875, 1000)
    """
    return (*(lifetime - (lifetime >> (level + 1)) for level in range(levels - 1)), lifetime)


def level_of(spent: int, charges: Sequence[Charge], limits: Sequence[int]) -> int:
    """Level of a chunk after `spent`: the first that has room for it, else the last.

    >>> charges = [Charge(100), Charge(50)]
    >>> [level_of(spent, charges, bounds(1000, 2)) for spent in (400, 401)]
    [0, 1]

    Parameters
    ----------
    spent
        What was charged before, in fixed point.
    charges
        What the chunk costs on each level; where there are fewer than levels, the last of them stays.
    limits
        Up to what sum each level may be charged.
    """
    levels = min(len(charges), len(limits))
    return next((j for j in range(levels - 1) if spent + charges[j].epsilon <= limits[j]), levels - 1)
