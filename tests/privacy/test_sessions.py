"""Sessions as bytes, and mechanisms that never change."""

import hashlib
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.errors import SnapshotError
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import CFPA, build
from eyestream.privacy.noise.digits import Buffers
from eyestream.rim.files import calibrations
from eyestream.testing.noise import SeededNoise
from tests.privacy.small_corpus import calibrated

Array = NDArray[np.float64]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("everyday-klt-32", {}),
    ("everyday-klt-shed-32", {}),
    ("everyday-cfpa-32", {"smooth": True, "clip": True}),
    ("everyday-dcfpa-32", {"shrink": True}),
    ("everyday-lpa-32", {"smooth": True}),
]


def made(name: str, options: dict[str, Any], seed: int = 0, epsilon: float = 9.6) -> Mechanism:
    return build(calibrations.load(name), epsilon, noise=SeededNoise(seed), **options)


def chunks(name: str, count: int) -> list[Array]:
    calibration, rng = calibrations.load(name), np.random.default_rng(4)
    width = (calibration.hi - calibration.lo)[:, None]
    return [calibration.lo[:, None] + width * rng.random((52, calibration.n)) for _ in range(count)]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_restored_session_goes_on_as_if_nothing_had_been(name: str, options: dict[str, Any]) -> None:
    """Restored after every chunk, past the end of the schedule too, into a mechanism that was built anew."""
    whole, parted = made(name, options), made(name, options)
    session, snapshot = whole.session(), parted.session().snapshot()
    for chunk in chunks(name, 5) * 14:
        restored = parted.session(snapshot)
        np.testing.assert_array_equal(session.release(chunk), restored.release(chunk))
        snapshot = restored.snapshot()
        assert snapshot == session.snapshot()
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
    session.release(chunks("everyday-klt-32", 1)[0])
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
        made("everyday-klt-shed-32", {}),
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
    from eyestream.privacy import snapshot

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


def arrays(thing: Any, seen: set[int]) -> Iterator[Array]:
    """Every array that can be reached from `thing`, workspaces and the source of noise left out."""
    if isinstance(thing, dict):
        for value in thing.values():
            yield from arrays(value, seen)
        return
    if id(thing) in seen or isinstance(thing, deque | Buffers):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, tuple | list):
        for value in thing:
            yield from arrays(value, seen)
    elif hasattr(thing, "__dict__") and type(thing).__module__.startswith("eyestream"):
        yield from arrays({k: v for k, v in vars(thing).items() if k not in ("noise", "_workspaces")}, seen)


def figures(mechanism: Mechanism) -> str:
    digest = hashlib.blake2b()
    for array in arrays(mechanism, set()):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_mechanism_never_changes(name: str, options: dict[str, Any]) -> None:
    mechanism = made(name, options)
    before, count = figures(mechanism), len(list(arrays(mechanism, set())))
    assert count > 15  # the walk reaches the figures
    sessions = [mechanism.session() for _ in range(3)]
    for chunk in chunks(name, 4):
        mechanism.release(chunk)
        for session in sessions:
            session.release(chunk)
    assert figures(mechanism) == before
    next(iter(arrays(mechanism.core, set()))).flat[0] = -12345.678  # the control
    assert figures(mechanism) != before


def test_attributes_cannot_be_set() -> None:
    mechanism = CFPA(calibrated("cfpa"), 4.8)
    for name in ("epsilon", "noise", "core", "anything"):
        with pytest.raises(AttributeError, match=f"frozen: {name} cannot be set"):
            setattr(mechanism, name, None)
    assert repr(mechanism).startswith("CFPA(<Calibration of cfpa: 5 features, chunks of 32 rows at 2 Hz")
    assert "\n" not in repr(mechanism)
    assert len(repr(mechanism.calibration)) < 120
