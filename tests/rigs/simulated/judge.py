"""The outsider: hears what applications hear, keeps all of it, and knows from trackers what they sent.

It knows nothing of the inside but what a loss of power would leave of the ledger at the moment of a publication, and
what each tag in a release stands for: see `SerialMechanism`.
"""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from eyestream.core.charge import Ceilings, charge_units
from eyestream.core.reservation import RowMark
from eyestream.errors import EyestreamError
from eyestream.rim.ledger.book import Book
from eyestream.streams import StreamKey
from eyestream.wire.release import decode_private
from tests.rigs.simulated.people import CANARY, N, People, Row

__all__ = ["Judge"]


class _Heard(NamedTuple):
    """One released chunk: whose rows, and what it cost."""

    key: StreamKey
    session: int
    chunk: int
    """Of the tracker's grid: its first row, divided by the rows of a chunk."""
    wearer: int
    epsilon: int


class Judge:
    """Collects everything, and says what is wrong.

    Parameters
    ----------
    people
        Who sent which rows.
    ceilings
        What every device is held to.
    durable
        The bytes that a loss of power would leave of the ledger that is spent from; None: nobody promises any.

    Attributes
    ----------
    faults : sentences; a history is right when there is none.
    chunks : what was heard, in order, each once.
    honest : whether every clock was right all the time.
    alone : whether every device has one stream.
    shown : days that a clock showed when something was reserved.
    under : by chunk, the ceilings that held when it was granted; where they are not here, the first ones.
    """

    def __init__(self, people: People, ceilings: Ceilings, durable: Callable[[], bytes] | None) -> None:
        self._people, self._ceilings, self.durable = people, ceilings, durable
        self.faults: list[str] = []
        self.chunks: list[_Heard] = []
        self.honest, self.alone, self.shown = True, False, set[int]()
        self.asked: dict[tuple[StreamKey, int, int], int] = {}
        self.under: dict[tuple[StreamKey, int, int], Ceilings] = {}
        self.digest = hashlib.blake2b(digest_size=8)
        self.whose: dict[tuple[StreamKey, int, int], int] = {}
        self.forgotten: dict[tuple[str, int], tuple[int, float]] = {}
        self.sent_at: dict[int, float] = {}
        self._payloads: dict[tuple[str, int, int], bytes] = {}
        self._rows: dict[tuple[StreamKey, int, int], bytes] = {}
        self._draws: dict[int, bytes] = {}
        self._bases: dict[int, tuple[str, int]] = {}
        self._last: dict[StreamKey, tuple[int, int]] = {}
        self._place: dict[tuple[str, int], int] = {}
        self._book: tuple[bytes, Book | None] = b"", None

    def fault(self, words: str) -> None:
        """Something is wrong."""
        self.faults.append(words)

    def note(self, words: str) -> None:
        """Something happened that must happen again with the same seed."""
        self.digest.update(words.encode())

    def hear(self, key: StreamKey, payload: bytes) -> bool:
        """A released chunk on the private side; whether it is a new one."""
        if self.weigh_bytes(str(key), payload):
            return True
        said = decode_private(payload)
        name = str(key), said.session, said.chunk
        known = self._payloads.setdefault(name, payload)
        if known != payload:
            self.fault(f"{key}: two byte strings for chunk {said.chunk} of a session")
        elif name[:2] in self._place and self._place[name[:2]] >= said.chunk:
            return False
        self._place[name[:2]] = said.chunk
        self._weigh(key, payload, said.session, said.values.tolist(), charge_units(said.epsilon))
        return True

    def weigh_bytes(self, where: str, data: bytes) -> bool:
        """Whether a raw value is in what is published, or in a file."""
        self.digest.update(data)
        if raw := CANARY in data:
            self.fault(f"{where}: a raw value is in what is published or written")
        return raw

    def _weigh(self, key: StreamKey, payload: bytes, session: int, values: list[list[float]], epsilon: int) -> None:
        serials, draw, base = [int(one) for one in values[0]], int(values[1][0]), int(values[2][0])
        if self._draws.setdefault(draw, payload) != payload:
            self.fault(f"{key}: one draw of noise is in two releases")
        rows = [(place, self._people.rows[serial]) for place, serial in enumerate(serials) if serial >= 0]
        whose = {(row.key, row.session, row.row // N, row.wearer) for _, row in rows}
        if len(whose) > 1 or any(row.key != key or row.row % N != place for place, row in rows):
            self.fault(f"{key}: rows that do not belong together are in one chunk: {sorted(whose)}")
            return
        for serial in (one for one in serials if one >= 0):
            row = self._people.rows[serial]
            if self._rows.setdefault((row.key, row.session, row.row), payload) != payload:
                self.fault(f"{key}: row {row.row} of session {row.session} is in two releases")
                return
        if base:
            self._weigh_base(key, session, base, self._wearer(rows[0][1]) if rows else None)
        if not rows:  # which of the tracker's chunks it is nobody knows
            self.chunks.append(_Heard(key, -1, -1, -1, epsilon))
            self._weigh_sums(key.device)
            return
        row = rows[0][1]
        heard = _Heard(key, row.session, row.row // N, self._wearer(row), epsilon)
        if self._last.get(key, (-1, -1)) >= heard[1:3]:
            self.fault(f"{key}: chunk {heard.chunk} of session {heard.session} comes after a later one")
        self._last[key] = heard.session, heard.chunk
        self.chunks.append(heard)
        self._weigh_sums(key.device)
        if len(self.chunks) % 4 == 0:  # to read a ledger takes longer than all else
            self.weigh_disk()

    def _weigh_base(self, key: StreamKey, session: int, base: int, wearer: int | None) -> None:
        """What is taken off the rows: of one session, or of earlier ones of the same wearer."""
        rows = [self._people.rows[serial] for serial in self._people.bases[base]]
        history = self._people.histories
        if not history and self._bases.setdefault(base, (str(key), session)) != (str(key), session):
            self.fault(f"{key}: a baseline is used by two sessions")
        if any(row.key != key for row in rows) or (not history and len({row.session for row in rows}) > 1):
            self.fault(f"{key}: a baseline has rows of others")
        bases, at = self.forgotten.get((key.device, -1 if wearer is None else wearer), (base, 0.0))
        if base > bases and any(self.sent_at[one] < at for one in self._people.bases[base]):
            self.fault(f"{key}: a history is taken off that was to be forgotten")
        if wearer is not None and {self._wearer(row) for row in rows} - {wearer}:
            self.fault(f"{key}: the history of another wearer is taken off the rows of wearer {wearer}")
        if not history and any((row.key, row.session, row.row) in self._rows for row in rows):
            self.fault(f"{key}: a row of a baseline is released")

    def _wearer(self, row: Row) -> int:
        """Who was charged for a row, where that is known; else whom its tracker named."""
        return self.whose.get((row.key, row.session, row.row // N), row.wearer)

    def _weigh_sums(self, device: str) -> None:
        own = [one for one in self.chunks if one.key.device == device]
        ceilings = self.under.get(own[-1][:3], self._ceilings)

        def passed(what: str, sum_: int, ceiling: int | None) -> None:
            if ceiling is not None and sum_ > ceiling:
                self.fault(f"{device}: {what} has {sum_ / 1e12:g} of {ceiling / 1e12:g}")

        newest, total = own[-1], sum([one.epsilon for one in own])
        passed("the lifetime", total, ceilings.lifetime)
        beneath = ceilings.streams.get(newest.key.stream)
        stream = [one for one in own if one.key == newest.key]
        if beneath is not None:
            passed(f"stream {newest.key.stream}", sum(one.epsilon for one in stream), beneath.lifetime)
        if newest.session >= 0:
            session = [one.epsilon for one in stream if one.session == newest.session]
            passed(f"session {newest.session}", sum(session), ceilings.session)
            if self.alone and ceilings.window is not None:
                span = range(newest.chunk - ceilings.window_chunks + 1, newest.chunk + 1)
                some = [one.epsilon for one in stream if one.session == newest.session and one.chunk in span]
                passed(f"a window that ends at chunk {newest.chunk}", sum(some), ceilings.window)
        if ceilings.wearer is not None and newest.wearer > 0:
            worn = sum(one.epsilon for one in own if one.wearer == newest.wearer)
            passed(f"wearer {newest.wearer}", worn, ceilings.wearer.lifetime)
        if self.honest:
            self._weigh_day(own, ceilings)
        if ceilings.day is not None:
            most = self._ceilings.day or ceilings.day
            passed(f"a day of {len(self.shown)} that were shown", total, most * max(1, len(self.shown)))
            day = self.asked.get(newest[:3])
            if self.honest and day is not None:
                passed("a day", sum(one.epsilon for one in own if self.asked.get(one[:3]) == day), ceilings.day)

    def _weigh_day(self, own: list[_Heard], ceilings: Ceilings) -> None:
        """What one wearer has on a day, and how many wearers are new on it; `own` of the device."""
        newest = own[-1]
        day = self.asked.get(newest[:3])
        if day is None or newest.wearer < 1:
            return
        days = {one[:3]: self.asked.get(one[:3]) for one in own}
        worn = sum(one.epsilon for one in own if one.wearer == newest.wearer and days[one[:3]] == day)
        if ceilings.wearer is not None and ceilings.wearer.day is not None and worn > ceilings.wearer.day:
            self.fault(f"wearer {newest.wearer}: a day has {worn / 1e12:g} of {ceilings.wearer.day / 1e12:g}")
        before = {one.wearer for one in own if days[one[:3]] != day}
        if len({one.wearer for one in own if one.wearer > 0} - before) > ceilings.new_wearers:
            self.fault(f"{newest.key.device}: more wearers are new on a day than may be")

    def weigh_disk(self) -> None:
        """What was reserved for the last chunk must be on the disk by now, where it outlives the power."""
        if self.durable is None or not self.chunks or self.chunks[-1].session < 0:
            return
        heard = self.chunks[-1]
        data = self.durable()
        if data != self._book[0]:
            try:
                self._book = data, Book([data])
            except EyestreamError as error:
                self._book = data, None
                self.fault(f"{heard.key}: is published, and the ledger on the disk {error}")
        book = self._book[1]
        if book is None:
            return
        mark, account = book.mark(heard.key), book.accounts.get(heard.key.device)
        if mark is None or mark < (heard.session, heard.chunk * N):
            self.fault(f"{heard.key}: chunk {heard.chunk} is published, and its rows are not reserved on the disk")
        own = sum(one.epsilon for one in self.chunks if one.key.device == heard.key.device)
        if account is None or account.odometer().epsilon < own:
            self.fault(f"{heard.key.device}: more was published than the ledger on the disk has")
        if account is not None and heard[:3] in self.whose and heard.wearer:
            known = account.odometer().wearers.get(heard.wearer)
            own = sum(
                one.epsilon for one in self.chunks if (one.key.device, one.wearer) == (heard.key.device, heard.wearer)
            )
            if known is None or known.epsilon < own:
                self.fault(f"{heard.key.device}: more of a wearer was published than the ledger on the disk has")

    def weigh_marks(self, mark_of: Callable[[StreamKey], RowMark | None]) -> None:
        """A life begins: it must refuse all that was heard, whatever became of the file."""
        for key, (session, chunk) in self._last.items():
            mark = mark_of(key)
            if mark is None or mark < (session, chunk * N):
                self.fault(f"{key}: a life begins that would release chunk {chunk} of session {session} again")

    def spent(self, device: str) -> int:
        """Epsilon of all that was heard of a device."""
        return sum(one.epsilon for one in self.chunks if one.key.device == device)
