"""What a release costs, as a value: of which unit, between which neighbours, how much, and how it adds up.

Losses are exact: epsilon and delta are rational numbers, taken from the float that a mechanism was built with. Sums are
by basic composition (Dwork and Roth, Foundations and Trends in TCS 9(3-4), 2014, theorem 3.16), which also holds when a
release depends on earlier ones.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

__all__ = ["Composition", "Loss", "Relation"]

Relation = Literal["replace_one"]
"""Which inputs are neighbours: `replace_one`: those in which one unit differs, in any way inside the domain."""

Composition = Literal["sum"]
"""How the losses of several releases make the loss of all of them: `sum`: epsilons and deltas are added."""


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
