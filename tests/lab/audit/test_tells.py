"""The tests inside the audit, by themselves: each accepts what is right and rejects what is nearly right."""

import math
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream_lab.audit import bound, carryover, surface
from eyestream_lab.audit.inputs import Neighbours, neighbours, shapes
from eyestream_lab.audit.reuse import repeated, shared
from eyestream_lab.audit.subject import Subject, function
from eyestream_lab.audit.surface import spacing, transforms
from eyestream_lab.audit.telling import learn

STEP = 2.0**-20
RNG = np.random.default_rng(20)


def _claim(features: int = 2, n: int = 4, epsilon: float = 1.0, low: float = -1.0, high: float = 3.0) -> Subject:
    return function("a:b", features=features, chunk=n, low=low, high=high, epsilon=epsilon, missing=True)


def _pair(size: float, scale: float) -> bound.Draw:
    def draw(count: int):
        integers = np.rint(RNG.laplace(scale=scale / STEP, size=(2, count, 1, 1)))  # a sum of floats tells more
        return STEP * integers[0], STEP * (np.rint(size / STEP) + integers[1])

    return draw


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_bound_is_sharp_for_one_value_and_never_above(epsilon: float) -> None:
    tested = bound.bound("one", _pair(1.0, 1 / epsilon), 100_000, 0.999)
    assert 0.75 * epsilon < tested.bound.epsilon <= epsilon
    assert bound.bound("half", _pair(1.0, 0.5 / epsilon), 100_000, 0.999).bound.epsilon > epsilon


def test_the_resolution_is_what_an_event_that_never_comes_gives() -> None:
    tested = bound.bound("bare", lambda count: (np.zeros((count, 1, 1)), np.ones((count, 1, 1))), 20_000, 0.999)
    assert tested.bound.epsilon == pytest.approx(bound.resolution(tested.draws, tested.partitions, 0.999), abs=1e-9)
    assert 5 < tested.bound.epsilon < math.log(20_000)


def test_the_screening_puts_the_telling_pair_first() -> None:
    pairs = [Neighbours(f"{size}", np.zeros((1, 1)), np.full((1, 1), size)) for size in (0.1, 3.0, 0.5)]
    ranked = bound.screen(pairs, lambda pair: _pair(float(pair.second[0, 0]), 1.0), 2000)
    assert ranked[0][1].name == "3.0"


def test_a_direction_without_noise_is_learned() -> None:
    noise = RNG.laplace(scale=100.0, size=(2, 2000, 1, 1)) * np.ones((2, 2000, 3, 5))
    change = np.zeros((3, 5))
    change[1, 2] = 1.0
    telling = learn(noise[0], noise[1] + change)
    cells = telling.place(noise[0][:500] + change), telling.place(noise[1][:500])
    counts = {
        name: [np.bincount(part[name], minlength=telling.cells[name]) for part in cells] for name in telling.cells
    }
    apart = {name: np.abs(first - second).sum() / 1000 for name, (first, second) in counts.items()}
    assert max(share for name, share in apart.items() if name.startswith("without noise")) > 0.95
    assert apart["value 0"] < 0.5


def test_inputs_stay_inside_the_range_and_reach_both_ends() -> None:
    for subject in (_claim(), _claim(1, 1), _claim(3, 1), _claim(1, 7)):
        chunks = [chunk for pair in neighbours(subject) for chunk in (pair.first, pair.second)]
        chunks += shapes(subject).values()
        for chunk in chunks:
            assert chunk.shape == (subject.features, subject.n)
            assert np.nanmin(chunk, initial=0.0) >= -1
            assert np.nanmax(chunk, initial=0.0) <= 3
        assert {-1.0, 3.0} <= set(np.concatenate([chunk.ravel() for chunk in chunks]))


@pytest.mark.parametrize("step", [1.0, 2.0**-20, 0.77e-6, 2e-7])
def test_a_lattice_is_seen(step: float) -> None:
    for transform in transforms(8).values():
        integers = np.rint(RNG.laplace(scale=10 / step, size=(3000, 8)))
        signal = np.linalg.solve(transform, (step * integers + 0.1234).T).T
        found = [spacing((signal @ transform.T)[:, index], 2e-13) for index in range(8)]
        assert found == pytest.approx([step] * 8, rel=1e-3)


def test_no_lattice_is_seen_where_there_is_none() -> None:
    laws: list[Any] = [RNG.laplace, RNG.normal, RNG.uniform, RNG.logistic]
    assert all(spacing(law(size=2000), 2.0**-50) is None for law in laws for _ in range(50))


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_noise_that_comes_again_is_seen_among_few_outputs_too(share: float) -> None:
    for outputs in (RNG.laplace(size=(3000, 2, 4)), RNG.integers(0, 8, (3000, 1, 1)).astype(float)):
        assert repeated(outputs) is None
        assert shared(outputs, RNG.permutation(outputs), "two") is None
        again = outputs.copy()
        late = np.flatnonzero(RNG.random(len(again) - 1) < (share if len(np.unique(outputs)) > 8 else 0.5)) + 1
        again[late] = again[late - 1]
        assert repeated(again) is not None
        assert shared(outputs, outputs, "two") is not None


def test_ranks_see_a_shift_and_only_a_shift() -> None:
    first, second = RNG.laplace(size=(2, 5000))
    assert abs(carryover._deviations(first, second)) < 4.5
    assert abs(carryover._deviations(first, second + 0.2)) > 5
    coarse = np.rint(first), np.rint(second)
    assert abs(carryover._deviations(*coarse)) < 4.5
    assert carryover._deviations(np.zeros(5), np.zeros(7)) == 0


def test_times_must_differ_clearly() -> None:
    usual, other = RNG.gamma(4, 1000, (2, 500)).astype(np.int64) + 5000
    assert surface.unlike(usual, other) is None
    assert surface.unlike(usual, other + 50) is None  # 50 ns
    assert surface.unlike(usual, 2 * other) is not None
    assert surface.unlike(usual, other // 2) is not None
    assert surface.unlike(usual // 100, other // 50) is None  # below a microsecond
    spikes = np.where(RNG.random(500) < 0.1, 50 * other, other)  # another program runs at times
    assert surface.unlike(usual, spikes) is None


def test_the_order_of_timing_pairs_every_kind_with_the_ordinary_chunk() -> None:
    pairs = surface.interleaved(3, 40).reshape(-1, 2)
    assert (pairs.min(axis=1) == 0).all()
    assert np.bincount(pairs.max(axis=1)).tolist() == [0, 40, 40, 40]
    assert 20 < (pairs[:, 0] == 0).sum() < 100


@pytest.mark.parametrize("norm", ["backward", "ortho"])
@pytest.mark.parametrize("n", [8, 12, 32])
def test_sums_of_floats_are_seen_behind_a_division_by_the_length(n: int, norm: Literal["backward", "ortho"]) -> None:
    claim = _claim(1, n)
    pair = surface.surface_inputs(claim, np.full((1, 1), 10.0))

    def released(chunk: NDArray[np.float64], step: float | None) -> NDArray[np.float64]:
        noise = RNG.laplace(scale=10.0 * n, size=(6000, 1, n // 2 + 1))
        spectrum: NDArray[np.complex128] = np.fft.rfft(chunk, axis=-1, norm=norm).astype(np.complex128)
        if step is not None:
            noise = step * np.rint(noise / step)
            spectrum = (step * np.rint(spectrum / step)).astype(np.complex128)
        return np.fft.irfft(spectrum + noise, n, axis=-1, norm=norm)

    def found(step: float | None) -> list[str]:
        return surface.surface(released(pair.first, step), released(pair.second, step))

    assert found(None) != []
    assert found(1e-4) == []
