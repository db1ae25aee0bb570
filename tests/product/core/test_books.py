"""Books of points: their points are what the filter takes them for, and the word of anything is a word."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanisms import KLT, build
from eyestream.core.mechanisms.klt import codebook
from eyestream.core.mechanisms.klt.books import ScoreBook, books_of, read_books
from eyestream.core.mechanisms.klt.codebook import Codes, coded_by, quantiser
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.core.mechanisms.klt.schedule import Schedule
from eyestream.core.noise.response import keep_probability
from eyestream.errors import CalibrationError
from eyestream.rim.files import calibrations
from eyestream_lab.calibration.joint import shelved
from eyestream_lab.files.books import shipped_books
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise
from tests.rigs import trained_books as made
from tests.rigs.trained_books import trained

Array = NDArray[np.float64]


def one(first: int, end: int, bits: int) -> ScoreBook:
    return next(b for b in shipped_books() if (b.first, b.end, b.bits) == (first, end, bits))


@pytest.fixture(scope="module")
def shipped() -> Calibration:
    return calibrations.load("everyday-klt-mapped-32")


def core_of(calibration: Calibration, epsilon: float, **options: object) -> JointCore:
    core = build(calibration, epsilon, **options).core
    assert isinstance(core, JointCore)
    return core


def nearest(book: ScoreBook, scores: Array) -> NDArray[np.intp]:
    """(N,) of (N, m): the definition less the square of the scores, which all points have in common."""
    distance = (book.points**2) @ book.weights - 2 * (scores * book.weights) @ book.points.T
    found: NDArray[np.intp] = distance.argmin(axis=1)
    return found


@pytest.mark.parametrize("place", [(0, 12, 4), (0, 12, 8), (6, 16, 8)])
def test_points_are_the_means_of_their_cells(place: tuple[int, int, int]) -> None:
    book = one(*place)
    y = np.random.default_rng(1).standard_normal((2**14, book.end - book.first))
    word = nearest(book, y)
    q = book.points[word]
    apart = (y[:200, None] - book.points) ** 2 @ book.weights
    assert [book.nearest(row) for row in y[:200]] == word[:200].tolist() == apart.argmin(axis=1).tolist()
    same, cross = q.T @ q / len(q), q.T @ y / len(y)
    np.testing.assert_allclose(cross, same, atol=0.035)
    np.testing.assert_allclose(book.power, same, atol=0.035)
    assert np.abs(1.25 * cross - 1.25**2 * same).max() > 0.1  # points that are too far out would not pass
    counts = np.bincount(word, minlength=len(book.points))
    chi = ((counts - len(y) * book.shares) ** 2 / (len(y) * book.shares)).sum()
    assert chi < len(counts) + 5 * np.sqrt(2 * len(counts))
    equal = ((counts - len(y) / len(counts)) ** 2 / (len(y) / len(counts))).sum()
    assert equal > len(counts) + 5 * np.sqrt(2 * len(counts))  # they are not alike


def test_training_in_one_dimension_finds_the_quantiser_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "SHELVES", ((0, 1, 1, 3),))
    for book in trained():
        known = quantiser(book.bits)
        np.testing.assert_allclose(np.sort(book.points[:, 0]), known.points, atol=0.06)
        assert book.power[0, 0] == pytest.approx(known.power, abs=0.004)


def test_a_book_leaves_less_unknown_than_quantisers_of_as_many_bits() -> None:
    worth = np.arange(1, 25) ** -0.75
    scalar = Codes(9.6).best(worth)
    assert not scalar.books
    book = one(0, 12, sum(scalar.bits))
    removed = [worth[code.scores] @ np.diagonal(code.known) for code in (coded_by([book], 9.6), scalar)]
    assert removed[0] > 1.06 * removed[1]
    both = Codes(9.6, [[book]])
    assert both.best(worth).books == (book,)
    assert both.best(worth[::-1]).books == ()  # of what is worth little, it says much in vain


def test_what_is_no_number_has_a_word() -> None:
    book = one(0, 12, 5)
    with np.errstate(invalid="ignore"):
        for value in (np.nan, np.inf, -np.inf, 1e300):
            assert 0 <= book.nearest(np.full(12, value)) < 32


ROWS = [[(0, 12, 3)], [(0, 12, 6)], [(0, 6, 7), (6, 16, 7)]]
"""Of books. The first one has fewer points than scores."""


@pytest.mark.parametrize("rows", ROWS)
def test_what_a_word_is_read_as_is_the_best_linear_estimate(rows: list[tuple[int, int, int]]) -> None:
    """What the estimate leaves is uncorrelated with the marks of the word, and its covariance is `known`."""
    rng, own = np.random.default_rng(5), [one(*row) for row in rows]
    epsilon = 0.6 * sum(book.bits for book in own)
    code = coded_by(own, epsilon)
    y = rng.standard_normal((2**15, code.books[-1].end))
    kept = rng.random(len(y)) < keep_probability(epsilon, sum(code.bits))
    words = [np.where(kept, nearest(b, y[:, b.first : b.end]), rng.integers(0, len(b.points), len(y))) for b in own]
    z = np.concatenate([b.marks[word] for b, word in zip(own, words, strict=True)], axis=1)
    estimate = z @ code.read.T
    np.testing.assert_allclose((y - estimate).T @ z / len(y), 0, atol=0.04)
    np.testing.assert_allclose(estimate.T @ estimate / len(y), code.known, atol=0.04)
    certain = coded_by(own, 100.0).read  # as if nothing were ever replaced
    assert np.abs((y - z @ certain.T).T @ z / len(y)).max() > 0.07


@pytest.mark.parametrize("rows", ROWS)
def test_all_that_is_solved_for_is_regular(rows: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """By what is solved for and not by a tolerance: the points themselves would not do for the first book."""
    conditions, plain = [], codebook.solved

    def watched(matrix: Array, right: Array) -> Array:
        conditions.append(float(np.linalg.cond(matrix)))
        return plain(matrix, right)

    monkeypatch.setattr(codebook, "solved", watched)
    for epsilon in (0.01, 0.4, 4.0, 8.8, 16.0, 37.8, 110.0):
        coded_by([one(*row) for row in rows], epsilon)
    assert max(conditions) < 100
    few = one(0, 12, 3)
    as_points = (few.points * few.shares[:, None]).T @ few.points
    assert np.linalg.cond(as_points) > 1e15


def test_a_book_with_few_points_says_all_that_its_words_can() -> None:
    """The mean of the scores for each word, by Bayes: no function of the word, linear or not, is nearer to them."""
    book, epsilon = one(0, 12, 3), 3.0
    theta = keep_probability(epsilon, 3)
    code = coded_by([book], epsilon)
    certain = theta * book.shares / (theta * book.shares + (1 - theta) / 8)
    np.testing.assert_allclose(code.read @ book.marks.T, (certain[:, None] * book.points).T, rtol=1e-12)


def error_over_promise(tables: JointTables, wrong: float = 1.0) -> float:
    """Mean squared error of the filter on people of the model itself, beside the covariance that it states."""
    schedule, rng, turns, people = Schedule(tables, 4.8), np.random.default_rng(8), 6, 400
    d = tables.covariances.shape[1]
    start = np.linalg.cholesky(schedule.motion.stationary + 1e-9 * np.eye(2 * d))
    drive = schedule.motion.spread(np.zeros((2 * d, 2 * d)))
    drive = np.linalg.cholesky((drive + drive.T) / 2 + 1e-6 * np.trace(drive) / d * np.eye(2 * d))
    truth = rng.standard_normal((people, 2 * d)) @ start.T
    state, total = np.zeros((people, 2 * d)), np.tile(np.eye(d), 2)
    for turn in range(turns):
        if turn:
            truth = schedule.motion.forward(truth) + rng.standard_normal(truth.shape) @ drive.T
            state = schedule.motion.forward(state)
        step = schedule.steps[turn]
        assert step.books
        for person in range(people):
            word = step.word(step.directions @ total @ (truth[person] - state[person]))
            if rng.random() < step.law.replace:
                word = [int(rng.integers(0, len(points))) for points in step.points]
            state[person] += step.gain @ (wrong * step.value(word))
    unknown = [after for _, _, after in schedule.turns()][turns - 1]
    return float((((truth - state) @ total.T) ** 2).sum() / people / np.trace(total @ unknown @ total.T))


def test_the_filter_errs_as_much_as_it_says(shipped: Calibration) -> None:
    tables = shipped.tables
    assert isinstance(tables, JointTables)
    assert error_over_promise(tables) == pytest.approx(1, abs=0.06)
    assert error_over_promise(tables, wrong=1.4) > 1.08  # points that are not what the schedule takes them for


@pytest.mark.parametrize(("epsilon", "bits"), [(2.4, None), (4.8, (4,)), (9.6, (9,)), (19.2, (10, 10)), (48.0, None)])
def test_the_model_chooses_what_codes(shipped: Calibration, epsilon: float, bits: tuple[int, ...] | None) -> None:
    core = core_of(shipped, epsilon)
    step = core.schedule.steps[-1]
    if bits is not None:
        assert tuple(book.bits for book in step.books) == bits
    assert math.prod(len(points) for points in step.points) == math.prod(step.law._cells.tolist())
    assert len(step.directions) == (step.books[-1].end if step.books else len(step.points))
    before = replace(shipped, tables=without_books(shipped.tables))
    old = core_of(before, epsilon)
    assert not any(turn.books for turn in old.schedule.steps)
    assert core.noise_sd.mean() <= old.noise_sd.mean() * 1.0001
    focused = core_of(shipped, epsilon, focus=["blink_rate"] if "blink_rate" in shipped.names else [shipped.names[0]])
    assert np.isfinite(focused.noise_sd).all()


def without_books(tables: object) -> JointTables:
    assert isinstance(tables, JointTables)
    return replace(tables, book_shapes=None, book_points=None, book_shares=None, book_weights=None)


def test_words_come_out_as_the_law_has_them(shipped: Calibration) -> None:
    """Counts of all sixteen words of a session's first chunk, for two inputs that are as different as can be."""
    releases, epsilon, rng = 1200, 4.8, np.random.default_rng(3)
    mechanism = KLT(shipped, epsilon, noise=SeededNoise(4))
    truth, counts, known = [], [], {}
    for chunk in (shipped.lo[:, None].repeat(32, 1), np.where(rng.random((52, 32)) < 0.5, -1e9, 1e9)):
        truth.append(KLT(shipped, epsilon, noise=ZeroNoise()).release(chunk).tobytes())
        seen = [mechanism.release(chunk).tobytes() for _ in range(releases)]
        words = np.array([known.setdefault(one, len(known)) for one in seen])
        counts.append(np.bincount(words, minlength=16))
    assert len(known) == 16
    assert truth[0] != truth[1]
    other = 1 / (math.exp(epsilon) + 15)
    for own, found in zip(truth, counts, strict=True):
        expected = np.full(16, releases * other)
        expected[known[own]] *= math.exp(epsilon)
        assert ((found - expected) ** 2 / expected).sum() < 45  # of 15 degrees of freedom: one in 10^4


def test_books_come_back_from_a_file_and_bad_ones_are_refused(shipped: Calibration) -> None:
    tables = shipped.tables
    assert isinstance(tables, JointTables)
    assert tables.book_points is not None
    assert tables.book_shapes is not None
    assert tables.book_shares is not None
    for ours, theirs in zip(books_of(tables), shipped_books(), strict=True):
        np.testing.assert_array_equal(ours.points, theirs.points)
        np.testing.assert_array_equal(ours.shares, theirs.shares)
    again = read_books(shelved(books_of(tables)))
    assert [b.bits for b in again] == [b.bits for b in shipped_books()]
    for wrong, words in (
        ({"book_points": tables.book_points[:-1]}, "points or shares"),
        ({"book_shares": -tables.book_shares}, "negative"),
        ({"book_shares": 0 * tables.book_shares}, "all nothing"),
        ({"book_weights": None}, "lack"),
        ({"book_shapes": tables.book_shapes + np.array([0, 20, 0])}, "of some of its 24 scores"),
        ({"book_shapes": tables.book_shapes.astype(np.float64)}, "whole numbers"),
    ):
        with pytest.raises(CalibrationError, match=words):
            replace(shipped, tables=replace(tables, **wrong))


@pytest.mark.parametrize("name", ["klt-mapped-32", "klt-mapped-64", "klt-mapped-128", "klt-anchored-64"])
def test_shipped_calibrations_carry_the_shipped_books(name: str) -> None:
    tables = calibrations.load(f"everyday-{name}").tables
    assert isinstance(tables, JointTables)
    assert tables.book_points is not None
    np.testing.assert_array_equal(tables.book_points, shelved(shipped_books())["book_points"])
