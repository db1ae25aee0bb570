"""The noise factors against the synthesis matrix, built column by column from numpy's inverse transform."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.additive.signals import cfpa_noise, dcfpa_noise, lpa_noise
from eyestream.core.spectrum import integrate, most_coefficients

Array = NDArray[np.float64]


def synthesis(n: int, k: int) -> Array:
    """(reals, n) signal of each noised real of the first k coefficients."""
    rows = []
    for j in range(k):
        for part in (1.0, 1j):
            if part == 1j and (j == 0 or 2 * j == n):
                continue
            spectrum = np.zeros(n // 2 + 1, dtype=np.complex128)
            spectrum[j] = part
            rows.append(np.fft.irfft(spectrum, n))
    return np.array(rows)


def traced(n: int, k: int, back: Callable[[Array], Array]) -> float:
    """Squared norm of the synthesis matrix times 2 lambda^2, at lambda = sqrt(n k) and a unit scale."""
    return float((back(synthesis(n, k)) ** 2).sum()) * 2 * n * k


def identity(signals: Array) -> Array:
    return signals


@pytest.mark.parametrize("n", [2, 4, 32, 63, 64, 128])
def test_cfpa_noise_is_the_trace_for_every_k(n: int) -> None:
    noise = cfpa_noise(n)
    assert len(noise) == most_coefficients(n)
    expected = [traced(n, k, identity) for k in range(1, len(noise) + 1)]
    np.testing.assert_allclose(noise, expected, rtol=1e-12)
    naive = 2 * np.arange(1.0, len(noise) + 1) * (4 * np.arange(1.0, len(noise) + 1) - 3)
    assert np.allclose(naive, expected) == (n % 2 == 1)  # the Nyquist coefficient is one real, not two


@pytest.mark.parametrize("n", [2, 4, 32, 64, 128])
def test_dcfpa_noise_is_the_trace_for_every_k(n: int) -> None:
    noise = dcfpa_noise(n)
    assert len(noise) == most_coefficients(n)
    expected = [traced(n, k, integrate) for k in range(1, len(noise) + 1)]
    np.testing.assert_allclose(noise, expected, rtol=1e-9)


def test_dcfpa_noise_is_not_that_of_other_inverses() -> None:
    def two_terms(differences: Array) -> Array:
        result = differences.copy()
        result[..., 1:] += differences[..., :-1]
        return result

    for wrong in (identity, two_terms):
        for k in (1, 2, 17):
            assert abs(traced(32, k, wrong) / dcfpa_noise(32)[k - 1] - 1) > 0.5


def test_lpa_noise() -> None:
    assert lpa_noise(32).tolist() == [64.0]  # n rows of variance 2 lambda^2


def test_odd_lengths_of_dcfpa_are_refused() -> None:
    with pytest.raises(ValueError, match="even"):
        dcfpa_noise(63)
