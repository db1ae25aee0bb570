"""The rules of a device's life, one by one."""

from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np
import pytest

from eyestream.core.chunking.chunks import RowSpan
from eyestream.core.chunking.device import Device
from eyestream.core.reservation import RowMark
from eyestream.errors import ConfigError, PayloadError
from eyestream.wire.envelope import MAX_U64
from eyestream.wire.raw import RawRows
from tests.product.device.device_streams import SESSION, balanced, columns, message, seen, settings


def counted(device: Device) -> dict[str, int]:
    assert balanced(device)
    return {name: count for name, count in asdict(device.counters).items() if count}


def test_a_chunk_closes_at_its_last_row() -> None:
    device = Device(settings())
    assert device.feed(message(0, 3), 0.0) == []
    assert device.open_chunk == RowSpan(SESSION, 0, 0, 3)
    (due,) = device.feed(message(3), 1.5)
    assert due.t0 == 0.0
    assert due.span == RowSpan(SESSION, 0, 0, 3)
    assert not due.ends_session
    np.testing.assert_array_equal(due.values, np.arange(4) + 1000.0 * np.arange(3)[:, None])
    assert due.values.dtype == np.float64
    assert due.values.flags.c_contiguous
    assert not due.values.flags.writeable
    assert device.open_chunk is None
    assert device.session == SESSION


def test_a_row_of_a_later_chunk_closes_and_makes_those_between_fall_due() -> None:
    device = Device(settings())
    device.feed(message(1, 2), 0.0)
    dues = device.feed(message(13), 1.0)
    assert [columns(due) for due in dues] == [[None, 1.0, 2.0, None], [None] * 4, [None] * 4]
    assert [due.span.index for due in dues] == [0, 1, 2]
    assert [due.t0 for due in dues] == [0.0, 2.0, 4.0]
    assert device.open_chunk == RowSpan(SESSION, 3, 12, 15)


def test_numbering_begins_where_the_first_row_is() -> None:
    device = Device(settings())
    dues = device.feed(message(4002, 6), 0.0)
    assert [(due.span.index, due.span.first_row, due.t0) for due in dues] == [(0, 4000, 0.0), (1, 4004, 2.0)]
    assert columns(dues[0])[:2] == [None, None]


def test_rows_of_a_closed_chunk_are_late() -> None:
    device = Device(settings())
    device.feed(message(0, 2), 0.0)
    device.feed(message(3), 0.0)  # the last row overtook the one before it
    assert device.feed(message(2), 0.0) == []
    assert counted(device) == {"rows": 4, "accepted": 3, "late": 1}


@pytest.mark.parametrize("first_is_missing", [False, True])
def test_first_arrival_of_a_row_wins_also_when_it_was_a_lost_eye(first_is_missing: bool) -> None:
    device = Device(settings())
    first = message(1)
    if first_is_missing:
        first = RawRows(SESSION, 1, np.full((1, 3), np.nan, np.float32))
    device.feed(first, 0.0)
    (due,) = device.feed(message(0, 4, mark=0.5), 0.0)
    assert columns(due) == [0.5, None if first_is_missing else 1.0, 2.5, 3.5]
    assert counted(device) == {"rows": 5, "accepted": 4, "duplicate": 1}


def test_infinite_values_are_missing_and_counted_nowhere() -> None:
    rows = np.array([[np.inf, 1, -np.inf]] * 4, dtype=np.float32)
    device, other = Device(settings()), Device(settings())
    (due,) = device.feed(RawRows(SESSION, 0, rows), 0.0)
    other.feed(message(0, 4), 0.0)
    np.testing.assert_array_equal(due.values, [[np.nan] * 4, [1.0] * 4, [np.nan] * 4])
    assert device.counters == other.counters


def test_a_jump_too_far_stops_the_session_and_the_rows_after_it_begin_it_anew() -> None:
    """A tracker that was not heard for a while goes on, and is heard; nothing in between falls due."""
    device = Device(settings(jump_chunks=3))
    device.feed(message(0, 2), 0.0)
    stopped, anew = device.feed(message(16, 5), 0.0)
    assert (columns(stopped), stopped.ends_session) == ([0.0, 1.0, None, None], True)
    assert (columns(anew), anew.span.index, anew.span.first_row, anew.t0) == ([None, 17.0, 18.0, 19.0], 0, 16, 0.0)
    assert device.open_chunk == RowSpan(SESSION, 1, 20, 23)
    assert device.feed(message(2, 8), 0.0) == []
    assert counted(device) == {"rows": 15, "accepted": 6, "jump": 1, "refused": 2, "late": 6}


def test_a_single_row_from_the_far_future_costs_the_rest_of_its_chunk() -> None:
    device = Device(settings(jump_chunks=3))
    device.feed(message(0, 2), 0.0)
    (stopped,) = device.feed(message(2**40), 0.0)
    assert (columns(stopped), device.session) == ([0.0, 1.0, None, None], None)
    (due,) = device.feed(message(2, 6), 0.0)
    assert (columns(due), due.span.index, due.span.first_row) == ([4.0, 5.0, 6.0, 7.0], 0, 4)
    assert counted(device) == {"rows": 9, "accepted": 6, "jump": 1, "refused": 2}


def test_an_end_holds_for_a_session_that_stopped_too() -> None:
    device = Device(settings(jump_chunks=3))
    device.feed(message(0, 2), 0.0)
    device.feed(message(100), 0.0)
    device.feed(message(2, 0, end=True), 0.0)
    assert device.feed(message(4, 4), 0.0) == []
    assert counted(device) == {"rows": 7, "accepted": 2, "jump": 1, "stale_session": 4}


def test_the_longest_jump_is_taken() -> None:
    device = Device(settings(jump_chunks=3))
    device.feed(message(0, 2), 0.0)
    assert len(device.feed(message(12), 0.0)) == 3
    assert counted(device) == {"rows": 3, "accepted": 3}


def test_jump_is_measured_from_the_awaited_chunk() -> None:
    device = Device(settings(jump_chunks=3))
    device.feed(message(0, 4), 0.0)
    assert [columns(due) for due in device.feed(message(16), 0.0)] == [[None] * 4] * 3
    assert device.open_chunk == RowSpan(SESSION, 4, 16, 19)


def test_a_newer_session_closes_the_older_one_for_ever() -> None:
    device = Device(settings())
    device.feed(message(0, 2), 0.0)
    (due,) = device.feed(message(40, 2, session=6), 0.0)
    assert (due.span.session, due.ends_session) == (SESSION, True)
    assert device.open_chunk == RowSpan(6, 0, 40, 43)
    for old in (SESSION, 4, 0):
        assert device.feed(message(2, 6, session=old), 0.0) == []
        assert device.feed(message(2, 0, session=old, end=True), 0.0) == []
    assert device.session == 6
    assert counted(device) == {"rows": 22, "accepted": 4, "stale_session": 18}


@pytest.mark.parametrize("with_rows", [False, True])
def test_end_closes_the_session_and_the_partial_chunk_is_due(with_rows: bool) -> None:
    device = Device(settings())
    device.feed(message(0, 4), 0.0)
    if with_rows:
        (due,) = device.feed(message(4, 2, end=True), 0.0)
    else:
        device.feed(message(4, 2), 0.0)
        (due,) = device.feed(message(6, 0, end=True), 0.0)
    assert columns(due) == [4.0, 5.0, None, None]
    assert due.ends_session
    assert device.session is None
    assert device.next_due() is None
    device.feed(message(6), 0.0)
    assert device.counters.stale_session == 1
    assert device.feed(message(0, 1, session=6), 0.0) == []
    assert device.session == 6


def test_a_session_has_the_wearer_of_its_first_row_until_it_stops() -> None:
    device = Device(settings())
    device.feed(message(0, 2, wearer=7), 0.0)
    assert device.open_chunk == RowSpan(SESSION, 0, 0, 3, wearer=7)
    for other in (8, 0):
        assert device.feed(message(2, 2, wearer=other), 0.0) == []
    (due,) = device.feed(message(2, 4, wearer=7), 1.0)
    assert (columns(due), due.span.wearer) == ([0.0, 1.0, 2.0, 3.0], 7)
    assert counted(device) == {"rows": 10, "accepted": 6, "wearer": 4}
    (due,) = device.feed(message(0, 3, session=6, wearer=8), 2.0)
    assert (due.span.session, due.span.wearer, due.ends_session) == (SESSION, 7, True)
    assert device.open_chunk == RowSpan(6, 0, 0, 3, wearer=8)


def test_a_wearer_who_goes_on_without_a_session_is_taken_when_the_session_has_stopped() -> None:
    """For want of rows, as those of another wearer are none of its own; then nothing of the old gaze is in a row."""
    device = Device(settings(idle_s=30.0))
    device.feed(message(0, 2, wearer=7), 0.0)
    for row in range(2, 62):
        device.feed(message(row, 1, wearer=8), row / 2)
    assert counted(device) == {"rows": 62, "accepted": 4, "wearer": 58}
    assert device.open_chunk == RowSpan(SESSION, 0, 60, 63, wearer=8)


def test_another_wearer_may_end_the_session() -> None:
    device = Device(settings())
    device.feed(message(0, 2, wearer=7), 0.0)
    (due,) = device.feed(message(2, 0, wearer=0, end=True), 0.0)
    assert (due.span.wearer, device.session) == (7, None)


def test_a_snapshot_keeps_who_wears_the_device() -> None:
    """Of the session, of a chunk that waits, and in snapshots of before, which name nobody."""
    device = Device(settings(release="on_clock"))
    device.feed(message(0, 6, wearer=7), 0.0)
    again = Device.restore(settings(release="on_clock"), device.snapshot())
    assert [span.wearer for span in again.coming] == [7, 7]
    assert again.feed(message(6, 2, wearer=8), 0.0) == []
    assert again.counters.wearer == 2
    *rest, session, closed, ended, refused, counters = msgspec.msgpack.decode(device.snapshot())
    old = [*rest, session[:-1], [chunk[:-2] for chunk in closed], ended, refused, counters[:-1]]
    before = Device.restore(settings(release="on_clock"), msgspec.msgpack.encode(old))
    assert [span.wearer for span in before.coming] == [0, 0]


def test_an_end_between_chunks_makes_nothing_due() -> None:
    device = Device(settings())
    assert len(device.feed(message(0, 4, end=True), 0.0)) == 1
    assert device.feed(message(4, 0, end=True), 0.0) == []
    assert device.session is None


def test_an_end_of_a_newer_session_ends_the_older_one_too() -> None:
    device = Device(settings())
    device.feed(message(0, 2), 0.0)
    assert len(device.feed(message(0, 0, session=9, end=True), 0.0)) == 1
    device.feed(message(0, 4, session=9), 0.0)
    device.feed(message(0, 4, session=8), 0.0)
    assert counted(device) == {"rows": 10, "accepted": 2, "stale_session": 8}


def test_an_empty_message_does_nothing() -> None:
    device = Device(settings())
    device.feed(message(0, 2), 0.0)
    due_at = device.next_due()
    for session in (SESSION, 4, 6, MAX_U64):
        assert device.feed(message(900, 0, session=session), 0.25) == []
    assert (device.session, device.next_due()) == (SESSION, due_at)


@pytest.mark.parametrize(("last_row", "taken"), [(0, 4), (3, 4), (4, 8), (7, 8)])
def test_the_mark_of_an_earlier_process_holds_for_whole_chunks(last_row: int, taken: int) -> None:
    device = Device(settings(), refused=RowMark(SESSION, last_row))
    device.feed(message(0, 10, session=4), 0.0)
    device.feed(message(0, 0, session=SESSION), 0.0)
    device.feed(message(0, 3), 0.0)
    assert device.session is None
    assert device.next_due() is None
    dues = device.feed(message(3, 9), 0.0)
    assert [due.span.first_row for due in dues] == list(range(taken, 12, 4))
    assert dues[0].span.index == 0
    assert counted(device) == {"rows": 22, "accepted": 12 - taken, "refused": 10 + taken}


def test_the_mark_does_not_touch_newer_sessions_nor_ends_of_older_ones() -> None:
    device = Device(settings(), refused=RowMark(SESSION, 99))
    assert len(device.feed(message(0, 4, session=6), 0.0)) == 1
    ended = Device(settings(), refused=RowMark(SESSION, 99))
    ended.feed(message(0, 0, session=4, end=True), 0.0)
    assert len(ended.feed(message(100, 4), 0.0)) == 1
    ended.feed(message(0, 0, end=True), 0.0)
    assert ended.session is None


@pytest.mark.parametrize("breaks", ["pause", "stray row", "restart"])
def test_rows_are_left_out_before_a_session_begins_anew(breaks: str) -> None:
    """Six of them after the chunk of rows 0 to 3, and not a chunk's worth: row 10 is the first."""
    device = Device(settings(apart=6, idle_s=1.0))
    device.feed(message(0, 2), 0.0)
    if breaks == "pause":
        device.tick(1.0)
    elif breaks == "stray row":
        device.feed(message(100), 0.0)
    else:
        device = Device(settings(apart=6), RowMark(SESSION, 1))
    refused = device.counters.refused
    (due,) = device.feed(message(2, 10), 30.0)
    assert (due.span.index, due.span.first_row, columns(due)) == (0, 8, [None, None, 10.0, 11.0])
    assert device.counters.refused - refused == 8
    assert balanced(device)


def test_rows_are_left_out_of_the_message_too_whose_number_jumped() -> None:
    """Row 8 jumps, row 9 lies too near, and rows 10 and 11 begin the session anew."""
    device = Device(settings(apart=6, jump_chunks=1))
    device.feed(message(0, 2), 0.0)
    first, anew = device.feed(message(8, 4), 1.0)
    assert (columns(first), columns(anew)) == ([0.0, 1.0, None, None], [None, None, 10.0, 11.0])
    assert (device.counters.jump, device.counters.refused) == (1, 1)
    assert balanced(device)


def test_rows_are_left_out_within_one_session_and_of_no_other() -> None:
    device = Device(settings(apart=6), RowMark(SESSION, 3))
    (due,) = device.feed(message(0, 4, session=SESSION + 1), 0.0)
    assert (due.span.index, columns(due)) == (0, [0.0, 1.0, 2.0, 3.0])


def test_the_last_rows_of_all_have_nothing_after_them() -> None:
    device = Device(settings(apart=6), RowMark(SESSION, MAX_U64 - 7))
    device.feed(message(MAX_U64 - 6, 6), 0.0)
    assert device.counters.refused == 6
    again = Device.restore(settings(apart=6), device.snapshot())
    again.feed(message(MAX_U64 - 1), 1.0)
    assert again.counters.refused == 7


def test_numbers_go_up_to_the_end_of_u64() -> None:
    device = Device(settings())
    first = MAX_U64 - 4
    dues = device.feed(message(first, 4, session=MAX_U64), 0.0)
    assert [due.span for due in dues] == [RowSpan(MAX_U64, 0, MAX_U64 - 7, MAX_U64 - 4)]
    (due,) = device.close(0.0)
    assert (due.span.first_row, due.span.last_row) == (MAX_U64 - 3, MAX_U64)


def test_close_gives_out_the_open_chunk_and_refuses_its_rows() -> None:
    device = Device(settings())
    device.feed(message(0, 2), 0.0)
    (due,) = device.close(0.0)
    assert columns(due) == [0.0, 1.0, None, None]
    assert device.close(0.0) == []
    device.feed(message(2), 0.0)
    assert counted(device) == {"rows": 3, "accepted": 2, "refused": 1}


@pytest.mark.parametrize("features", [1, 2, 4])
def test_rows_of_another_width_are_refused_and_change_nothing(features: int) -> None:
    """numpy would stretch a row of one value over all features."""
    device = Device(settings())
    device.feed(message(0, 2), 0.0)
    with pytest.raises(PayloadError, match="shape"):
        device.feed(message(2, 2, features=features), 0.0)
    assert counted(device) == {"rows": 2, "accepted": 2}


def test_the_device_keeps_no_view_of_the_rows() -> None:
    device = Device(settings())
    rows = np.zeros((3, 3), np.float32)
    device.feed(RawRows(SESSION, 0, rows), 0.0)
    rows[:] = 7
    (due,) = device.feed(RawRows(SESSION, 3, rows[:1]), 0.0)
    assert columns(due) == [0.0, 0.0, 0.0, 7.0]


def test_a_chunk_can_be_reserved_before_it_closes_when_its_rows_come_apart() -> None:
    device = Device(settings())
    reserved: list[RowSpan] = []
    released: list[RowSpan] = []
    for seq in range(41):
        released += [due.span for due in device.feed(message(seq), seq / 2)]
        if device.open_chunk is not None and device.open_chunk not in reserved:
            reserved.append(device.open_chunk)
    assert released == reserved[:-1]
    assert len(released) == 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 3},
        {"n": 0},
        {"n": -4},
        {"names": ()},
        {"rate_hz": 0.0},
        {"rate_hz": 1e9, "idle_s": 1e-9},
        {"rate_hz": np.nan},
        {"grace_s": -0.1},
        {"grace_s": np.nan},
        {"idle_s": 0.0},
        {"idle_s": np.nan},
        {"idle_s": 1e6},
        {"jump_chunks": 0},
        {"release": "at_once"},
        {"apart": -1},
    ],
)
def test_settings_out_of_range_are_refused_by_name(wrong: dict[str, Any]) -> None:
    name = next(iter(wrong))
    with pytest.raises(ConfigError, match=name):
        settings(**wrong)


def test_one_message_over_many_chunks() -> None:
    device = Device(settings())
    dues = device.feed(message(2, 300), 0.0)
    assert len(dues) == 75
    assert seen(dues[1:2])[0][:2] == (RowSpan(SESSION, 1, 4, 7), 2.0)
    assert [row for due in dues for row in columns(due) if row is not None] == [float(row) for row in range(2, 300)]
