"""One mechanism, several threads: releases wait for one another, and no two share noise or rows."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.privacy.klt import KLT
from eyestream.privacy.laws import Law
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import CFPA, DCFPA, LPA, build
from eyestream.privacy.noise import SecureNoise
from eyestream.rim.files import calibrations
from eyestream.testing.noise import ZeroNoise
from tests.privacy.small_corpus import calibrated, corpus

THREADS = 8


class SlowNoise(SecureNoise):
    """Notes how many draws are under way at once."""

    def __init__(self) -> None:
        super().__init__()
        self._counting = threading.Lock()
        self._under_way, self.most = 0, 0

    def draw(self, law: Law) -> NDArray[np.int64]:
        with self._counting:
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        threading.Event().wait(0.01)
        with self._counting:
            self._under_way -= 1
        return super().draw(law)


@pytest.mark.parametrize("mechanism", [LPA, CFPA, DCFPA])
@pytest.mark.parametrize("smooth", [False, True])
def test_a_second_thread_waits(mechanism: type[Mechanism], smooth: bool) -> None:
    noise = SlowNoise()
    made = mechanism(calibrated(mechanism.name), 4.8, noise=noise, smooth=smooth)
    release_by_threads(made, [corpus().chunks[0]] * THREADS)
    assert noise.most == 1


def test_a_second_thread_waits_for_klt() -> None:
    noise = SlowNoise()
    calibration = calibrations.load("everyday-klt-32")
    release_by_threads(KLT(calibration, 4.8, noise=noise), [np.zeros((52, 32))] * THREADS)
    assert noise.most == 1


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
        self._bits, noise._bits = noise._bits, self  # type: ignore[assignment]
        self._own = threading.local()

    @property
    def last(self) -> NDArray[np.uint32]:
        return self._own.words

    def words(self, count: int) -> NDArray[np.uint32]:
        words = self._bits.words(count)
        self._own.words = words[:5]
        return words


def release_by_threads(made: Mechanism, chunks: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(made.release, chunks))
