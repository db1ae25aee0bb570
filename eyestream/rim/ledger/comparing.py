"""Which of several copies of a ledger, or of a shard, is the one to go on from. Nothing is locked or changed.

Copies may be in use meanwhile. What is said of them was so at one moment.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.life import lives_beside, lives_in
from eyestream.rim.ledger.reading import LedgerReading
from eyestream.rim.ledger.second_place import Lengths, Remembered

__all__ = ["Copy", "compared", "ledger_copy", "released_in"]


class Copy(NamedTuple):
    """One of them: where it is, the name of its ledger, how long it is, and its tokens."""

    where: Path
    name: str
    lengths: Lengths
    lives: Sequence[str]

    def can_go_on(self, remembered: Remembered) -> bool:
        """Whether a start with it would be accepted."""
        return remembered.life in self.lives and not self.is_shorter(remembered)

    def is_shorter(self, remembered: Remembered) -> bool:
        """Whether something was released that it does not have."""
        return any(has < had for has, had in zip(self.lengths, remembered.lengths, strict=True))


def released_in(reading: LedgerReading) -> int:
    """`Ledger.released` of a ledger that is read without its lock."""
    return sum(odometer.released for odometer in reading.odometers.values())


def ledger_copy(path: Path, reading: LedgerReading) -> Copy:
    """A sidecar's ledger."""
    name, lives = ledger_name(reading.header.ledger_id), lives_in(lives_beside(path))
    return Copy(path, name, Lengths(released_in(reading), 0), lives)


def compared(copies: Sequence[Copy], remembered: Remembered | None, accept: str) -> tuple[list[str], bool]:
    """What to tell an operator, in lines, and whether one of the copies can go on.

    Parameters
    ----------
    copies
        At least one, all with one name.
    remembered
        What the second place holds under it; None: nothing.
    accept
        The command that goes on from a copy that is refused.
    """
    if remembered is None:
        lines = [f"{one.where}: {_length(one.lengths)}" for one in copies]
        return [*lines, f"the second place knows nothing of it. Put it back. If it is lost, `{accept}`"], False
    lines = [f"the second place: {_length(remembered.lengths)}"]
    lines += [f"{one.where}: {_length(one.lengths)}: {_verdict(one, remembered)}" for one in copies]
    able = [one.where for one in copies if one.can_go_on(remembered)]
    if able:
        first = "all others are refused" if len(able) == 1 else "when one of them has started, all others are refused"
        return [*lines, f"go on from {' or '.join(map(str, able))}: {first}"], True
    return [
        *lines,
        "none of these can go on: the copy that was opened last is another one. Put it into its place",
        f"if it is lost, `{accept}` goes on from the copy that is there. What was released after that copy was made is "
        "not counted any more, and the same rows may be released again",
    ], False


def _verdict(one: Copy, remembered: Remembered) -> str:
    if one.is_shorter(remembered):
        return "older than what was released"
    return "can go on" if one.can_go_on(remembered) else "another copy was opened after it; must not go on"


def _length(lengths: Lengths) -> str:
    steps = f", {lengths.outbox} steps in the outbox" if lengths.outbox else ""
    return f"{lengths.ledger} chunks in the ledger{steps}"
