"""How rows arrive does not matter; what matters is which, and when."""

import itertools
from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eyestream.core.chunking.chunks import DueChunk
from eyestream.core.chunking.device import Device
from eyestream.wire.raw import RawRows
from tests.product.device.device_streams import SESSION, balanced, seen, settings

lengths = st.sampled_from([1, 2, 4, 8, 32])
times = st.integers(0, 40).map(lambda step: step / 8)


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[float, RawRows]]:
    """Messages with the time of each: losses, repetitions, disorder, jumps, newer and older sessions, ends, wearers."""
    features = draw(st.integers(1, 4))
    now, seq, session, out = 0.0, draw(st.integers(0, 70)), SESSION, []
    for serial in range(draw(st.integers(1, 14))):
        now += draw(st.sampled_from([0.0, 0.0, 0.125, 0.5, 2.0, 9.0]))
        seq = max(0, seq + draw(st.sampled_from([0, 0, 0, 1, 2, -1, -3, -8, 5, 20, 200])))
        session += draw(st.sampled_from([0] * 12 + [1, -1]))
        m, wearer = draw(st.integers(0, 9)), draw(st.sampled_from([3] * 6 + [0, 4]))
        rows = np.full((m, features), 100 * serial, np.float32) + np.arange(m, dtype=np.float32)[:, None]
        rows[draw(st.lists(st.integers(0, m - 1), max_size=2)) if m else []] = np.nan
        out.append((now, RawRows(session, seq, rows, draw(st.integers(0, 20)) == 0, wearer=wearer)))
        seq += m
    return out


def pieces(message: RawRows, cuts: list[int]) -> list[RawRows]:
    """The message in parts, cut before the rows `cuts`; also into empty parts; the end goes with the last one."""
    edges = [0, *sorted(min(cut, len(message.rows)) for cut in cuts), len(message.rows)]
    parts = [part(message, a, b) for a, b in itertools.pairwise(edges)]
    return [*parts[:-1], msgspec.structs.replace(parts[-1], end=message.end)]


def part(message: RawRows, first: int, stop: int) -> RawRows:
    """Some of its rows, without its end."""
    rows = message.rows[first:stop]
    return msgspec.structs.replace(message, seq=message.seq + first, rows=rows, end=False)


def one_by_one(message: RawRows) -> list[RawRows]:
    m = len(message.rows)
    ended = [msgspec.structs.replace(part(message, m, m), end=True)] if message.end else []
    return [part(message, i, i + 1) for i in range(m)] + ended


def run(device: Device, stream: list[tuple[float, list[RawRows]]], ticks: list[float]) -> list[DueChunk]:
    """Feed parts at their times, asking at `ticks` in between; close at the end."""
    out, asked = [], sorted(ticks)
    for now, parts in stream:
        while asked and asked[0] <= now:
            out += device.tick(asked.pop(0))
        for part in parts:
            out += device.feed(part, now)
    out += device.close(stream[-1][0])
    assert balanced(device)
    return out


def device_for(stream: list[tuple[float, RawRows]], n: int, **changes: Any) -> Device:
    names = tuple("abcd"[: stream[0][1].rows.shape[1]])
    return Device(settings(n=n, names=names, rate_hz=4.0, idle_s=8.0, **changes))


@given(arrivals(), lengths, st.lists(st.integers(0, 9), max_size=3), st.lists(times, max_size=6))
def test_neither_the_split_nor_the_asking_changes_a_chunk_or_a_counter(
    stream: list[tuple[float, RawRows]], n: int, cuts: list[int], ticks: list[float]
) -> None:
    whole = device_for(stream, n)
    expected = seen(run(whole, [(now, [message]) for now, message in stream], []))
    ragged = device_for(stream, n)
    assert seen(run(ragged, [(now, pieces(message, cuts)) for now, message in stream], ticks)) == expected
    single = device_for(stream, n)
    assert seen(run(single, [(now, one_by_one(message)) for now, message in stream], ticks)) == expected
    assert whole.counters == ragged.counters == single.counters


@given(arrivals(), lengths)
def test_waiting_for_the_clock_changes_the_moment_only(stream: list[tuple[float, RawRows]], n: int) -> None:
    parts = [(now, [message]) for now, message in stream]
    at_once, in_time = device_for(stream, n), device_for(stream, n, release="on_clock", jump_chunks=1000)
    roomy = device_for(stream, n, jump_chunks=1000)
    assert seen(run(in_time, parts, [])) == seen(run(roomy, parts, []))
    run(at_once, parts, [])
    assert roomy.counters == in_time.counters


@given(arrivals(), lengths)
def test_each_row_is_in_one_chunk_as_it_first_arrived(stream: list[tuple[float, RawRows]], n: int) -> None:
    """Against plain bookkeeping: nothing is invented, moved or given twice; chunks of a session follow one another.

    And each row is in a chunk that names its wearer.
    """
    for _, message in stream:
        np.nan_to_num(message.rows, copy=False, nan=-1.0)  # now NaN is a row that is not there
    device = device_for(stream, n)
    chunks = run(device, [(now, [message]) for now, message in stream], [])
    first: dict[tuple[int, int, int], list[float]] = {}
    for _, message in stream:
        for i, row in enumerate(message.rows):
            first.setdefault((message.session, message.seq + i, message.wearer), []).append(float(row[0]))
    held = 0
    for chunk in chunks:
        for row, column in zip(range(chunk.span.first_row, chunk.span.last_row + 1), chunk.values.T, strict=True):
            if not np.isnan(column[0]):
                assert (column == column[0]).all()
                assert column[0] in first[chunk.span.session, row, chunk.span.wearer]
                held += 1
    assert held == device.counters.accepted
    for before, after in itertools.pairwise(chunks):
        if after.span.index > 0:
            assert (after.span.session, after.span.wearer) == (before.span.session, before.span.wearer)
            assert (after.span.index, after.span.first_row) == (before.span.index + 1, before.span.last_row + 1)
            assert not before.ends_session
        else:
            assert (after.span.session, after.span.first_row) > (before.span.session, before.span.last_row)


@given(arrivals(), lengths, st.data())
def test_nothing_outside_a_chunk_changes_it(stream: list[tuple[float, RawRows]], n: int, data: st.DataObject) -> None:
    """Other values in every row but those of one chunk: that chunk and every envelope stay as they are."""
    parts = [(now, [message]) for now, message in stream]
    device, twin = device_for(stream, n), device_for(stream, n)
    chunks = run(device, parts, [])
    if not chunks:
        return
    kept = data.draw(st.sampled_from(chunks))
    changed = []
    for now, message in stream:
        number = message.seq + np.arange(len(message.rows))
        inside = (
            (number >= kept.span.first_row) & (number <= kept.span.last_row) & (message.session == kept.span.session)
        )
        rows = np.where(inside[:, None], message.rows, np.float32(data.draw(st.sampled_from([np.nan, np.inf, -7.0]))))
        changed.append((now, [msgspec.structs.replace(message, rows=rows.astype(np.float32))]))
    others = run(twin, changed, [])
    assert [chunk[:-1] for chunk in seen(others)] == [chunk[:-1] for chunk in seen(chunks)]
    same = next(chunk for chunk in others if chunk.span == kept.span)
    np.testing.assert_array_equal(same.values, kept.values)
    assert twin.counters == device.counters


@given(st.permutations(range(7)), lengths.filter(lambda n: n >= 8), st.integers(0, 5))
def test_disorder_inside_a_chunk_is_put_right(order: list[int], n: int, features: int) -> None:
    device = Device(settings(n=n, names=tuple("abcdef"[: features + 1])))
    for row in order:
        device.feed(RawRows(SESSION, row, np.full((1, features + 1), row, np.float32)), 0.0)
    (chunk,) = device.close(0.0)
    np.testing.assert_array_equal(chunk.values[:, :7], np.tile(np.arange(7.0), (features + 1, 1)))
    assert np.isnan(chunk.values[:, 7:]).all()
