"""Findings of a check: one line each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must hold, and, when it does not, what is wrong, and the remedy."""

    what: str
    fault: str | None = None
    remedy: str = ""

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return self.fault is None

    def __str__(self) -> str:
        return (
            f"pass  {self.what}" if self.fault is None else f"fail  {self.what}: {self.fault}. {self.remedy}"
        )  # no full stop: it may end with a command


def good(what: str) -> Finding:
    """`what` holds."""
    return Finding(what)


def bad(what: str, fault: str, remedy: str) -> Finding:
    """`what` does not hold, because of `fault`; do `remedy`."""
    return Finding(what, fault, remedy)
