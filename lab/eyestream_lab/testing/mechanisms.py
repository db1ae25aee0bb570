"""Checks that every mechanism must pass, ours and anyone's. Each raises AssertionError when it fails.

Examples
--------
>>> from eyestream import CFPA, load_calibration
>>> from eyestream_lab.testing.noise import SeededNoise
>>> calibration = load_calibration("everyday-cfpa-32")
>>> mechanism = CFPA(calibration, epsilon=4.8)
>>> check_any_input(mechanism)
>>> check_frozen(mechanism, some_chunks(mechanism, 3))
>>> check_sessions(lambda: CFPA(calibration, epsilon=4.8, noise=SeededNoise(7)), some_chunks(mechanism, 3))
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.claims.guarantee import guarantee_of_recording
from eyestream.core.mechanism import Mechanism
from eyestream.core.noise.digits import Buffers
from eyestream_lab.hindsight import hindsight

__all__ = [
    "check_any_input",
    "check_frozen",
    "check_life",
    "check_sessions",
    "figures",
    "reachable_arrays",
    "some_chunks",
]

Array = NDArray[np.float64]

_HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324)


def some_chunks(mechanism: Mechanism, count: int, seed: int = 4) -> list[Array]:
    """So many chunks (F, n) of values that are uniform over the range of the calibration."""
    calibration, rng = mechanism.calibration, np.random.default_rng(seed)
    low, width = calibration.lo[:, None], (calibration.hi - calibration.lo)[:, None]
    return [low + width * rng.random((mechanism.features, mechanism.n)) for _ in range(count)]


def reachable_arrays(thing: Any, seen: set[int] | None = None) -> Iterator[Array]:
    """Every array that can be reached from `thing`, workspaces and the source of noise left out."""
    seen = set() if seen is None else seen
    if isinstance(thing, dict):
        for value in thing.values():
            yield from reachable_arrays(value, seen)
        return
    if id(thing) in seen or isinstance(thing, deque | Buffers):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, tuple | list):
        for value in thing:
            yield from reachable_arrays(value, seen)
    elif hasattr(thing, "__dict__"):
        yield from reachable_arrays({k: v for k, v in vars(thing).items() if k not in ("noise", "_workspaces")}, seen)


def figures(mechanism: Mechanism) -> str:
    """A digest of every array of a mechanism."""
    digest = hashlib.blake2b()
    for array in reachable_arrays(mechanism):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def check_frozen(mechanism: Mechanism, chunks: Iterable[Array]) -> None:
    """Releasing, alone and in three sessions at once, changes no figure of the mechanism."""
    before = figures(mechanism)
    sessions = [mechanism.session() for _ in range(3)]
    for chunk in chunks:
        mechanism.release(chunk)
        for session in sessions:
            session.release(chunk)
    assert figures(mechanism) == before, "a release has changed the mechanism"


def check_sessions(make: Callable[[], Mechanism], chunks: Iterable[Array]) -> None:
    """A session that is restored after every chunk goes on as one that never stopped.

    Parameters
    ----------
    make
        A mechanism with a source of noise with the same draws each time: `eyestream_lab.testing.noise.SeededNoise`.
    chunks
        What is released.
    """
    whole, parted = make(), make()
    session, snapshot = whole.session(), parted.session().snapshot()
    for chunk in chunks:
        restored = parted.session(snapshot)
        np.testing.assert_array_equal(session.release(chunk), restored.release(chunk))
        snapshot = restored.snapshot()
        assert snapshot == session.snapshot(), "two sessions that released the same differ"


def check_any_input(mechanism: Mechanism) -> None:
    """Whatever comes in, what goes out is finite, of the right shape, and a constant feature stays one."""
    constant = mechanism.calibration.constant
    for value in _HOSTILE:
        chunk = np.where(np.arange(mechanism.n) % 2, value, -value) * np.ones((mechanism.features, 1))
        released = mechanism.release(chunk)
        assert released.shape == mechanism.schema.shape, f"released {released.shape}, not {mechanism.schema.shape}"
        assert np.isfinite(released).all(), "what is released is not finite"
        if not mechanism.domain.keeps:
            continue
        assert (released[constant] == mechanism.calibration.fill[constant][:, None]).all(), "a constant has changed"


def check_life(mechanism: Mechanism, levels: int = 1, turns: int = 2) -> None:
    """It claims, releases `turns` chunks on each of the levels of a lifetime that fades, and looks back."""
    calibration = mechanism.calibration
    assert guarantee_of_recording(mechanism, calibration, levels).text(), "it claims nothing"
    chunks, session = some_chunks(mechanism, turns), mechanism.session()
    while session.awaits_baseline:
        session.anchor(chunks[0])
    for level in range(levels):
        own = mechanism.faded(level)
        assert np.isfinite(own.noise_sd).all(), "an expected error is not finite"
        assert (own.noise_sd >= 0).all(), "an expected error is below 0"
        session = session if level == 0 else own.continue_session(session)
        states, found = [], []
        for chunk in chunks:
            found.append(session.release(chunk))
            states.append(session.state)
        found += hindsight(own, states) or []
        assert np.isfinite(found).all(), "what is released is not finite"
