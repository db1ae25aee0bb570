"""Claims about the release of a corpus, and the two files that say each beside the data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from eyestream.core.kinds import Claim, DifferentialPrivacy, Loss
from eyestream.errors import ConfigError
from eyestream.version import VERSION
from eyestream_lab.corpora.attacked import Attacked

PERSON = (
    "all recordings of one person together. Neighbours are corpora that differ in all recordings of one person "
    "(replace-one), each with as many rows"
)
NO_STUDY = "Attackers: no study of this system was named when the corpus was released."

WHO = "Who took part in which task, participant ids, and labels."
ROWS = "How many rows or samples each recording has."
PUBLIC = (WHO, ROWS)
"""Facts that every system releases as they are that has a recording for a recording of as many rows."""
MISSING = "Which values are missing, or which samples are lost."
EVENTS = "How many events a person made, when each began, and how many samples it had."
LANDINGS = "Where each saccade landed: a released one ends on the person's own raw sample."
KEPT = "Each sample that is kept."
FIRST = "The first sample of a recording that is not lost, and when it was."


@dataclass(frozen=True, slots=True)
class KAnonymity(Claim):
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
class PlausibleDeniability(Claim):
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


@dataclass(frozen=True)
class Promise:
    """The claim of a release, and its limits.

    Attributes
    ----------
    claim
        Of the release as a whole.
    not_promised
        What else the release does not protect, one sentence each.
    as_it_is
        What the release holds of the raw recordings without a change, one line each.
    parts
        Losses of smaller units, where the claim sums them up.
    attackers
        What a study found for this system; it is no promise.
    """

    claim: Claim
    not_promised: tuple[str, ...]
    as_it_is: tuple[str, ...]
    parts: tuple[Loss, ...] = ()
    attackers: Attacked | None = None

    def facts(self) -> dict[str, object]:
        """For machines."""
        told = {"statement": self.claim.statement, **self.claim.facts()}
        left = {"not_promised": list(self.not_promised), "released_as_it_is": list(self.as_it_is)}
        return told | {"parts": [part.claim() for part in self.parts]} | left


def exact(unit: str, epsilon: float, delta: float = 0.0) -> Loss:
    """The loss of a unit, from floats."""
    return Loss(unit, Fraction(epsilon), Fraction(delta))


def of_person(loss: Loss, releases: int, name: str) -> DifferentialPrivacy:
    """The claim for all recordings of a person, which hold at most so many units of `loss`.

    Raises
    ------
    ConfigError
        when there is no such unit, or their deltas sum to 1.
    """
    if releases < 1:
        raise ConfigError(f"{name}: nothing of the corpus would be released: every recording is too short")
    if loss.delta * releases >= 1:
        raise ConfigError(f"{name}: delta {float(loss.delta):g} in {releases} units of a person sums to 1 or more")
    return DifferentialPrivacy(loss.of("person", releases), PERSON)


def promise_json(system: str, options: Mapping[str, object], promise: Promise, files: Mapping[str, str]) -> str:
    """`claim.json`, for machines.

    It is a function of the system, its options, the promise, the study that was named and the released files. It holds
    no hash of the raw recordings, which would confirm a guess of a whole recording, and no figure of them but the
    study's.

    Parameters
    ----------
    files
        SHA-256 of each released file, by name.
    """
    told: dict[str, object] = {"made_by": f"eyestream {VERSION}", "mechanism": system, "options": dict(options)}
    told["attackers"] = promise.attackers.facts() if promise.attackers is not None else None
    told |= {"claim": promise.facts(), "files_sha256": dict(sorted(files.items()))}
    return json.dumps(told, indent=1) + "\n"


def promise_page(system: str, options: Mapping[str, object], promise: Promise, files: Mapping[str, str]) -> str:
    """`CLAIM.md`, for readers."""
    lines = [f"# {system}", "", f"The claim of this release: {promise.claim.statement}.", ""]
    if promise.parts:
        lines += ["| unit | epsilon | delta |", "|---|---|---|"]
        lines += [f"| {part.unit} | {float(part.epsilon):g} | {float(part.delta):g} |" for part in promise.parts] + [""]
    for head, said in (("Not promised", promise.not_promised), ("Released as it is", promise.as_it_is)):
        lines += [f"{head}:", "", *(f"- {one}" for one in said), ""] if said else []
    lines += [*(promise.attackers.lines() if promise.attackers is not None else (NO_STUDY,)), ""]
    given = ", ".join(f"{name} = {value}" for name, value in options.items()) or "none"
    lines += [f"Options: {given}. Made by eyestream {VERSION}.", "", "| file | SHA-256 |", "|---|---|"]
    lines += [f"| {name} | {digest} |" for name, digest in sorted(files.items())]
    return "\n".join(lines) + "\n"
