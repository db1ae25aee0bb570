"""The budget in exact integers: no sum rounds, no ceiling is passed, no row is granted twice."""

from fractions import Fraction

import numpy as np
import pytest

from eyestream.privacy.accountant import LAST_ROW, Account, Request, RowMark
from eyestream.privacy.charge import Ceilings, Charge, ceiling_units, charge_units
from eyestream.testing import budget_lives

FREE = Ceilings()


def ask(session: int, chunk_index: int, epsilon: int = 1, n: int = 32) -> Request:
    return Request("d", "s", session, chunk_index * n, chunk_index * n + n - 1, Charge(epsilon))


def run(account: Account, requests: list[Request], ceilings: Ceilings, n: int = 32, day: int = 0) -> str:
    """One letter a request: R released, or the first letter of what stood in the way."""
    letters = ""
    for request in requests:
        obstacle = account.obstacle(request, n, ceilings, day)
        letters += (obstacle or "R")[0]
        if obstacle not in {"rows", "change"}:
            account.take(
                request.session,
                request.last_row,
                chunk=n,
                window=ceilings.window_chunks,
                day=account.day_of(day),
                epsilon=0 if obstacle else request.charge.epsilon,
            )
    return letters


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (0.1, 10**11, 10**11),
        ("0.1", 10**11, 10**11),
        (np.float64(4.8), 48 * 10**11, 48 * 10**11),
        (1e-7, 10**5, 10**5),
        ("0.0000000000001", 1, 0),
        (Fraction(1, 3), 333333333334, 333333333333),
        (2, 2 * 10**12, 2 * 10**12),
    ],
)
def test_charges_round_up_and_ceilings_down_from_the_decimal_that_was_written(value, up, down):
    assert (charge_units(value), ceiling_units(value)) == (up, down)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, "nan", "-1", "much"])
def test_what_is_no_amount_is_refused(value):
    with pytest.raises(ValueError, match="expected a"):
        charge_units(value)
    with pytest.raises(ValueError, match="expected a"):
        ceiling_units(value)


@pytest.mark.parametrize("units", [(0, 0), (-1, 0), (2**64, 0), (1, -1), (1, 10**18 + 1), (10**19 + 1, 0)])
def test_a_release_always_costs_something(units):
    with pytest.raises(ValueError, match="expected a charge"):
        Charge(*units)


def spends(charge: str, ceiling: str) -> int:
    account, request = Account(1, 0), Charge.of(charge)
    ceilings = Ceilings.of(session=ceiling)
    for i in range(10**8):
        if account.obstacle(Request("d", "s", 1, i, i, request), 1, ceilings, 0):
            return i
        account.take(1, i, chunk=1, window=0, day=0, epsilon=request.epsilon)
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
    account, ceilings = Account(32, 3), Ceilings(3, 2)
    requests = [ask(1, 0), ask(1, 1), ask(1, 2), ask(2, 0), ask(2, 1), ask(3, 0), ask(9, 7)]
    assert run(account, requests, ceilings) == "RRwRRwR"


def test_a_gap_in_the_numbering_takes_no_slot():
    account, ceilings = Account(32, 3), Ceilings(3, 2)
    assert run(account, [ask(1, 0), ask(1, 1), ask(1, 900), ask(1, 901)], ceilings) == "RRwR"


def test_a_window_of_one_chunk_looks_at_the_chunk_alone():
    assert run(Account(32, 1), [ask(1, 0, 5), ask(1, 1, 6), ask(1, 2, 5)], Ceilings(1, 5)) == "RwR"


def test_session_and_day_have_their_own_ceilings_and_days_never_go_back():
    account, ceilings = Account(32, 0), Ceilings(session=3, day=4)
    assert run(account, [ask(1, i) for i in range(4)], ceilings, day=10) == "RRRs"
    assert run(account, [ask(2, 0), ask(2, 1)], ceilings, day=10) == "Rd"
    assert run(account, [ask(2, 2)], ceilings, day=9) == "d"
    assert run(account, [ask(2, 3)], ceilings, day=11) == "R"
    assert run(account, [ask(3, 0), ask(3, 1), ask(3, 2), ask(4, 0)], ceilings, day=10) == "RRRd"


def test_no_row_twice_and_no_older_session():
    account = Account(32, 0)
    requests = [ask(5, 0), ask(5, 0), ask(5, 2), ask(5, 1), ask(4, 9), ask(6, 0), ask(5, 3)]
    assert run(account, requests, FREE) == "RrRrrRr"
    assert account.mark == RowMark(6, 31)
    assert account.odometer().epsilon == 3


@pytest.mark.parametrize(("first", "last"), [(31, 40), (0, 63), (16, 20), (31, 31)])
def test_a_single_row_in_common_is_enough_to_refuse(first, last):
    account = Account(32, 0)
    run(account, [ask(5, 0)], FREE)
    assert account.obstacle(Request("d", "s", 5, first, last, Charge(1)), 32, FREE, 0) == "rows"
    assert account.obstacle(Request("d", "s", 5, 32, 33, Charge(1)), 32, FREE, 0) is None


@pytest.mark.parametrize("numbers", [(-1, 0, 1), (2**64, 0, 1), (0, 2, 1), (0, -1, 1), (0, 0, 2**64)])
def test_numbers_that_the_wire_does_not_have_are_refused(numbers):
    with pytest.raises(ValueError, match="64 bits"):
        Request("d", "s", *numbers, Charge(1))


@pytest.mark.parametrize("arguments", [(0, 1), (-1,), (2**32, 1)])
def test_a_window_has_a_length(arguments):
    with pytest.raises(ValueError, match="window"):
        Ceilings(*arguments)


def test_rows_of_a_withheld_chunk_are_gone_too():
    account, ceilings = Account(32, 2), Ceilings(2, 1)
    assert run(account, [ask(1, 0), ask(1, 1), ask(1, 1), ask(1, 2)], ceilings) == "RwrR"


@pytest.mark.parametrize(
    ("n1", "w1", "n2", "w2", "wait"),
    [(32, 4, 64, 4, 4), (64, 4, 32, 4, 8), (32, 4, 32, 7, 7), (32, 7, 32, 4, 7), (64, 3, 48, 1, 4), (32, 0, 64, 0, 0)],
)
def test_another_length_or_window_waits_for_a_session_and_then_for_a_full_window(n1, w1, n2, w2, wait):
    account = Account(n1, w1)
    before, after = Ceilings(w1, 1 if w1 else None), Ceilings(w2, 1 if w2 else None)
    assert run(account, [ask(1, 0, n=n1)], before, n=n1) == "R"
    assert run(account, [ask(1, 5, n=n2)], after, n=n2) == "c"
    assert run(account, [ask(2, i, n=n2) for i in range(wait + 1)], after, n=n2) == "w" * wait + "R"


def test_a_change_during_the_wait_keeps_what_is_left_in_slots_and_in_rows():
    account = Account(64, 4)
    run(account, [ask(1, 0, n=64)], Ceilings(4, 1), n=64)
    assert run(account, [ask(2, i) for i in range(2)], Ceilings(1, 1)) == "ww"
    assert account.odometer().wait == 6
    assert run(account, [ask(3, i, n=16) for i in range(13)], Ceilings(1, 1), n=16) == "w" * 12 + "R"


def test_a_device_without_a_slot_stands_at_the_header():
    assert run(Account(32, 2), [ask(1, i, n=64) for i in range(3)], Ceilings(2, 1), n=64) == "wwR"


def test_a_torn_record_is_spent_and_closes_the_session():
    account, ceilings = Account(32, 3), Ceilings(3, 4)
    run(account, [ask(1, 0, 2)], ceilings)
    account.take_unreadable(None, 2, 7)
    assert account.mark == RowMark(1, LAST_ROW)
    assert account.odometer().epsilon == account.odometer().window_epsilon == 4
    assert account.odometer().delta == 7
    assert run(account, [ask(1, 9), ask(2, 0), ask(2, 1), ask(2, 2)], ceilings) == "rwwR"


def test_no_ceiling_is_passed_in_random_lives():
    assert budget_lives.count(1500, seed=7) == 0


class RestartsWithSession(Account):
    __slots__ = ()

    def take(self, session, last_row, **slot):
        if session != self._session:
            self._slots.clear()
            self._window_epsilon = 0
        super().take(session, last_row, **slot)


class ShortSpan(Account):
    __slots__ = ()

    def _newest_slots(self):
        return sum(list(self._slots)[2:]) if len(self._slots) == self._window else sum(self._slots)


class CountsReleasedOnly(Account):
    """The window over released chunks would be safe; one that a withheld chunk empties is not."""

    __slots__ = ()

    def take(self, session, last_row, *, epsilon=0, **slot):
        super().take(session, last_row, epsilon=epsilon, **slot)
        if not epsilon and self._slots:
            self._slots.popleft()
            self._window_epsilon = sum(self._slots)


class NoWait(Account):
    __slots__ = ()

    def _wait_after_change(self, chunk, window):
        return 0


class WaitsForOldWindow(Account):
    __slots__ = ()

    def _wait_after_change(self, chunk, window):
        return max(self._window, self._wait)


class WaitsInSlotsOnly(Account):
    __slots__ = ()

    def _wait_after_change(self, chunk, window):
        return max(self._window, window, self._wait)


class ForgetsTheWait(Account):
    __slots__ = ()

    def _wait_after_change(self, chunk, window):
        return max(self._window, window, -(-self._window * self._chunk // chunk))


class DayGoesBack(Account):
    __slots__ = ()

    def obstacle(self, request, chunk, ceilings, today):
        found = super().obstacle(request, chunk, ceilings, today)
        return None if found == "day" and today < self._day else found


@pytest.mark.parametrize(
    "fault",
    [
        RestartsWithSession,
        ShortSpan,
        CountsReleasedOnly,
        NoWait,
        WaitsForOldWindow,
        WaitsInSlotsOnly,
        ForgetsTheWait,
        DayGoesBack,
    ],
)
def test_the_random_lives_would_show_a_faulty_budget(fault):
    assert budget_lives.count(1500, seed=7, kind=fault) > 0
