"""The output law of real mechanisms for public chunks: of the integers that get noise, and of the words that occur."""

from itertools import pairwise

import numpy as np
import pytest

from eyestream.core.calibration import JointTables, PerFeatureTables
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream_lab.correlation.emissions import any_cells, box_cells, emission_of


def levels(name: str, epsilon: float, **options: int):
    """A mechanism, and four chunks: the mean of its calibration, moved by parts of each feature's range."""
    mechanism = build(calibrations.load(name), epsilon, **options)
    low, high = (bound[:, 0] for bound in mechanism.frame.range)
    chunks = np.zeros((4, mechanism.features, mechanism.n))
    tables = mechanism.calibration.tables
    assert isinstance(tables, PerFeatureTables | JointTables)
    middle = tables.mean
    middle = middle[:, None] if middle.ndim == 1 else middle
    for state, share in enumerate((0.0, 0.02, 0.05, 0.09)):
        chunks[state] = middle
        chunks[state, mechanism.frame.active] += share * (high - low)[:, None]
    return mechanism, chunks


@pytest.mark.parametrize(
    ("name", "options"), [("lpa", {}), ("cfpa", {}), ("cfpa", {"k": 4}), ("dcfpa", {"k": 1}), ("dcfpa", {"k": 4})]
)
def test_the_loss_of_pairs_is_of_the_mechanism(name, options):
    """Never above epsilon, proportional to it, and that of the level for CFPA with one coefficient, by hand."""
    mechanism, chunks = levels(f"everyday-{name}-32", 4.8, **options)
    ratio = emission_of(mechanism, chunks).log_ratio
    assert 0 < ratio.max() <= 4.8
    assert (np.diff(ratio[0]) > 0).all()
    again = emission_of(build(mechanism.calibration, 9.6, **options), chunks).log_ratio
    if options or name == "lpa":
        np.testing.assert_allclose(again, 2 * ratio, rtol=1e-3, atol=1e-3)
    if name == "cfpa" and not options:
        tables, frame = mechanism.calibration.tables, mechanism.frame
        active, n = frame.active, mechanism.n
        residual = np.clip(chunks[:, active], *frame.range) - tables.centre[active]
        norm = np.sqrt((residual**2).sum(axis=2, keepdims=True))
        inside = residual * np.minimum(1, tables.radius[active][:, None] / np.maximum(norm, 1e-300))
        scale = np.sqrt(n) * 2 * tables.radius[active] * len(active) / 4.8
        if set(mechanism.k) <= {0, 1}:
            by_hand = (np.abs(inside.sum(axis=2)[0] - inside.sum(axis=2)[3]) / scale).sum()
            assert ratio[0, 3] == pytest.approx(by_hand, rel=1e-3)


def test_dcfpa_charges_levels_less_than_cfpa():
    cfpa = emission_of(*levels("everyday-cfpa-32", 4.8)).log_ratio.max()
    dcfpa = emission_of(*levels("everyday-dcfpa-32", 4.8)).log_ratio.max()
    assert dcfpa < 0.5 * cfpa


@pytest.mark.parametrize("name", ["everyday-klt-32", "everyday-klt-one-64"])
def test_every_word_that_is_released_has_a_cell(name):
    """Whatever the released past was: the chunks that share a word are one of the cells, for several bits too."""
    mechanism, chunks = levels(name, 24.0)
    cells = {tuple(cell) for cell in np.array(emission_of(mechanism, chunks).outputs > 0)}
    core = mechanism.core
    assert isinstance(core, JointCore)
    step, rng, seen = core.step(), np.random.default_rng(4), set()
    frame = mechanism.frame
    scores = np.array([step.scores(np.clip(c[frame.active], *frame.range)) for c in chunks])
    for turn in core.schedule.steps[:6]:
        for _ in range(300):
            innovation = (scores - scores.mean(axis=0) - rng.normal(size=scores.shape[1])) @ turn.directions.T
            words = [
                tuple(int(np.searchsorted(b, y)) for b, y in zip(turn.borders, row, strict=True)) for row in innovation
            ]
            for word in set(words):
                cell = tuple(w == word for w in words)
                if 0 < sum(cell) < len(cell):
                    assert cell in cells
                    seen.add(cell)
    assert len(seen) >= 3


def test_words_of_books_may_cut_out_any_chunks():
    """Cells of books are no boxes: what is found of words must be among the cells, and boxes alone miss some."""
    mechanism, chunks = levels("everyday-klt-mapped-32", 4.8)
    core = mechanism.core
    assert isinstance(core, JointCore)
    cells = {tuple(cell) for cell in np.array(emission_of(mechanism, chunks).outputs > 0)}
    assert cells >= {tuple(cell) for cell in any_cells(4)}
    step, rng, seen = core.step(), np.random.default_rng(4), set()
    scores = np.array([step.scores(np.clip(c[mechanism.frame.active], *mechanism.frame.range)) for c in chunks])
    turn = core.schedule.steps[-1]
    for _ in range(2000):
        innovation = (scores - scores.mean(axis=0) - rng.normal(size=scores.shape[1])) @ turn.directions.T
        words = [tuple(turn.word(row)) for row in innovation]
        seen |= {tuple(w == word for w in words) for word in set(words)}
    seen.discard((True,) * 4)
    assert len(seen) >= 5
    assert seen <= {tuple(bool(b) for b in cell) for cell in any_cells(4)}


def test_boxes():
    line = box_cells(np.array([[0.0], [1.0], [2.0]]))
    assert {tuple(c) for c in line} == {(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1)}
    assert len(box_cells(np.eye(3))) == 6  # no point lies in a box around two others
    assert all(len(a) == len(b) for a, b in pairwise(line))


def test_what_has_no_law_is_refused():
    mechanism, chunks = levels("everyday-klt-one-64", 4.8)
    with pytest.raises(ConfigError, match="are needed, not"):
        emission_of(mechanism, chunks[:, :, :5])
    with pytest.raises(ConfigError, match="from 2 to 9"):
        box_cells(np.zeros((10, 1)))
