"""A sidecar's ledger beside a second place, so that an older copy of it, or one that was overtaken, is refused."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from eyestream.core.meter import Odometer
from eyestream.core.reservation import Granted, Request, RowMark, Withheld
from eyestream.errors import LedgerError
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.life import announce, lives_beside, refuse_overtaken, settle
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered, refuse_shorter
from eyestream.streams import StreamKey

__all__ = ["GuardedLedger", "accept", "guarded"]

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
            refuse_shorter("[sidecar] ledger", Lengths(self._released, 0), remembered.lengths)
            refuse_overtaken("[sidecar] ledger", lives, remembered)
        except LedgerError as error:
            raise LedgerError(f"{error}. If it is lost, {_ACCEPT}") from None
        self._life = _begin(place, self._name, lives, remembered)

    def mark(self, key: StreamKey) -> RowMark | None:
        """As `Ledger.mark`."""
        return self._ledger.mark(key)

    def odometer(self, device: str) -> Odometer | None:
        """As `Ledger.odometer`."""
        return self._ledger.odometer(device)

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """As `Ledger.reserve`. A second place that cannot be written is a ledger that cannot."""
        answers = self._ledger.reserve(requests, day)
        granted = sum(isinstance(one, Granted) and one.spent is not None for one in answers)
        if granted:
            self._released += granted
            self._place.remember(self._name, Remembered(Lengths(self._released, 0), self._life))
        return answers


def _begin(place: FilePlace, name: str, lives: Path, remembered: Remembered) -> str:
    """As `begin_life`, beside a place that is written at once; gives the token."""
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
