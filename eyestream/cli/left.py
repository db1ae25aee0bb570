"""What is left of a budget, in words, as applications read it."""

import datetime

import msgspec

from eyestream.core.scopes import duration
from eyestream.wire.messages import Budget

__all__ = ["budget_words", "some"]

_LAST_MOMENT = datetime.datetime.max.replace(tzinfo=datetime.UTC).timestamp()
_LONGEST_S = 1e12
_SCOPES = {"session": "of this session", "day": "of this day", "lifetime": "for ever"}


def some(count: int, unit: str = "chunk") -> str:
    """``1 chunk``, ``2 chunks``."""
    return f"{count} {unit}{'s' * (count != 1)}"


def budget_words(left: Budget, chunk_s: float, now: float) -> str:
    """One line about `left`, for chunks of `chunk_s` seconds, at `now` in seconds since 1970."""
    if left.resumes_at is not msgspec.UNSET and left.resumes_at <= now:
        return "more than was said last: a day is over since"
    rest = f"{some(left.chunks)}, {duration(min(left.chunks * chunk_s, _LONGEST_S))}" if left.chunks else "nothing"
    return f"{rest} {_SCOPES[left.ceiling]}; {_resumes(left)}"


def _resumes(left: Budget) -> str:
    if left.ceiling == "session":
        return "more with the tracker's next session"
    if left.resumes_at is msgspec.UNSET or left.resumes_at > _LAST_MOMENT:
        return "then never"
    return f"more at {datetime.datetime.fromtimestamp(left.resumes_at, datetime.UTC):%Y-%m-%d %H:%M} UTC"
