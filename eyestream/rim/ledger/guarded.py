"""A sidecar's ledger beside a second place, so that an older copy of it, or one that was overtaken, is refused."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from eyestream.core.meter import Odometer
from eyestream.core.reservation import Granted, Request, RowMark, Withheld
from eyestream.errors import LedgerError
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import LedgerReading
from eyestream.rim.ledger.second_place import (
    FilePlace,
    Lengths,
    Remembered,
    announce,
    check_not_overtaken,
    check_not_shorter,
    lives_beside,
    lives_in,
    settle,
)
from eyestream.streams import StreamKey

_ACCEPT = "`eyestream budget --config FILE --accept` makes the ledger that is there the one to go on from"


class GuardedLedger:
    """A life of a sidecar's ledger whose second place learns of each reservation before anything is released under it.

    Parameters
    ----------
    ledger
        Open.
    place
        Open, and of this ledger.
    lives
        The file of its tokens.

    Raises
    ------
    LedgerError
        The ledger is older than the second place remembers, or was overtaken by a copy; or the second place knows
        nothing of it.
    """

    def __init__(self, ledger: Ledger, place: FilePlace, lives: Path) -> None:
        self._ledger, self._place = ledger, place
        self._name, self._released = ledger_name(ledger.header.ledger_id), ledger.released
        remembered = place.recall(self._name)
        if remembered is None:
            raise LedgerError(f"[sidecar] second_place: knows nothing of the ledger; {_ACCEPT}")
        try:
            check_not_shorter("[sidecar] ledger", Lengths(self._released, 0), remembered.lengths)
            check_not_overtaken("[sidecar] ledger", lives, remembered)
        except LedgerError as error:
            raise LedgerError(f"{error}. If it is lost, {_ACCEPT}") from None
        self._life = _begin(place, self._name, lives, remembered)

    def mark(self, key: StreamKey) -> RowMark | None:
        """Last refused row of a stream, from `Ledger.mark`."""
        return self._ledger.mark(key)

    def odometer(self, device: str) -> Odometer | None:
        """Sums that a device has spent, from `Ledger.odometer`."""
        return self._ledger.odometer(device)

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """Reserve as `Ledger.reserve`; LedgerError also where the second place cannot be written."""
        answers = self._ledger.reserve(requests, day)
        # The ledger has them durably, and nothing is released before this returns. A crash here leaves a ledger that is
        # longer than the second place says. A start accepts that.
        granted = sum(isinstance(one, Granted) and one.spent is not None for one in answers)
        if granted:
            self._released += granted
            self._place.remember(self._name, Remembered(Lengths(self._released, 0), self._life))
        return answers


def _begin(place: FilePlace, name: str, lives: Path, remembered: Remembered) -> str:
    """Begin a life (steps 3 to 5 of `second_place`), and return its token."""
    life = announce(lives, remembered)
    place.remember(name, remembered._replace(life=life))
    settle(lives, life)
    return life


@contextmanager
def guarded(ledger: Ledger, path: Path, place_path: Path) -> Iterator[GuardedLedger]:
    """A life of `ledger`, which is at `path`, beside the second place at `place_path`.

    Raises LedgerError as `GuardedLedger` and `FilePlace`.
    """
    if not place_path.exists():
        raise LedgerError(f"[sidecar] second_place: there is no file {place_path}; {_ACCEPT}")
    with closing(FilePlace(place_path)) as place:
        yield GuardedLedger(ledger, place, lives_beside(path))


def accept(ledger: Ledger, path: Path, place_path: Path) -> tuple[int, int]:
    """Let the second place at `place_path` remember `ledger`, at `path`, as it is; it is made where there is none.

    No other copy of the ledger can go on from then on.

    Returns
    -------
    tuple
        Chunks that it remembered until now, and those that it remembers from now on.

    Raises
    ------
    LedgerError
        It is the second place of another ledger, or cannot be written.
    """
    if not place_path.exists():
        FilePlace.create(place_path)
    with closing(FilePlace(place_path)) as place:
        name, now = ledger_name(ledger.header.ledger_id), Lengths(ledger.released, 0)
        had = place.recall(name) or Remembered(Lengths(0, 0))
        _begin(place, name, lives_beside(path), had._replace(lengths=now))
        return had.lengths.ledger, now.ledger


class Copy(NamedTuple):
    """One of them: where it is, the name of its ledger, how long it is, and its tokens."""

    where: Path
    name: str
    lengths: Lengths
    lives: Sequence[str]

    def can_go_on(self, remembered: Remembered) -> bool:
        """Whether a start with it would be accepted."""
        return remembered.life in self.lives and not self.lengths.shorter_than(remembered.lengths)


def released_in(reading: LedgerReading) -> int:
    """`Ledger.released` of a ledger that is read without its lock."""
    return sum(odometer.released for odometer in reading.odometers.values())


def ledger_copy(path: Path, reading: LedgerReading) -> Copy:
    """A sidecar's ledger."""
    name, lives = ledger_name(reading.header.ledger_id), lives_in(lives_beside(path))
    return Copy(path, name, Lengths(released_in(reading), 0), lives)


def compared(copies: Sequence[Copy], remembered: Remembered | None, accept: str) -> tuple[list[str], bool]:
    """Advice to an operator, in lines, and whether one of the copies can go on.

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
    if one.lengths.shorter_than(remembered.lengths):
        return "older than what was released"
    return "can go on" if one.can_go_on(remembered) else "another copy was opened after it; must not go on"


def _length(lengths: Lengths) -> str:
    steps = f", {lengths.outbox} steps in the outbox" if lengths.outbox else ""
    return f"{lengths.ledger} chunks in the ledger{steps}"
