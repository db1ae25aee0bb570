"""The example of a mechanism: its (epsilon, delta) is exact, wrong versions are seen, and the product knows it."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import gaussian_mean as example
import gaussian_mean_lab  # noqa: F401  makes its calibration known
import numpy as np
import pytest

from eyestream.cli import main as command
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.registry import entries, entry_of
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.audit import worker
from eyestream_lab.audit.subject import mechanism
from eyestream_lab.calibration import Corpus, calibrate
from eyestream_lab.testing.mechanisms import check_any_input, check_frozen, check_sessions, some_chunks
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise

FILE = Path(example.__file__)
NAMES, N = ("a", "b", "still"), 8


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    rows = [np.column_stack([rng.normal(size=(40, 2)), np.zeros(40)]) for _ in range(4)]
    return Corpus.of([Recording(np.arange(40) / 2.0, own, NAMES, "somebody") for own in rows], N)


def made(corpus: Corpus, epsilon: float = 2.0, **options: object) -> Mechanism:
    return build(calibrate("gaussian-mean", corpus, declared=("still",)), epsilon, **options)


def true_delta(weights: list[int], epsilon: Fraction, shift: int) -> Fraction:
    """Over all events, from the definition: the outputs on which one input is more than e^epsilon times as likely."""
    law = {z: Fraction(w, sum(weights)) for z, w in enumerate(weights)}
    power = Fraction(math.exp(epsilon) * (1 + 2**-48))  # above the true one: a lower bound, near to 2^-48
    return sum((max(Fraction(0), p - power * law.get(z + shift, Fraction(0))) for z, p in law.items()), Fraction(0))


def test_it_is_short() -> None:
    assert len(FILE.read_text().splitlines()) < 150
    assert entry_of("gaussian-mean").mechanism is example.GaussianMean
    assert "gaussian-mean" in [entry.name for entry in entries()]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-4), (1.0, 1e-6), (5.0, 1e-6), (20.0, 1e-3)])
def test_delta_is_that_of_the_table_and_sigma_is_the_smallest(epsilon: float, delta: float) -> None:
    sigma, weights = example.table_for(Fraction(epsilon), Fraction(delta))
    assert sum(weights) == 2**128
    assert weights == weights[::-1]
    found = [example.loss_delta(weights, Fraction(epsilon), shift) for shift in range(1, 17)]
    for shift, own in enumerate(found, 1):
        true = true_delta(weights, Fraction(epsilon), shift)
        assert true <= own  # never below what is spent
        assert float(own - true) <= 1e-12 * float(own) + 1e-16
    assert found == sorted(found)  # the largest shift costs most
    assert found[-1] <= delta
    if sigma > 1:
        assert example.loss_delta(example.table(sigma - 1), Fraction(epsilon), 16) > delta
    spread = math.sqrt(sum(w * z * z for z, w in enumerate(weights, -(len(weights) // 2))) / 2**128)
    assert spread == pytest.approx(sigma, rel=0.01)


def continuous_delta(sigma: float, epsilon: float, shift: float) -> float:
    """Of the continuous Gaussian: Balle and Wang, ICML 2018, theorem 5."""
    phi, a, b = NormalDist().cdf, shift / (2 * sigma), epsilon * sigma / shift
    return phi(a - b) - math.exp(epsilon) * phi(-a - b)


def test_the_continuous_formula_would_understate() -> None:
    """Where sigma is a few steps and epsilon is large, integers tell more than the formula knows."""
    worst = 0.0
    for sigma in range(1, 5):
        weights = example.table(sigma)
        for epsilon in (0.25 * quarter for quarter in range(1, 60)):
            stated = continuous_delta(sigma, epsilon, 1.0)
            if stated > 1e-12:
                worst = max(worst, float(true_delta(weights, Fraction(epsilon), 1)) / stated)
    assert worst > 1.05


def spent(mechanism: Mechanism, wrong: Callable[[int], int] = lambda sigma: sigma) -> Fraction:
    """Delta of a whole chunk whose noise has the sigma `wrong(sigma)`, from the definition."""
    count = len(mechanism.frame.active)
    share = Fraction(mechanism.epsilon) / count
    sigma, _ = example.table_for(share, Fraction(mechanism.delta) / count)
    return count * true_delta(example.table(wrong(sigma)), share, example.LEVELS)


def test_what_is_spent_is_what_is_said_and_wrong_versions_are_seen(corpus: Corpus) -> None:
    mechanism = made(corpus, 2.0, delta=1e-5)
    assert (mechanism.epsilon, mechanism.delta) == (2.0, 1e-5)
    assert 0.5e-5 < spent(mechanism) <= 1e-5
    for wrong in (
        lambda sigma: round(sigma / math.sqrt(N)),  # the sensitivity of a mean whose rows are the unit
        lambda sigma: round(sigma / 2),
        lambda sigma: round(sigma * 0.9),
    ):
        assert spent(mechanism, wrong) > 1e-5


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
def test_whatever_comes_in_the_integers_lie_in_their_range(corpus: Corpus, value: float) -> None:
    mechanism = made(corpus, noise=ZeroNoise())
    lo, hi = mechanism.calibration.lo, mechanism.calibration.hi
    released = mechanism.release(np.where(np.arange(N) % 2, value, -value) * np.ones((3, 1)))
    assert ((released >= lo[:, None] - 1e-9) & (released <= hi[:, None] + 1e-9)).all()
    levels = (released[:2] - lo[:2, None]) / (hi - lo)[:2, None] * 16
    np.testing.assert_allclose(levels, np.rint(levels), atol=1e-9)


def test_draws_have_the_law_of_the_table() -> None:
    weights = example.table(3)
    sample = SeededNoise(1).draw(example.GaussianLaw(weights, 40_000))
    values = np.arange(len(weights)) - len(weights) // 2
    expected = np.array(weights, dtype=object) / 2**128 * len(sample)
    often = expected > 5
    counts = (sample[:, None] == values[often]).sum(axis=0)
    chi = float((((counts - expected[often]) ** 2) / expected[often]).sum())
    assert chi < 60  # of about 20 cells
    assert abs(sample.mean()) < 5 * 3 / 200


def test_the_product_knows_it(corpus: Corpus, tmp_path: Path) -> None:
    calibrations.save(calibrate("gaussian-mean", corpus, declared=("still",)), tmp_path / "mine.npz")
    mechanism = build(calibrations.load(tmp_path / "mine.npz"), 2.0)
    assert "(2, 1e-06)-differential privacy (approximate)" in mechanism.guarantee
    assert mechanism.loss.delta == Fraction(1e-6)
    released = mechanism.session().release(corpus.chunks[0])
    assert (released[:2] == released[:2, :1]).all()  # one number a feature
    assert (released[2] == 0).all()
    assert mechanism.noise_sd[2] == 0 < mechanism.noise_sd[0]
    restored = mechanism.session(mechanism.session().snapshot())
    assert restored.release(corpus.chunks[0]).shape == (3, N)
    with pytest.raises(ConfigError, match="gaussian-mean has no option k; it takes delta"):
        made(corpus, k=1)
    for delta in (0.0, 1.0, -1.0):
        with pytest.raises(ConfigError, match="delta"):
            made(corpus, delta=delta)
    with pytest.raises(ConfigError, match="gaussian-mean: option delta: expected"):
        made(corpus, delta="much")
    with pytest.raises(ConfigError, match="too small"):
        made(corpus, 1e-4, delta=1e-30)


def test_it_holds_to_what_every_mechanism_does(corpus: Corpus) -> None:
    calibration = calibrate("gaussian-mean", corpus, declared=("still",))
    mechanism = build(calibration, 2.0, noise=SeededNoise(0))
    check_frozen(mechanism, some_chunks(mechanism, 3))
    check_sessions(lambda: build(calibration, 2.0, noise=SeededNoise(0)), some_chunks(mechanism, 3))
    check_any_input(mechanism)


def run(*words: object) -> None:
    command.main([str(word) for word in words])


def refused(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2


def test_the_commands_take_it_from_its_place(corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Calibrate, release a recording into a ledger, and ask for the guarantee of a configuration that names it."""
    rng = np.random.default_rng(1)
    for name in "pqr":
        rows = np.column_stack([rng.normal(size=(40, 2)), np.zeros(40)])
        recordings.save(Recording(np.arange(40) / 2.0, rows, NAMES, name), tmp_path / f"{name}.npz")
    files, place = (tmp_path / "q.npz", tmp_path / "r.npz"), ("--mechanism", "gaussian_mean:ENTRY")
    mine = tmp_path / "mine.npz"
    run(
        "calibrate",
        *files,
        "--mechanism",
        "gaussian_mean_lab:ENTRY",
        "--chunk",
        N,
        "--constant",
        "still",
        "--out",
        mine,
    )
    assert "mine.npz: gaussian-mean, chunks of 8 rows, 2 of 3 features released" in capsys.readouterr().out
    ledger = tmp_path / "spent.ledger"
    run("budget", "--new", "--ledger", ledger)
    booked = ("--ledger", ledger, "--device", "p")
    release = (
        "privatize",
        tmp_path / "p.npz",
        *place,
        "--calibration",
        mine,
        "--epsilon",
        2,
        "--out",
        tmp_path / "out",
    )
    run(*release, "--option", "delta=1e-4", *booked)
    said = capsys.readouterr().out
    assert "5 chunks, epsilon 10, delta 0.0005 for the recording" in said
    assert "epsilon 10, delta 0.0005 for p since the ledger began" in said
    run("init", tmp_path / "deployed")
    file = tmp_path / "deployed" / "sidecar.toml"
    text = file.read_text()
    names, privacy, budget = (text.index(head) for head in ("names = [", "[stream.privacy]", "[budget]"))
    own = f"""names = {list(NAMES)}

[stream.privacy]
mechanism = "gaussian_mean:ENTRY"
calibration = "{mine}"
epsilon = 2.0

[stream.privacy.options]
delta = 1e-5

"""
    rest = text[budget:].replace("[budget]\n", "[budget]\nlifetime_delta = 1e-2\n")
    assert names < privacy < budget
    file.write_text(text[:names] + own + rest)
    capsys.readouterr()
    run("guarantee", "--config", file, "--json")
    claim = json.loads(capsys.readouterr().out)["features"]
    assert (claim["mechanism"], claim["loss"]["delta"]) == ("gaussian-mean", 1e-5)
    assert {scope["unit"]: scope["ceiling_delta"] for scope in claim["scopes"]}["lifetime"] == 1e-2
    subject = mechanism("gaussian_mean:ENTRY", str(mine), 2.0)
    assert (subject.features, subject.n) == (3, N)
    assert worker.load(subject)(np.zeros((3, N))).shape == (3, N)
    for wrong, message in (
        ("gaussian_mean:NOTHING", "there is no 'gaussian_mean:NOTHING' to import"),
        ("gaussian_mean:OPTIONS", "'gaussian_mean:OPTIONS' is no Entry"),
    ):
        refused(*release, "--mechanism", wrong)
        assert message in capsys.readouterr().err
    file.write_text(file.read_text().replace(str(mine), "everyday-klt-32"))
    refused("guarantee", "--config", file)
    assert "gaussian_mean:ENTRY is gaussian-mean, and the calibration is one of klt" in capsys.readouterr().err
