"""The closed forms, the field, the tilings, the model of motion and what readers make of words."""

import hashlib
import math
from dataclasses import astuple, replace

import numpy as np
import pytest

from eyestream.core.mechanisms.tile.tables import tiles_of
from eyestream.core.tiles import MOST_BITS, Field, slots_touched, word_bits
from eyestream.core.tiles.calibration import UNIT
from eyestream.core.tiles.motion import Motion
from eyestream.core.tiles.reader import TileCode, WordReader
from eyestream.core.tiles.tiling import tiling
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.files import calibrations
from eyestream_lab.hindsight.tile import gaze_in_hindsight
from eyestream_lab.samples.tile_response import TileResponse
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise
from tests.product.tiles.worlds import LARGE, SHARES, SMALL, calibration, walk


def test_bits_tell_most_of_the_true_word() -> None:
    """Mutual information from the table of the response, for all numbers of bits."""
    for epsilon in np.geomspace(0.01, 30.0, 40).tolist():
        told = {}
        for bits in range(2, MOST_BITS + 1):
            words = 2**bits
            joint = np.full((words, words), 1.0) + np.eye(words) * math.expm1(epsilon)
            joint /= joint.sum()
            told[bits] = float((joint * np.log(joint * words**2)).sum())
        assert told[word_bits(epsilon)] >= max(told.values()) - 1e-9


@pytest.mark.parametrize(
    ("epsilon", "bits"), [(0.1, 2), (10 / 3, 3), (4.0, 4), (20 / 3, MOST_BITS), (100.0, MOST_BITS)]
)
def test_bits_at_usual_epsilons(epsilon: float, bits: int) -> None:
    assert word_bits(epsilon) == bits


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 0.009, 101.0, math.inf, math.nan])
def test_an_epsilon_that_cannot_be_used_is_refused(epsilon: float) -> None:
    with pytest.raises(ConfigError, match="epsilon of a slot"):
        word_bits(epsilon)


def test_slots_touched_is_the_most_that_any_window_touches() -> None:
    """By all beginnings on a fine grid; both forms that were published are wrong for some windows."""
    floor_is_wrong = False
    for slot in (500_000, 700_000, 1_000_000, 1_100_000):
        for window in (100_000, 500_000, 700_000, 1_000_000, 2_000_000, 2_100_000):
            begin = np.arange(0, slot, 50_000)
            most = int(((begin + window - 1) // slot - begin // slot + 1).max())
            assert slots_touched(window / 1e6, slot) == most
            floor_is_wrong |= window // slot + 1 != most
    assert floor_is_wrong


def test_a_window_of_whole_slots_touches_one_more() -> None:
    assert [slots_touched(2.0, us) for us in (500_000, 1_000_000, 2_000_000)] == [5, 3, 2]


def test_any_gaze_ends_in_the_field() -> None:
    wild = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 3.0])
    valid = np.array([True] * 7 + [False])
    counts = LARGE.occupancy(wild, wild[::-1], valid)
    assert counts.sum() == len(wild)
    finite = valid & np.isfinite(wild) & np.isfinite(wild[::-1])
    assert counts[-1] == len(wild) - finite.sum()
    corner = SMALL.occupancy(np.array([1e308]), np.array([-1e308]), np.array([True]))
    assert corner[SMALL.columns - 1] == 1


def test_cells_and_their_middles_agree() -> None:
    x, y = np.meshgrid(LARGE.x_deg, LARGE.y_deg)
    for dx in (-0.99, 0.0, 0.99):
        counts = LARGE.occupancy(x.ravel() + dx, y.ravel() - dx, np.ones(x.size, np.bool_))
        assert (counts[:-1] == 1).all()


@pytest.mark.parametrize("tiles", [1, 3, 7, 15, 31])
def test_tiles_are_rectangles_of_nearly_equal_weight(tiles: int) -> None:
    x, y = LARGE.x_deg / 12.0, LARGE.y_deg[:, None] / 9.0
    weights = np.rint(1e5 * np.exp(-(x * x + y * y) / 2)) + 1
    labels = tiling(weights, tiles)
    assert sorted(set(labels.ravel().tolist())) == list(range(tiles))
    for tile in range(tiles):
        row, column = np.nonzero(labels == tile)
        assert len(row) == (np.ptp(row) + 1) * (np.ptp(column) + 1)
    share = np.bincount(labels.ravel(), weights=weights.ravel()) / weights.sum() * tiles
    assert 0.5 < share.min() <= share.max() < 1.6


def test_every_tile_has_a_cell_however_narrow_the_weight() -> None:
    for row, column in ((0, 0), (27, 35), (13, 0)):
        weights = np.ones((LARGE.rows, LARGE.columns))
        weights[row, column] = UNIT
        labels = tiling(weights, 31)
        assert len(np.unique(labels)) == 31
    assert len(np.unique(tiling(np.ones((2, 4)), 7))) == 7


def test_every_small_field_has_as_many_tiles_as_were_asked_for() -> None:
    """Also as many as cells: 3 x 3 cells cannot be cut into halves of four and five tiles by a line."""
    rng = np.random.default_rng(6)
    for rows, columns in ((1, 5), (2, 2), (3, 3), (4, 3), (5, 5), (2, 9)):
        for tiles in range(1, rows * columns + 1):
            labels = tiling(rng.integers(1, 2**20, (rows, columns)).astype(np.float64), tiles)
            assert sorted(set(labels.ravel().tolist())) == list(range(tiles))


def test_released_words_read_the_same_on_every_machine() -> None:
    """Tilings, beliefs and gaze of the shipped calibration, by a digest that was stored."""
    code = TileCode(tiles_of(calibrations.load("everyday-tile")), 4.0)
    reader, digest = WordReader(code), hashlib.blake2b(digest_size=8)
    for word in np.random.default_rng(11).integers(0, code.words, 300).tolist():
        digest.update(reader.labels.astype("<i4").tobytes())
        gaze = reader.take(word)
        digest.update(reader.belief.seen.astype("<i8").tobytes() + np.array(astuple(gaze), "<f8").tobytes())
    assert digest.hexdigest() == "2630a86bb0feb61a"


def test_the_model_is_the_same_in_any_order_of_additions() -> None:
    """Sums of weights are exact: turned round, the field gives the same bits. Floating weights would not."""
    made = calibration(LARGE, 200)
    turned = replace(
        made, prior=made.prior[::-1, ::-1], across=made.across[:, ::-1, ::-1], upright=made.upright[:, ::-1, ::-1]
    )
    one, other = Motion(made), Motion(turned)
    belief, mirror = one.start, other.start
    rng = np.random.default_rng(4)
    for _ in range(20):
        inside = np.zeros((LARGE.rows, LARGE.columns), np.bool_)
        row, column = rng.integers(0, 20, 2)
        inside[row : row + 9, column : column + 9] = True
        belief = one.told(one.predicted(belief), inside, False, 27.3)
        mirror = other.told(other.predicted(mirror), inside[::-1, ::-1], False, 27.3)
        np.testing.assert_array_equal(belief.seen, mirror.seen[:, ::-1, ::-1])
        np.testing.assert_array_equal(belief.lost, mirror.lost)
        assert abs(belief.seen.sum() + belief.lost.sum() - UNIT) < 2 * belief.seen.size
        assert (belief.seen == np.rint(belief.seen)).all()
        assert belief.seen.min() >= 1


def test_what_is_read_follows_from_the_released_words_alone() -> None:
    """Two people whose released words are the same read the same, whatever their gaze was."""
    made = calibration(LARGE, 200)

    class SameWords(ZeroNoise):
        def draw(self, law):
            return np.array([1, 2])

    mechanism = TileResponse(made, 4.0, noise=SameWords())
    people = [mechanism.session() for _ in range(2)]
    for one, other in zip(walk(LARGE, 30, 7), walk(LARGE, 30, 8), strict=True):
        assert people[0].release(one) == people[1].release(other)


def test_without_noise_the_gaze_follows_and_errors_are_as_expected() -> None:
    """A share of .5 is expected of slots' medians; held to .35 to .85 over 200 slots of one seed."""
    made, content = calibration(LARGE, 400), walk(LARGE, 200, 9)
    session = TileResponse(made, 12.0, noise=SeededNoise(1)).session()
    near = []
    for occupancy in content:
        _, gaze = session.release(occupancy)
        if occupancy[:-1].any():
            seen = np.repeat(np.arange(LARGE.cells), occupancy[:-1])
            x, y = np.median(LARGE.x_deg[seen % LARGE.columns]), np.median(LARGE.y_deg[seen // LARGE.columns])
            near.append(math.hypot(gaze.x_deg - x, gaze.y_deg - y) <= gaze.error_deg)
            assert gaze.lost < 0.5
        else:
            assert gaze.lost > 0.5
    assert 0.35 < np.mean(near) < 0.85


def test_hindsight_ends_where_live_reading_ends_and_is_nearer_before() -> None:
    made, content = calibration(LARGE, 400), walk(LARGE, 200, 10)
    mechanism = TileResponse(made, 3.0, noise=SeededNoise(2))
    session = mechanism.session()
    words, live = zip(*(session.release(occupancy) for occupancy in content), strict=True)
    later = gaze_in_hindsight(mechanism.code, words)
    assert math.hypot(later[-1].x_deg - live[-1].x_deg, later[-1].y_deg - live[-1].y_deg) < 0.01
    assert gaze_in_hindsight(mechanism.code, []) == []
    apart = {"live": 0.0, "later": 0.0}
    for occupancy, one, other in zip(content, live, later, strict=True):
        if occupancy[:-1].any():
            seen = np.repeat(np.arange(LARGE.cells), occupancy[:-1])
            x, y = LARGE.x_deg[seen % LARGE.columns].mean(), LARGE.y_deg[seen // LARGE.columns].mean()
            apart["live"] += math.hypot(one.x_deg - x, one.y_deg - y)
            apart["later"] += math.hypot(other.x_deg - x, other.y_deg - y)
    assert apart["later"] < apart["live"]


def test_slots_that_are_lost_for_sure_still_have_gaze() -> None:
    """At a large epsilon hardly any weight is left for the cells."""
    code = TileCode(tiles_of(calibrations.load("everyday-tile")), 20.0)
    for gaze in gaze_in_hindsight(code, [code.lost_word] * 20):
        assert gaze.lost > 0.999
        assert math.isfinite(gaze.x_deg + gaze.y_deg + gaze.error_deg)


def test_hindsight_is_the_sum_over_all_paths() -> None:
    """Of a world of eight cells and three slots, every path of which is summed here in floating point."""
    changes = np.array([[8192, 4096, 4096], [1024, 14336, 1024], [0, 4096, 12288]], np.int32)
    made = replace(calibration(Field(columns=4, rows=2, cell_deg=10.0)), shares=SHARES, changes=changes)
    code, words = TileCode(made, 2.0), [0, 3, 1]
    motion, reader_labels, beliefs, belief = code.motion, [], [], code.motion.start
    for turn, word in enumerate(words):
        predicted = motion.predicted(belief) if turn else belief
        reader_labels.append(code.tiling(predicted).ravel())
        belief = code.told(predicted, reader_labels[-1].reshape(2, 4), word)
        beliefs.append(belief)

    def step(habit: np.ndarray) -> np.ndarray:
        """(3, 9, 3, 9) from each mode and cell, or lost in the last place, to each: the mode changes first."""
        out = np.zeros((3, 9, 9))
        for mode, shares in enumerate(made.shares / 2**14):
            kernels = zip(made.across / 2**14, made.upright / 2**14, strict=True)
            moved = sum(share * np.kron(up, over) for share, (over, up) in zip(shares, kernels, strict=False))
            out[mode, :8, :8] = (moved + shares[-1] * habit) * made.lost[0, 0] / 2**14
            out[mode, 8, :8] = habit * made.lost[1, 0] / 2**14
        out[:, :8, 8], out[:, 8, 8] = made.lost[:, 1] / 2**14
        return np.einsum("mn,nab->manb", made.changes / 2**14, out)

    chance = np.concatenate((motion.start.seen.reshape(3, 8), motion.start.lost[:, None]), axis=1) / UNIT
    likely = [
        np.where(np.append(labels, 3) == word, code.odds, 1.0)
        for labels, word in zip(reader_labels, words, strict=True)
    ]
    habits = [(b.habit / b.slots).ravel() / UNIT for b in beliefs]
    paths = np.einsum("la,lamb,mbnc,a,b,c->lambnc", chance, step(habits[0]), step(habits[1]), *likely)
    first, second = (paths.sum(axis=axes) / paths.sum() for axes in ((2, 3, 4, 5), (0, 1, 4, 5)))
    read = gaze_in_hindsight(code, words)
    assert read[0].lost == pytest.approx(first[:, 8].sum(), abs=2e-3)
    assert read[1].lost == pytest.approx(second[:, 8].sum(), abs=2e-3)
    middle = np.rint(second[:, :8].reshape(3, 2, 4) * UNIT)
    assert read[1].x_deg == pytest.approx(code.gaze(middle, np.ones(3)).x_deg, abs=0.1)


@pytest.mark.parametrize(("sd_deg", "jumps", "mode"), [(0.5, 0.0, 0), (8.0, 0.6, 2)])
def test_released_words_tell_how_the_eye_moves(sd_deg: float, jumps: float, mode: int) -> None:
    """Of a still eye and of one that looks about, by words of 200 slots at 6 a slot."""
    rng, place = np.random.default_rng(3), np.array([4.0, -3.0])
    made = tiles_of(calibrations.load("everyday-tile"))
    session = TileResponse(made, 6.0, noise=SeededNoise(3)).session()
    for _ in range(200):
        place = rng.uniform(-20, 20, 2) if rng.random() < jumps else place + rng.normal(0, sd_deg, 2)
        place = np.clip(place, -25, 25)
        session.release(made.field.occupancy(place[:1], place[1:], np.array([True])))
    weights = session._reader.belief.seen.sum(axis=(1, 2))
    assert weights[mode] > 0.9 * weights.sum()


def test_calibrations_that_are_none_are_refused() -> None:
    made = calibration()
    wrong = {"prior": made.prior + 1, "shares": -made.shares, "lost": made.lost[:1], "slot_us": 1, "prior_slots": 0}
    wrong |= {"changes": made.changes[:1], "scatter": made.scatter[0]}
    for name, value in wrong.items():
        with pytest.raises(CalibrationError, match="calibration of tiles"):
            replace(made, **{name: value})
