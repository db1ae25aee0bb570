"""Words of commands on a budget, and on the second place of a ledger or of a shard."""

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from eyestream.core.scopes import duration
from eyestream.rim.ledger.guarded import Copy, compared
from eyestream.rim.ledger.second_place import Remembered
from eyestream.wire.status import Budget

_LAST_MOMENT = datetime.datetime.max.replace(tzinfo=datetime.UTC).timestamp()
_LONGEST_S = 1e12
_SCOPES = {"session": "of this session", "day": "of this day", "lifetime": "for ever"}


def plural(count: int, unit: str = "chunk") -> str:
    """A count with its unit.

    >>> plural(1), plural(2), plural(0, "slot")
    ('1 chunk', '2 chunks', '0 slots')
    """
    return f"{count} {unit}{'s' * (count != 1)}"


def budget_words(left: Budget, chunk_s: float, now: float) -> str:
    """One line about `left`, for chunks of `chunk_s` seconds, at `now` in seconds since 1970."""
    if left.resumes_at is not msgspec.UNSET and left.resumes_at <= now:
        return "more than was said last: a day is over since"
    rest = f"{plural(left.chunks)}, {duration(min(left.chunks * chunk_s, _LONGEST_S))}" if left.chunks else "nothing"
    return f"{rest} {_SCOPES[left.ceiling]}; {_resumes(left)}"


def _resumes(left: Budget) -> str:
    if left.ceiling == "session":
        return "more with the tracker's next session"
    if left.resumes_at is msgspec.UNSET or left.resumes_at > _LAST_MOMENT:
        return "then never"
    return f"more at {datetime.datetime.fromtimestamp(left.resumes_at, datetime.UTC):%Y-%m-%d %H:%M} UTC"


def print_comparison(copies: Sequence[Copy], remembered: Remembered | None, accept: str) -> None:
    """Print which of the copies can go on, as `compared` has it; where none can, end with code 1."""
    lines, able = compared(copies, remembered, accept)
    print("\n".join(lines))
    if not able:
        sys.exit(1)


def print_accepted(place: Path | str, path: Path, had: int, has: int) -> None:
    """Print that `place` remembers the `has` chunks of `path`, and what of the `had` before does not count any more."""
    print(f"{place}: remembers {plural(has)} of {path}")
    if had > has:
        print(f"released after this copy was made, and not counted any more: {plural(had - has)}")
