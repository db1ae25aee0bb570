"""Kinds of claims, as values. Each says in its first words whether it is differential privacy.

A live sidecar has one ledger of epsilon: it releases under `DifferentialPrivacy` alone (`only_differential`). What
releases recordings and corpora offline takes every kind, and `claim.json` names it.
"""

from dataclasses import dataclass
from typing import ClassVar

from eyestream.errors import ConfigError
from eyestream.privacy.loss import Loss

__all__ = ["Claim", "DifferentialPrivacy", "KAnonymity", "NoClaim", "PlausibleDeniability", "only_differential"]


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

    Raises
    ------
    ValueError
        when k is below 2, or gamma not above 1.
    """

    kind: ClassVar[str] = "plausible deniability"
    k: int
    gamma: float
    among: str

    def __post_init__(self) -> None:
        if self.k < 2 or not self.gamma > 1:
            raise ValueError(
                f"plausible deniability needs k of at least 2 and gamma above 1, not {self.k} and {self.gamma}"
            )

    @property
    def statement(self) -> str:
        """The claim in one sentence."""
        return (
            f"not differential privacy: plausible deniability with k = {self.k} and gamma = {self.gamma:g} among "
            f"{self.among}. At least {self.k} of them could have given each released record, with probabilities that "
            f"differ by a factor of at most {self.gamma:g}. That a record was released may itself tell something"
        )

    def facts(self) -> dict[str, object]:
        """For machines."""
        return {"kind": self.kind, "k": self.k, "gamma": self.gamma, "among": self.among}


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
            f"{what} cannot be released {where}: its claim is {claim.kind!r}, which no budget of epsilon counts. "
            "Release recordings with `eyestream privatize`, without a ledger"
        )
