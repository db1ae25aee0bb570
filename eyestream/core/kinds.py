"""Kinds of claims, as values. Each says in its first words whether it is differential privacy.

A live sidecar has one ledger of epsilon: it releases under `DifferentialPrivacy` alone (`require_differential`). What
releases recordings and corpora offline takes every `Claim`, and `claim.json` names it.

A `Loss` is what a release costs: how much, for which unit and neighbours, and how it adds up. Losses are exact: epsilon
and delta are rational numbers, taken from the float that a mechanism was built with. Sums are by basic composition
(Dwork and Roth, Foundations and Trends in TCS 9(3-4), 2014, theorem 3.16), which also holds when a release depends on
earlier ones.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from eyestream.errors import ConfigError

Relation = Literal["replace_one"]
"""Which inputs are neighbours. `replace_one`: two that differ in one unit, in any way inside the domain."""

Composition = Literal["sum"]
"""How the losses of several releases make the loss of all of them. `sum`: epsilons and deltas are added."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Loss of the releases that one unit takes part in.

    Attributes
    ----------
    unit
        What may differ between neighbours: `chunk`, `gaze event`, `session`, ...
    epsilon, delta
        For every two neighbours x, x' and every set of outputs S: P(S | x) <= e^epsilon P(S | x') + delta.
    relation, composition
        As their types say.

    Raises
    ------
    ValueError
        when epsilon is not positive, or delta not in [0, 1).
    """

    unit: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    relation: Relation = "replace_one"
    composition: Composition = "sum"

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and 0 <= self.delta < 1):
            raise ValueError("a loss needs epsilon above 0, and delta from 0 to below 1")

    @property
    def pure(self) -> bool:
        """Whether delta is 0."""
        return self.delta == 0

    def of(self, unit: str, releases: int) -> "Loss":
        """The loss of a unit that takes part in so many releases of this loss.

        Raises
        ------
        ValueError
            when the deltas sum to 1: nothing is claimed then.
        """
        return Loss(unit, self.epsilon * releases, self.delta * releases, self.relation, self.composition)

    def figures(self) -> str:
        """Epsilon and, where there is one, delta, for sentences."""
        epsilon = f"epsilon {float(self.epsilon):g}"
        return epsilon if self.pure else f"{epsilon}, delta {float(self.delta):g}"

    def words(self) -> str:
        """The kind of privacy by its name."""
        if self.pure:
            return f"{float(self.epsilon):g}-differential privacy (pure)"
        return f"({float(self.epsilon):g}, {float(self.delta):g})-differential privacy (approximate)"

    def claim(self) -> dict[str, object]:
        """For machines; the exact values as fractions in text."""
        return {
            "unit": self.unit,
            "relation": self.relation,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "epsilon_exact": str(self.epsilon),
            "delta_exact": str(self.delta),
            "composition": self.composition,
        }


class Claim(ABC):
    """Promise of a mechanism about a release; a distribution beside this one may bring kinds of its own.

    Attributes
    ----------
    kind : what this kind of promise is called.
    """

    __slots__ = ()
    kind: ClassVar[str]

    @property
    @abstractmethod
    def statement(self) -> str:
        """The claim in one sentence."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """For machines."""


@dataclass(frozen=True, slots=True)
class DifferentialPrivacy(Claim):
    """Pure (delta 0) or approximate differential privacy.

    Attributes
    ----------
    loss : of one unit; neighbours, epsilon and delta.
    of : what the loss is of, in words: "one chunk of 64 rows of one device, ...".
    """

    kind: ClassVar[str] = "differential privacy"
    loss: Loss
    of: str

    @property
    def statement(self) -> str:
        """The claim in one sentence."""
        return f"{self.loss.words()} for {self.of}"

    def facts(self) -> dict[str, object]:
        """For machines."""
        return {"kind": self.kind, "variant": "pure" if self.loss.pure else "approximate", "loss": self.loss.claim()}


@dataclass(frozen=True, slots=True)
class NoClaim(Claim):
    """Nothing is promised.

    Attributes
    ----------
    reason : why, such as "no guarantee is known".
    """

    kind: ClassVar[str] = "none"
    reason: str = "no guarantee is known"

    @property
    def statement(self) -> str:
        """The claim in one sentence."""
        return f"none: {self.reason}"

    def facts(self) -> dict[str, object]:
        """For machines."""
        return {"kind": self.kind, "reason": self.reason}


def require_differential(claim: Claim, what: str, where: str) -> None:
    """Raise ConfigError unless `claim` is differential privacy: a ledger counts epsilon, and nothing else.

    `what` would be released and `where`, in words, are for the error.
    """
    if not isinstance(claim, DifferentialPrivacy):
        raise ConfigError(
            f"{what} cannot be released {where}: its claim is {claim.kind!r}, which no budget of epsilon "
            "counts. There is no pass-through. "
            "Release recordings with `eyestream privatize`, without a ledger"
        )
