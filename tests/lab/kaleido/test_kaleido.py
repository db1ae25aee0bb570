"""Kaleido: the spend of any window, exactly; its noise; and the printed text's mistakes as planted faults."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eyestream.errors import ConfigError
from eyestream_lab.kaleido import Kaleido, KaleidoSession, PlanarLaw, Settings
from eyestream_lab.kaleido.mechanism import PARTS, Step
from eyestream_lab.kaleido.planar import planar_rate
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise


class AnyNoise:
    """Whatever integers a test gives, again and again; then every decision is possible."""

    def __init__(self, values: Sequence[int]) -> None:
        self._values, self._next = values, 0

    def draw(self, law):
        """In the shape of the law."""
        self._next += 1
        return np.full(law.shape, self._values[self._next % len(self._values)], dtype=np.int64)


def largest_spend(mechanism: Kaleido, steps: Sequence[Step]) -> Fraction:
    """Of any w consecutive samples, the tests included, exactly."""
    own = [Fraction(mechanism.epsilon) * step.parts / PARTS + mechanism.test_epsilon * step.tested for step in steps]
    w = mechanism.settings.w
    return max(sum(own[start : start + w], Fraction(0)) for start in range(len(own)))


def run(mechanism: Kaleido, session: KaleidoSession, x: Sequence[float]) -> list[Step]:
    """Steps of gaze at these azimuths."""
    at = np.array(x, dtype=np.float64)
    return session.release(at, np.zeros_like(at), np.ones(len(at), np.bool_))


JUMPS = [20.0 * (-1) ** i for i in range(400)]
"""Gaze that is far from wherever it was, at every sample."""


@given(
    st.integers(1, 40), st.integers(1, 40), st.integers(2, 5), st.sampled_from([0.3, 1.0, 7.0]),
    st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=9), st.lists(st.sampled_from([-20.0, 0.0, 0.5, 20.0]),
    min_size=1, max_size=120),
)  # fmt: skip
def test_no_window_of_w_samples_ever_spends_more_than_epsilon(w, skip, h, epsilon, noise, x) -> None:  # noqa: PLR0917 - what Hypothesis gives
    mechanism = Kaleido(epsilon, Settings(w=w, skip=min(skip, w), h=h), noise=AnyNoise(noise))
    assert largest_spend(mechanism, run(mechanism, mechanism.session(), x)) <= Fraction(epsilon)


def test_the_budget_is_used_and_comes_back() -> None:
    mechanism = Kaleido(10.0, noise=ZeroNoise())
    steps = run(mechanism, mechanism.session(), JUMPS)
    assert largest_spend(mechanism, steps) > Fraction(9)
    assert sum(step.parts for step in steps[-50:]) > PARTS / 8


class SkipsSinceTheLastPublished(KaleidoSession):
    """The prose: skip within `skip` samples of what was last published."""

    def due(self) -> bool:
        """Every sample after a repetition is tested."""
        last = next((i for i, parts in enumerate(reversed(self.spent)) if parts), len(self.spent))
        return not self.published or last + 1 >= self.mechanism.settings.skip


class SkipsByTheTrackersClock(KaleidoSession):
    """A skip of 50 ms on a clock that jumps: every sample seems to be late enough."""

    def due(self) -> bool:
        """As if the clock went forward by 50 ms from sample to sample."""
        return True


class ForgetsTheWindow(KaleidoSession):
    """Half of the whole budget for every publication."""

    def parts_for_one(self) -> int:
        """Whatever was spent."""
        return PARTS // 4


@pytest.mark.parametrize("fault", [SkipsSinceTheLastPublished, SkipsByTheTrackersClock, ForgetsTheWindow])
def test_faults_overspend(fault: type[KaleidoSession]) -> None:
    mechanism = Kaleido(10.0, noise=AnyNoise([2**30, -(2**30)]))
    assert largest_spend(mechanism, run(mechanism, fault(mechanism), JUMPS)) > Fraction(10)
    assert largest_spend(mechanism, run(mechanism, mechanism.session(), JUMPS)) <= Fraction(10)


def test_a_sum_over_the_whole_stream_never_recovers() -> None:
    """Line 24 as it is printed."""

    class SumsTheWholeStream(KaleidoSession):
        def _account(self, parts: int) -> None:
            self.sum += parts

    mechanism = Kaleido(10.0, noise=ZeroNoise())
    late = [sum(step.parts for step in run(mechanism, session, JUMPS)[200:]) for session in
            (SumsTheWholeStream(mechanism), mechanism.session())]  # fmt: skip
    assert late[0] == 0
    assert late[1] > PARTS


def below(rate: float, limit: int) -> float:
    """P(z < limit) under P(z) ~ exp(-rate |z + 1/2|)."""
    tail = math.exp(-rate * abs(limit)) / 2
    return tail if limit <= 0 else 1 - tail


@pytest.mark.parametrize("r_deg", [2.0, 10.0])
def test_a_test_costs_what_it_says_and_unscaled_noise_costs_r_times_as_much(r_deg: float) -> None:
    mechanism = Kaleido(10.0, Settings(r_deg=r_deg))
    rate, own = float(mechanism.test_law.rates[0]), float(mechanism.test_epsilon)
    moved = mechanism.reach + 1

    def cost(at_rate: float) -> float:
        """The largest log-ratio of either outcome between distances that a movement of r keeps apart."""
        limits = range(-40 * moved, 40 * moved, moved // 7)
        repeated = [abs(math.log(below(at_rate, -one) / below(at_rate, -one - moved))) for one in limits]
        return max(repeated)

    assert 0.999 * own < cost(rate) <= own * (1 + 1e-9)
    as_printed = own / 2**12
    assert cost(as_printed) > 0.99 * r_deg * own


def test_sensitivities_cover_what_rounding_adds() -> None:
    """Over random pairs at most r apart: their integers, and whole distances to a random output."""
    mechanism, rng = Kaleido(1.0, Settings(r_deg=0.1)), np.random.default_rng(5)
    angle, output = rng.uniform(0, 2 * np.pi, 5000), rng.integers(-50_000, 50_000, 2)
    one = rng.uniform(-15, 15, (2, 5000))
    other = one + 0.1 * np.array([np.cos(angle), np.sin(angle)])
    points = [np.rint(np.clip(p, -20, 20) * 2**12).astype(int) for p in (one, other)]
    apart = np.hypot(*(points[0] - points[1]))
    assert 0.1 * 2**12 < apart.max() <= mechanism.reach
    whole = [np.array([math.isqrt(int(d)) for d in ((p - output[:, None]) ** 2).sum(axis=0)]) for p in points]
    assert np.abs(whole[0] - whole[1]).max() <= mechanism.reach + 1


def test_the_proposal_is_kept_as_the_law_wants() -> None:
    """Kept times proposed is proportional to exp(-a |z'|), to 28 digits' rounding of the test's own floats."""
    rate = planar_rate(1.0, 300)
    law = PlanarLaw(rate, 1000)
    slow = float(law._proposal.rates[0])
    assert slow * math.sqrt(2) <= rate
    rng = np.random.default_rng(1)
    for x, y in rng.integers(-4000, 4000, (200, 2)).tolist():
        size = math.hypot(x + 0.5, y + 0.5)
        kept = law.kept(x, y) / 2 ** (32 * law.words)
        assert 0 < kept <= 1
        proposed = -slow * (abs(x + 0.5) + abs(y + 0.5))
        assert math.log(kept) + proposed == pytest.approx(-rate * size, rel=1e-12, abs=1e-12)


def test_no_place_of_the_field_is_impossible_from_any_other_at_a_large_epsilon() -> None:
    """With 128 bits the proposal would never be kept there."""
    mechanism = Kaleido(200.0)
    law = mechanism.planar_law(PARTS // 4)
    kept = law.kept(2 * mechanism.edge[0], 0)
    assert kept.bit_length() >= 64
    assert kept.bit_length() < 32 * law.words - 128


def radii(draws: np.ndarray) -> np.ndarray:
    """From the middle of the law."""
    return np.hypot(draws[:, 0] + 0.5, draws[:, 1] + 0.5)


def test_draws_have_the_radius_of_planar_laplace() -> None:
    """Kolmogorov-Smirnov, 6,000 draws, false alarm 1e-4; scales that are off by a tenth are rejected."""
    law, noise = PlanarLaw(1 / 500, 5000), SeededNoise(3)
    draws = np.array([noise.draw(law) for _ in range(6000)])

    def p_value(rate: float) -> float:
        return float(stats.kstest(radii(draws), stats.gamma(2, scale=1 / rate).cdf).pvalue)

    assert p_value(1 / 500) > 1e-4
    for wrong in (0.9 / 500, 1.1 / 500, 1 / 500 / math.sqrt(2)):
        assert p_value(wrong) < 1e-4
    angles = np.arctan2(draws[:, 1] + 0.5, draws[:, 0] + 0.5)
    assert stats.kstest(angles, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-4
    same = draws[:, [0, 0]]  # one coordinate for both, as in a public repository
    assert stats.kstest(np.arctan2(same[:, 1], same[:, 0]), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue < 1e-4
    proposals = np.array([SeededNoise(9).draw(law._proposal)[0]] + [noise.draw(law._proposal)[0] for _ in range(6000)])
    assert stats.kstest(radii(proposals), stats.gamma(2, scale=500).cdf).pvalue < 1e-4


def test_first_publications_have_the_radius_of_their_quarter_of_epsilon() -> None:
    """Mean 4 r / (epsilon (1 - 1/h)) = 1.6 degrees at epsilon 10, r = 2: 800 draws, five standard errors."""
    mechanism = Kaleido(10.0, noise=SeededNoise(4))
    first = [run(mechanism, mechanism.session(), [0.0])[0] for _ in range(800)]
    radius = [math.hypot(step.x_deg, step.y_deg) for step in first]
    assert abs(np.mean(radius) - 1.6) < 5 * 1.6 / math.sqrt(2 * 800)
    assert {step.parts for step in first} == {PARTS // 4}


@pytest.mark.parametrize(("r_deg", "factor"), [(2.0, 36.05), (10.0, 7.21)])
def test_the_charge_of_live_use_is_the_fields_diagonal_over_r(r_deg: float, factor: float) -> None:
    mechanism = Kaleido(1.0, Settings(r_deg=r_deg))
    assert float(mechanism.worst.epsilon) == pytest.approx(factor, abs=0.01)
    corners = np.array([mechanism.edge, [-mechanism.edge[0], -mechanism.edge[1]]])
    farthest = math.hypot(*(corners[0] - corners[1]))
    assert farthest / mechanism.reach <= mechanism.worst.epsilon
    assert (farthest + 1) / (mechanism.reach + 1) <= mechanism.worst.epsilon


@pytest.mark.parametrize("size", [1, 3, 100, 400])
def test_how_samples_arrive_does_not_matter_and_any_gaze_stays_in_the_field(size: int) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(0, 30, (2, 400))
    x[::7], y[::11], x[5], y[6] = np.nan, np.inf, 1e308, -1e308
    valid = rng.random(400) > 0.1
    whole = Kaleido(5.0, noise=SeededNoise(8)).session().release(x, y, valid)
    session = Kaleido(5.0, noise=SeededNoise(8)).session()
    pieces = [session.release(x[i : i + size], y[i : i + size], valid[i : i + size]) for i in range(0, 400, size)]
    assert [step for piece in pieces for step in piece] == whole
    assert max(abs(step.x_deg) for step in whole) <= 30.0
    assert max(abs(step.y_deg) for step in whole) <= 20.0


def test_a_lost_sample_tells_nothing_of_earlier_gaze() -> None:
    """Released as if gaze were where the last output was: two pasts with one output go on alike."""
    outputs = []
    for before in (3.0, 3.4):
        session = Kaleido(5.0, Settings(skip=1), noise=ZeroNoise()).session()
        run(session.mechanism, session, [3.0])
        run(session.mechanism, session, [before])
        at = np.array([np.nan])
        outputs.append(session.release(at, at, np.array([True])))
    assert outputs[0] == outputs[1]


def test_settings_and_epsilons_out_of_range_are_refused() -> None:
    for wrong in (
        {"w": 0},
        {"skip": 60},
        {"h": 1},
        {"r_deg": math.nan},
        {"threshold_deg": -1.0},
        {"width_deg": math.inf},
    ):
        with pytest.raises(ConfigError, match="kaleido: expected"):
            Settings(**wrong)
    for epsilon in (0.0, math.nan, math.inf, -1.0):
        with pytest.raises(ConfigError, match="epsilon"):
            Kaleido(epsilon)
    with pytest.raises(ConfigError, match="too small"):
        Kaleido(0.01, Settings(w=100_000, skip=1))
