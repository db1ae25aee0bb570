"""What every mechanism must do whatever it is fed, and what it must refuse."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eyestream.core.additive import signals as transforms
from eyestream.core.additive.core import AdditiveStep
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.frame import Page
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import CFPA, DCFPA, LPA, build, fourier, lpa
from eyestream.core.noise import Law, SecureNoise
from eyestream.core.noise.laws import LaplaceLaw
from eyestream.core.spectrum import difference, integrate
from eyestream.core.whole import chunk_count, release_rows
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.files import calibrations
from eyestream_lab.calibration import declared_range
from eyestream_lab.fpa import FPA
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise
from tests.rigs.small_corpus import NAMES, calibrated, corpus, repeated

Array = NDArray[np.float64]
N = 32
ALL = [LPA, CFPA, DCFPA]
FINE = 1000.0
"""Epsilon of a feature at which noise and grid are fine: 48,000 for 48 features."""
HOSTILE = [math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, 5e-324, 2.0**63]


def tables_of(calibration: Calibration) -> PerFeatureTables:
    assert isinstance(calibration.tables, PerFeatureTables)
    return calibration.tables


def active_count(calibration: Calibration) -> int:
    return int((~calibration.constant).sum())


def whole_band(mechanism: type[Mechanism], n: int) -> dict[str, Any]:
    return {} if mechanism is LPA else {"k": n // 2 + 1}


def chunk_inside(calibration: Calibration, seed: int) -> Array:
    """A chunk whose signal lies inside the ball of every feature and that lies in the range: toward its sphere."""
    rng = np.random.default_rng(seed)
    tables = tables_of(calibration)
    way = rng.normal(size=tables.centre.shape)
    order = 1 if calibration.mechanism == "lpa" else 2
    way *= (tables.radius / np.linalg.norm(way, ord=order, axis=1))[:, None]
    chunks = []
    for f, (centre, step) in enumerate(zip(tables.centre, way, strict=True)):
        for share in (0.99, 0.5, 0.1, 0.01, 1e-3, 1e-5, 0.0):
            signal = centre + share * step
            chunk = integrate(signal) if calibration.mechanism == "dcfpa" else signal
            if (chunk >= calibration.lo[f]).all() and (chunk <= calibration.hi[f]).all():
                break
        chunks.append(chunk)
    return np.array(chunks)


def distortion(mechanism: type[Mechanism], calibration: Calibration) -> float:
    """Largest error of a noise-free release over chunks inside the ball, in units of the feature's range."""
    released = mechanism(
        calibration, FINE * active_count(calibration), noise=ZeroNoise(), **whole_band(mechanism, calibration.n)
    )
    active = ~calibration.constant
    width = (calibration.hi - calibration.lo)[active, None]
    worst = 0.0
    for seed in range(20):
        chunk = chunk_inside(calibration, seed)
        worst = max(worst, float(np.abs((released.release(chunk) - chunk)[active] / width).max()))
    return worst


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("n", [32, 64, 128])
def test_without_noise_every_chunk_inside_the_ball_comes_back(mechanism: type[Mechanism], n: int) -> None:
    assert distortion(mechanism, calibrations.load(f"everyday-{mechanism.name}-{n}")) < 1e-6
    assert distortion(mechanism, calibrated(mechanism.name, n, coverage=1.0)) < 1e-6


def one_sided(self: Any, coordinates: Array) -> Array:
    spectrum = np.zeros((len(coordinates), self.n), dtype=np.complex128)
    spectrum[:, 0] = coordinates[:, 0]
    spectrum[:, 1 : self.k] = coordinates[:, 1::2]
    spectrum[:, 1 : self.k - 1] += 1j * coordinates[:, 2::2]
    return np.asarray(np.fft.ifft(spectrum, axis=1).real)


def two_terms(differences: Array) -> Array:
    result = differences.copy()
    result[..., 1:] += differences[..., :-1]
    return result


@pytest.mark.parametrize(
    ("mechanism", "place", "name", "wrong"),
    [
        (CFPA, transforms.RealFourier, "signals", one_sided),
        (DCFPA, transforms, "integrate", two_terms),
        (DCFPA, transforms, "integrate", lambda signals: signals),
    ],
)
def test_wrong_inverses_do_not_bring_the_chunk_back(
    mechanism: type[Mechanism], place: Any, name: str, wrong: Callable[..., Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, wrong)
    assert distortion(mechanism, calibrated(mechanism.name, N, coverage=1.0)) > 1e-2


def signal_distance(calibration: Calibration, released: Array) -> Array:
    """(A,) distance of released chunks' signals to the centre, over the radius, for the features that are released."""
    tables, active = tables_of(calibration), ~calibration.constant
    signal = difference(released) if calibration.mechanism == "dcfpa" else released
    order = 1 if calibration.mechanism == "lpa" else 2
    return np.asarray(np.linalg.norm((signal - tables.centre)[active], ord=order, axis=1) / tables.radius[active])


def hostile_chunks(features: int, n: int) -> list[Array]:
    rng = np.random.default_rng(0)
    chunks = [np.full((features, n), value) for value in HOSTILE]
    chunks += [np.where(np.arange(n) % 2, 1e308, -1e308) * np.ones((features, 1))]
    chunks += [rng.choice(HOSTILE, size=(features, n)) for _ in range(10)]
    chunks += [rng.normal(size=(features, n)) * 10.0 ** rng.integers(-300, 300) for _ in range(10)]
    return chunks


@pytest.mark.parametrize("mechanism", ALL)
def test_whatever_comes_in_the_signal_lies_in_the_ball_before_the_noise(mechanism: type[Mechanism]) -> None:
    calibration = calibrated(mechanism.name)
    released = mechanism(calibration, FINE * active_count(calibration), noise=ZeroNoise(), **whole_band(mechanism, N))
    reached = 0.0
    for chunk in hostile_chunks(len(NAMES), N):
        out = released.release(chunk)
        assert np.isfinite(out).all()
        distance = signal_distance(calibration, out)
        assert (distance < 1 + 1e-6).all()
        reached = max(reached, distance.max())
    assert reached > 0.999  # the sphere is reached, so the check is not empty


@pytest.mark.parametrize("mechanism", ALL)
def test_without_projection_the_integers_still_hold_the_ball(
    mechanism: type[Mechanism], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guarantee does not rest on the floating-point projection."""
    calibration = calibrated(mechanism.name)
    for module, name in ((fourier, "l2_factor"), (lpa, "l1_factor")):
        monkeypatch.setattr(module, name, lambda residual, radius: np.ones((len(residual), 1)))
    released = mechanism(calibration, FINE * active_count(calibration), noise=ZeroNoise(), **whole_band(mechanism, N))
    for chunk in hostile_chunks(len(NAMES), N):
        assert (signal_distance(calibration, released.release(chunk)) < 1 + 1e-6).all()


def integers(mechanism: Mechanism, chunk: Array) -> list[list[int]]:
    """The integers of a chunk before noise, from a mechanism without noise; 0 for coordinates not released."""
    step = mechanism.core.step()
    assert isinstance(step, AdditiveStep)
    noisy = step.noisy(Page(mechanism.frame).admit(chunk), mechanism.noise)
    kept = np.where(step.core.private.steps > 0, noisy, 0)
    return [[int(x) for x in row] for row in kept]


def neighbours(calibration: Calibration) -> list[tuple[Array, Array]]:
    """Pairs of chunks that try to differ as much as they can: hostile, random, and toward the poles of the ball."""
    rng = np.random.default_rng(1)
    chunks = hostile_chunks(len(calibration.names), calibration.n)
    pairs = [(a, b) for a in chunks[:10] for b in chunks[10:20]]
    active = tables_of(calibration)
    for _ in range(20):
        way = rng.choice([-1.0, 1.0], size=active.centre.shape) * active.radius[:, None] * 100
        if calibration.mechanism == "dcfpa":
            pairs.append((integrate(active.centre + way), integrate(active.centre - way)))
        else:
            pairs.append((active.centre + way, active.centre - way))
    return pairs


@pytest.mark.parametrize("epsilon", [0.48, 48.0, 3000.0])
@pytest.mark.parametrize("mechanism", ALL)
def test_neighbours_never_cost_more_than_epsilon(mechanism: type[Mechanism], epsilon: float) -> None:
    """Sum over features of rate times taxicab distance of the integers: the loss, for pairs that try to exceed it."""
    calibration = calibrated(mechanism.name)
    released = mechanism(calibration, epsilon, noise=ZeroNoise())
    law = released.core.private.law
    rates = np.sqrt(2.0) / law.sd
    worst = 0.0
    for first, second in neighbours(calibration):
        a, b = integers(released, first), integers(released, second)
        loss = sum(
            rate * sum(abs(x - y) for x, y in zip(p, q, strict=True)) for rate, p, q in zip(rates, a, b, strict=True)
        )
        worst = max(worst, loss)
    assert worst < epsilon
    assert worst > 0.05 * epsilon  # the pairs do try; of DCFPA, differences of clamped chunks hardly have a mean


@pytest.mark.parametrize("mechanism", [LPA, CFPA])  # of DCFPA no chunk in the range attains the ball at k = 1
@pytest.mark.parametrize("n", [32, 64, 128])
def test_a_sphere_to_sphere_pair_costs_nearly_epsilon(mechanism: type[Mechanism], n: int) -> None:
    """The price is tight: the constant neighbours of k = 1 use up 99 % of it where the range allows them."""
    epsilon = 4.8
    calibration = declared_range(calibrated(mechanism.name, n), n)
    released = mechanism(calibration, epsilon, noise=ZeroNoise())
    low, high = (np.repeat(end[:, None], n, axis=1) for end in (calibration.lo, calibration.hi))
    rates = np.sqrt(2.0) / released.core.private.law.sd
    a, b = integers(released, low), integers(released, high)
    loss = sum(r * sum(abs(x - y) for x, y in zip(p, q, strict=True)) for r, p, q in zip(rates, a, b, strict=True))
    assert 0.99 * epsilon < loss < epsilon


@settings(max_examples=60)
@given(st.sampled_from(ALL), st.data())
def test_hostile_values_anywhere_give_finite_chunks(mechanism: type[Mechanism], data: st.DataObject) -> None:
    calibration = calibrated(mechanism.name)
    values = st.one_of(st.sampled_from(HOSTILE), st.floats())
    flat = data.draw(st.lists(values, min_size=N, max_size=N))
    chunk = np.tile(np.array(flat), (len(NAMES), 1))
    released = mechanism(calibration, 4.8, noise=SeededNoise(0)).release(chunk)
    assert released.shape == chunk.shape
    assert np.isfinite(released).all()


@pytest.mark.parametrize("mechanism", ALL)
def test_release_is_deterministic_in_everything_but_noise(mechanism: type[Mechanism]) -> None:
    calibration = calibrated(mechanism.name)
    chunk = corpus().chunks[3]
    one, two = (mechanism(calibration, 4.8, noise=SeededNoise(5)) for _ in range(2))
    for other in hostile_chunks(len(NAMES), N)[:3]:
        np.testing.assert_array_equal(one.release(other), two.release(other))
    first = one.release(chunk)
    two.release(chunk * 7 + 1)  # what was released before leaves no trace
    assert not np.array_equal(first, one.release(chunk))
    quiet = mechanism(calibration, 4.8, noise=ZeroNoise())
    kept = quiet.release(chunk)
    copy = kept.copy()
    quiet.release(chunk + 1)
    np.testing.assert_array_equal(kept, copy)  # a new array each time
    np.testing.assert_array_equal(quiet.release(chunk), copy)


class SameNoise(ZeroNoise):
    """One number for every coordinate."""

    def __init__(self, number: int) -> None:
        self._number = number

    def draw(self, law: Law) -> NDArray[np.int64]:
        """The number."""
        return np.full(law.shape, self._number, dtype=np.int64)


@pytest.mark.parametrize("mechanism", ALL)
def test_noise_that_is_as_likely_up_as_down_does_not_move_the_mean(mechanism: type[Mechanism]) -> None:
    """z and -1 - z are equally likely: half a step makes up for it."""
    calibration = calibrated(mechanism.name)
    centre = tables_of(calibration).centre
    chunk = integrate(centre) if mechanism is DCFPA else centre
    for z in (0, 9):
        up, down = (
            mechanism(calibration, 0.48, noise=SameNoise(number), **whole_band(mechanism, N)).release(chunk)
            for number in (z, -1 - z)
        )
        active = ~calibration.constant
        step = np.abs(up - down)[active].max(axis=1)
        off = np.abs((up + down) / 2 - chunk)[active].max(axis=1)
        assert (step > 0).all()
        assert (off < 1e-3 * step).all()


@pytest.mark.parametrize("mechanism", ALL)
def test_declared_constants_are_constant_and_never_read(mechanism: type[Mechanism]) -> None:
    calibration = calibrated(mechanism.name)
    at = NAMES.index("wb1_min")
    assert calibration.constant.tolist() == [name == "wb1_min" for name in NAMES]
    chunk = corpus().chunks[0].copy()
    outputs = []
    for value in [0.0, *HOSTILE]:
        chunk[at] = value
        outputs.append(mechanism(calibration, 4.8, noise=SeededNoise(2)).release(chunk))
        np.testing.assert_array_equal(outputs[-1], outputs[0])
    assert (outputs[0][at] == calibration.fill[at]).all()
    chunk[0] += 1  # negative control: what is not constant is read
    assert not np.array_equal(mechanism(calibration, 4.8, noise=SeededNoise(2)).release(chunk), outputs[0])


@pytest.mark.parametrize("mechanism", ALL)
def test_constants_take_no_share_of_epsilon(mechanism: type[Mechanism]) -> None:
    """Four of the five features are released: a fourth of epsilon each."""
    calibration = calibrated(mechanism.name)
    options = {} if mechanism is LPA else {"k": 2}
    sd = mechanism(calibration, 4.0, noise=ZeroNoise(), **options).noise_sd
    alone = mechanism(repeated(calibration, 0, 1), 1.0, noise=ZeroNoise(), **options).noise_sd
    assert sd[0] == pytest.approx(alone[0], rel=1e-4)


@pytest.mark.parametrize("mechanism", ALL)
def test_a_chunk_without_any_value_is_released_like_the_fill(mechanism: type[Mechanism]) -> None:
    calibration = calibrated(mechanism.name)
    nothing = np.full((len(NAMES), N), math.nan)
    fill = np.repeat(calibration.fill[:, None], N, axis=1)
    results = [mechanism(calibration, 4.8, noise=SeededNoise(3)).release(chunk) for chunk in (nothing, fill)]
    np.testing.assert_array_equal(*results)
    assert np.isfinite(results[0]).all()


@pytest.mark.parametrize("mechanism", ALL)
def test_rows_outside_the_chunk_do_not_matter(mechanism: type[Mechanism]) -> None:
    """Whole recordings: every row outside the second chunk changes, also to missing; its integers do not."""
    released = mechanism(calibrated(mechanism.name), 48.0, noise=ZeroNoise())
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(100, len(NAMES)))
    rows[N : N + 5] = math.nan  # the chunk begins with missing rows, which must not hold what was before
    expected = release_rows(released, rows)[N : 2 * N]
    for value in HOSTILE:
        other = np.full_like(rows, value)
        other[N : 2 * N] = rows[N : 2 * N]
        np.testing.assert_array_equal(release_rows(released, other)[N : 2 * N], expected)


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 100])
def test_release_rows_imputes_and_cuts_the_last_chunk(mechanism: type[Mechanism], rows: int) -> None:
    recording = np.random.default_rng(rows).normal(size=(rows, len(NAMES)))
    released = release_rows(mechanism(calibrated(mechanism.name), 4.8, noise=SeededNoise(9)), recording)
    assert released.shape == recording.shape
    assert chunk_count(rows, N) == math.ceil(rows / N)
    by_hand = mechanism(calibrated(mechanism.name), 4.8, noise=SeededNoise(9))
    padded = np.full((chunk_count(rows, N) * N, len(NAMES)), math.nan)
    padded[:rows] = recording
    chunks = [by_hand.release(padded[i : i + N].T).T for i in range(0, len(padded), N)]
    np.testing.assert_array_equal(released, np.concatenate(chunks)[:rows])


def test_guarantee_in_words() -> None:
    calibration = calibrated("cfpa")
    assert CFPA(calibration, 4.8, noise=ZeroNoise()).guarantee.startswith("none")
    assert CFPA(calibration, 4.8, noise=SeededNoise(0)).guarantee.startswith("none")
    words = CFPA(calibration, 4.8).guarantee
    assert "4.8-differential privacy" in words
    assert "32 rows" in words
    assert "none" not in words
    for mechanism in ALL:
        made = mechanism(calibrated(mechanism.name), 2.4)
        assert (made.epsilon, made.delta, made.n, made.features) == (2.4, 0.0, N, len(NAMES))
        assert isinstance(made.noise, SecureNoise)


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 1e9, 1e-9])
def test_an_epsilon_out_of_range_is_refused_by_name(mechanism: type[Mechanism], epsilon: float) -> None:
    with pytest.raises(ConfigError, match="epsilon") as refusal:
        mechanism(calibrated(mechanism.name), epsilon)
    assert f"{epsilon:g}" in str(refusal.value) or str(epsilon) in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("epsilon", [9e-13, np.nextafter(1e7, math.inf)])
def test_an_epsilon_that_a_ledger_cannot_count_is_refused(epsilon: float) -> None:
    with pytest.raises(ConfigError, match="as a ledger counts it"):
        LPA(calibrated("lpa"), epsilon)


@pytest.mark.parametrize("mechanism", [CFPA, DCFPA])
@pytest.mark.parametrize("k", [0, -1, 18, 32, 33])
def test_k_outside_is_refused(mechanism: type[Mechanism], k: int) -> None:
    with pytest.raises(ConfigError, match="n/2 \\+ 1 = 17"):
        mechanism(calibrated(mechanism.name), 4.8, k=k)
    assert mechanism(calibrated(mechanism.name), 4.8, k=17).k == (17, 17, 17, 0, 17)


def test_lpa_has_no_k() -> None:
    with pytest.raises(ConfigError, match="lpa has no option k; it takes shrink, clip, smooth"):
        build(calibrated("lpa"), 4.8, k=1)
    with pytest.raises(ConfigError, match="a calibration with k is not for it"):
        LPA(replace(calibrated("lpa"), k=1), 4.8)


@pytest.mark.parametrize("mechanism", ALL)
def test_the_calibration_of_another_mechanism_is_refused(mechanism: type[Mechanism]) -> None:
    for other in ("lpa", "cfpa", "dcfpa", "klt"):
        if other != mechanism.name:
            wrong = replace(calibrated("cfpa"), mechanism=other)
            with pytest.raises(CalibrationError, match=f"made for {other}, not for {mechanism.name}"):
                mechanism(wrong, 4.8)
    assert type(build(calibrated(mechanism.name), 4.8)) is mechanism
    with pytest.raises(CalibrationError, match="no mechanism 'fpa'"):
        build(replace(calibrated("cfpa"), mechanism="fpa"), 4.8)


def test_a_calibration_of_constants_alone_is_refused() -> None:
    nothing = replace(calibrated("cfpa"), declared=np.ones(len(NAMES), dtype=np.bool_))
    with pytest.raises(CalibrationError, match="nothing to release"):
        CFPA(nothing, 4.8)


@pytest.mark.parametrize("shape", [(5, 31), (4, 32), (32, 5), (5, 32, 1), (160,)])
def test_a_chunk_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="shape"):
        CFPA(calibrated("cfpa"), 4.8, noise=ZeroNoise()).release(np.zeros(shape))


def test_a_k_of_the_calibration_holds_and_can_be_overruled() -> None:
    calibration = replace(calibrated("cfpa"), k=3)
    assert CFPA(calibration, 4.8).k == (3, 3, 3, 0, 3)
    assert CFPA(calibration, 4.8, k=5).k == (5, 5, 5, 0, 5)
    assert CFPA(calibrated("cfpa"), 4.8).k == (1, 1, 1, 0, 1)


def test_clip_holds_the_range_and_is_post_processing() -> None:
    calibration = calibrated("cfpa")
    chunk = corpus().chunks[0]
    plain = CFPA(calibration, 0.48, noise=SeededNoise(1)).release(chunk)
    clipped = CFPA(calibration, 0.48, noise=SeededNoise(1), clip=True).release(chunk)
    active = ~calibration.constant
    lo, hi = calibration.lo[active, None], calibration.hi[active, None]
    assert (plain[active] > hi).any()
    np.testing.assert_array_equal(clipped[active], np.clip(plain[active], lo, hi))


def test_the_band_that_is_not_kept_is_zero_or_the_mean() -> None:
    calibration = calibrated("cfpa")
    tables = tables_of(calibration)
    chunk = corpus().chunks[0]
    plain = CFPA(calibration, 4.8, k=2, noise=SeededNoise(1)).release(chunk)
    filled = CFPA(calibration, 4.8, k=2, noise=SeededNoise(1), fill_band=True).release(chunk)
    active = ~calibration.constant
    spectrum, mean = np.fft.rfft(plain[active], axis=1), np.fft.rfft(tables.mean[active], axis=1)
    assert np.abs(spectrum[:, 2:]).max() < 1e-9 * np.abs(spectrum).max()
    np.testing.assert_allclose(np.fft.rfft(filled[active], axis=1)[:, 2:], mean[:, 2:], atol=1e-6)
    np.testing.assert_allclose(np.fft.rfft(filled[active], axis=1)[:, :2], spectrum[:, :2], rtol=1e-9)


@pytest.mark.parametrize("rows", [2, 63, 399, 400])
def test_fpa_is_one_chunk_as_long_as_the_recording(rows: int) -> None:
    calibration = calibrated("cfpa")
    k = rows // 2 + 1
    quiet = FPA(calibration, FINE * active_count(calibration), rows, k=k, noise=ZeroNoise())
    assert (quiet.n, quiet.k) == (rows, (k, k, k, 0, k))
    recording = np.clip(np.random.default_rng(0).normal(size=(rows, len(NAMES))), calibration.lo, calibration.hi)
    released = release_rows(quiet, recording)
    width = np.where(calibration.constant, 1.0, calibration.hi - calibration.lo)
    assert (np.abs((released - recording) / width)[:, ~calibration.constant] < 1e-4).all()  # lambda is for the range
    assert FPA(calibration, 4.8, rows).k == (1, 1, 1, 0, 1)


def test_fpa_takes_the_declared_range_whatever_the_ball() -> None:
    calibration = calibrated("dcfpa")
    noisy = FPA(calibration, 4.0, 400, noise=ZeroNoise())
    width = (calibration.hi - calibration.lo)[~calibration.constant]
    scale = math.sqrt(400) * math.sqrt(400) * width / 1.0  # sqrt(n) sqrt(k) Delta_2 / eps_f, Delta_2 = sqrt(n) R
    np.testing.assert_allclose(noisy.noise_sd[~calibration.constant], math.sqrt(2) * scale / 400, rtol=1e-3)


@pytest.mark.parametrize("mechanism", ALL)
def test_a_declared_range_holds_every_chunk_of_the_range(mechanism: type[Mechanism]) -> None:
    """Corners of the range are not moved by projection, and nothing larger is needed."""
    calibration = declared_range(calibrated(mechanism.name), N)
    released = mechanism(calibration, FINE * active_count(calibration), noise=ZeroNoise(), **whole_band(mechanism, N))
    active = ~calibration.constant
    lo, hi = calibration.lo[:, None], calibration.hi[:, None]
    for pattern in (np.zeros(N), np.ones(N), np.arange(N) % 2, 1 - np.arange(N) % 2):
        chunk = lo + (hi - lo) * pattern
        error = np.abs(released.release(chunk) - chunk)[active] / (hi - lo)[active]
        assert error.max() < 1e-5
    with pytest.raises(CalibrationError, match="figures of a corpus"):
        mechanism(calibration, 4.8, shrink=True)


def test_the_public_interval_is_not_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise at its largest ends at the same public figure for every input."""

    class Largest(ZeroNoise):
        def draw(self, law: Any) -> NDArray[np.int64]:
            return np.full(law.shape, 2**40, dtype=np.int64)

    released = CFPA(calibrated("cfpa"), 4.8, noise=Largest())
    outputs = [released.release(chunk) for chunk in corpus().chunks[:5]]
    for output in outputs[1:]:
        np.testing.assert_array_equal(output, outputs[0])
    monkeypatch.setattr(LaplaceLaw, "clamp", lambda self, noisy: noisy)  # negative control
    assert not np.array_equal(released.release(corpus().chunks[0]), released.release(corpus().chunks[1]))
