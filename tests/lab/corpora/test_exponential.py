"""Exponential-DP: what is printed is not differentially private, and what runs is."""

import math
from pathlib import Path

import numpy as np
import pytest

from eyestream.core.kinds import DifferentialPrivacy
from eyestream.errors import ConfigError
from eyestream.rim.files.calibrations import load
from eyestream_lab.corpora.claims import PERSON, exact
from eyestream_lab.corpora.exponential import LEVELS, ExponentialDP, printed_noise
from eyestream_lab.corpora.run import release_with
from eyestream_lab.datasets import ROWS, make_system, open_corpus, privatize_corpus
from tests.lab.corpora.worlds import rows_corpus, seeded

CALIBRATION = load("everyday-lpa-32")


def printed_log_ratio(epsilon: float, rows: int) -> float:
    """Largest log-ratio of the printed noise's densities at r and r + 1, for a range of 1 (a value that goes over it).

    r = s ln(y) / c with c = lambda t_max and y of density lambda e^(-lambda y): u = s c r has density
    lambda e^(u - lambda e^u), and both signs are as likely.
    """
    rate = epsilon / (2.0 * rows)
    c = rate * rows

    def log_density(r: np.ndarray) -> np.ndarray:
        both = [math.log(rate) + s * c * r - rate * np.exp(s * c * r) for s in (-1.0, 1.0)]
        return np.asarray(np.logaddexp(*both))

    spread = (math.log(1.0 / rate) + 3.0) / c
    r = np.linspace(-spread, spread, 200_001)
    return float(np.abs(log_density(r + 1.0) - log_density(r)).max())


def test_the_printed_noise_is_not_private() -> None:
    """Ratios of one value are far above its share epsilon / (2 t_max) of the budget that the paper spends on it."""
    for epsilon, least in ((1.0, 4.0), (20.0, 10.0)):
        assert printed_log_ratio(epsilon, 600) > least
        assert printed_log_ratio(epsilon, 600) > 1000 * epsilon / 1200
    drawn = printed_noise((40_000, 1), np.array([1.0 / 1200.0]), 600, seeded(3))
    scale = math.log(1200.0) / 0.5  # where the mass sits, in ranges: ln of a number near 1 / lambda, over lambda t_max
    assert 0.7 * scale < np.abs(drawn).mean() < 1.1 * scale


def test_as_printed_is_refused_unless_the_caller_knows(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not differentially private for any epsilon"):
        make_system("exponential-dp-as-printed", epsilon=1.0)
    corpus = rows_corpus(tmp_path / "in", people=2)
    system = make_system("exponential-dp-as-printed", epsilon=1.0, as_published=True)
    claim = release_with(seeded(1), system, corpus, tmp_path / "out")
    assert claim.claim.kind == "none"


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("rows", [1, 71, 600])
def test_the_worst_exchange_of_a_sequence_costs_epsilon(epsilon: float, rows: int) -> None:
    """Every value of a feature from one end of its range to the other: the law's rate times the L1 distance."""
    rate = float(ExponentialDP(CALIBRATION, epsilon).law(rows).rates[0])
    assert 0.98 * epsilon < rate * rows * LEVELS <= epsilon


def test_a_scale_for_one_row_would_cost_every_row() -> None:
    """The planted fault: noise for one value, (hi - lo) / epsilon, costs rows times epsilon."""
    rate = float(ExponentialDP(CALIBRATION, 1.0).law(1).rates[0])
    assert rate * 600 * LEVELS > 500.0


def test_noise_has_the_scale_that_is_claimed(tmp_path: Path) -> None:
    """Mean of |noise| is t_max R / epsilon; 5 standard errors: once in 1.7 million seeds. Half the scale fails."""
    corpus = rows_corpus(tmp_path / "in", people=3, tasks=("READ",))
    system = make_system("exponential-dp", calibration=CALIBRATION, epsilon=500.0)
    release_with(seeded(8), system, corpus, tmp_path / "out")
    released = open_corpus(tmp_path / "out", ROWS)
    active = ~CALIBRATION.constant
    width = (CALIBRATION.hi - CALIBRATION.lo)[active]
    sizes = []
    for part in corpus.parts:
        raw = np.clip(corpus.load(part).features, CALIBRATION.lo, CALIBRATION.hi)[:, active]
        made = released.load(part)
        assert len(made.t) == len(raw)
        sizes.append((np.abs(made.features[:, active] - raw) / width)[np.isfinite(raw)])
    found, wanted = np.concatenate(sizes), 72 / 500.0
    assert abs(found.mean() - wanted) < 5 * wanted / math.sqrt(len(found)) + 1 / LEVELS
    assert abs(found.mean() - wanted / 2) > 5 * wanted / math.sqrt(len(found)) + 1 / LEVELS


def test_keeping_one_row_in_so_many_lowers_the_noise(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in", people=2)
    system = make_system("exponential-dp", calibration=CALIBRATION, epsilon=10.0, every=10)
    claim = privatize_corpus(system, corpus, tmp_path / "out")
    released = open_corpus(tmp_path / "out", ROWS)
    assert [len(released.load(part).t) for part in released.parts] == [7, 8, 8, 8]
    np.testing.assert_allclose(released.load(released.parts[0]).t, 5.0 * np.arange(7))
    features = int((~CALIBRATION.constant).sum())
    assert claim.claim == DifferentialPrivacy(exact("person", 10.0 * features * 2), PERSON)
    assert claim.parts == (exact("feature of a recording", 10.0),)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_epsilon_that_cannot_be_used(epsilon: float) -> None:
    with pytest.raises(ConfigError, match="epsilon must be positive and finite"):
        make_system("exponential-dp", calibration=CALIBRATION, epsilon=epsilon)


def test_noise_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in", people=2)
    with pytest.raises(ConfigError, match="exponential-dp: epsilon 1e-07 with"):
        privatize_corpus(make_system("exponential-dp", calibration=CALIBRATION, epsilon=1e-7), corpus, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
