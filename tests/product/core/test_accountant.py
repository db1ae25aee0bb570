"""The budget of a device in exact integers: no sum rounds, no ceiling is passed, no row is granted twice."""

import pytest

from eyestream.core.accountant import Account, Announcement, StreamAccount
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.days import Days
from eyestream.core.meter import Meter, WearerOdometer
from eyestream.core.reservation import LAST_ROW, Granted, Request, RowMark, Withheld
from eyestream.core.wearers import Wearers
from eyestream.streams import StreamKey
from tests.rigs import budget_lives, memory_ledger
from tests.rigs.memory_ledger import MemoryLedger

FREE = Ceilings()
KEY, GAZE = StreamKey("d", "s"), StreamKey("d", "gaze")


def ask(session: int, index: int, epsilon: int = 1, n: int = 32, *, delta: int = 0, key: StreamKey = KEY) -> Request:
    return Request(key, session, index * n, index * n + n - 1, n, Charge(epsilon, delta))


def run(account: Account, requests: list[Request], ceilings: Ceilings, day: int = 0, own: Ceilings = FREE) -> str:
    """One letter a request: R released, or the first letter of what stood in the way."""
    return "".join((memory_ledger.decide(account, r, ceilings, day, own) or "R")[0] for r in requests)


def spends(charge: str, ceiling: str) -> int:
    account, request = Account(), Charge.of(charge)
    ceilings = Ceilings.of(session=ceiling)
    for i in range(10**8):
        if memory_ledger.decide(account, Request(KEY, 1, i, i, 1, request), ceilings, 0):
            return i
    raise AssertionError


@pytest.mark.parametrize(("charge", "ceiling", "times"), [("1e-7", "0.01", 100_000), ("0.1", "1", 10), ("0.3", "1", 3)])
def test_spending_stops_exactly_at_the_boundary(charge, ceiling, times):
    assert spends(charge, ceiling) == times
    if times > 3:  # a sum of floats does not
        total = 0.0
        for _ in range(times):
            total += float(charge)
        assert total != float(ceiling)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ten_million_spends_of_1e_minus_7_fit_an_epsilon_of_1():
    assert spends("1e-7", "1") == 10**7


def test_the_window_is_of_slots_and_goes_on_through_sessions():
    requests = [ask(1, 0), ask(1, 1), ask(1, 2), ask(2, 0), ask(2, 1), ask(3, 0), ask(9, 7)]
    assert run(Account(), requests, Ceilings(3, 2)) == "RRwRRwR"


def test_a_gap_in_the_numbering_takes_no_slot():
    assert run(Account(), [ask(1, 0), ask(1, 1), ask(1, 900), ask(1, 901)], Ceilings(3, 2)) == "RRwR"


def test_a_window_of_one_chunk_looks_at_the_chunk_alone():
    assert run(Account(), [ask(1, 0, 5), ask(1, 1, 6), ask(1, 2, 5)], Ceilings(1, 5)) == "RwR"


def test_the_window_of_a_device_is_of_the_slots_of_all_its_streams():
    account, ceilings = Account(), Ceilings(3, 2)
    requests = [ask(1, 0), ask(1, 0, key=GAZE), ask(1, 1), ask(1, 1, key=GAZE), ask(1, 2), ask(1, 2, key=GAZE)]
    assert run(account, requests, ceilings) == "RRwRRw"
    assert [account.odometer().streams[s].released for s in ("s", "gaze")] == [2, 2]


def test_a_stream_has_a_window_of_its_own_beneath():
    """Slots of the other stream move the window of the device on, not that of the stream."""
    account, ceilings, own = Account(), Ceilings(2, 2), Ceilings(2, 1)
    for index, letter in enumerate("RwRw"):
        assert run(account, [ask(1, index)], ceilings, own=own) == letter
        assert run(account, [ask(1, index, key=GAZE)], ceilings) == "R"


def test_session_and_day_have_their_own_ceilings_and_days_never_go_back():
    account, ceilings = Account(), Ceilings(session=3, day=4)
    assert run(account, [ask(1, i) for i in range(4)], ceilings, day=10) == "RRRs"
    assert run(account, [ask(2, 0), ask(2, 1)], ceilings, day=10) == "Rd"
    assert run(account, [ask(2, 2)], ceilings, day=9) == "d"
    assert run(account, [ask(2, 3)], ceilings, day=11) == "R"
    assert run(account, [ask(3, 0), ask(3, 1), ask(3, 2), ask(4, 0)], ceilings, day=10) == "RRRd"


def test_the_session_of_a_device_is_the_current_sessions_of_all_its_streams():
    account, ceilings = Account(), Ceilings(session=4)
    assert run(account, [ask(1, 0, 2), ask(7, 0, 2, key=GAZE), ask(1, 1)], ceilings) == "RRs"
    assert run(account, [ask(2, 0, 2)], ceilings) == "R", "its first session no longer counts"
    assert run(account, [ask(2, 1), ask(7, 1, key=GAZE)], ceilings) == "ss", "the session of gaze still does"
    assert account.odometer().session_epsilon == 4


def test_a_day_and_a_lifetime_are_of_all_streams_and_a_stream_may_have_less():
    account, ceilings, own = Account(), Ceilings(day=3, lifetime=5), Ceilings(day=1, lifetime=2)
    assert run(account, [ask(1, 0), ask(1, 1)], ceilings, 1, own) == "Rd"
    assert run(account, [ask(1, i, key=GAZE) for i in range(3)], ceilings, 1) == "RRd"
    assert run(account, [ask(1, 2), ask(1, 3)], ceilings, 2, own) == "Rd"
    assert run(account, [ask(1, 4)], ceilings, 3, own) == "l"
    assert run(account, [ask(1, i, key=GAZE) for i in range(3, 6)], ceilings, 3) == "Rll"
    assert run(account, [ask(9, 0)], ceilings, 999) == "l"


def test_where_the_device_and_the_stream_both_forbid_the_ceiling_of_the_device_is_named():
    for ceilings, own, letter in (
        (Ceilings(day=1), Ceilings(lifetime=1), "d"),
        (Ceilings(lifetime=1), Ceilings(day=1), "l"),
        (FREE, Ceilings(day=1), "d"),
    ):
        assert run(Account(), [ask(1, 0), ask(1, 1)], ceilings, 1, own) == f"R{letter}"


@pytest.mark.parametrize(
    ("ceilings", "letters"),
    [
        (Ceilings(2, window_delta=3), "RwR"),
        (Ceilings(session_delta=3), "Rss"),
        (Ceilings(day_delta=4), "RRd"),
        (Ceilings(lifetime_delta=5), "RRl"),
    ],
)
def test_delta_is_summed_and_has_ceilings(ceilings, letters):
    requests = [ask(1, i, delta=2) for i in range(3)]
    assert run(Account(), requests, ceilings) == letters
    assert run(Account(), requests, FREE, own=ceilings) == letters
    assert run(Account(), [ask(1, i) for i in range(3)], ceilings) == "RRR"


def test_no_row_twice_and_no_older_session():
    account = Account()
    requests = [ask(5, 0), ask(5, 0), ask(5, 2), ask(5, 1), ask(4, 9), ask(6, 0), ask(5, 3)]
    assert run(account, requests, FREE) == "RrRrrRr"
    assert account.mark("s") == RowMark(6, 31)
    assert account.mark("gaze") is None
    assert account.odometer().epsilon == 3
    assert run(account, [ask(1, 0, key=GAZE)], FREE) == "R", "the sessions and rows of a stream are its own"


@pytest.mark.parametrize(("first", "last"), [(31, 40), (0, 63), (16, 20), (31, 31)])
def test_a_single_row_in_common_is_enough_to_refuse(first, last):
    account = Account()
    run(account, [Request(KEY, 5, 0, 31, 64, Charge(1))], FREE)
    assert account.obstacle(Request(KEY, 5, first, last, 64, Charge(1)), FREE, 0) == "rows"
    assert account.obstacle(Request(KEY, 5, 32, 33, 64, Charge(1)), FREE, 0) is None


@pytest.mark.parametrize("numbers", [(-1, 0, 1), (2**64, 0, 1), (0, 2, 1), (0, -1, 1), (0, 0, 2**64)])
def test_numbers_that_the_wire_does_not_have_are_refused(numbers):
    with pytest.raises(ValueError, match="64 bits"):
        Request(KEY, *numbers, 32, Charge(1))


def test_more_rows_than_a_chunk_has_and_what_is_no_chunk_or_wearer_are_refused():
    with pytest.raises(ValueError, match="at most a chunk of rows"):
        Request(KEY, 1, 0, 32, 32, Charge(1))
    for n in (0, 2**32):
        with pytest.raises(ValueError, match="at least one row"):
            Request(KEY, 1, 0, 0, n, Charge(1))
    for wearer in (-1, 2**32):
        with pytest.raises(ValueError, match="wearer of 32 bits"):
            Request(KEY, 1, 0, 0, 1, Charge(1), wearer)


def test_rows_of_a_withheld_chunk_are_gone_too():
    assert run(Account(), [ask(1, 0), ask(1, 1), ask(1, 1), ask(1, 2)], Ceilings(2, 1)) == "RwrR"


@pytest.mark.parametrize(
    ("n1", "w1", "n2", "w2", "wait"),
    [(32, 4, 64, 4, 4), (64, 4, 32, 4, 8), (32, 4, 32, 7, 7), (32, 7, 32, 4, 7), (64, 3, 48, 1, 4), (32, 0, 64, 0, 0)],
)
def test_another_length_or_window_waits_for_a_session_and_then_for_a_full_window(n1, w1, n2, w2, wait):
    """The figures of 0.1.0, for a device with one stream; and the same beneath a device that looks at no window."""
    before, after = Ceilings(w1, 1 if w1 else None), Ceilings(w2, 1 if w2 else None)
    for first, second in (((before, FREE), (after, FREE)), ((FREE, before), (FREE, after))):
        account = Account()
        assert run(account, [ask(1, 0, n=n1)], first[0], own=first[1]) == "R"
        assert run(account, [ask(1, 5, n=n2)], second[0], own=second[1]) == "c"
        asked = [ask(2, i, n=n2) for i in range(wait + 1)]
        assert run(account, asked, second[0], own=second[1]) == "w" * wait + "R"


def test_a_change_during_the_wait_keeps_what_is_left_in_slots_and_in_rows():
    account = Account()
    run(account, [ask(1, 0, n=64)], Ceilings(4, 1))
    assert run(account, [ask(2, i) for i in range(2)], Ceilings(1, 1)) == "ww"
    assert account.odometer().streams["s"].wait == 6
    assert account.odometer().wait == 2
    assert run(account, [ask(3, i, n=16) for i in range(13)], Ceilings(1, 1)) == "w" * 12 + "R"


def test_another_length_of_one_stream_withholds_that_stream_alone():
    account, ceilings = Account(), Ceilings(2, 2)
    assert run(account, [ask(1, 0), ask(1, 0, key=GAZE)], ceilings) == "RR"
    assert run(account, [ask(2, i, n=16) for i in range(2)], ceilings) == "ww"
    assert run(account, [ask(1, i, key=GAZE) for i in range(1, 5)], ceilings) == "RRRR"
    assert run(account, [ask(2, i, n=16) for i in range(2, 5)], ceilings) == "wwR", "its own slots, whatever others did"


def test_another_window_of_the_device_withholds_all_its_streams():
    account, after = Account(), Ceilings(3, 3)
    assert run(account, [ask(1, 0), ask(1, 0, key=GAZE)], Ceilings(2, 2)) == "RR"
    assert run(account, [ask(2, 0)], after) == "w", "the first of three slots of the device"
    assert run(account, [ask(1, 1, key=GAZE)], after) == "c", "gaze is in the middle of a session"
    assert run(account, [ask(1, 1, key=GAZE)], Ceilings(2, 2)) == "c", "and the old window is gone"
    new = StreamKey("d", "new")
    assert run(account, [ask(1, i, key=new) for i in range(4)], after) == "wwRR", "a new stream waits with the device"
    assert run(account, [ask(2, i, key=GAZE) for i in range(4)], after) == "wwwR"


def test_a_stream_without_a_slot_stands_where_it_was_announced():
    account = Account()
    account.announce("s", Announcement(32, 2, 0, 1, 1, 0))
    assert account.mark("s") is None
    assert run(account, [ask(1, i, n=64) for i in range(3)], Ceilings(2, 1)) == "wwR"


def test_what_must_be_announced_before_a_slot():
    account, ceilings = Account(), Ceilings(2)

    def announcement(request, granted=True, own=FREE):
        return account.announcement(request, ceilings, own, granted=granted)

    assert announcement(ask(1, 0, 5, delta=2), granted=False) == Announcement(32, 2, 0, 1, 5, 2)
    run(account, [ask(1, 0, 5, delta=2)], ceilings)
    assert announcement(ask(1, 1, 4, delta=1)) is None
    assert announcement(ask(1, 1, 6)) == Announcement(32, 2, 0, 1, 6, 2), "a charge higher than any before"
    assert announcement(ask(1, 1, 5, delta=3)) == Announcement(32, 2, 0, 1, 5, 3)
    assert announcement(ask(2, 0, 1)) == Announcement(32, 2, 0, 2, 5, 2), "another session"
    assert announcement(ask(2, 0, 9), granted=False) is None
    assert announcement(ask(2, 0, 1, n=16), granted=False) == Announcement(16, 2, 0, 2, 5, 2)
    assert announcement(ask(2, 0), own=Ceilings(4, 9)) == Announcement(32, 2, 4, 2, 5, 2)


def test_a_damaged_record_is_spent_by_every_stream_and_closes_every_announced_session():
    account, ceilings = Account(), Ceilings(3, 9)
    run(account, [ask(1, 0, 2, delta=1), ask(4, 0, 3, key=GAZE)], ceilings, day=5)
    account.announce("s", Announcement(32, 3, 0, 2, 2, 7))
    account.take_unreadable()
    odometer = account.odometer()
    assert (odometer.epsilon, odometer.window_epsilon, odometer.day_epsilon) == (5 + 3,) * 3, "the larger of the two"
    assert (odometer.delta, odometer.unreadable) == (1 + 7, 1)
    assert (odometer.streams["s"].epsilon, odometer.streams["gaze"].epsilon) == (2 + 2, 3 + 3)
    assert odometer.session_epsilon == 4 + 6
    assert (account.mark("s"), account.mark("gaze")) == (RowMark(2, LAST_ROW), RowMark(4, LAST_ROW))
    assert run(account, [ask(2, 0), ask(4, 1, key=GAZE), ask(3, 0, 2)], ceilings) == "rrw"
    assert run(account, [ask(5, 0, 1, key=GAZE), ask(5, 1, 2, key=GAZE)], ceilings) == "RR"


def test_a_damaged_record_may_be_of_the_next_day():
    account, ceilings = Account(), Ceilings(day=4)
    run(account, [ask(1, 0, 3)], ceilings, day=5)
    account.take_unreadable()
    assert run(account, [ask(2, 0, 2), ask(2, 1, 1), ask(2, 2, 1)], ceilings, day=6) == "dRd"
    assert run(account, [ask(2, 3, 4)], ceilings, day=7) == "R"


def test_many_damaged_records_are_as_many_single_ones():
    one, many, none = Account(), Account(), Account()
    for account in (one, many):
        run(account, [ask(1, 0, 2, delta=1), ask(4, 0, 3, key=GAZE)], Ceilings(3, 9), own=Ceilings(2, 9))
    for _ in range(3):
        one.take_unreadable()
    many.take_unreadable(3)
    none.take_unreadable(3)
    assert (one.state(), one.odometer()) == (many.state(), many.odometer())
    assert none.odometer().epsilon == 0


def test_who_wears_the_device_is_counted_where_it_is_known():
    account = Account()
    for wearer, index in ((0, 0), (7, 1), (7, 2), (9, 3)):
        request = Request(KEY, 1, index, index, 1, Charge(2, 1), wearer)
        assert memory_ledger.decide(account, request, FREE, 0) is None
    assert account.odometer().wearers == {7: WearerOdometer(4, 2, 4, 2), 9: WearerOdometer(2, 1, 2, 1)}
    account.take_unreadable()
    assert account.odometer().wearers == {7: WearerOdometer(6, 3, 6, 3), 9: WearerOdometer(4, 2, 4, 2)}


def test_an_account_is_what_its_state_says():
    account, ceilings, own = Account(), Ceilings(5, 9, 30, 40, 50), Ceilings(3, 6)
    run(account, [ask(1, i, 2, delta=3) for i in range(4)] + [ask(2, 0, key=GAZE)], ceilings, 3, own)
    account.take_unreadable()
    run(account, [ask(2, i, n=16) for i in range(2)], ceilings, 4, own)
    again = Account.restored(account.state())
    assert (again.state(), again.odometer()) == (account.state(), account.odometer())
    assert (again.streams, again.chunk_of("s"), again.day) == (["s", "gaze"], 16, 4)
    rest = [ask(3, i, 1 + i % 2, n=16) for i in range(30)]
    assert run(again, rest, ceilings, 5, own) == run(account, rest, ceilings, 5, own)
    assert Account.restored(Account().state()).state() == Account().state()


def test_a_ledger_in_memory_decides_as_accounts_do():
    ledger = MemoryLedger(Ceilings(lifetime=3, streams={"gaze": Ceilings(lifetime=1)}))
    assert (ledger.mark(KEY), ledger.odometer("d")) == (None, None)
    asked = [ask(1, 0), ask(1, 0, key=GAZE), ask(1, 1, key=GAZE), ask(1, 1), ask(1, 2)]
    answers = ledger.reserve(asked, 7)
    assert answers[:2] == [Granted(asked[0]), Granted(asked[1])]
    assert answers[2:] == [Withheld(asked[2], "lifetime"), Granted(asked[3]), Withheld(asked[4], "lifetime")]
    assert ledger.reserve([ask(1, 0)], 7) == [Withheld(ask(1, 0), "rows")]
    assert (ledger.mark(KEY), ledger.odometer("d").epsilon) == (RowMark(1, 95), 3)


def test_no_ceiling_is_passed_in_random_lives():
    assert budget_lives.count(1500, seed=7) == 0


def restarts_with_session(take):
    def wrong(self, stream, session, last_row, **slot):
        known = self._streams[stream]
        if session != known.session:
            self._meter.turn(self._meter.window, self._meter.wait)
        take(self, stream, session, last_row, **slot)

    return wrong


def one_window_a_stream(obstacle):
    """The device asks the stream's own sums."""

    def wrong(self, ceilings, charge, session, day):
        return None if ceilings.lifetime == 60 and self.released % 2 else obstacle(self, ceilings, charge, session, day)

    return wrong


def goes_back(obstacle):
    def wrong(self, request, ceilings, today, own=FREE):
        found = obstacle(self, request, ceilings, today, own)
        return None if found == "day" and today < self.day else found

    return wrong


def forgets_a_day_when_it_turns(turn_to):
    """A day that the clock comes back to begins empty."""

    def wrong(self, day, last_day):
        turn_to(self, day, last_day)
        self.other_days = ()

    return wrong


def empties_when_withheld(take):
    """The window over released chunks would be safe; one that a withheld chunk empties is not."""

    def wrong(self, day, epsilon, delta, last_day):
        take(self, day, epsilon, delta, last_day)
        if not epsilon and self._slots:
            gone = self._slots.popleft()
            self.window_epsilon -= gone[0]
            self.window_delta -= gone[1]

    return wrong


def forgets_other_sessions(charge):
    def wrong(self, stream, epsilon, delta):
        charge(self, stream, epsilon, delta)
        self._session_epsilon, self._session_delta = stream.session_epsilon, stream.session_delta

    return wrong


FAULTS = {
    "the window begins anew with a session": (Account, "take", restarts_with_session),
    "the span of a window is one short": (
        Meter,
        "_newest_epsilon",
        lambda right: (
            lambda self: (
                sum(e for e, _ in list(self._slots)[2:]) if len(self._slots) == self.window else self.window_epsilon
            )
        ),
    ),
    "delta has no window": (Meter, "_newest_delta", lambda right: lambda self: 0),
    "a withheld chunk empties the window": (Meter, "take", empties_when_withheld),
    "every second release is not looked at": (Meter, "obstacle", one_window_a_stream),
    "a stream waits for nothing": (StreamAccount, "wait_for", lambda right: lambda self, *shape: 0),
    "a stream waits in slots only": (
        StreamAccount,
        "wait_for",
        lambda right: (
            lambda self, n, w, own: (
                self.meter.wait
                if (n, w, own) == (self.chunk, self.window, self.meter.window)
                else max(self.window, self.meter.window, w, own, self.meter.wait)
            )
        ),
    ),
    "a stream forgets the rest of its wait": (
        StreamAccount,
        "wait_for",
        lambda right: (
            lambda self, n, w, own: (
                self.meter.wait
                if (n, w, own) == (self.chunk, self.window, self.meter.window)
                else max(w, own, -(-max(self.window, self.meter.window) * self.chunk // n))
            )
        ),
    ),
    "the device does not wait": (Meter, "turn", lambda right: lambda self, window, wait: right(self, window, 0)),
    "the day goes back": (Account, "obstacle", goes_back),
    "a day that comes again begins empty": (Meter, "_turn_to", forgets_a_day_when_it_turns),
    "a day that is over is opened": (Days, "of", lambda right: lambda self, today: today),
    "the sessions of other streams do not count": (Account, "_charge", forgets_other_sessions),
    "no ceiling of a wearer is looked at": (Wearers, "forbids", lambda right: lambda self, *given: False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_random_lives_would_show_a_faulty_budget(fault, monkeypatch):
    owner, name, change = FAULTS[fault]
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    assert next(budget_lives.violations(1500, seed=7), None)
