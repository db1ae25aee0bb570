"""Notices that a ledger went back: an older copy was put in its place, or a copy of it is at work.

Pure: it is fed with what the odometer of one stream says, in the order in which it came. The lives of a ledger follow
each other, so their spans, from what the odometer read as a life began to what it reads, do not overlap.

| message | what it means |
|---|---|
| of a known life, which reads no more than it did | it came late, or again |
| of a life that overlaps a known one | the ledger went back |
| of a new life that begins below what was heard | a doubt: the broker may have sent an old message, kept or not |
| of another ledger | a doubt, for the same reason |
| of the life in doubt, live, which reads more than it did | no doubt any more: what is old does not grow |

Another ledger was moved to, if its message names the ledger before it; else a ledger was made anew.
"""

import dataclasses
from collections.abc import Iterable

import msgspec

from eyestream.errors import ConfigError
from eyestream.wire.status import Reading

_MOST_LIVES = 64
_MOST_LEDGERS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class WentBack:
    """A sidecar goes on with an older copy of its ledger, or two are at work with copies of one.

    Attributes
    ----------
    epsilon
        What the ledger forgot at least.
    """

    epsilon: float

    def __str__(self) -> str:
        return (
            f"its ledger went back: epsilon {self.epsilon:g} that was spent is forgotten. An older copy of the ledger "
            "was put in its place, or a copy of it is at work. Stop the sidecar, and put the newest ledger back; "
            "[sidecar] second_place refuses older ones"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class OtherLedger:
    """The stream is spent from another ledger than before.

    Attributes
    ----------
    moved
        Whether the device was moved to it (`eyestream budget --export`, `--import`) with all that it had spent. Else
        what was spent before is forgotten, or two sidecars serve the device.
    """

    moved: bool

    def __str__(self) -> str:
        if self.moved:
            return "its device was moved to another ledger, with all that it had spent"
        return (
            "it is spent from another ledger, which was not told what the one before it had spent. Move a device with "
            "`eyestream budget --export` and `--import`"
        )


class OdometerWatch:
    """Readings of the odometer of one stream so far.

    Parameters
    ----------
    known
        What an earlier watch had heard: its `known`.

    Attributes
    ----------
    fault : that the ledger went back, from then on. What it forgot stays forgotten, so a new watch alone has no fault.
    doubt : what is wrong, or else a broker has sent an old message; None as soon as that is known.
    """

    def __init__(self, known: Iterable[Reading] = ()) -> None:
        self._lives: dict[str, dict[int, Reading]] = {}
        self._ledger = ""
        self._unsure: Reading | None = None
        self.fault: WentBack | None = None
        self.doubt: WentBack | OtherLedger | None = None
        for reading in known:
            self.note(reading)
            self._keep(reading)
        self.doubt = self._unsure = None

    @property
    def known(self) -> list[Reading]:
        """Readings that were heard, the last ledger last."""
        return [reading for lives in self._lives.values() for reading in lives.values()]

    def to_json(self) -> bytes:
        """Readings that were heard, for the next start of an application."""
        return msgspec.json.encode(self.known)

    @classmethod
    def from_json(cls, data: bytes) -> "OdometerWatch":
        """The watch that goes on from what `to_json` gave. Raises ConfigError for anything else."""
        try:
            return cls(msgspec.json.decode(data, type=list[Reading]))
        except msgspec.MsgspecError as error:
            raise ConfigError(f"odometer: expected what OdometerWatch.to_json gave: {error}") from None

    def note(self, said: Reading, *, kept: bool = False) -> WentBack | OtherLedger | None:
        """Take a message, which the broker may have kept; gives what is to be said now, each change once."""
        lives = self._lives.get(said.ledger, {})
        new = said.life not in lives
        if not new and said.reads <= lives[said.life].reads:
            return None
        others = [one for one in lives.values() if one.life != said.life]
        forgotten = max((one.reads for one in others), default=0) - said.began
        overlaps = any(one.began < said.reads and said.began < one.reads for one in others)
        back = WentBack(forgotten / 1e6) if overlaps or (new and forgotten > 0) else None
        other = OtherLedger(said.former == self._ledger) if self._ledger not in ("", said.ledger) else None
        if new and not overlaps and (back or other) and (kept or not self._grows(said)):
            self.doubt, self._unsure = back or other, said
            return None
        told, self.doubt = self.fault is not None, None
        self.fault = max(self.fault, back, key=lambda one: one.epsilon) if self.fault and back else self.fault or back
        self._keep(said)
        return other if told else back or other

    def _grows(self, said: Reading) -> bool:
        """Whether it is of the life in doubt, and reads more than that did."""
        before = self._unsure
        return (
            before is not None
            and (before.ledger, before.life) == (said.ledger, said.life)
            and before.reads < said.reads
        )

    def _keep(self, said: Reading) -> None:
        lives = self._lives.pop(said.ledger, {})
        lives[said.life] = said
        if len(lives) > _MOST_LIVES:
            del lives[min(lives, key=lambda life: lives[life].reads)]
        self._lives[said.ledger], self._ledger = lives, said.ledger
        if len(self._lives) > _MOST_LEDGERS:
            del self._lives[next(iter(self._lives))]
