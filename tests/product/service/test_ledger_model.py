"""Random lives of a ledger against a naive model that keeps every row and every slot."""

import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request, RowMark
from eyestream.rim.ledger import writer
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams import StreamKey

KEYS = st.sampled_from([StreamKey("a", "s"), StreamKey("a", "t"), StreamKey("b", "s")])
WEARERS = st.integers(0, 2)
OF_A_WEARER = Ceilings(day=5, lifetime=24)
OF_T = {"t": Ceilings(lifetime=20)}


class LedgerLife(RuleBasedStateMachine):
    """Any session and first row may be asked for; chunk length and window change with restarts; so does the file."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger"
        self.rows = defaultdict(set)  # every row that was ever released
        self.slots = defaultdict(list)  # by device: (w, ceiling of the window, epsilon), also of withheld slots
        self.spent = defaultdict(int)  # by stream
        self.worn = defaultdict(list)  # by device and wearer: (day, epsilon)
        self.unsettled = defaultdict(list)
        self.sessions = {}
        self.day = 0
        self.bounds = writer._MANY_RECORDS, writer._TOO_MANY_RECORDS

    @initialize()
    def begin(self):
        create_ledger(self.path, created=0)
        self.ledger = None
        self.restart(4, 3, rewritten=False)

    @rule(chunk=st.sampled_from([2, 4, 8]), window=st.sampled_from([0, 1, 3, 5]), rewritten=st.booleans())
    def restart(self, chunk, window, rewritten):
        if self.ledger is not None:
            self.ledger.close()
        self.chunk = chunk
        self.ceilings = Ceilings(
            window, 3 + window if window else None, session=30, lifetime=80, wearer=OF_A_WEARER, streams=OF_T
        )
        writer._MANY_RECORDS, writer._TOO_MANY_RECORDS = (1, 12) if rewritten else self.bounds
        self.ledger = Ledger(self.path, ceilings=self.ceilings, passed=lambda: self.day * 86_400.0)

    @rule(rewritten=st.booleans())
    def restart_as_before(self, rewritten):
        self.restart(self.chunk, self.ceilings.window_chunks, rewritten)

    @rule(asked=st.lists(st.tuples(KEYS, st.integers(0, 2), st.integers(0, 6), st.integers(1, 4), WEARERS), max_size=5))
    def ask_anything(self, asked):
        self.reserve([self.request(*given) for given in asked])

    @rule(
        key=KEYS,
        forward=st.integers(0, 1),
        cost=st.integers(1, 4),
        times=st.integers(1, 6),
        ahead=st.booleans(),
        wearer=WEARERS,
    )
    def go_on(self, *, key, forward, cost, times, ahead, wearer):
        for _ in range(times):
            mark = self.ledger.mark(key) or (0, -1)
            session, row = (mark[0] + 1, 0) if forward else (mark[0], mark[1] + 1)
            self.reserve([self.request(key, session, row, cost, wearer, ahead=ahead)], forward)
            forward = 0

    @rule(key=KEYS, which=st.integers(0, 20))
    def settle(self, key, which):
        if which < len(self.unsettled[key]):
            done = self.unsettled[key].pop(which)
            self.ledger.settle(key, RowMark(done.session, done.last_row), reference=which)

    def request(self, key, session, row, cost, wearer, *, ahead=False):
        return Request(key, session, row, row + self.chunk - 1, self.chunk, Charge(cost), wearer, write_ahead=ahead)

    def reserve(self, requests, days=1):
        self.day += days
        for answer in self.ledger.reserve(requests, self.day):
            asked, key = answer.request, answer.request.key
            released = isinstance(answer, Granted)
            if not released and answer.obstacle in {"rows", "change"}:
                continue
            cost = asked.charge.epsilon if released else 0
            self.slots[key.device].append((self.ceilings.window_chunks, self.ceilings.window, cost))
            before = self.sessions.get(key, (asked.session, 0))
            self.sessions[key] = (asked.session, cost + (before[1] if before[0] == asked.session else 0))
            self.spent[key] += cost
            if released:
                rows = {(asked.session, row) for row in range(asked.first_row, asked.last_row + 1)}
                assert not rows & self.rows[key], "a row was released twice"
                self.rows[key] |= rows
                if asked.wearer:
                    self.worn[key.device, asked.wearer].append((self.day, cost))
                self.check_sums(key)
                if asked.write_ahead:
                    self.unsettled[key].append(asked)

    def check_sums(self, key):
        session = sum(cost for other, (_, cost) in self.sessions.items() if other.device == key.device)
        assert session <= self.ceilings.session
        assert sum(cost for _, _, cost in self.slots[key.device]) <= self.ceilings.lifetime
        assert key.stream != "t" or self.spent[key] <= 20
        for slots in self.worn.values():
            assert sum(cost for _, cost in slots) <= OF_A_WEARER.lifetime
            assert sum(cost for day, cost in slots if day == self.day) <= OF_A_WEARER.day

    @invariant()
    def no_window_is_above_its_ceiling(self):
        for slots in self.slots.values():
            for i, (window, ceiling, cost) in enumerate(slots):
                for first in range(max(0, i - window + 1), i + 1) if cost and window else ():
                    assert sum(other for _, _, other in slots[first : first + window]) <= ceiling

    @invariant()
    def the_file_says_what_the_ledger_says(self):
        for device, odometer in read_ledger(self.path).odometers.items():
            assert odometer == self.ledger.odometer(device)
            assert odometer.epsilon == sum(cost for _, _, cost in self.slots[device])
            assert odometer.released + odometer.withheld == len(self.slots[device])
            assert odometer.wearers.keys() >= {wearer for worn, wearer in self.worn if worn == device}
            for wearer, worn in odometer.wearers.items():
                slots = self.worn[device, wearer]
                assert worn.epsilon == sum(cost for _, cost in slots)
                assert worn.day_epsilon == sum(cost for day, cost in slots if day == odometer.day)
            for name, stream in odometer.streams.items():
                assert stream.epsilon == self.spent[StreamKey(device, name)]
                assert stream.mark == self.ledger.mark(StreamKey(device, name))
        for key, spans in self.unsettled.items():
            assert self.ledger.unsettled(key) == spans

    def teardown(self):
        writer._MANY_RECORDS, writer._TOO_MANY_RECORDS = self.bounds
        self.ledger.close()
        self.folder.cleanup()


LedgerLife.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, suppress_health_check=list(HealthCheck)
)
TestLedgerLife = LedgerLife.TestCase
