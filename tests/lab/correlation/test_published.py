"""epsilon' of real mechanisms under the published class: never below what an attacker reaches, and in the claim."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.claims.correlation.published import PublishedClass, session_claim, side
from eyestream.claims.correlation.scores import advantage, forward_bound
from eyestream.core.additive.ball import l1_factor, l2_factor
from eyestream.core.additive.core import AdditiveCore
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream.rim.files.processes import SHIPPED, load_process

Array = NDArray[np.float64]
CLASS = PublishedClass("a", 60.0, 60.0, 3.0, "made up")


def log_normal(z: float) -> float:
    return math.log(0.5 * math.erfc(-z / math.sqrt(2)))


@pytest.mark.parametrize(("shift", "exponent"), [(0.05, 0.5), (0.4, 5.0), (1.0, 40.0), (3.0, 4.8), (2.0, 300.0)])
def test_the_best_half_space_is_enclosed(shift: float, exponent: float) -> None:
    """No half-space tells more, and one tells nearly as much; the likelihood of the centre alone would not do."""
    scale = exponent + math.log(-math.expm1(-exponent))
    told = [
        float(np.logaddexp(0, scale + log_normal(z + shift)) - np.logaddexp(0, scale + log_normal(z)))
        for z in np.linspace(-30, 5, 7001)
    ]
    found = advantage(shift, exponent)
    assert max(told) <= found <= 1.02 * max(told) + 0.03 * shift + 0.01 * exponent**0.5
    assert found > told[6000]


def test_far_shifts_tell_all_and_none_nothing() -> None:
    assert advantage(0.0, 5.0) == advantage(1.0, 0.0) == 0.0
    assert advantage(1e9, 5.0) == 5.0
    assert advantage(1.0, 1e4) < advantage(1.5, 1e4) < 1e4


def pair_loss(mechanism: Mechanism, first: Array, second: Array) -> float:
    """The loss of one release between two chunks, from the integers that the shipped sampler adds noise to."""
    assert isinstance(mechanism.core, AdditiveCore)
    private, frame = mechanism.core.private, mechanism.frame
    transform, integers = private.transform(), []
    for chunk in (first, second):
        residual = transform.residual(np.clip(chunk[frame.active], *frame.range))
        factor = private.factor(residual, private.radius)
        integers.append(private.lattice.snap(transform.coordinates(residual), factor).copy())
    apart = np.abs(integers[0] - integers[1]).sum(axis=1)
    return float(sum(Fraction(r) * int(d) for r, d in zip(private.law.rates.tolist(), apart, strict=True)))


def declared(name: str, **options: int) -> Mechanism:
    return build(calibrations.load(f"everyday-{name}-32"), 4.8, **options)


@pytest.mark.parametrize(("name", "options"), [("cfpa", {}), ("cfpa", {"k": 5}), ("dcfpa", {"k": 3}), ("lpa", {})])
def test_coupled_chunks_lose_no_more_than_the_claim_says(name: str, options: dict[str, int]) -> None:
    """Two chunks of the ball and what is left of their difference s chunks later, about any level, wherever it lies."""
    mechanism = declared(name, **options)
    frame, tables = mechanism.frame, mechanism.calibration.tables
    assert isinstance(tables, PerFeatureTables)
    rng = np.random.default_rng(3)
    n, active = mechanism.n, frame.active
    step = -math.log(0.8) * 60.0  # a = 0.8
    one = [side(mechanism, CLASS, step, s) - side(mechanism, CLASS, step, s - 1) for s in (1, 2, 3)]
    assert one[0] >= one[1] >= one[2]
    for trial in range(40):
        shape = rng.normal(size=(len(active), n)) if trial % 2 else np.ones((len(active), n))
        signal = np.diff(shape, axis=1, prepend=0.0) if name == "dcfpa" else shape
        norm = np.abs(signal).sum(axis=1) if name == "lpa" else np.sqrt((signal**2).sum(axis=1))
        apart = 2 * tables.radius[active][:, None] * shape / np.maximum(norm, 1e-300)[:, None]
        course = rng.normal(size=(len(active), n)) * frame.range[1] * rng.choice([0.0, 0.1, 3.0])
        for s, allowed in zip((1, 2, 3), one, strict=True):
            pair = np.zeros((2, mechanism.features, n))
            pair[0, active], pair[1, active] = course, course + 0.8**s * apart
            assert pair_loss(mechanism, pair[0], pair[1]) <= allowed


def test_scaling_onto_a_taxicab_ball_moves_chunks_apart() -> None:
    """Why the claim for LPA has the factor 2; the Euclidean projection needs none."""
    pair = np.array([[1.0, 0.0], [1.0, 0.5]])
    scaled = pair * l1_factor(pair, np.ones(2))
    assert np.abs(scaled[0] - scaled[1]).sum() > 1.3 * np.abs(pair[0] - pair[1]).sum()
    rng = np.random.default_rng(1)
    for _ in range(200):
        pair = rng.normal(size=(2, 5)) * rng.choice([0.1, 1.0, 9.0], size=(2, 1))
        euclidean, taxicab = pair * l2_factor(pair, np.ones(2)), pair * l1_factor(pair, np.ones(2))
        assert np.linalg.norm(euclidean[0] - euclidean[1]) <= np.linalg.norm(pair[0] - pair[1]) * (1 + 1e-12)
        assert np.abs(taxicab[0] - taxicab[1]).sum() <= 2 * np.abs(pair[0] - pair[1]).sum()


def jagged_losses(mechanism: Mechanism, half: Array, a: float, far: int) -> list[float]:
    """Losses of the chunks 1 .. far - 1 away, of contents `half` above and below the ball's centre.

    The level lies at the end of the range, and far beyond it in every second row: what is left of the difference is in
    the other rows, and jumps up and down.
    """
    frame, tables, n = mechanism.frame, mechanism.calibration.tables, mechanism.n
    assert isinstance(tables, PerFeatureTables)
    low, high = (np.broadcast_to(end, (len(frame.active), 1)) for end in frame.range)
    level = np.where(np.arange(n) % 2 == 0, high, high + 500 * (high - low))
    centre = np.cumsum(tables.centre[frame.active], axis=1)
    losses = []
    for s in range(1, far):
        pair = np.zeros((2, mechanism.features, n))
        for one, sign in zip(pair, (1, -1), strict=True):
            one[frame.active] = level + a**s * (centre + sign * half - level)
        losses.append(pair_loss(mechanism, pair[0], pair[1]))
    return losses


@pytest.mark.parametrize("k", [1, 9, 17])
def test_clamping_rows_makes_differences_jagged_and_the_claim_for_dcfpa_allows_it(k: int) -> None:
    """A ramp that is as steep as the ball allows, and stays where the range ends."""
    mechanism = declared("dcfpa", k=k)
    frame, tables, n = mechanism.frame, mechanism.calibration.tables, mechanism.n
    assert isinstance(tables, PerFeatureTables)
    radius, width, a = tables.radius[frame.active][:, None], frame.range[1] - frame.range[0], 0.95
    steps = np.clip(np.ceil((width / (2 * radius)) ** 2), 1, n)
    half = np.minimum(radius * np.arange(1.0, n + 1) / np.sqrt(steps), width / 2)
    assert (np.linalg.norm(np.diff(half, axis=1, prepend=0.0), axis=1, keepdims=True) <= radius * (1 + 1e-12)).all()
    step = -math.log(a) * 60.0
    told = np.diff([side(mechanism, CLASS, step, s) for s in range(60)])
    losses = np.array(jagged_losses(mechanism, half, a, 60))
    assert (losses <= told + 1e-9).all()
    coupled = a ** np.arange(1, 60) * 4.8
    assert (losses > 1.2 * coupled).any() or k < 17, "control: coupling without the factor would allow less than this"


def test_one_coefficient_of_the_differences_is_the_last_row_and_loses_no_more_than_the_range() -> None:
    """Ramps from the centre to the ends of the range lose nearly as much as any two chunks may: less than half."""
    mechanism = declared("dcfpa", k=1)
    frame, tables, n = mechanism.frame, mechanism.calibration.tables, mechanism.n
    assert isinstance(tables, PerFeatureTables)
    allowed = side(mechanism, CLASS, 1e-9, 1)  # a = 1: the limit alone
    assert 0.4 < allowed / 4.8 < 0.45
    centre, pair = np.cumsum(tables.centre[frame.active], axis=1), np.zeros((2, mechanism.features, n))
    for one, end in zip(pair, frame.range, strict=True):
        one[frame.active] = centre + (end - centre[:, -1:]) * np.arange(1, n + 1) / n
    assert 0.8 * allowed < pair_loss(mechanism, pair[0], pair[1]) <= allowed
    rng = np.random.default_rng(8)
    for spread in (0.3, 1.0, 100.0):
        pair[:, frame.active] = rng.normal(size=(2, len(frame.active), n)) * spread * frame.range[1]
        assert pair_loss(mechanism, pair[0], pair[1]) <= allowed


def test_clamped_differences_keep_to_the_bound_of_every_feature() -> None:
    """The largest |D (t v)| over t in [0, 1] is at a corner: all of them, for many v; and a bound is near somewhere."""
    rng = np.random.default_rng(5)
    for n in (2, 5, 10):
        steps = np.eye(n) - np.eye(n, k=-1)
        long = 1 / (2 * math.sin(math.pi / (4 * n + 2)))
        assert 1 / np.linalg.svd(steps)[1][-1] == pytest.approx(long)
        corners = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        reached = np.zeros(2)
        for trial in range(60):
            v = (rng.normal(size=n), np.abs(rng.normal(size=n)), np.arange(1.0, n + 1), np.ones(n))[trial % 4]
            v = v / np.linalg.norm(steps @ v)
            most = (((corners * v) @ steps.T) ** 2).sum(axis=1).max()
            allowed = 1 + np.array([long**2 + long, n * np.abs(v).max() ** 2])
            assert most <= allowed.min() * (1 + 1e-12)
            reached = np.maximum(reached, most / allowed)
        assert reached.max() > 0.6


@pytest.mark.parametrize(("name", "share"), [("lpa", 0.5), ("cfpa", 0.5), ("dcfpa", 0.1)])
def test_an_attacker_reaches_at_least_so_much_of_the_bound(name: str, share: float) -> None:
    """Innovations near zero are in the class: then both sessions are known, and the outermost outputs tell all."""
    mechanism = declared(name)
    frame, tables, n = mechanism.frame, mechanism.calibration.tables, mechanism.n
    assert isinstance(tables, PerFeatureTables)
    active, step = frame.active, -math.log(0.8) * 60.0
    shape = np.broadcast_to(np.arange(1.0, n + 1) if name == "dcfpa" else np.ones(n), (len(active), n))
    norm = {"lpa": n, "cfpa": math.sqrt(n), "dcfpa": math.sqrt(n)}[name]
    centre = np.zeros((mechanism.features, n))
    centre[active] = np.cumsum(tables.centre[active], axis=1) if name == "dcfpa" else tables.centre[active]
    reached = 0.0
    for apart in range(-20, 21):
        pair = np.array([centre, centre])
        pair[0, active] += 0.8 ** abs(apart) * tables.radius[active][:, None] * shape / norm
        pair[1, active] -= 0.8 ** abs(apart) * tables.radius[active][:, None] * shape / norm
        reached += pair_loss(mechanism, pair[0], pair[1])
    bound = session_claim(mechanism, CLASS, step, chunks=41, touched=1)
    assert share * bound.chunk <= reached <= bound.chunk < bound.plain


def words_attack(most: float, epsilon: float, borders: Array, first: float | None = None) -> float:
    """What words that all say "above the border" tell of scores 3 and -3, on a grid; the nearest border first."""
    scores = np.linspace(-9, 9, 401)
    told = np.zeros(len(scores))
    for place in range(len(borders) - 1, -1, -1):
        a = most if first is None or place else first
        rows = np.exp(-((scores[None] - a * scores[:, None]) ** 2) / (2 * (1 - a**2)))
        rows /= rows.sum(axis=1, keepdims=True)
        beyond = np.where(scores > borders[place], epsilon, 0.0) + told
        told = np.log(rows @ np.exp(beyond - beyond.max())) + beyond.max()
    return float(np.interp(3, scores, told) - np.interp(-3, scores, told))


@pytest.mark.parametrize(
    ("most", "epsilon", "chunks", "first", "last"),
    [
        (0.5, 1.0, 30, 0.5, 0.75),
        (0.7, 0.48, 3, 0.25, 0.25),
        (0.7, 4.8, 60, 2.25, 6.0),
        (0.737, 4.8, 60, 2.25, 6.0),
        (0.85, 1.0, 60, 0.5, 3.5),
    ],
)
def test_words_of_the_strongest_attacker_stay_below_the_bound_and_reach_half(
    most: float, epsilon: float, chunks: int, first: float, last: float
) -> None:
    """Borders rise from chunk to chunk: a word that was unlikely anyway tells more, and says so of every later one."""
    attained = words_attack(most, epsilon, last - (last - first) * most ** np.arange(chunks))
    bound = forward_bound(most, epsilon, chunks, 6.0)
    assert attained <= bound < chunks * epsilon + 1e-9
    assert attained >= bound / 2
    still = words_attack(most, epsilon, np.full(chunks, 12.0))  # words that nobody's scores reach tell nothing
    assert still < 0.05 * bound


def test_scores_that_never_change_or_never_stay() -> None:
    assert forward_bound(1.0, 2.0, 5, 6.0) == 10.0
    assert forward_bound(0.0, 2.0, 5, 6.0) == forward_bound(0.5, 2.0, 0, 6.0) == 0.0


def test_the_shipped_class_and_what_it_claims_of_the_default() -> None:
    process = load_process("everyday")
    assert SHIPPED == ("everyday",)
    mechanism = build(calibrations.load("everyday-klt-one-64"), 4.8)
    claim = session_claim(mechanism, process, 32.0, chunks=240, touched=2)
    assert claim.most == pytest.approx(math.exp(-32 / process.score_time_constant_s))
    assert 4.8 < claim.chunk < 0.2 * claim.plain
    assert claim.second == pytest.approx(claim.chunk + 4.8)
    slow = PublishedClass("slow", 1e9, 1e9, 3.0, "")
    assert session_claim(mechanism, slow, 32.0, chunks=5, touched=2).chunk == pytest.approx(24.0)
    assert session_claim(mechanism, process, 32.0, chunks=1, touched=2).chunk == pytest.approx(4.8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = 3", "not a class of processes"),
        (
            'name = "a"\ntime_constant_s = 0\nscore_time_constant_s = 1\nrange_sd = 3\nabout = ""',
            "time_constant_s must be",
        ),
        ('name = "a"\ntime_constant_s = 1\nrange_sd = 3\nabout = ""', "score_time_constant_s"),
    ],
)
def test_what_is_no_class_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_process(str(path))
    with pytest.raises(ConfigError, match="not one of everyday"):
        load_process("elsewhere")
    with pytest.raises(ConfigError, match="cannot read"):
        load_process(str(tmp_path / "none.toml"))


def test_a_baseline_enters_every_release_so_only_the_sum_holds() -> None:
    """What is taken off every chunk ties all of them to the session's first minute: nothing here covers that."""
    mechanism = build(calibrations.load("everyday-klt-anchored-64"), 4.8)
    assert side(mechanism, CLASS, 32.0, 3) == math.inf
    claim = session_claim(mechanism, CLASS, 32.0, chunks=9, touched=2)
    assert claim.chunk == claim.second == claim.plain == pytest.approx(9 * 4.8)
    assert "no less than the plain sum" in claim.words()
