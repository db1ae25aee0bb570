"""What the release of a corpus promises: a value, and the two files that say it beside the data."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from eyestream.version import VERSION

__all__ = ["Claim", "claim_json", "claim_page"]

Promise = Literal[
    "pure differential privacy",
    "approximate differential privacy",
    "k-anonymity within the corpus",
    "plausible deniability",
    "none",
]


@dataclass(frozen=True)
class Claim:
    """What a release promises.

    Attributes
    ----------
    promise
        The kind of guarantee.
    figures
        Its numbers: epsilon and delta, k, gamma.
    words
        What is promised, in a sentence or two.
    relative_to
        Which neighbours, which corpus, or which knowledge of an attacker the promise is relative to.
    not_promised
        What the release does not protect, one sentence each.
    """

    promise: Promise
    words: str
    relative_to: str
    not_promised: tuple[str, ...]
    figures: Mapping[str, float] = field(default_factory=dict)

    def opening(self) -> str:
        """The first sentence of the page; a claim that is not differential privacy says so at once."""
        if self.promise == "none":
            return "No guarantee is known for this release."
        if self.promise.endswith("differential privacy"):
            return f"This release has {self.promise}."
        return f"This release has no differential privacy. Its promise is {self.promise}."


def claim_json(system: str, options: Mapping[str, object], claim: Claim, files: Mapping[str, str]) -> str:
    """`claim.json`, for machines.

    It is a function of the system, its options, the claim and the released files. It holds no hash and no figure of the
    raw recordings: a hash without noise would confirm a guess of a whole recording.

    Parameters
    ----------
    files
        SHA-256 of each released file, by name.
    """
    told = {"made_by": f"eyestream {VERSION}", "mechanism": system, "options": dict(options), "claim": asdict(claim)}
    return json.dumps(told | {"files_sha256": dict(sorted(files.items()))}, indent=1) + "\n"


def claim_page(system: str, options: Mapping[str, object], claim: Claim, files: Mapping[str, str]) -> str:
    """`CLAIM.md`, for readers."""
    figures = ", ".join(f"{name} {value:g}" for name, value in claim.figures.items())
    lines = [f"# {system}", "", claim.opening() + (f" Figures: {figures}." if figures else ""), "", claim.words, ""]
    lines += [f"**Relative to.** {claim.relative_to}", "", "**Not promised.**", ""]
    lines += [*(f"- {one}" for one in claim.not_promised), ""]
    given = ", ".join(f"{name} = {value}" for name, value in options.items()) or "none"
    lines += [f"Options: {given}. Made by eyestream {VERSION}.", "", "| file | SHA-256 |", "|---|---|"]
    lines += [f"| {name} | {digest} |" for name, digest in sorted(files.items())]
    return "\n".join(lines) + "\n"
