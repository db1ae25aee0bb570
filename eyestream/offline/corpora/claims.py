"""What the release of a corpus promises: one of the house's claims, and the two files that say it beside the data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from eyestream.errors import ConfigError
from eyestream.offline.corpora.attacked import Attacked
from eyestream.privacy.claims.kinds import Claim, DifferentialPrivacy, Loss
from eyestream.version import VERSION

__all__ = ["PERSON", "PUBLIC", "Promise", "exact", "of_person", "promise_json", "promise_page"]

PERSON = (
    "all recordings of one person together. Neighbours are corpora that differ in all recordings of one person "
    "(replace-one), each with as many rows"
)
NO_STUDY = "Attackers: no study of this system was named when the corpus was released."
PUBLIC = "Who took part in which task, labels, and how many rows each recording has are public."


@dataclass(frozen=True)
class Promise:
    """What a release promises, and what it does not.

    Attributes
    ----------
    claim
        Of the release as a whole.
    not_promised
        What the release does not protect, one sentence each.
    parts
        Losses of smaller units, where the claim sums them up.
    attackers
        What a study found for this system; it is no promise.
    """

    claim: Claim
    not_promised: tuple[str, ...]
    parts: tuple[Loss, ...] = ()
    attackers: Attacked | None = None

    def facts(self) -> dict[str, object]:
        """For machines."""
        told = {"statement": self.claim.statement, **self.claim.facts()}
        return told | {"parts": [part.claim() for part in self.parts], "not_promised": list(self.not_promised)}


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
    lines += ["Not promised:", "", *(f"- {one}" for one in promise.not_promised), ""]
    lines += [*(promise.attackers.lines() if promise.attackers is not None else (NO_STUDY,)), ""]
    given = ", ".join(f"{name} = {value}" for name, value in options.items()) or "none"
    lines += [f"Options: {given}. Made by eyestream {VERSION}.", "", "| file | SHA-256 |", "|---|---|"]
    lines += [f"| {name} | {digest} |" for name, digest in sorted(files.items())]
    return "\n".join(lines) + "\n"
