"""The autoencoder of saccades: reproducible, with the right sign of its divergence, and useless no more than needed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream_lab.corpora import saccade_vae
from eyestream_lab.corpora.events import POINTS
from eyestream_lab.corpora.run import release_with
from eyestream_lab.corpora.saccade_vae import CODE, divergence, trained
from eyestream_lab.datasets import make_system, open_corpus, privatize_corpus
from tests.lab.corpora.worlds import gaze_corpus, seeded

needs_jax = pytest.mark.needs("jax")


def vae(test: Callable[..., None]) -> Callable[..., None]:
    """Of those that train. JAX has threads, and tests that fork fail after it in one process: see the last test."""
    return pytest.mark.slow(needs_jax(test))


def profiles(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised bells of different heights, and their conditions."""
    rng = np.random.default_rng(seed)
    u = np.linspace(0, 1, POINTS)
    height, middle = rng.uniform(0.5, 2.0, (count, 1)), rng.uniform(0.3, 0.7, (count, 1))
    speeds = height * np.exp(-((u - middle) ** 2) / 0.05)
    return (speeds - speeds.mean(axis=0)) / speeds.std(axis=0), np.concatenate((height, middle), axis=1) / 2


def test_the_divergence_is_that_of_two_normal_laws() -> None:
    """Against the integral of p ln(p / q); and 0 for the standard normal law alone."""
    x = np.linspace(-30, 30, 200_001)
    for mean, sd in ((0.0, 1.0), (1.5, 0.5), (-2.0, 2.0)):
        log_p = -((x - mean) ** 2) / (2 * sd**2) - np.log(sd)
        density = np.exp(log_p) / np.sqrt(2 * np.pi)
        wanted = float((density * (log_p + x**2 / 2)).sum() * (x[1] - x[0]))
        assert divergence(np.array([mean]), np.array([2 * np.log(sd)])) == pytest.approx(wanted, abs=1e-6)


@vae
def test_the_same_seed_trains_the_same_weights() -> None:
    speeds, given = profiles(200, 1)
    first, second, other = (trained(speeds, given, np.random.default_rng(seed), 2) for seed in (3, 3, 4))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(first["speeds"], other["speeds"])


def told(weights: dict[str, Any], speeds: np.ndarray, given: np.ndarray) -> tuple[float, float]:
    """Mean divergence of the codes, and share of the variance of speeds that means of codes decode to."""
    both = np.concatenate((speeds, given), axis=1)
    mean, log_variance = saccade_vae._encoded(weights, both, np.maximum)
    decoded = saccade_vae._decoded(weights, np.concatenate((mean, given), axis=1))
    return float(divergence(mean, log_variance).mean()), 1 - float(((decoded - speeds) ** 2).mean() / speeds.var())


@vae
def test_codes_tell_as_little_as_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the printed minus, the divergence grows without bound instead."""
    speeds, given = profiles(400, 2)
    apart, kept = told(trained(speeds, given, np.random.default_rng(1)), speeds, given)
    assert kept > 0.7  # speeds are decoded
    assert 0.0 <= apart < CODE
    right: Callable[..., Any] = divergence
    monkeypatch.setattr(saccade_vae, "divergence", lambda *laws: -right(*laws))
    printed, _ = told(trained(speeds, given, np.random.default_rng(1)), speeds, given)
    assert not printed < 10 * CODE


@vae
def test_a_corpus_is_released_by_codes(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=3)
    promise = privatize_corpus(make_system("event-synth-pd-vae", k=2, gamma=3.0), corpus, tmp_path / "out")
    assert promise.claim.kind == "plausible deniability"
    assert any("trained on the saccades of the task, without noise" in said for said in promise.not_promised)
    released = open_corpus(tmp_path / "out", corpus.kind)
    for part in released.parts:
        assert released.load(part).samples.valid.mean() > 0.3


@vae
def test_the_seed_decides_a_release(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=3)
    for name in ("one", "two"):
        system = make_system("event-synth-pd-vae", k=2, gamma=3.0)
        release_with(seeded(7), system, corpus, tmp_path / name)
    files = [(tmp_path / name / corpus.parts[0].recording).read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]


def test_without_jax_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saccade_vae, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"event-synth-pd-vae: needs JAX: pip install 'eyestream-lab\[deep\]'"):
        make_system("event-synth-pd-vae", k=2, gamma=2.0)
    assert make_system("event-synth-pd", k=2, gamma=2.0).name == "event-synth-pd"


@needs_jax
@pytest.mark.long
def test_what_trains_holds_in_a_process_of_its_own() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-m", "slow", "-p", "no:xdist", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "4 passed" in done.stdout
