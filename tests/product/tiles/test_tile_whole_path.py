"""Exact laws of the whole path in a small world: samples, slots, chunks, ledger, response, payloads.

All 81 recordings of two slots (`tests.product.tiles.worlds`) go through the front end and `StreamRelease`
with a ledger. Every draw of the response is played, and the bytes that would be published are compared, all recordings
with all.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.charge import Ceilings
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanisms import build
from eyestream.core.release.stream import StreamRelease
from eyestream.gaze.samples import Samples
from eyestream.gaze.slots import Slots
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from eyestream_lab.calibration.tiles import tile_calibration
from tests.product.tiles import worlds
from tests.product.tiles.test_tile_guarantee import EPSILON, RECORDINGS, Laws, power, worst
from tests.rigs.memory_ledger import MemoryLedger

CALIBRATION = tile_calibration(worlds.calibration(), 2)
Published = tuple[int | None, ...]


def counted(recording: worlds.Recording) -> NDArray[np.float64]:
    """(2, cells + 1) the rows of a recording, as the front end makes them at the ends of its slots."""
    x, y = np.array([worlds.PLACES[place] for place in recording]).T
    rows = Slots(worlds.SMALL, worlds.SLOT_US, origin_s=0.0)
    return rows.advance(2.0, Samples.of(worlds.MOMENTS, x, y)).values


def published(mechanism: Any, rows: NDArray[np.float64], ceiling: float) -> Published:
    """The word of each payload, and None where nothing is published of a slot; the rows arrive one by one."""
    settings = DeviceSettings(
        id="d", stream="gaze", schema=1, names=CALIBRATION.names, rate_hz=1.0, n=1, grace_s=1.0, idle_s=60.0,
        jump_chunks=16,
    )  # fmt: skip
    stream, ledger = StreamRelease(settings, mechanism, lambda: 7), MemoryLedger(Ceilings.of(session=ceiling))
    words: list[int | None] = []
    for number, row in enumerate(rows):
        outcomes = [stream.feed(RawRows(1, number, row[None], end=number == len(rows) - 1), float(number))]
        while outcomes[-1].requests:
            outcomes.append(stream.answer(ledger.reserve(outcomes[-1].requests, 0)))
        for settled in (one for outcome in outcomes for one in outcome.settled):
            payload = settled.payload
            words.append(None if payload is None else int(decode_private(payload).values[4, 0]))
    assert len(words) == len(rows)
    return tuple(words)


def laws(ceiling: float, count: Callable[[worlds.Recording], NDArray[np.float64]] = counted) -> Laws:
    """Of every recording; those with the same rows have one law."""
    noise = worlds.GivenDraws()
    mechanism = build(CALIBRATION, EPSILON, noise=noise)
    code = mechanism.core.code  # type: ignore[attr-defined]
    known: dict[bytes, Any] = {}
    for recording in RECORDINGS:
        rows = count(recording)
        if rows.tobytes() in known:
            continue
        law: dict[Published, Fraction] = {}
        for draws, chance in worlds.every_draw(code.law, code.words, 2):
            noise.draws = list(draws)
            words = published(mechanism, rows, ceiling)
            law[words] = law.get(words, Fraction(0)) + chance
        known[rows.tobytes()] = law
    return {recording: known[count(recording).tobytes()] for recording in RECORDINGS}


@pytest.fixture(scope="module")
def free() -> Laws:
    return laws(100.0)


def test_a_slot_costs_its_epsilon_and_a_recording_the_sum(free: Laws) -> None:
    assert {sum(law.values()) for law in free.values()} == {1}
    for slot in ({0, 1}, {2, 3}):
        assert power(1) * Fraction(999999, 1000000) < worst(free, slot) <= power(1)
    assert power(1) < worst(free, {0, 1, 2, 3}) <= power(2)


def test_what_the_ledger_withholds_tells_nothing_and_a_recording_costs_its_ceiling() -> None:
    """A ceiling of one slot: which slot is withheld follows from the order, never from what the eye did."""
    once = laws(1.5 * EPSILON)
    assert {words[1] for law in once.values() for words in law} == {None}
    assert power(1) * Fraction(999999, 1000000) < worst(once, {0, 1, 2, 3}) <= power(1)
    assert worst(once, {2, 3}) == 1


def a_lost_slot_sends_no_row(recording: worlds.Recording) -> NDArray[np.float64]:
    """Planted: the cadence follows the eye."""
    rows = counted(recording)
    return rows[rows[:, :-1].sum(axis=1) > 0]


def a_sample_counts_in_the_slot_after_it(recording: worlds.Recording) -> NDArray[np.float64]:
    """Planted: a slot's last sample is in two slots."""
    rows = counted(recording)
    last = counted((2, recording[1], 2, 2))[0]
    return np.stack([rows[0], rows[1] + last])


@pytest.mark.long
@pytest.mark.parametrize("fault", [a_lost_slot_sends_no_row, a_sample_counts_in_the_slot_after_it])
def test_planted_faults_of_the_path_pass_a_slots_epsilon(fault: Callable[..., NDArray[np.float64]]) -> None:
    faulty = laws(100.0, fault)
    slots = [set(slot) for slot in ({0, 1}, {2, 3})]
    assert max(worst(faulty, slot) for slot in slots) > power(1)


def test_all_draws_are_played() -> None:
    code = build(CALIBRATION, EPSILON).core.code  # type: ignore[attr-defined]
    assert sum(1 for _ in worlds.every_draw(code.law, code.words, 2)) == (code.words + 1) ** 2
    assert len(list(product(range(3), repeat=4))) == len(RECORDINGS)
