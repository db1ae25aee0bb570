"""What a check found: one line each."""

from dataclasses import dataclass

__all__ = ["Finding", "bad", "good"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must hold, and, when it does not, what is the matter and how to mend it."""

    what: str
    fault: str | None = None
    mend: str = ""

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return self.fault is None

    def __str__(self) -> str:
        return f"pass  {self.what}" if self.fault is None else f"fail  {self.what}: {self.fault}. {self.mend}."


def good(what: str) -> Finding:
    """`what` holds."""
    return Finding(what)


def bad(what: str, fault: str, mend: str) -> Finding:
    """`what` does not hold, because of `fault`; do `mend`."""
    return Finding(what, fault, mend)
