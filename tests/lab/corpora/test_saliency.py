"""Saliency maps: clipping for each person, noise for the worst exchange, and files that load again."""

import math
import zlib
from pathlib import Path

import numpy as np
import pytest

from eyestream.core.kinds import DifferentialPrivacy
from eyestream.errors import ConfigError
from eyestream_lab.corpora.claims import exact
from eyestream_lab.corpora.rounded_gaussian import SIGMA, gaussian_delta
from eyestream_lab.corpora.saliency import Field, SaliencyGaussian, fixation_counts, whole_steps
from eyestream_lab.datasets import MAPS, make_system, open_corpus, privatize_corpus
from tests.lab.corpora.worlds import gaze_corpus, seeded

HOSTILE = [
    np.zeros((40, 60)),
    np.full((40, 60), 1e6),
    np.eye(40, 60) * 3.7,
    np.pad([[1e9]], ((0, 39), (0, 59))),
    np.random.default_rng(0).poisson(0.3, (40, 60)).astype(float),
]


def longest(counts: np.ndarray, clip: float, step: float) -> float:
    """L2 norm of a map in whole steps, beside what is allowed; integers, so exact."""
    found = whole_steps(counts, clip, step)
    assert (found >= 0).all()
    return float(sum(int(v) ** 2 for v in found.flat)) / (clip / step) ** 2


@pytest.mark.parametrize("counts", HOSTILE)
@pytest.mark.parametrize(("clip", "step"), [(10.0, 0.01), (3.3, 0.7), (1.0, 1e-4)])
def test_no_map_is_longer_than_the_clip(counts: np.ndarray, clip: float, step: float) -> None:
    assert longest(counts, clip, step) <= 1.0


def test_rounding_to_the_nearest_step_would_be_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "trunc", np.rint)
    found = [longest(np.full((40, 60), 1e6), clip, 0.03) for clip in np.linspace(1.0, 2.0, 50)]
    assert max(found) > 1.0


def test_noise_is_for_the_worst_exchange_of_a_person() -> None:
    """Two maps without a common cell, both of norm C: sqrt(2) C apart. Noise for C alone does not keep delta."""
    system = SaliencyGaussian(2.0, 1e-5, clip=10.0)
    a, b = np.zeros((40, 60)), np.zeros((40, 60))
    a[0, 0], b[1, 1] = 500.0, 500.0
    step = system.sigma() / SIGMA
    apart = np.linalg.norm(whole_steps(a, 10.0, step) - whole_steps(b, 10.0, step)) * step
    assert apart == pytest.approx(math.sqrt(2.0) * 10.0, rel=1e-3)
    assert gaussian_delta(2.0, system.sigma() / apart) <= 1e-5
    assert gaussian_delta(2.0, system.sigma() / math.sqrt(2.0) / apart) > 1e-5


def test_a_map_for_each_task_with_the_price_of_all(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=4, tasks=("READ", "PLAY"))
    system = make_system("saliency-gaussian", epsilon=2.0, delta=1e-4, clip=5.0)
    claim = privatize_corpus(system, corpus, tmp_path / "out")
    assert claim.parts == (exact("map", 2.0, float(claim.parts[0].delta)),)
    assert isinstance(claim.claim, DifferentialPrivacy)
    assert claim.claim.loss.delta == claim.parts[0].delta
    assert 2.0 < claim.claim.loss.epsilon < 4.0
    released = open_corpus(tmp_path / "out", MAPS)
    assert [(part.person, part.recording, part.task) for part in released.parts] == [
        ("everybody", "READ.npz", "READ"),
        ("everybody", "PLAY.npz", "PLAY"),
    ]
    found = released.load(released.parts[0])
    assert found.density.shape == (40, 60)
    assert found.density.sum() == pytest.approx(1.0)
    assert found.density.min() >= 0.0
    np.testing.assert_allclose(found.x_deg, np.linspace(-30, 30, 61))
    np.testing.assert_allclose(found.y_deg, np.linspace(20, -20, 41))
    picture = pixels((tmp_path / "out" / "READ.png").read_bytes())
    assert picture.shape == (40, 60)
    assert picture[np.unravel_index(found.density.argmax(), found.density.shape)] == 255


def pixels(data: bytes) -> np.ndarray:
    """A greyscale picture without filters, its checksums verified."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == int.from_bytes(data[at + 8 + length : at + 12 + length], "big")
        parts[kind] = body
        at += 12 + length
    width, height = int.from_bytes(parts[b"IHDR"][:4], "big"), int.from_bytes(parts[b"IHDR"][4:8], "big")
    assert parts[b"IHDR"][8:] == bytes([8, 0, 0, 0, 0])
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:]


def test_a_large_epsilon_gives_the_map_and_a_small_one_hides_it(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=4)
    field = Field(60.0, 40.0, 10.0)
    raw = sum(fixation_counts(corpus.load(part), field) for part in corpus.parts)
    correlation = []
    for epsilon in (50.0, 0.01):
        system = SaliencyGaussian(epsilon, 1e-3, clip=25.0, field=field, kernel_deg=0.0)
        survey = corpus.survey()
        ((_, found),) = system.release(corpus, survey, system.units(corpus, survey)[0], seeded(2))
        correlation.append(np.corrcoef(found.density.flat, raw.flat)[0, 1])
    assert correlation[0] > 0.7
    assert abs(correlation[1]) < 0.6  # 24 cells: 3 standard errors, once in 370 seeds


def test_the_first_row_is_the_top() -> None:
    counts = Field(60.0, 40.0, 1.0).counts(np.array([[29.5, 19.5], [29.5, 19.5], [-29.5, -19.5], [70.0, 0.0]]))
    assert counts[0, -1] == 2
    assert counts[-1, 0] == 1
    assert counts.sum() == 3


def test_delta_must_be_small_for_the_number_of_people(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=4)
    with pytest.raises(ConfigError, match=r"delta must be at most 0\.0625 for 4 people"):
        privatize_corpus(make_system("saliency-gaussian", epsilon=1.0, delta=0.1), corpus, tmp_path / "out")
    for field in ({"cell_deg": 0.0}, {"cell_deg": 0.001}, {"cell_deg": 50.0}):
        with pytest.raises(ConfigError, match="the field needs"):
            Field(**field)
