"""Kinds of claims, as values. Each says in its first words whether it is differential privacy.

A live sidecar has one ledger of epsilon: it releases under `DifferentialPrivacy` alone (`only_differential`). What
releases recordings and corpora offline takes every kind, and `claim.json` names it.

A `Loss` is what a release costs: of which unit, between which neighbours, how much, and how it adds up.

Losses are exact: epsilon and delta are rational numbers, taken from the float that a mechanism was built with. Sums are
by basic composition (Dwork and Roth, Foundations and Trends in TCS 9(3-4), 2014, theorem 3.16), which also holds when a
release depends on earlier ones.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from eyestream.errors import ConfigError

__all__ = [
    "Claim",
    "Composition",
    "DifferentialPrivacy",
    "KAnonymity",
    "Loss",
    "NoClaim",
    "PlausibleDeniability",
    "Relation",
    "only_differential",
]

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


@dataclass(frozen=True, slots=True)
class DifferentialPrivacy:
    """Pure (delta 0) or approximate differential privacy.

    Attributes
    ----------
    loss : of one unit; neighbours, epsilon and delta.
    of : of what, in words.
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
class KAnonymity:
    """Each released record is the same for at least k people of a corpus (Sweeney, IJUFKS 10(5), 2002).

    Attributes
    ----------
    k : at least 2.
    among : whose records they are, such as "the 20 people of the corpus".
    knowledge : what an attacker may know, such as "the original recordings of all but one of them".

    Raises
    ------
    ValueError
        when k is below 2.
    """

    kind: ClassVar[str] = "k-anonymity"
    k: int
    among: str
    knowledge: str

    def __post_init__(self) -> None:
        if self.k < 2:
            raise ValueError(f"k-anonymity needs k of at least 2, not {self.k}")

    @property
    def statement(self) -> str:
        """The claim in one sentence."""
        return (
            f"not differential privacy: k-anonymity with k = {self.k} among {self.among}, against an attacker who "
            f"knows {self.knowledge}. Each released record belongs to at least {self.k} of them alike. What they "
            "have in common is not hidden, and an attacker who knows more may tell them apart"
        )

    def facts(self) -> dict[str, object]:
        """For machines."""
        return {"kind": self.kind, "k": self.k, "among": self.among, "knowledge": self.knowledge}


@dataclass(frozen=True, slots=True)
class PlausibleDeniability:
    """Each released record could have come from at least k people, with like probability.

    A record y passes when at least k records d of the corpus, the true one among them, have
    1 / gamma <= P(y | d) / P(y | d') <= gamma for any two of them (Bindschaedler, Shokri, Gunter: Plausible deniability
    for privacy-preserving data synthesis, PVLDB 10(5), 2017).

    Attributes
    ----------
    k : at least 2.
    gamma : above 1.
    among : whose records they are, in words.
    record : what was tested of a release, in words.
    as_it_is : what else a release holds of its people, untested, in words; empty where that is nothing.

    Raises
    ------
    ValueError
        when k is below 2, or gamma not above 1.
    """

    kind: ClassVar[str] = "plausible deniability"
    k: int
    gamma: float
    among: str
    record: str = "released record"
    as_it_is: str = ""

    def __post_init__(self) -> None:
        if self.k < 2 or not self.gamma > 1:
            raise ValueError(
                f"plausible deniability needs k of at least 2 and gamma above 1, not {self.k} and {self.gamma}"
            )

    @property
    def statement(self) -> str:
        """The claim in one sentence, and what it does not cover in another."""
        left = f". The claim does not cover what is released as it is: {self.as_it_is}" if self.as_it_is else ""
        return (
            f"not differential privacy: plausible deniability with k = {self.k} and gamma = {self.gamma:g} among "
            f"{self.among}. At least {self.k} of them could have given each {self.record}, with probabilities that "
            f"differ by a factor of at most {self.gamma:g}. That it was released may itself tell something{left}"
        )

    def facts(self) -> dict[str, object]:
        """For machines."""
        told = {"kind": self.kind, "k": self.k, "gamma": self.gamma, "among": self.among}
        return told | {"record": self.record, "as_it_is": self.as_it_is}


@dataclass(frozen=True, slots=True)
class NoClaim:
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


Claim = DifferentialPrivacy | KAnonymity | PlausibleDeniability | NoClaim


def only_differential(claim: Claim, what: str, where: str) -> None:
    """Refuse to release `what` under another claim `where` a ledger counts epsilon.

    Raises
    ------
    ConfigError
        naming the claim.
    """
    if not isinstance(claim, DifferentialPrivacy):
        raise ConfigError(
            f"{what} cannot be released {where}: its claim is {claim.kind!r}, which no budget of epsilon "
            "counts. There is no pass-through. "
            "Release recordings with `eyestream privatize`, without a ledger"
        )
