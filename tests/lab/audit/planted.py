"""Mechanisms with one thing wrong each, and correct ones, as the audit sees them: functions of (F, n) arrays.

All are for chunks of 2 x 4 values in [0, 1] (`SCALE` is Delta_1 / epsilon of such a chunk at epsilon 1).
"""

import functools
import math
import os
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms.asked import Asked
from eyestream_lab.mechanisms.asked import synthetic_asked

Array = NDArray[np.float64]

FEATURES, ROWS = 2, 4
SCALE = FEATURES * ROWS / 1.0
SHARP = SCALE / 8
"""Of mechanisms of epsilon 8, in which a small leak is seen with few draws."""
STEP = 2.0**-16


def _generator() -> np.random.Generator:
    """numpy's generator with fresh entropy in every call, so that copies of a process do not share it."""
    return np.random.default_rng(secrets.randbits(128))


# Exact noise: integers on a grid


def _geometric(rate: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Discrete Laplace by inversion of uniform 53-bit words; the tail beyond 2^-53 is cut for both neighbours alike."""
    count = math.prod(shape)
    words = np.frombuffer(os.urandom(16 * count), np.uint64).reshape(2, *shape) >> np.uint64(11)
    both = np.floor(np.log((words + 0.5) * 2.0**-53) / -rate).astype(np.int64)
    return both[0] - both[1]


def _on_grid(values: Array, scale: float, step: float = STEP) -> Array:
    return np.asarray(step * (np.rint(values / step) + _geometric(step / scale, values.shape)), np.float64)


def exact(chunk: Array) -> Array:
    return _on_grid(np.clip(chunk, 0, 1), SCALE)


def exact_coarse(chunk: Array) -> Array:
    """A grid as coarse as the range; rounding costs nothing here, as both ends are on it."""
    return _on_grid(np.clip(chunk, 0, 1), SCALE, 1.0)


def exact_odd_step(chunk: Array) -> Array:
    """Steps that are no power of two; rounding may move every value by half a step."""
    return _on_grid(np.clip(chunk, 0, 1), 1.01 * SCALE, 0.0003)


def exact_clipped(chunk: Array) -> Array:
    return np.clip(exact(chunk), 0, 1)


def exact_single_precision(chunk: Array) -> NDArray[np.float32]:
    return exact(chunk).astype(np.float32)


def exact_fourier(chunk: Array) -> Array:
    """Noise on a grid on every real of the one-sided spectrum, of which none changes by more than n."""
    spectrum = np.fft.rfft(np.clip(chunk, 0, 1), axis=1)
    most = FEATURES * (ROWS // 2 + 1) * ROWS
    real, imaginary = (_on_grid(part, 1.01 * 2 * most) for part in (spectrum.real, spectrum.imag))
    imaginary[:, [0, -1]] = 0
    return np.fft.irfft(real + 1j * imaginary, ROWS, axis=1)


def exact_integer_python(chunk: Array) -> Array:
    """Discrete Laplace from coins of exact rational probability, in Python integers; the grid is 1."""
    shares = [[round(value) + _exact_laplace(int(SCALE)) for value in row] for row in np.clip(chunk, 0, 1).tolist()]
    return np.array(shares, dtype=np.float64)


def _exact_laplace(scale: int) -> int:
    """Canonne, Kamath and Steinke (2020), algorithm 2 for an integer scale."""
    while True:
        rest = secrets.randbelow(scale)
        if not _bernoulli_exp(rest, scale):
            continue
        whole = 0
        while _bernoulli_exp(1, 1):
            whole += 1
        size, negative = rest + scale * whole, secrets.randbits(1)
        if not (negative and size == 0):
            return -size if negative else size


def _bernoulli_exp(above: int, below: int) -> bool:
    """True with probability exp(-above / below), above <= below: their algorithm 1."""
    count = 1
    while secrets.randbelow(below * count) < above:
        count += 1
    return count % 2 == 1


def snapping(chunk: Array) -> Array:
    """Mironov's repair: floating-point noise, rounded to a multiple of a power of two above its scale."""
    coarse = 2.0 ** math.ceil(math.log2(1.05 * SCALE))
    noisy = np.clip(chunk, 0, 1) + _generator().laplace(scale=1.05 * SCALE, size=chunk.shape)
    return np.clip(coarse * np.rint(noisy / coarse), -40 * SCALE, 40 * SCALE)


def one_bit(chunk: Array) -> Array:
    """Randomised response on whether the chunk's mean is above the middle."""
    true = float(chunk.mean()) > 0.5
    kept = secrets.randbelow(1 << 53) < int((1 << 53) * math.e / (1 + math.e) * (1 - 1e-9))
    return np.full(chunk.shape, float(true == kept))


def constant(chunk: Array) -> Array:
    return np.zeros(chunk.shape)


class Smoothed:
    """A session: a moving mean over what was released."""

    def __init__(self) -> None:
        self._mean: Array | None = None

    def release(self, chunk: Array) -> Array:
        released = exact(chunk)
        self._mean = released if self._mean is None else 0.7 * self._mean + 0.3 * released
        return self._mean


# Floating-point noise


def _float(law: str, share: float = 1.0) -> Callable[[Array], Array]:
    def release(chunk: Array) -> Array:
        rng = _generator()
        if law == "inverse":
            uniform = rng.uniform(-0.5, 0.5, chunk.shape)
            noise = -share * SCALE * np.sign(uniform) * np.log(1 - 2 * np.abs(uniform))
        elif law == "student":
            noise = share * SCALE * rng.standard_t(3, chunk.shape)
        else:
            noise = getattr(rng, law)(0.0, share * SCALE, chunk.shape)
        return chunk + noise

    return release


float_laplace = _float("laplace")
float_normal = _float("normal", 3.0)
float_logistic = _float("logistic")
float_student = _float("student", 2.0)
float_inverse = _float("inverse")


def float_legacy(chunk: Array) -> Array:
    """The old global generator."""
    np.random.seed(secrets.randbits(32))
    return chunk + np.random.laplace(0.0, SCALE, chunk.shape)


def float_python(chunk: Array) -> Array:
    """Python's own exponential."""
    rng = random.SystemRandom()
    noise = [rng.expovariate(1 / SCALE) - rng.expovariate(1 / SCALE) for _ in range(chunk.size)]
    return chunk + np.array(noise).reshape(chunk.shape)


def _fourier(law: str, keep: int) -> Callable[[Array], Array]:
    def release(chunk: Array) -> Array:
        rng = _generator()
        spectrum = np.fft.rfft(chunk, axis=1)
        scale = 2 * SCALE * (ROWS // 2 + 1)
        real, imaginary = getattr(rng, law)(0.0, scale, (2, *spectrum.shape))
        spectrum += real + 1j * imaginary
        spectrum.imag[:, [0, -1]] = 0
        spectrum[:, keep:] = 0
        return np.fft.irfft(spectrum, ROWS, axis=1)

    return release


fourier_laplace = _fourier("laplace", 3)
fourier_laplace_two = _fourier("laplace", 2)
fourier_laplace_one = _fourier("laplace", 1)
fourier_normal = _fourier("normal", 3)


def float_differences(chunk: Array) -> Array:
    noisy = np.diff(chunk, axis=1, prepend=0.0) + _generator().laplace(scale=2 * SCALE, size=chunk.shape)
    return np.cumsum(noisy, axis=1)


def float_one_feature(chunk: Array) -> Array:
    released = exact(chunk)
    released[1] = float_laplace(chunk)[1]
    return released


def float_clipped(chunk: Array) -> Array:
    return np.clip(float_laplace(chunk), 0, 1)


def float_single_precision(chunk: Array) -> NDArray[np.float32]:
    noise = _generator().laplace(scale=SCALE, size=chunk.shape).astype(np.float32)
    return chunk.astype(np.float32) + noise


# Too little noise


def own_last_bit(chunk: Array) -> Array:
    """A bit of the input where the exact output has a zero, far below the grid of its noise."""
    released = exact(chunk)
    released.view(np.uint64)[1, 2] |= np.uint64(chunk[1, 2] > 0.5)
    return released


def own_range(chunk: Array) -> Array:
    """Sensitivity read from the chunk itself."""
    return _on_grid(chunk, FEATURES * ROWS * max(float(np.ptp(chunk)), 1e-3))


def own_deviation(chunk: Array) -> Array:
    return _on_grid(chunk, FEATURES * ROWS * 2 * max(float(chunk.std()), 1e-3))


def own_largest(chunk: Array) -> Array:
    return _on_grid(chunk, FEATURES * ROWS * max(float(np.abs(chunk).max()), 1e-3))


def real_parts(chunk: Array) -> Array:
    """Noise on the real parts alone."""
    spectrum = np.fft.rfft(chunk, axis=1)
    return np.fft.irfft(_on_grid(spectrum.real, 100.0) + 1j * spectrum.imag, ROWS, axis=1)


def magnitudes(chunk: Array) -> Array:
    """Noise on the magnitudes alone: the phases come out as they are."""
    spectrum = np.fft.rfft(chunk, axis=1)
    return np.fft.irfft(_on_grid(np.abs(spectrum), 100.0) * np.exp(1j * np.angle(spectrum)), ROWS, axis=1)


def one_noise_for_all(chunk: Array) -> Array:
    """One draw for all values: their differences come out as they are."""
    return STEP * np.rint(chunk / STEP) + STEP * _geometric(STEP / SCALE, (1, 1))


def one_feature_bare(chunk: Array) -> Array:
    released = exact(chunk)
    released[1] = chunk[1]
    return released


def first_row_bare(chunk: Array) -> Array:
    released = exact(chunk)
    released[:, 0] = chunk[:, 0]
    return released


def per_value(chunk: Array) -> Array:
    """The whole epsilon for every value."""
    return _on_grid(chunk, 1.0)


def sometimes_bare(chunk: Array) -> Array:
    """One release in ten without noise."""
    return chunk.copy() if secrets.randbelow(10) == 0 else exact(chunk)


def rejected(chunk: Array) -> Array:
    """Drawn again until it lies within the scale of the data, which shifts the support."""
    released = np.empty_like(chunk)
    for place, value in np.ndenumerate(chunk):
        while abs((drawn := float(_on_grid(np.array([value]), SCALE)[0])) - value) > SCALE / 2:
            pass
        released[place] = drawn
    return released


# Noise that comes again

_kept: dict[str, object] = {}


def _noise() -> Array:
    return np.asarray(STEP * _geometric(STEP / SCALE, (FEATURES, ROWS)), np.float64)


def _plus(chunk: Array, noise: Array) -> Array:
    return STEP * np.rint(chunk / STEP) + noise


_ALWAYS = _noise()


def reused_always(chunk: Array) -> Array:
    return _plus(chunk, _ALWAYS)


def _every(period: int, part: slice = slice(None)) -> Callable[[Array], Array]:
    """The noise of the call before, in one call of `period`."""
    state: dict[str, Array] = {}
    calls = [0]

    def release(chunk: Array) -> Array:
        noise = _noise()
        if calls[0] % period == period - 1:
            noise[part] = state["noise"][part]
        calls[0] += 1
        state["noise"] = noise
        return _plus(chunk, noise)

    return release


reused_half = _every(2)
reused_twentieth = _every(20)
reused_half_of_a_feature = _every(2, slice(1, 2))


def reused_cycle(chunk: Array) -> Array:
    """A table of 256 draws, used round and round."""
    if "table" not in _kept:
        _kept["table"] = [_noise() for _ in range(256)]
    table = _kept["table"]
    _kept["next"] = (int(_kept.get("next", 0)) + 1) % 256  # type: ignore[call-overload]
    return _plus(chunk, table[_kept["next"]])  # type: ignore[index]


def reused_by_data(chunk: Array) -> Array:
    """A generator seeded by the data."""
    rng = np.random.default_rng(abs(hash(chunk.tobytes())))
    return _plus(chunk, STEP * np.rint(rng.laplace(scale=SCALE, size=chunk.shape) / STEP))


_seeded = np.random.default_rng(2024)


def reused_seed(chunk: Array) -> Array:
    """A seed in the code: two processes draw the same."""
    return _plus(chunk, STEP * np.rint(_seeded.laplace(scale=SCALE, size=chunk.shape) / STEP))


def few_seeds(chunk: Array) -> Array:
    """Seeded anew by each call, with ten random bits: the same noise comes again at no fixed distance."""
    generator = np.random.default_rng(secrets.randbits(10))
    return _plus(chunk, STEP * np.rint(generator.laplace(scale=SCALE, size=chunk.shape) / STEP))


_global = np.random.default_rng()


def reused_after_fork(chunk: Array) -> Array:
    """A generator in memory: copies of the process draw the same."""
    return _plus(chunk, STEP * np.rint(_global.laplace(scale=SCALE, size=chunk.shape) / STEP))


_local = threading.local()


def reused_by_threads(chunk: Array) -> Array:
    """Every thread but the first has a generator of the same seed."""
    if threading.current_thread() is threading.main_thread():
        return exact(chunk)
    if not hasattr(_local, "rng"):
        _local.rng = np.random.default_rng(7)
    return _plus(chunk, STEP * np.rint(_local.rng.laplace(scale=SCALE, size=chunk.shape) / STEP))


# State


def state_running_mean(chunk: Array) -> Array:
    """Noise on what is left after a running mean of raw data."""
    mean = np.asarray(_kept.get("mean", np.zeros(chunk.shape)))
    _kept["mean"] = 0.8 * mean + 0.2 * chunk
    return _on_grid(chunk - mean, 2 * SHARP)


def state_whole_mean(chunk: Array) -> Array:
    """The same with the mean of everything so far."""
    count = int(_kept.get("count", 0))  # type: ignore[call-overload]
    mean = np.asarray(_kept.get("whole", np.zeros(chunk.shape)))
    _kept["whole"], _kept["count"] = (mean * count + chunk) / (count + 1), count + 1
    return _on_grid(chunk - mean, 2 * SHARP)


def state_last_spread(chunk: Array) -> Array:
    """The scale follows the chunk before."""
    last = float(_kept.get("spread", 0.0))  # type: ignore[arg-type]
    _kept["spread"] = float(np.ptp(chunk))
    return _on_grid(chunk, SHARP * (1 + last))


def state_last_row(chunk: Array) -> Array:
    """A gap is filled from the chunk before: its last row stands in the first of this one."""
    last = np.asarray(_kept.get("row", chunk[:, -1]))
    _kept["row"] = chunk[:, -1].copy()
    joined = chunk.copy()
    joined[:, 0] = last
    return _on_grid(joined, SHARP)


# Time and size


def time_early(chunk: Array) -> Array:
    """A constant chunk is quickly done."""
    if np.ptp(chunk) > 0:
        sum(math.sqrt(value) for value in range(1500))
    return exact(chunk)


def time_rejection(chunk: Array) -> Array:
    """More work the larger the values are."""
    for _ in range(int(2000 * chunk.mean())):
        math.sqrt(2.0)
    return exact(chunk)


def size_shape(chunk: Array) -> Array:
    """Constant chunks are shortened."""
    return exact(chunk) if np.ptp(chunk) > 0 else exact(chunk)[:, :1]


def size_type(chunk: Array) -> NDArray[np.floating]:
    released = exact(chunk)
    return released if np.ptp(chunk) > 0 else released.astype(np.float32)


def form_changes(chunk: Array) -> NDArray[np.floating]:
    """Single precision in every second call."""
    _kept["odd"] = not _kept.get("odd", False)
    return exact(chunk).astype(np.float32 if _kept["odd"] else np.float64)


# Things that break


def hangs(chunk: Array) -> Array:
    time.sleep(3600)
    return chunk


def hangs_on_constants(chunk: Array) -> Array:
    while np.ptp(chunk) == 0:
        time.sleep(0.1)
    return exact(chunk)


def hangs_later(chunk: Array) -> Array:
    _kept["calls"] = int(_kept.get("calls", 0)) + 1  # type: ignore[call-overload]
    if int(_kept["calls"]) > 300:  # type: ignore[call-overload]
        time.sleep(3600)
    return exact(chunk)


def raises(chunk: Array) -> Array:
    raise RuntimeError("no")


def raises_on_constants(chunk: Array) -> Array:
    if np.ptp(chunk) == 0:
        raise ZeroDivisionError
    return exact(chunk)


def exits(chunk: Array) -> Array:
    sys.exit(3)


def dies(chunk: Array) -> Array:
    os.abort()


def wrong_shape(chunk: Array) -> Array:
    return exact(chunk).T


def no_array(chunk: Array) -> list[list[float]]:
    return exact(chunk).tolist()  # type: ignore[no-any-return]


def complex_numbers(chunk: Array) -> NDArray[np.complex128]:
    return np.fft.fft(exact(chunk), axis=1)


def not_finite(chunk: Array) -> Array:
    return exact(chunk) / 0.0 if chunk.mean() == 1 else exact(chunk)


def sometimes_not_finite(chunk: Array) -> Array:
    return np.where(np.full(chunk.shape, secrets.randbelow(100) == 0), np.nan, exact(chunk))


def prints(chunk: Array) -> Array:
    print(chunk.mean())
    return exact(chunk)


def writes_raw(chunk: Array) -> Array:
    os.write(2, b"x")
    return exact(chunk)


not_a_function = 3
partial = functools.partial(_on_grid, scale=SCALE)


# Asked features


@functools.cache
def _asked(epsilon: float) -> Asked:
    calibration = synthetic_asked(ROWS, FEATURES, 0.5)
    return Asked(calibration, epsilon, features=calibration.names)


def asked_twice(chunk: Array) -> Array:
    """Epsilon for each of the two features."""
    mechanism = _asked(2.0)
    return mechanism.release_turn(chunk - 0.5, 0, mechanism.core.start)[0] * np.ones(ROWS)


def asked_borders(chunk: Array) -> Array:
    """Cells that the raw chunk moves a little."""
    mechanism = _asked(1.0)
    assert mechanism.core.start is not None
    nearer = 1 + 1e-3 * np.tanh(chunk.mean() - 0.5) * np.linspace(-1, 1, mechanism.core.start.shape[1])
    return mechanism.release_turn(chunk - 0.5, 0, mechanism.core.start * nearer)[0] * np.ones(ROWS)
