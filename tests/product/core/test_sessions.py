"""Sessions as bytes, and mechanisms that never change."""

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import CFPA, build
from eyestream.errors import SnapshotError
from eyestream.rim.files import calibrations
from eyestream_lab.testing.mechanisms import (
    check_any_input,
    check_frozen,
    check_sessions,
    figures,
    reachable_arrays,
    some_chunks,
)
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.small_corpus import calibrated

Array = NDArray[np.float64]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("everyday-klt-32", {}),
    ("everyday-klt-one-32", {}),
    ("everyday-cfpa-32", {"smooth": True, "clip": True}),
    ("everyday-dcfpa-32", {"shrink": True}),
    ("everyday-lpa-32", {"smooth": True}),
]


def made(name: str, options: dict[str, Any], seed: int = 0, epsilon: float = 9.6) -> Mechanism:
    return build(calibrations.load(name), epsilon, noise=SeededNoise(seed), **options)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_restored_session_goes_on_as_if_nothing_had_been(name: str, options: dict[str, Any]) -> None:
    """Restored after every chunk, past the end of the schedule too, into a mechanism that was built anew."""
    five = some_chunks(made(name, options), 5)
    check_sessions(lambda: made(name, options), five * 14)
    session = made(name, options).session()
    for chunk in five:
        session.release(chunk)
    snapshot = session.snapshot()
    elsewhere = made(name, options, seed=1).session(snapshot)  # another noise, the same past
    assert elsewhere.snapshot() == snapshot


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_snapshot_is_a_function_of_released_values_alone(name: str, options: dict[str, Any]) -> None:
    """Other rows under the same released values: without noise that is true of chunks beyond the range."""
    ours, theirs = made(name, options).session(), made(name, options).session()
    for size in (1e100, 1e200):
        ours.release(np.full((52, 32), size))
        theirs.release(np.full((52, 32), size * 1e50))
    assert ours.snapshot() == theirs.snapshot()


def test_a_snapshot_is_small() -> None:
    for name, options in CASES:
        session = made(name, options).session()
        assert len(session.snapshot()) < 900
        assert sys.getsizeof(session) + sys.getsizeof(session._busy) < 200  # beside the state
        assert not hasattr(session, "__dict__")


def test_what_is_no_snapshot_of_this_session_is_refused_by_name() -> None:
    mechanism = made("everyday-klt-32", {})
    session = mechanism.session()
    session.release(some_chunks(mechanism, 1)[0])
    good = session.snapshot()
    for bad in (b"", b"eyes", b"other" + good, good[:20]):
        with pytest.raises(SnapshotError, match="no snapshot"):
            mechanism.session(bad)
    with pytest.raises(SnapshotError, match="version 2, 1 is wanted"):
        mechanism.session(good[:4] + b"\2" + good[5:])
    with pytest.raises(SnapshotError, match="damaged"):
        mechanism.session(good[:-1])
    for other in (
        made("everyday-klt-32", {}, epsilon=4.8),
        made("everyday-klt-one-32", {}),
        made("everyday-cfpa-32", {"smooth": True}),
    ):
        with pytest.raises(SnapshotError, match="another mechanism, calibration, epsilon or option"):
            other.session(good)
    refused = 0
    for place in range(len(good)):
        for bit in (1, 128):
            changed = bytearray(good)
            changed[place] ^= bit
            try:
                mechanism.session(bytes(changed))
            except SnapshotError:
                refused += 1
    assert refused >= 2 * (len(good) - 3)  # three bytes are padding, and under the check sum as well
    assert refused == 2 * len(good)


def test_a_forged_state_is_refused() -> None:
    """With a right check sum: numbers that are none, or too many."""
    from eyestream.core import session_bytes as snapshot

    mechanism = made("everyday-klt-32", {})
    size = mechanism.core.start.size
    for state in (np.full(size, np.nan), np.zeros(size + 1), None):
        with pytest.raises(SnapshotError, match="does not hold the state"):
            mechanism.session(snapshot.packed(mechanism.identity, 1, state))


def test_a_refused_chunk_leaves_the_session_as_it_was() -> None:
    session = made("everyday-klt-32", {}).session()
    before = session.snapshot()
    with pytest.raises(ValueError, match="shape"):
        session.release(np.zeros((52, 31)))
    assert session.snapshot() == before


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_mechanism_never_changes(name: str, options: dict[str, Any]) -> None:
    mechanism = made(name, options)
    before, count = figures(mechanism), len(list(reachable_arrays(mechanism)))
    assert count > 15  # the walk reaches the figures
    check_frozen(mechanism, some_chunks(mechanism, 4))
    next(reachable_arrays(mechanism.core)).flat[0] = -12345.678  # the control
    assert figures(mechanism) != before


class Changing:
    """A mechanism whose release writes to one of its figures."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.session = mechanism.session

    def release(self, chunk: Array) -> Array:
        next(reachable_arrays(self.mechanism.core)).flat[0] += 1.0
        return self.mechanism.release(chunk)


def test_the_checks_fail_where_they_should() -> None:
    mechanism = made("everyday-cfpa-32", {})
    with pytest.raises(AssertionError, match="has changed the mechanism"):
        check_frozen(Changing(mechanism), some_chunks(mechanism, 1))
    seeds = iter(range(2))
    with pytest.raises(AssertionError):
        check_sessions(lambda: made("everyday-cfpa-32", {}, seed=next(seeds)), some_chunks(mechanism, 1))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_any_input_is_released_as_finite_numbers(name: str, options: dict[str, Any]) -> None:
    check_any_input(made(name, options))


def test_attributes_cannot_be_set() -> None:
    mechanism = CFPA(calibrated("cfpa"), 4.8)
    for name in ("epsilon", "noise", "core", "anything"):
        with pytest.raises(AttributeError, match=f"frozen: {name} cannot be set"):
            setattr(mechanism, name, None)
    assert repr(mechanism).startswith("CFPA(<Calibration of cfpa: 5 features, chunks of 32 rows at 2 Hz")
    assert "\n" not in repr(mechanism)
    assert len(repr(mechanism.calibration)) < 120
