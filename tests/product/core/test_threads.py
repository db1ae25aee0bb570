"""One mechanism, several threads: releases share neither noise nor rows, and wait for nobody; a session is for one."""

import ctypes
import os
import select
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.frame import Workspaces
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import CFPA, DCFPA, LPA, build
from eyestream.core.noise import Law, SecureNoise
from eyestream.rim.files import calibrations
from eyestream_lab.testing.noise import ZeroNoise
from tests.rigs.small_corpus import calibrated, corpus

THREADS = 8


class MeetingNoise(SecureNoise):
    """Lets nobody draw before all threads draw, and notes the laws, whose buffers are written to."""

    def __init__(self) -> None:
        super().__init__()
        self._all = threading.Barrier(THREADS)
        self.laws: list[int] = []

    def draw(self, law: Law) -> NDArray[np.int64]:
        self.laws.append(id(law))
        self._all.wait(timeout=30)
        return super().draw(law)


@pytest.mark.parametrize("mechanism", [LPA, CFPA, DCFPA])
@pytest.mark.parametrize("smooth", [False, True])
def test_threads_release_at_once_each_with_a_workspace_of_its_own(mechanism: type[Mechanism], smooth: bool) -> None:
    noise = MeetingNoise()
    made = mechanism(calibrated(mechanism.name), 4.8, noise=noise, smooth=smooth)
    release_by_threads(made, [corpus().chunks[0]] * THREADS)
    assert len(set(noise.laws)) == THREADS
    assert len(made._workspaces._free) == THREADS  # each came back


def test_one_thread_makes_no_second_workspace() -> None:
    made = CFPA(calibrated("cfpa"), 4.8)
    for chunk in corpus().chunks[:5]:
        made.release(chunk)
        with pytest.raises(ValueError, match="shape"):
            made.release(chunk[:1])
    assert len(made._workspaces._free) == 1


def test_one_workspace_for_all_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workspaces, "take", lambda self: self._free[0])
    monkeypatch.setattr(Workspaces, "give", lambda self, work: None)
    noise = MeetingNoise()
    release_by_threads(CFPA(calibrated("cfpa"), 4.8, noise=noise), [corpus().chunks[0]] * THREADS)
    assert len(set(noise.laws)) == 1


class WaitingNoise(ZeroNoise):
    """Draws when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.drawing, self.let = threading.Event(), threading.Event()

    def draw(self, law: Law) -> NDArray[np.int64]:
        self.drawing.set()
        assert self.let.wait(timeout=30)
        return super().draw(law)


@pytest.mark.parametrize("name", ["cfpa", "klt"])
def test_a_session_refuses_a_second_thread(name: str) -> None:
    noise = WaitingNoise()
    session = build(calibrations.load(f"everyday-{name}-32"), 4.8, noise=noise).session()
    chunk = np.zeros((52, 32))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(session.release, chunk)
        assert noise.drawing.wait(timeout=30)
        before = session.snapshot()
        with pytest.raises(RuntimeError, match="one thread at a time"):
            session.release(chunk)
        assert session.snapshot() == before  # the refused release left nothing
        noise.let.set()
        assert first.result(timeout=30).shape == (52, 32)
    assert session.release(chunk).shape == (52, 32)


def test_a_copy_of_the_process_made_in_the_middle_of_a_release_can_release() -> None:
    """A native fork runs no hook of Python and copies one thread: nothing may wait for the others."""
    noise = WaitingNoise()
    made = build(calibrations.load("everyday-cfpa-32"), 4.8, noise=noise, k=8)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(made.release, np.zeros((52, 32)))
        assert noise.drawing.wait(timeout=30)
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that other threads are running is the point
            child = ctypes.PyDLL(None).fork()
        if child == 0:
            noise.let.set()
            os.write(writer, b"released" if made.release(np.ones((52, 32))).shape == (52, 32) else b"")
            os._exit(0)
        os.close(writer)
        assert select.select([reader], [], [], 30)[0], "the copy waits"
        assert os.read(reader, 100) == b"released"
        os.waitpid(child, 0)
        os.close(reader)
        noise.let.set()
        first.result(timeout=30)


@pytest.mark.parametrize("name", ["lpa", "cfpa", "dcfpa", "klt"])
def test_threads_do_not_mix_their_rows(name: str) -> None:
    """Without noise each thread gets what it would get alone, chunk by chunk."""
    calibration = calibrations.load(f"everyday-{name}-32")
    rng = np.random.default_rng(0)
    span = (calibration.hi - calibration.lo)[:, None]
    chunks = [calibration.lo[:, None] + span * rng.random((52, 32)) for _ in range(THREADS)] * 25
    made = build(calibration, 4.8, noise=ZeroNoise())
    alone = [made.release(chunk) for chunk in chunks]
    together = release_by_threads(made, chunks)
    for mine, theirs in zip(alone, together, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["cfpa", pytest.param("klt", marks=pytest.mark.slow)])
@pytest.mark.parametrize("releases", [4_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.timeout(1800)
def test_no_two_releases_share_noise(name: str, releases: int) -> None:
    """8 threads, one chunk: two equal outputs would be one noise. (klt has few code words: its draws are compared.)"""
    drawn: set[bytes] = set()
    lock = threading.Lock()

    class Noted(SecureNoise):
        def draw(self, law: Law) -> NDArray[np.int64]:
            taken = super().draw(law)
            words = source.last.tobytes()
            with lock:
                assert words not in drawn
                drawn.add(words)
            return taken

    noise = Noted()
    source = Noting(noise)
    made = build(calibrations.load(f"everyday-{name}-32"), 4.8, noise=noise)
    chunk = np.zeros((52, 32))

    def work(_: int) -> None:
        for _ in range(releases // THREADS):
            made.release(chunk)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    assert len(drawn) == releases


class Noting:
    """In the place of the source of bits: remembers the first words of the last draw of each thread."""

    def __init__(self, noise: SecureNoise) -> None:
        self._bits, noise.bits = noise.bits, self  # type: ignore[assignment]
        self._own = threading.local()

    @property
    def last(self) -> NDArray[np.uint32]:
        return self._own.words

    def words(self, count: int) -> NDArray[np.uint32]:
        words = self._bits.words(count)
        self._own.words = words[:5].copy()
        return words


def release_by_threads(made: Mechanism, chunks: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(made.release, chunks))
