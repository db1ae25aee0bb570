"""Random lives of a ledger against a naive model that keeps every row and every slot."""

import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.reservation import Granted, Request
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams.key import StreamKey

DEVICES = st.sampled_from(["a", "b"])


class LedgerLife(RuleBasedStateMachine):
    """Any session and first row may be asked for; chunk length and window change with restarts."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger"
        self.rows = defaultdict(set)  # every row that was ever released
        self.slots = defaultdict(list)  # (w, ceiling of the window, epsilon), also of withheld slots
        self.sessions = defaultdict(int)
        self.day = 0

    @initialize()
    def begin(self):
        create_ledger(self.path, created=0)
        self.ledger = None
        self.restart(4, 3)

    @rule(chunk=st.sampled_from([2, 4, 8]), window=st.sampled_from([0, 1, 3, 5]))
    def restart(self, chunk, window):
        if self.ledger is not None:
            self.ledger.close()
        self.chunk = chunk
        self.ceilings = Ceilings(window, 3 + window if window else None, session=30)
        self.ledger = Ledger(self.path, ceilings=self.ceilings)

    @rule()
    def restart_as_before(self):
        self.restart(self.chunk, self.ceilings.window_chunks)

    @rule(asked=st.lists(st.tuples(DEVICES, st.integers(0, 2), st.integers(0, 6), st.integers(1, 4)), max_size=5))
    def ask_anything(self, asked):
        self.reserve([self.request(device, session, row, cost) for device, session, row, cost in asked])

    @rule(device=DEVICES, forward=st.integers(0, 1), cost=st.integers(1, 4), times=st.integers(1, 6))
    def go_on(self, device, forward, cost, times):
        for _ in range(times):
            mark = self.ledger.mark(StreamKey(device, "s")) or (0, -1)
            session, row = (mark[0] + 1, 0) if forward else (mark[0], mark[1] + 1)
            self.reserve([self.request(device, session, row, cost)])
            forward = 0

    def request(self, device, session, row, cost):
        return Request(StreamKey(device, "s"), session, row, row + self.chunk - 1, self.chunk, Charge(cost))

    def reserve(self, requests):
        self.day += 1
        for answer in self.ledger.reserve(requests, self.day):
            asked = answer.request
            released = isinstance(answer, Granted)
            if released:
                rows = {(asked.session, row) for row in range(asked.first_row, asked.last_row + 1)}
                assert not rows & self.rows[asked.device], "a row was released twice"
                self.rows[asked.device] |= rows
                self.sessions[asked.device, asked.session] += asked.charge.epsilon
                assert self.sessions[asked.device, asked.session] <= self.ceilings.session
            if released or answer.obstacle not in {"rows", "change"}:
                cost = asked.charge.epsilon if released else 0
                self.slots[asked.device].append((self.ceilings.window_chunks, self.ceilings.window, cost))

    @invariant()
    def no_window_is_above_its_ceiling(self):
        for slots in self.slots.values():
            for i, (window, ceiling, cost) in enumerate(slots):
                for first in range(max(0, i - window + 1), i + 1) if cost and window else ():
                    assert sum(other for _, _, other in slots[first : first + window]) <= ceiling

    @invariant()
    def the_file_says_what_the_ledger_says(self):
        for name, odometer in read_ledger(self.path).odometers.items():
            device = name.split("/")[0]
            assert odometer == self.ledger.odometer(device)
            assert odometer.epsilon == sum(cost for _, _, cost in self.slots[device])
            assert odometer.released + odometer.withheld == len(self.slots[device])

    def teardown(self):
        self.ledger.close()
        self.folder.cleanup()


LedgerLife.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLedgerLife = LedgerLife.TestCase
