"""What the tests of the order of effects share: random inputs, a ledger in memory, a mechanism without noise."""

import dataclasses
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.charge import Charge
from eyestream.core.chunking.chunks import RowSpan
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.release.order import Drop, Effect, Release, Reserve, Withhold
from eyestream.core.reservation import Granted, Obstacle, Request, RowMark, Withheld
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows

N = 4
CHARGE = Charge.of(0.5)


def settings(**changes: object) -> DeviceSettings:
    """4 rows a chunk, 2 rows a second, 2 features."""
    fine = {"id": "d", "stream": "features", "schema": 1, "names": ("a", "b"), "rate_hz": 2.0, "n": N}
    return DeviceSettings(**{**fine, "grace_s": 0.5, "idle_s": 9.0, "jump_chunks": 3, **changes})  # type: ignore[arg-type]


class FickleLedger:
    """Grants what its luck allows, once; with `rewrites` it knows what has left, and grants again what has not.

    Attributes
    ----------
    granted : what was granted, by (session, first row), and how often it was charged.
    released : what has left; to be filled by the test, before anything is published.
    """

    def __init__(self, luck: random.Random, *, refusals: float = 0.1, rewrites: bool = False) -> None:
        self._luck, self._refusals, self._rewrites = luck, refusals, rewrites
        self.granted: dict[tuple[int, int], int] = {}
        self.refused: dict[tuple[int, int], Obstacle] = {}
        self.released: set[tuple[int, int]] = set()
        self._mark = (-1, -1)

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """Answers in order."""
        return [self._answer(request) for request in requests]

    def mark(self, key: StreamKey) -> RowMark | None:
        """Up to where rows are refused."""
        return None if self._mark == (-1, -1) else RowMark(*self._mark)

    def knows(self, request: Request) -> bool:
        """Whether it has answered this request before."""
        place = (request.session, request.first_row)
        return place in self.granted or place in self.refused

    def _answer(self, request: Request) -> Granted | Withheld:
        place = (request.session, request.first_row)
        if self._rewrites and place in self.refused:
            return Withheld(request, self.refused[place])
        if self._rewrites and place in self.granted and place not in self.released:
            return Granted(request)
        if place <= self._mark:
            return Withheld(request, "rows")
        self._mark = (request.session, request.last_row)
        if self._luck.random() < self._refusals:
            self.refused[place] = "window"
            return Withheld(request, "window")
        self.granted[place] = self.granted.get(place, 0) + 1
        return Granted(request)


@dataclasses.dataclass(frozen=True)
class Step:
    """One input: rows that arrive, or the time alone (`rows` None)."""

    now: float
    rows: RawRows | None


class Inputs:
    """Inputs of a tracker that goes on, skips, repeats itself, ends and begins anew, and of a clock that jumps."""

    def __init__(self, luck: random.Random) -> None:
        self._luck = luck
        self._now, self._session, self._seq, self._serial = 0.0, 1, 0, 1
        self._wearer = luck.randint(0, 2)

    def next(self) -> Step:
        """The next input; every row carries a serial number of its own."""
        luck = self._luck
        self._now += luck.choice([0.0, 0.0, 0.5, 0.5, 1.0, 3.0]) if luck.random() > 0.02 else luck.choice([20.0, -5.0])
        kind = luck.random()
        if kind < 0.15:
            return Step(self._now, None)
        if kind < 0.20:
            self._session += luck.randint(0, 2)
            self._seq, self._wearer = luck.randint(0, 3), luck.randint(0, 2)
        elif kind < 0.28:
            self._seq += luck.choice([1, 2, N, 3 * N, 9 * N])
        elif kind < 0.34:
            self._seq = max(0, self._seq - luck.randint(1, 2 * N))
        m = luck.randint(0, 2 * N)
        rows = np.arange(self._serial, self._serial + m, dtype=np.float32)[:, None].repeat(2, axis=1)
        self._serial += m
        message = RawRows(self._session, self._seq, rows, end=luck.random() < 0.03, wearer=self._wearer)
        self._seq += m
        return Step(self._now, message)


def requests_of(effects: Sequence[Effect]) -> list[Request]:
    """What is to be asked."""
    return [effect.request for effect in effects if isinstance(effect, Reserve)]


def settled(effects: Sequence[Effect]) -> list[tuple[object, ...]]:
    """Everything but the requests, to be compared."""
    told: list[tuple[object, ...]] = []
    for effect in effects:
        match effect:
            case Release(chunk, _):
                told.append(("release", chunk.span, chunk.t0, chunk.ends_session, chunk.values.tobytes()))
            case Withhold(span, obstacle):
                told.append(("withhold", span, obstacle))
            case Drop(span, reason):
                told.append(("drop", span, reason))
    return told


def place(span: RowSpan) -> tuple[int, int]:
    """Which chunk."""
    return span.session, span.first_row


class CountingSession:
    """A mechanism's session whose release tells its own number and the sum of what it was given."""

    awaits_baseline = False
    state = None

    def __init__(self, turn: int = 0) -> None:
        self.turn = turn

    def release(self, chunk: NDArray[np.float64], /) -> NDArray[np.float64]:
        self.turn += 1
        return np.nan_to_num(chunk) + 1000.0 * self.turn

    def anchor(self, chunk: NDArray[np.float64], /) -> None:
        raise AssertionError("there is no baseline")

    def snapshot(self) -> bytes:
        return bytes([self.turn % 256])


class CountingMechanism:
    """No noise; its sessions count."""

    epsilon, delta = 0.5, 0.0
    baseline_chunks = 0
    sessions = 0

    def session(self, snapshot: bytes | None = None) -> CountingSession:
        return CountingSession(0 if snapshot is None else snapshot[0])

    def faded(self, level: int) -> "CountingMechanism":
        assert level == 0
        return self

    def continue_session(self, session: CountingSession, /) -> CountingSession:
        return session
