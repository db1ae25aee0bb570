"""A device under everything that may happen, in any order, with clocks as they come."""

import math

import numpy as np
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from eyestream.core.chunking.chunks import DueChunk, RowSpan
from eyestream.core.chunking.device import Device
from eyestream.core.reservation import RowMark
from eyestream.wire.envelope import MAX_U64
from eyestream.wire.raw import RawRows
from tests.product.device.device_streams import SESSION, balanced, settings


class Life(RuleBasedStateMachine):
    """Every row carries a serial number of its own, so that what comes out says which arrival it was."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.seq, self.session, self.serial = 0.0, 0, SESSION, 1
        self.arrived: dict[tuple[int, int], list[float]] = {}
        self.out: list[DueChunk] = []
        self.released: set[tuple[int, int]] = set()
        self.ended: set[int] = set()
        self.after_end: set[float] = set()
        self.reserved: RowSpan | None = None
        self.held = 0

    @initialize(
        release=st.sampled_from(["on_row", "on_clock"]),
        n=st.sampled_from([1, 2, 4, 8]),
        mark=st.none() | st.builds(RowMark, st.integers(SESSION - 1, SESSION), st.integers(0, 12)),
    )
    def begin(self, release: str, n: int, mark: RowMark | None) -> None:
        self.device = Device(settings(n=n, release=release, idle_s=6.0, names=("a", "b")), mark)
        self.mark = mark

    def send(self, seq: int, m: int, session: int, end: bool = False) -> None:
        seq = min(max(seq, 0), MAX_U64 - m)
        rows = np.arange(self.serial, self.serial + m, dtype=np.float32)[:, None].repeat(2, axis=1)
        for i in range(m):
            self.arrived.setdefault((session, seq + i), []).append(float(rows[i, 0]))
        if session in self.ended:
            self.after_end |= set(rows[:, 0].tolist())
        self.serial += m
        out = self.device.feed(RawRows(session, seq, rows, end), self.now)
        assert self.device.settings.release == "on_row" or not out
        self.take(out)

    def take(self, chunks: list[DueChunk]) -> None:
        for chunk in chunks:
            span, last = chunk.span, self.out[-1].span if self.out else None
            if span.index > 0:
                assert last is not None
                assert last.session == span.session
                assert (span.index, span.first_row) == (last.index + 1, last.last_row + 1)
                assert not self.out[-1].ends_session
            elif last is not None:
                assert (span.session, span.first_row) > (last.session, last.last_row)
            assert chunk.t0 == span.index * self.device.settings.chunk_s
            assert self.mark is None or RowMark(span.session, span.first_row) > self.mark
            for row, column in zip(range(span.first_row, span.last_row + 1), chunk.values.T, strict=True):
                assert (span.session, row) not in self.released
                self.released.add((span.session, row))
                if not np.isnan(column[0]):
                    assert column[0] in self.arrived[span.session, row]
                    assert column[0] not in self.after_end
                    self.held += 1
            self.out.append(chunk)

    @rule(m=st.integers(0, 11))
    def next_rows(self, m: int) -> None:
        self.send(self.seq, m, self.session)
        self.seq += m

    @rule(m=st.integers(1, 5), skip=st.integers(1, 14))
    def lose(self, m: int, skip: int) -> None:
        self.seq += skip
        self.next_rows(m)

    @rule(m=st.integers(1, 9), back=st.integers(1, 12))
    def repeat(self, m: int, back: int) -> None:
        self.send(self.seq - back, m, self.session)

    @rule(seq=st.integers(0, MAX_U64), m=st.integers(0, 9), session=st.sampled_from([0, SESSION - 1, SESSION]))
    def from_anywhere(self, seq: int, m: int, session: int) -> None:
        self.send(seq, m, session)

    @rule(end=st.booleans(), at=st.integers(0, 20))
    def begin_session(self, end: bool, at: int) -> None:
        if end:
            self.send(self.seq, 0, self.session, end=True)
            assert self.device.session is None or self.device.session > self.session
            self.ended |= {self.session}
        self.session += 1
        self.seq = at

    @rule(seconds=st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 5.0, 7.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.device.tick(self.now))

    @rule(far=st.sampled_from([10**6, 2**40, MAX_U64 - 99]), m=st.integers(1, 9))
    def jump(self, far: int, m: int) -> None:
        self.send(far + self.seq % 8, m, self.session)

    @rule(skip=st.integers(0, 30))
    def fall_silent_and_go_on(self, skip: int) -> None:
        """Also where the sidecar alone did not hear it: the first row that nothing was made of is taken."""
        self.pass_time(7.0)
        assert self.device.session is None
        refused = [row for session, row in self.released if session == self.session]
        if self.mark is not None and self.mark.session == self.session:
            refused.append(self.mark.last_row | (self.device.settings.n - 1))
        at = max([self.seq + skip, *(row + 1 for row in refused)])
        if self.device.settings.release == "on_row" and at < MAX_U64:
            self.send(at, 1, self.session)
            assert self.device.session == self.session
            self.seq = at + 1

    @rule(odd=st.sampled_from([math.nan, math.inf, -math.inf, -1e9, 0.0, 2.0**63, 1e308]))
    def misread(self, odd: float) -> None:
        self.take(self.device.tick(odd))
        self.take(self.device.tick(self.now))

    @precondition(lambda self: self.device.next_due() is not None)
    @rule()
    def wait(self) -> None:
        before, waited = (self.device.session, len(self.out)), self.device.next_due()
        assert waited is not None
        self.now = max(self.now, waited)
        self.take(self.device.tick(self.now))
        assert (self.device.session, len(self.out)) != before or self.device.next_due() != waited

    @rule()
    def stop(self) -> None:
        self.take(self.device.close(self.now))
        assert self.device.session is None
        assert self.device.open_chunk is None
        assert self.device.next_due() is None
        assert self.held == self.device.counters.accepted

    @invariant()
    def rows_are_conserved(self) -> None:
        if hasattr(self, "device"):
            assert balanced(self.device)
            assert self.device.counters.rows == self.serial - 1
            assert self.held <= self.device.counters.accepted

    @invariant()
    def the_open_chunk_is_new(self) -> None:
        """What is reserved while open is not out, and comes out as reserved."""
        span = self.device.open_chunk if hasattr(self, "device") else None
        if span is not None:
            assert (span.session, span.first_row) not in self.released
            assert span.session == self.device.session
        if self.reserved is not None and self.reserved != span and self.device.settings.release == "on_row":
            assert self.reserved in [chunk.span for chunk in self.out]
        self.reserved = span

    @invariant()
    def something_is_awaited_while_a_session_lasts(self) -> None:
        if hasattr(self, "device") and self.device.session is not None:
            assert self.device.next_due() is not None

    def teardown(self) -> None:
        if hasattr(self, "device"):
            self.stop()


TestLife = Life.TestCase
TestLife.settings = hypothesis_settings(max_examples=60, stateful_step_count=40)
