"""RealFourier against numpy's transform, Parseval's weights, and the synthesis matrix."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.spectrum import RealFourier, coordinate_count, coordinate_weights, most_coefficients, used

LENGTHS = (2, 4, 32, 63, 64, 128)
Array = NDArray[np.float64]


def interleaved(spectrum: NDArray[np.complex128], n: int, k: int) -> Array:
    """The independent reals of the first k coefficients, written out one by one."""
    rows = []
    for row in spectrum:
        reals = [row[0].real]
        for j in range(1, k):
            reals.append(row[j].real)
            if 2 * j != n:
                reals.append(row[j].imag)
        rows.append(reals)
    return np.array(rows)


@pytest.mark.parametrize("n", LENGTHS)
def test_coordinates_are_the_reals_of_rfft_for_every_k(n: int) -> None:
    x = np.random.default_rng(n).normal(size=(3, n)) * 1e3
    spectrum = np.fft.rfft(x, axis=1)
    for k in range(1, most_coefficients(n) + 1):
        expected = interleaved(spectrum, n, k)
        assert expected.shape[1] == coordinate_count(n, k)
        np.testing.assert_allclose(RealFourier(3, n, k).coordinates(x), expected, atol=1e-9 * n)


def two_sided(x: Array, k: int) -> Array:
    """The correct low-pass: coefficients k and beyond of the one-sided spectrum are zero."""
    spectrum = np.fft.rfft(x, axis=1)
    spectrum[:, k:] = 0
    return np.fft.irfft(spectrum, x.shape[1], axis=1)


def one_sided(x: Array, k: int) -> Array:
    """The literal reading of the papers: the first k of the n coefficients of the full spectrum, real part."""
    spectrum = np.fft.fft(x, axis=1)
    spectrum[:, k:] = 0
    return np.asarray(np.fft.ifft(spectrum, axis=1).real)


def worst_low_pass_error(low_pass: Callable[[Array, int], Array], n: int) -> float:
    x = np.random.default_rng(1).normal(size=(4, n))
    worst = 0.0
    for k in range(1, most_coefficients(n) + 1):
        fourier = RealFourier(4, n, k)
        worst = max(worst, np.abs(fourier.signals(fourier.coordinates(x)) - low_pass(x, k)).max())
    return worst


@pytest.mark.parametrize("n", LENGTHS)
def test_there_and_back_is_the_low_pass_and_not_the_one_sided_one(n: int) -> None:
    assert worst_low_pass_error(two_sided, n) < 1e-12
    if n > 2:
        assert worst_low_pass_error(one_sided, n) > 0.1


@pytest.mark.parametrize("n", LENGTHS)
def test_all_coefficients_give_the_signal_back(n: int) -> None:
    x = np.random.default_rng(2).normal(size=(5, n))
    fourier = RealFourier(5, n, most_coefficients(n))
    assert fourier.count == n  # as many reals as rows: nothing is added, nothing is lost
    np.testing.assert_allclose(fourier.signals(fourier.coordinates(x)), x, atol=1e-13)


def parseval_error(weights: Callable[[int, int], NDArray[np.int64]], n: int) -> float:
    """How far sum w a^2 is from n ||x||^2 for signals without energy beyond k, over all k."""
    rng = np.random.default_rng(n)
    worst = 0.0
    for k in range(1, most_coefficients(n) + 1):
        fourier = RealFourier(1, n, k)
        a = rng.normal(size=(1, fourier.count))
        energy = n * float((fourier.signals(a) ** 2).sum())
        worst = max(worst, abs(float((weights(n, k) * a**2).sum()) / energy - 1))
    return worst


@pytest.mark.parametrize("n", LENGTHS)
def test_parseval_weights(n: int) -> None:
    assert parseval_error(coordinate_weights, n) < 1e-12
    if n > 2:
        assert parseval_error(lambda n, k: np.ones(coordinate_count(n, k), dtype=np.int64), n) > 0.1
        forgotten_ends = lambda n, k: np.full(coordinate_count(n, k), 2, dtype=np.int64)  # noqa: E731
        assert parseval_error(forgotten_ends, n) > 0.1


def test_odd_lengths_have_no_nyquist_coefficient() -> None:
    assert coordinate_weights(63, 32)[-1] == 2
    assert coordinate_weights(64, 33)[-1] == 1
    assert coordinate_weights(64, 32)[-1] == 2


@pytest.mark.parametrize("n", LENGTHS)
def test_sign_vectors_attain_the_sensitivity(n: int) -> None:
    """sum |a_i| <= sqrt(k n) ||x||, and the neighbour with a_i = +-1/w_i attains it: no smaller scale would do."""
    rng = np.random.default_rng(n)
    for k in range(1, most_coefficients(n) + 1):
        fourier = RealFourier(1, n, k)
        signs = rng.choice([-1.0, 1.0], size=(1, fourier.count))
        x = fourier.signals(signs / coordinate_weights(n, k)).copy()
        taxicab = float(np.abs(fourier.coordinates(x)).sum())
        norm = float(np.sqrt((x**2).sum()))
        assert taxicab / norm == pytest.approx(np.sqrt(k * n), rel=1e-12)
        other = rng.normal(size=(200, n))
        shares = np.abs(RealFourier(200, n, k).coordinates(other)).sum(axis=1) / np.linalg.norm(other, axis=1)
        assert shares.max() <= np.sqrt(k * n) * (1 + 1e-12)


@pytest.mark.parametrize("k", [0, -1, 18, 33])
def test_k_outside_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match="k must lie between 1 and 17"):
        RealFourier(1, 32, k)


def test_the_next_call_overwrites_but_does_not_remember() -> None:
    fourier = RealFourier(2, 32, 5)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 2, 32))
    first = fourier.signals(fourier.coordinates(a)).copy()
    fourier.signals(fourier.coordinates(b))
    np.testing.assert_array_equal(fourier.signals(fourier.coordinates(a)), first)


@pytest.fixture
def no_fftw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyfftw", None)


@pytest.mark.needs("pyfftw")
@pytest.mark.parametrize(("n", "k"), [(63, 20), (64, 33), (128, 65), (300, 151)])
def test_without_fftw_numpy_gives_the_same_coefficients(n: int, k: int) -> None:
    """To rounding, both ways: 52 signals of size 1, and coordinates of the root of n."""
    x = np.random.default_rng(n).normal(size=(52, n))
    assert used(n, k, "fftw") == "pyFFTW"
    planned = RealFourier(52, n, k, "fftw")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyfftw", None)
        assert used(n, k, "fftw") == "numpy"
        by_numpy = RealFourier(52, n, k, "fftw")
    np.testing.assert_allclose(by_numpy.coordinates(x), planned.coordinates(x), rtol=0, atol=4e-15 * n)
    coordinates = planned.coordinates(x).copy()
    np.testing.assert_allclose(by_numpy.signals(coordinates), planned.signals(coordinates), rtol=0, atol=4e-15)


def test_what_a_machine_has_decides_what_is_used(no_fftw: None) -> None:
    assert [used(128, k) for k in (1, 16, 17, 29, 30, 31, 65)] == ["basis"] * 5 + ["numpy"] * 2
    assert used(64, 1, "fftw") == "numpy"
    assert used(64, 33, "basis") == "basis"


@pytest.mark.needs("pyfftw")
def test_a_short_chunk_is_always_a_product_and_a_long_one_soon_is_not() -> None:
    assert {used(32, k) for k in range(1, 18)} == {"basis"}
    assert [used(64, k) for k in (22, 23)] == [used(1024, k) for k in (12, 13)] == ["basis", "pyFFTW"]
