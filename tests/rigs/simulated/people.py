"""Who wears a device and what its tracker sends; and a mechanism whose releases tell where they come from.

Each row has a serial number. A released chunk says which rows it is made of, which draw of noise is in it, and what was
taken off. So whoever hears it can tell what no outsider of the real mechanisms could.
"""

import math
import random
import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyestream.core.charge import faded
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw

__all__ = ["CANARY", "EPSILON", "SCHEMA", "N", "People", "SerialMechanism", "Tracker"]

N, SCHEMA, EPSILON = 4, 1, 0.5
_RAW = np.float32(1.7182345e-19)
CANARY = struct.pack("<f", _RAW)
"""Bytes of a raw value that is in every row, and may be in nothing that leaves."""

Array = NDArray[np.float64]


class Row(NamedTuple):
    """Where a serial number belongs."""

    key: StreamKey
    session: int
    row: int
    wearer: int


class People:
    """What was sent, and what was drawn: a plain account.

    Attributes
    ----------
    rows : by serial number.
    bases : by tag: serial numbers of all rows that were taken off.
    histories : whether sessions of a pseudonym are taken off one another.
    """

    def __init__(self, *, histories: bool) -> None:
        self.rows: dict[int, Row] = {}
        self.bases: dict[int, frozenset[int]] = {}
        self.histories, self._draws = histories, 0

    def row(self, row: Row) -> int:
        """A serial number for a row."""
        self.rows[len(self.rows) + 1] = row
        return len(self.rows)

    def draw(self) -> int:
        """Noise that was never drawn before: the number of the draw."""
        self._draws += 1
        return self._draws

    def base(self, serials: frozenset[int]) -> int:
        """A tag for what is taken off."""
        self.bases[len(self.bases) + 1] = serials
        return len(self.bases)


class _Session:
    """A session of the mechanism; see `SerialMechanism`."""

    state = None

    def __init__(self, mechanism: "SerialMechanism", before: "_Session | None" = None) -> None:
        self.mechanism = mechanism
        self.number: int = 0 if before is None else (before.number + 1) % max(1, mechanism.sessions)
        self.earlier: frozenset[int] = frozenset()
        if before is not None and self.number:
            self.earlier = before.earlier | before.serials
        self.serials: frozenset[int] = frozenset()
        self.taken = self.tag = 0

    @property
    def awaits_baseline(self) -> bool:
        if self.mechanism.sessions:
            return not self.earlier
        return self.taken < self.mechanism.baseline_chunks

    def anchor(self, chunk: Array, /) -> None:
        assert self.awaits_baseline
        self.serials, self.taken = self.serials | _serials(chunk), self.taken + 1

    def release(self, chunk: Array, /) -> Array:
        assert not self.awaits_baseline
        mechanism, people = self.mechanism, self.mechanism.people
        if mechanism.luck.random() < mechanism.fails:
            raise ArithmeticError
        if mechanism.sessions:
            if not self.tag:
                self.tag = people.base(self.earlier)
            self.serials |= _serials(chunk)
        elif self.taken and not self.tag:
            self.tag = people.base(self.serials)
        out = np.empty((3, chunk.shape[1]))
        out[0] = np.where(np.isfinite(chunk[0]), chunk[0], -1.0)
        out[1], out[2] = people.draw(), self.tag
        return out

    def erase(self) -> None:
        self.earlier = self.serials = frozenset()

    def snapshot(self) -> bytes:
        return struct.pack("<IIIQ", self.taken, self.tag, len(self.serials), 0) + b"".join(
            struct.pack("<I", one) for one in sorted(self.serials)
        )


class SerialMechanism:
    """Releases serial numbers, the number of its draw, and the tag of what is taken off.

    Parameters
    ----------
    people
        Whose account it writes.
    luck
        Of its failures.
    baseline, sessions
        As `eyestream.core.mechanism.Mechanism`.
    fails
        How often a release fails.
    """

    delta = 0.0

    def __init__(
        self, people: People, luck: random.Random, *, baseline: int = 0, sessions: int = 0, fails: float = 0.0
    ) -> None:
        self.people, self.luck, self.fails = people, luck, fails
        self.baseline_chunks, self.sessions, self.epsilon = baseline, sessions, EPSILON
        self._levels: dict[int, SerialMechanism] = {0: self}

    def session(self, snapshot: bytes | None = None) -> _Session:
        session = _Session(self)
        if snapshot is not None:
            session.taken, session.tag, count, _ = struct.unpack_from("<IIIQ", snapshot)
            session.serials = frozenset(struct.unpack_from(f"<{count}I", snapshot, 20))
        return session

    def session_after(self, before: _Session | None, /) -> _Session:
        return _Session(self, before)

    def faded(self, level: int) -> "SerialMechanism":
        if level not in self._levels:
            one = SerialMechanism(
                self.people, self.luck, baseline=self.baseline_chunks, sessions=self.sessions, fails=self.fails
            )
            one.epsilon = faded(EPSILON, level)
            self._levels[level] = one
        return self._levels[level]

    def continue_session(self, session: _Session, /) -> _Session:
        session.mechanism = self
        return session


def _serials(chunk: Array) -> frozenset[int]:
    return frozenset(int(one) for one in chunk[0].tolist() if math.isfinite(one))


class Tracker:
    """Sends the rows of one stream of one device; may lie.

    Attributes
    ----------
    sent : every message.
    told : rows of the session that goes on, from its first: as an honest tracker sends them.
    """

    def __init__(self, people: People, settings: DeviceSettings, luck: random.Random) -> None:
        self._people, self.settings = people, settings
        self.session, self.row, self.wearer, self._wearers = 1, 0, 0, luck.choice([0, 0, 1, 3])
        self.sent: list[bytes] = []
        self._name_wearer(luck)

    def _name_wearer(self, luck: random.Random) -> None:
        self.wearer = luck.randint(1, self._wearers) if self._wearers else 0

    def begin(self, luck: random.Random) -> None:
        """Another session, perhaps of another wearer."""
        self.session, self.row = self.session + luck.choice([1, 1, 1, 5]), luck.choice([0, 0, 0, N, 3])
        self._name_wearer(luck)

    def send(self, count: int, *, end: bool = False) -> bytes:
        """The next rows."""
        payload = self._message(self.session, self.row, count, self.wearer, end=end)
        self.row += count
        return payload

    def lie(self, luck: random.Random) -> bytes:
        """What no honest tracker sends."""
        how = luck.choice(["other", "other", "old", "far", "wearer", "next", "bytes", "last"])
        count = luck.randint(1, 6)
        session, row, wearer = self.session, self.row, self.wearer
        if how == "bytes":
            good = self.sent[-1] if self.sent else b"\x80"
            return luck.choice([good[: luck.randint(0, len(good))], good + b"\0", bytes(luck.randbytes(20))])
        if how == "other":  # rows that were sent before, with other values
            row = max(0, row - luck.randint(1, 12))
        elif how == "old":
            session, row = max(0, session - 1), luck.randint(0, 20)
        elif how == "far":
            row += luck.choice([5, 9, 40, 1 << 40])
        elif how == "wearer":
            wearer += 1
        elif how == "next":
            session, row = session + luck.choice([1, 2, 1 << 62]), luck.randint(0, 9)
        else:
            row, count = (1 << 64) - luck.randint(2, 9), 1
        return self._message(session, row, count, wearer)

    def send_again(self, session: int, row: int) -> bytes:
        """The rows of a chunk, with other values than before, whatever comes next."""
        return self._message(session, row, N, self.wearer)

    def _message(self, session: int, row: int, count: int, wearer: int, *, end: bool = False) -> bytes:
        rows, key = np.empty((count, self.settings.features), np.float32), self.settings.key
        rows.fill(_RAW)
        rows[:, 0] = [self._people.row(Row(key, session, row + i, wearer)) for i in range(count)]
        payload = encode_raw(session, row, rows, SCHEMA, end=end, wearer=wearer)
        self.sent.append(payload)
        return payload
