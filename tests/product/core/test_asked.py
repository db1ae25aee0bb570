"""Asked features: the exact law, what the state depends on, the baseline, and that the epsilon is worth it."""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.asked import Asked
from eyestream.core.mechanisms.asked.chain import GRID, Chains
from eyestream.core.mechanisms.asked.mechanism import _Core, cells_of
from eyestream.core.mechanisms.asked.tables import AskedTables
from eyestream.core.noise import Law, response
from eyestream.core.noise.response import ResponseLaw
from eyestream.core.portable import decay
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration import calibrate
from eyestream_lab.calibration.asked import adapt_asked
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.hindsight import hindsight
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.testing.mechanisms import check_life
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise

Array = NDArray[np.float64]

SETS = (
    ["blink_rate"],
    ["blink_rate", "mean_fixation_duration"],
    ["rate_saccades", "mean_saccade_amplitude", "blink_rate"],
)
EXTREMES = (np.full((52, 64), 1e308), np.full((52, 64), -1e308))


@cache
def shipped() -> Calibration:
    return calibrations.load("everyday-asked-64")


@cache
def people(count: int, seed: int) -> list[Recording]:
    return [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES, f"sim-{i}")
        for i, rows in enumerate(simulate(load_statistics(), count, 600.0, seed))
    ]


class Next:
    """Noise that draws what a test says, and counts."""

    def __init__(self) -> None:
        self.drawn: list[int] = []
        self.draws = 0

    def draw(self, law: Law) -> NDArray[np.int64]:
        self.draws += 1
        return np.array(self.drawn, dtype=np.int64)


def after_baseline(mechanism: Asked, baseline: Array) -> Any:
    session = mechanism.session()
    while session.awaits_baseline:
        session.anchor(baseline)
    return session


def chunks_of(seed: int) -> list[Array]:
    return list(whole_chunks(people(1, seed)[0].features, 64))


def any_word(mechanism: Asked, rng: np.random.Generator, turn: int) -> list[int]:
    """Of those that a chunk may have."""
    cells: NDArray[np.int64] = mechanism.core.chains.cells(turn)  # type: ignore[attr-defined]
    return [int(rng.integers(0, own)) for own in cells]


def law_of(mechanism: Asked, noise: Next, chunk: Array, turn: int, state: Array) -> dict[bytes, Fraction]:
    """The exact probability of every output of a chunk in a state: all draws are tried."""
    law = mechanism.core.laws[turn % len(mechanism.core.laws)]  # type: ignore[attr-defined]
    found: dict[bytes, Fraction] = defaultdict(Fraction)
    replaced, cells = Fraction(law._threshold, 2**128), law._cells.tolist()
    words = list(product(*map(range, cells)))
    drawn = [
        replaced * math.prod(Fraction(len(range(own, 2**32, of)), 2**32) for own, of in zip(word, cells, strict=True))
        for word in words
    ]
    draws = [(1 - replaced, (0, *words[0])), *((share, (1, *word)) for share, word in zip(drawn, words, strict=True))]
    for share, draw in draws:
        noise.drawn = list(draw)
        out, after = mechanism.release_turn(chunk, turn, state)
        assert after is not None
        found[out.tobytes() + after.tobytes()] += share
    return found


def worst_odds(features: list[str], epsilon: float) -> Fraction:
    """The largest odds of an output between two chunks, over states that random words lead to."""
    noise = Next()
    mechanism, rng = Asked(shipped(), epsilon, noise=noise, features=features), np.random.default_rng(1)
    worst, state = Fraction(0), mechanism.core.start
    chunks = [EXTREMES[0], EXTREMES[1], np.full((52, 64), np.nan), 0.01 * chunks_of(3)[2]]
    for turn in range(4):
        laws = [law_of(mechanism, noise, chunk, turn, state) for chunk in chunks]
        assert all(sum(law.values()) == 1 for law in laws)
        assert all(law.keys() == laws[0].keys() for law in laws), "an output tells the chunk"
        worst = max(worst, *(one[o] / other[o] for one in laws for other in laws for o in one))
        noise.drawn = [1, *any_word(mechanism, rng, turn)]
        state = mechanism.release_turn(chunks[0], turn, state)[1]
    return worst


def bound_of(epsilon: float) -> Fraction:
    """e^epsilon, to 60 digits."""
    return Fraction(Decimal(epsilon).exp(Context(prec=60)))


@pytest.mark.parametrize("features", SETS)
@pytest.mark.parametrize("epsilon", [0.3, 4.8])
def test_exact_odds_between_extreme_chunks_never_exceed_e_to_the_epsilon(features: list[str], epsilon: float) -> None:
    bound = bound_of(epsilon)
    assert bound * Fraction(999_999, 1_000_000) < worst_odds(features, epsilon) <= bound


@pytest.mark.parametrize("features", SETS[1:])
@pytest.mark.parametrize("epsilon", [0.3, 4.8])
def test_control_epsilon_for_each_feature_that_is_charged_once_is_seen(
    features: list[str], epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a response for each feature, each with the whole epsilon, comes to."""
    right = ResponseLaw.__init__
    monkeypatch.setattr(ResponseLaw, "__init__", lambda self, cells, epsilon: right(self, cells, len(cells) * epsilon))
    assert worst_odds(features, epsilon) > bound_of(epsilon)


@pytest.mark.parametrize("features", SETS)
def test_control_words_that_are_not_drawn_alike_are_counted(
    features: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 6, 3 x 3 and 2 x 2 x 3 words some are drawn less often: by 4 in 2^32, which exact odds tell."""
    right = response._replace_numerator
    monkeypatch.setattr(response, "_replace_numerator", lambda epsilon, rarest: right(epsilon, Fraction(round(rarest))))
    assert worst_odds(features, 4.8) > bound_of(4.8)


@pytest.mark.parametrize("features", SETS)
def test_control_borders_from_raw_values_are_seen(features: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = _Core.release

    def leaking(self: _Core, admitted: Array, noise: Any, turn: int, *rest: Any) -> Array:
        state, out = rest
        nudged = state * (1 + 1e-3 * np.tanh(np.nan_to_num(admitted.mean())) * GRID)
        return right(self, admitted, noise, turn, nudged, out)

    monkeypatch.setattr(_Core, "release", leaking)
    with pytest.raises(AssertionError, match="an output tells the chunk"):
        worst_odds(features, 4.8)


def left(cells: list[int], epsilon: float) -> float:
    """Share of the variance of normal numbers that their first word leaves, a mean over the features."""
    tables = AskedTables(*np.ones((4, len(cells))), *np.ones((3, len(cells), 1)))
    chains = Chains(tables, np.arange(len(cells)), cells, ResponseLaw(cells, epsilon).replace)
    law = decay(GRID * GRID / 2) / decay(GRID * GRID / 2).sum()
    predicted, told = np.stack([law] * len(cells)), np.zeros(len(cells))
    for word in product(*map(range, cells)):
        odds = predicted * chains.odds(predicted, chains.borders(predicted, 0), np.array(word))
        told += (odds @ GRID) ** 2 / odds.sum(axis=1)
    return float(1 - (told / (law @ GRID**2)).mean())


@pytest.mark.parametrize(("epsilon", "features"), [(2.4, 1), (4.8, 1), (4.8, 2), (7.2, 2), (4.8, 3), (6.0, 3)])
def test_no_other_number_of_cells_leaves_much_less(epsilon: float, features: int) -> None:
    cells = cells_of(epsilon, features)
    others = [[*cells[:-1], cells[-1] + 1], [*cells[:-1], cells[-1] - 1], [own + 1 for own in cells], [8] * features]
    assert left(cells, epsilon) < 1.03 * min(left(other, epsilon) for other in others if min(other) > 1)
    assert left(cells, epsilon) < left([8] * features, epsilon)


def test_the_larger_number_of_cells_goes_round() -> None:
    chains = Asked(shipped(), 4.8, features=SETS[2]).core.chains  # type: ignore[attr-defined]
    assert [chains.cells(turn).tolist() for turn in range(4)] == [[2, 2, 3], [3, 2, 2], [2, 3, 2], [2, 2, 3]]
    even = np.ones((3, len(GRID))) / len(GRID)
    assert np.isfinite(chains.borders(even, 1)).tolist() == [[True, True], [True, False], [True, False]]


@pytest.mark.parametrize("features", SETS)
def test_what_is_released_is_a_function_of_released_words_alone(features: list[str]) -> None:
    """Two people, one of whom has no baseline and values of 1e308, with the same words: alike to the last bit."""
    noise, rng = Next(), np.random.default_rng(4)
    mechanism = Asked(shipped(), 4.8, noise=noise, features=features)
    ours, theirs = after_baseline(mechanism, chunks_of(77)[0]), after_baseline(mechanism, np.full((52, 64), np.nan))
    for turn, chunk in enumerate(chunks_of(77)[2:8]):
        noise.drawn = [1, *any_word(mechanism, rng, turn)]
        np.testing.assert_array_equal(ours.release(chunk), theirs.release(EXTREMES[0]))
        assert ours.state.tobytes() == theirs.state.tobytes()


def test_cells_do_not_overlap_however_many_there_are() -> None:
    """Belief is never negative: of 32 cells many are empty, and their borders stay in order."""
    noise, rng = Next(), np.random.default_rng(4)
    mechanism = Asked(shipped(), 19.2, noise=noise, features=SETS[1])
    assert cells_of(19.2, 2) == [32, 32]
    chains, state = mechanism.core.chains, mechanism.core.start  # type: ignore[attr-defined]
    for turn in range(40):
        noise.drawn = [turn % 3 == 0, *any_word(mechanism, rng, turn)]
        state = mechanism.release_turn(0.01 * chunks_of(3)[2], turn, state)[1]
        assert (np.diff(chains.borders(chains.onward(state), turn + 1), axis=1) >= 0).all()
        assert state.min() > 0


HOSTILE = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0)


@pytest.mark.parametrize("baseline", HOSTILE)
def test_any_rows_draw_once_a_chunk_and_give_finite_values(baseline: float) -> None:
    """A lost baseline, and a chunk without a value, have words as everything has."""
    noise = Next()
    mechanism = Asked(shipped(), 4.8, noise=noise, features=SETS[1])
    session = after_baseline(mechanism, np.full((52, 64), baseline))
    for number, value in enumerate(HOSTILE):
        noise.drawn = [0, 0, 0]
        chunk = np.where(np.arange(64) % 2, value, -value) * np.ones((52, 1))
        released = session.release(chunk)
        assert released.shape == mechanism.schema.shape == (2, 1)
        assert np.isfinite(released).all()
        assert noise.draws == number + 1


def session_of(recording: Array, moved: Callable[[Array], Array] = lambda rows: rows) -> bytes:
    mechanism = Asked(shipped(), 4.8, noise=ZeroNoise(), features=["blink_rate", "mean_mean_diameter"])
    own = list(whole_chunks(moved(recording), 64))
    session = mechanism.session()
    for chunk in own[:2]:
        session.anchor(chunk)
    return b"".join(session.release(chunk).tobytes() for chunk in own[2:])


def test_an_infinite_value_is_missing_and_is_no_end_of_the_clip() -> None:
    """Also where no root is taken on the way, which would say so before."""
    page = Asked(shipped(), 4.8, features=SETS[1]).page()
    admitted = page.admit(np.tile([np.inf, 1e9, -np.inf, np.nan, -1e9, 0.0, 0.0, 0.0], (52, 8)))
    assert np.isnan(admitted[:, [0, 2, 3]]).all()
    low, high = (bound[[shipped().names.index(name) for name in SETS[1]]] for bound in (shipped().lo, shipped().hi))
    np.testing.assert_array_equal(admitted[:, [1, 4]], np.column_stack([high, low]))


def test_a_constant_cancels_to_the_last_bit() -> None:
    """Added to the pupil, and to the coded root of blinks; a clip before the baseline would not have it cancel."""
    calibration, rows = shipped(), people(1, 9)[0].features
    assert calibration.anchor is not None
    assert calibration.anchor.roots is not None
    assert (calibration.anchor.roots > 0).tolist() == [name == "blink_rate" for name in calibration.names]
    rate, pupil = (calibration.names.index(name) for name in ("blink_rate", "mean_mean_diameter"))
    fine = np.ldexp(1.0, -calibration.anchor.shift[pupil] + 2)
    rows = rows.copy()
    rows[:, pupil] = np.rint(rows[:, pupil] / fine) * fine
    added, half = calibration.anchor.roots[rate], np.ldexp(0.5, -calibration.anchor.shift[rate])
    rows[:, rate] = (np.rint(np.sqrt(rows[:, rate] + added) * 64) / 64 + half) ** 2 - added

    def moved(own: Array) -> Array:
        own = own.copy()
        own[:, pupil] += 4096 * fine
        own[:, rate] = (np.sqrt(own[:, rate] + added) + 3.0) ** 2 - added
        return own

    plain = session_of(rows)
    assert session_of(rows, moved) == plain
    hi = rows.max(axis=0)
    assert session_of(rows, lambda own: np.minimum(moved(own), hi)) != plain


def measured(calibration: Calibration, features: list[str], fresh: list[Recording]) -> tuple[Array, Array]:
    """(d,) correlation of released and true changes, own mean removed, and error over the announced one."""
    of, found = [calibration.names.index(name) for name in features], []
    mechanism = build(calibration, 4.8, noise=SeededNoise(3), features=features)
    for recording in fresh:
        own = list(whole_chunks(recording.features, 64))
        session = mechanism.session()
        for chunk in own[:2]:
            session.anchor(chunk)
        truth = np.array([chunk[of].mean(axis=1) for chunk in own[2:]]) - np.mean([c[of] for c in own[:2]], axis=(0, 2))
        released = np.array([session.release(chunk)[:, 0] for chunk in own[2:]])
        centred = (truth - truth.mean(axis=0)) * (released - released.mean(axis=0))
        found.append([centred.sum(0), *(((x - x.mean(0)) ** 2).sum(0) for x in (truth, released)),
                      ((truth - released) ** 2).mean(0)])  # fmt: skip
    crossed, true, said, error = np.array(found).sum(axis=0)
    return crossed / np.sqrt(true * said), np.sqrt(error / len(fresh)) / mechanism.noise_sd


@cache
def simulated() -> Calibration:
    return calibrate("asked", Corpus.of(people(16, 1), 64), description="simulated")


def test_utility_on_people_outside_the_calibration() -> None:
    fresh = people(16, 91)
    one, two, three = (measured(simulated(), features, fresh)[0] for features in SETS)
    assert one.min() > 0.8
    assert two.min() > 0.68
    assert three.min() > 0.52


def test_the_stated_error_is_the_measured_one() -> None:
    for features in SETS:
        ratio = measured(simulated(), features, people(16, 91))[1]
        assert ((ratio > 0.65) & (ratio < 1.25)).all()


def test_later_words_help_to_look_back() -> None:
    """All words of a session say more of a chunk than those before it; looking back from one chunk changes nothing."""
    mechanism, live, late = build(simulated(), 4.8, noise=SeededNoise(5), features=SETS[0]), [], []
    feature = simulated().names.index("blink_rate")
    for recording in people(16, 91):
        own = list(whole_chunks(recording.features, 64))
        session, states, released = after_baseline(mechanism, own[0]), [], []
        truth = np.array([chunk[feature].mean() for chunk in own[2:]]) - own[0][feature].mean()
        for chunk in own[2:]:
            released.append(session.release(chunk)[0, 0])
            states.append(session.state)
        back = hindsight(mechanism, states)
        assert back is not None
        assert back[-1][0, 0] == released[-1]
        live.append(((released - truth) ** 2).mean())
        late.append(((np.array(back)[:, 0, 0] - truth) ** 2).mean())
    assert np.mean(late) < 0.95 * np.mean(live)


def test_a_chunk_later_each_is_smoothed_from_the_same_words() -> None:
    """The words are those without the option; what comes out is of the chunk before, and nearer to the truth."""
    feature, live, late = simulated().names.index("blink_rate"), [], []
    plain, later = (build(simulated(), 4.8, noise=SeededNoise(5), features=SETS[0], later=own) for own in (None, True))
    assert (plain.schema.names, later.schema.names) == (("blink_rate",), ("blink_rate_before",))
    assert 0.8 * plain.noise_sd[0] < later.noise_sd[0] < plain.noise_sd[0]
    assert plain.identity != later.identity
    assert [fact.topic for fact in later.facts(32.0)] == ["asked features", "later", "baseline"]
    for recording in people(16, 91):
        own = list(whole_chunks(recording.features, 64))
        truth = np.array([chunk[feature].mean() for chunk in own[2:]]) - own[0][feature].mean()
        sessions = [after_baseline(mechanism, own[0]) for mechanism in (plain, later)]
        released, states = [], []
        for chunk in own[2:]:
            released.append([session.release(chunk)[0, 0] for session in sessions])
            states.append(sessions[1].state)
            assert states[-1].tobytes() == sessions[0].state.tobytes()
        now, before = np.array(released).T
        smoothed, back = hindsight(plain, states[:2]), hindsight(later, states)
        assert smoothed is not None
        assert back is not None
        assert before[1] == smoothed[0][0, 0]
        assert (back[0][0, 0], back[-1][0, 0]) == (before[0], before[-1])
        live.append(((now - truth)[:-1] ** 2).mean())
        late.append(((before[1:] - truth[:-1]) ** 2).mean())
    assert np.mean(late) < 0.97 * np.mean(live)


def test_a_life_on_all_levels_and_a_restored_session() -> None:
    check_life(build(shipped(), 4.8, features=SETS[2]), 3)
    check_life(build(shipped(), 4.8, features=SETS[0], later=True), 3)
    noise = SeededNoise(7)
    mechanism = Asked(shipped(), 4.8, noise=noise, features=SETS[1])
    session = after_baseline(mechanism, chunks_of(5)[0])
    session.release(chunks_of(5)[2])
    restored = mechanism.session(session.snapshot())
    assert restored.state.tobytes() == session.state.tobytes()
    assert restored.snapshot() == session.snapshot()


@pytest.mark.parametrize(
    ("features", "complaint"),
    [
        (None, r'features: expected one to 3 names of features, as in features = \["blink_rate"\]; none is given'),
        ([], "none is given"),
        (["blink_rat"], "not 'blink_rat'; did you mean blink_rate?"),
        (["blink_rate", "blink_rate"], "each once; blink_rate is there twice"),
        (["wb1_min"], "wb1_min does not vary in the recordings that the calibration was made from"),
        (list(NAMES), "not 52: epsilon would be too thin. For more take .* everyday-klt-anchored-64, .* focus"),
        ("blink_rate", "asked: option features: expected a list of names"),
    ],
)
def test_features_that_cannot_be_asked_for(features: Any, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        build(shipped(), 4.8, features=features)


def test_what_is_not_asked_for_is_absent() -> None:
    mechanism = build(shipped(), 4.8, features=["mean_mean_diameter", "blink_rate"])
    assert (mechanism.schema.names, mechanism.schema.units) == (("mean_mean_diameter", "blink_rate"), ("mm", "1/s"))
    assert (mechanism.schema.shape, mechanism.schema.step_s) == ((2, 1), 32.0)
    (asked, baseline) = mechanism.facts(32.0)
    assert asked.claim == {"features": ["mean_mean_diameter", "blink_rate"]}
    assert baseline.topic == "baseline"
    other = build(shipped(), 4.8, features=["blink_rate", "mean_mean_diameter"])
    assert mechanism.identity != other.identity
    rows = np.random.default_rng(2).random((52, 64))
    changed = rows.copy()
    changed[[i for i, name in enumerate(NAMES) if name not in mechanism.schema.names]] = 1e9
    quiet = build(shipped(), 4.8, noise=ZeroNoise(), features=["mean_mean_diameter", "blink_rate"])
    one, two = (after_baseline(quiet, 0 * rows).release(each) for each in (rows, changed))  # type: ignore[arg-type]
    np.testing.assert_array_equal(one, two)


def test_a_calibration_is_adapted_to_another_tracker() -> None:
    recordings = [replace(r, features=r.features * np.linspace(0.5, 20, 52)) for r in people(8, 12)]
    for recording in recordings:
        recording.features[:, NAMES.index("mean_mean_diameter")] = np.nan
    made, lacking = adapt_asked(shipped(), Corpus.of(recordings, 64), "theirs")
    assert lacking == ("mean_mean_diameter",)
    with pytest.raises(ConfigError, match="their tracker cannot measure it"):
        build(made, 4.8, features=["mean_mean_diameter"])
    fresh = [replace(r, features=r.features * np.linspace(0.5, 20, 52)) for r in people(16, 91)]
    own, foreign = (measured(one, ["mean_saccade_amplitude"], fresh)[0][0] for one in (made, shipped()))
    assert own > 0.75
    assert own > foreign
    with pytest.raises(CalibrationError, match="chunks of 32 rows, the calibration of 64"):
        adapt_asked(shipped(), Corpus.of(recordings, 32))


def test_decay_is_the_exponential() -> None:
    nats = np.linspace(0, 60, 1000)
    np.testing.assert_allclose(decay(nats), np.exp(-nats), rtol=1e-12)
