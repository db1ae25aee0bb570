"""Findings of an audit, in names of a fixed list."""

import json
from dataclasses import dataclass, field
from typing import Any

FINDINGS = {
    "epsilon-exceeded": "two neighbouring chunks are distinguished better than the stated epsilon allows",
    "float-surface": "the low bits are those of floating-point arithmetic on noise, so outputs tell inputs apart",
    "noise-reuse": "the same noise came more than once: over calls, threads, copies of the process, or two processes",
    "state-across-chunks": "what comes out for a chunk depends on the chunks before it",
    "data-dependent-time": "the time of a release depends on the chunk",
    "data-dependent-size": "shape, type or number of bytes of what comes out depend on the chunk",
    "changing-form": "shape or type of what comes out changes from call to call for the same chunk",
    "wrong-shape": "what came out is not an array of (F, n) real numbers",
    "not-finite": "NaN or an infinity came out",
    "crash": "a release raised an error or ended the process",
    "hang": "a release took longer than the time limit",
    "extra-output": "something was written beside the answer",
}
"""Every name that an audit can give, and what it says."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, how it was seen, and under which chunks."""

    name: str
    evidence: str

    def __post_init__(self) -> None:
        assert self.name in FINDINGS, self.name


@dataclass
class Report:
    """Trials and findings; `findings` is empty when nothing was found."""

    subject: str
    kind: str
    features: int
    chunk: int
    epsilon: float
    confidence: float
    epsilon_lower_bound: float | None = None
    """At least this much is lost, at the confidence; None where nothing could be tested."""
    epsilon_resolution: float | None = None
    """The largest bound that so many draws could have given: no loss above it can be seen."""
    neighbours: str = ""
    event: str = ""
    outputs_compared: int = 0
    """Outputs for one chunk that were compared with each other."""
    outputs_repeated: int = 0
    """Those of them that had been there before: many where there are few outputs, or few seeds."""
    draws: int = 0
    seconds: float = 0.0
    tested: list[str] = field(default_factory=list)
    not_tested: list[str] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)

    @property
    def findings(self) -> list[str]:
        """Names, each once, in the order of `FINDINGS`."""
        names = {finding.name for finding in self.found}
        return [name for name in FINDINGS if name in names]

    def add(self, name: str, evidence: str) -> None:
        """Note a finding; the same name with the same evidence once."""
        finding = Finding(name, evidence)
        if finding not in self.found:
            self.found.append(finding)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, the findings by name and once more with their evidence."""
        values = {key: value for key, value in vars(self).items() if key != "found"}
        evidence = [{"name": finding.name, "evidence": finding.evidence} for finding in self.found]
        return {"findings": self.findings, **values, "evidence": evidence}

    def as_json(self) -> str:
        """One line."""
        return json.dumps(self.as_dict(), allow_nan=False)
