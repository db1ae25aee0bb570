"""The guarantee as a value: its figures, its words for each mechanism, and its claim for machines."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from eyestream.claims.guarantee import NOT_PROTECTED, Guarantee, guarantee_of, guarantee_of_recording
from eyestream.core.charge import Ceilings
from eyestream.core.kinds import DifferentialPrivacy, Loss
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.scopes import Deployment, SiblingStream, scopes_of
from eyestream.rim.files import calibrations
from eyestream.streams import StreamSpec
from eyestream_lab.fpa import FPA
from eyestream_lab.testing.noise import SeededNoise

NAMES = ("everyday-lpa-32", "everyday-cfpa-32", "everyday-dcfpa-32", "everyday-klt-32")


def stream(window_s: float = 30.0, memory_s: float = 0.0) -> StreamSpec:
    return StreamSpec("features", 1, ("a",), ("1",), 2.0, window_s, memory_s)


def deployment(window_chunks: int = 3, window: float = 14.4, **others: Any) -> Deployment:
    """One stream; `others` are ceilings in plain numbers."""
    given = {"session": 1152.0, "day": 2304.0, "lifetime": 1e5} | others
    return Deployment(stream(), Ceilings.of(window_chunks, window, **given))


DEPLOYMENT = deployment()


def mechanism(name: str = "everyday-klt-32", epsilon: float = 4.8) -> Mechanism:
    return build(calibrations.load(name), epsilon)


def guarantee(name: str = "everyday-klt-32", around: Deployment = DEPLOYMENT) -> Guarantee:
    return guarantee_of(mechanism(name), around)


def test_losses_are_exact() -> None:
    made = mechanism(epsilon=0.1)
    loss = made.loss
    assert loss == Loss("chunk", Fraction(made.epsilon))
    assert loss.epsilon < Fraction(1, 10)  # a float that does not exceed the decimal that was written
    assert loss.of("window", 3).epsilon == 3 * Fraction(made.epsilon)
    approximate = Loss("chunk", Fraction(2), Fraction(1, 10**6)).of("session", 40)
    assert (approximate.epsilon, approximate.delta, approximate.unit) == (80, Fraction(4, 10**5), "session")
    assert approximate.words() == "(80, 4e-05)-differential privacy (approximate)"
    assert (loss.words(), loss.pure) == ("0.1-differential privacy (pure)", True)
    assert json.loads(json.dumps(approximate.claim()))["delta_exact"] == "1/25000"
    for epsilon, delta in ((0, 0), (-1, 0), (1, 1), (1, -1)):
        with pytest.raises(ValueError, match="a loss needs"):
            Loss("chunk", Fraction(epsilon), Fraction(delta))
    with pytest.raises(ValueError, match="a loss needs"):
        Loss("chunk", Fraction(1), Fraction(1, 2)).of("session", 2)


@pytest.mark.parametrize(("n", "event", "second"), [(32, 3, 3), (64, 2, 2), (128, 2, 2)])
def test_scopes_of_a_deployment(n: int, event: int, second: int) -> None:
    """A blink enters the 60 rows of 30 s features."""
    made = guarantee_of(mechanism(f"everyday-klt-{n}"), deployment(9, 1e6))
    scopes = {scope.unit: scope for scope in made.scopes}
    assert (scopes["gaze event"].chunks, scopes["second of gaze"].chunks) == (event, second)
    assert scopes["gaze event"].loss == made.loss.of("gaze event", event)
    assert (scopes["window"].chunks, scopes["window"].ceiling) == (9, 1e6)
    assert (scopes["session"].ceiling, scopes["day"].ceiling, scopes["lifetime"].ceiling) == (1152.0, 2304.0, 1e5)
    assert scopes["session"].loss is None  # only the ceiling bounds it


def test_a_ceiling_bounds_events_and_windows() -> None:
    """Two chunks fit into the window's epsilon: an event that could touch three is charged for two."""
    scopes = {scope.unit: scope for scope in guarantee(around=deployment(window=10.0)).scopes}
    assert (scopes["window"].chunks, scopes["gaze event"].chunks) == (2, 2)
    narrow = deployment(2, 4.8)
    scopes = {scope.unit: scope for scope in guarantee(around=narrow).scopes}
    assert (scopes["window"].chunks, scopes["gaze event"].chunks) == (1, 3)  # three chunks lie in more than one window


def test_memory_of_the_front_end_makes_events_longer() -> None:
    long = replace(deployment(100, 1e6), stream=stream(memory_s=60.0))
    scopes = {scope.unit: scope for scope in guarantee(around=long).scopes}
    assert scopes["gaze event"].chunks == (180 - 2) // 32 + 2 == 7


def test_deltas_that_sum_to_one_bound_nothing() -> None:
    scopes = scopes_of(Loss("chunk", Fraction(1), Fraction(2, 5)), 32, deployment(window=3.0))
    event = next(scope for scope in scopes if scope.unit == "gaze event")
    assert event.loss is None
    assert event.why.startswith("no bound")


def test_ceilings_on_delta_are_said_and_bound_windows() -> None:
    loss = Loss("chunk", Fraction(1), Fraction(1, 10**6))
    deltas: dict[str, float] = {"window_delta": 2e-6, "lifetime_delta": 1e-3}
    made = deployment(window=3.0, **deltas)
    scopes = {scope.unit: scope for scope in scopes_of(loss, 32, made)}
    assert (scopes["window"].chunks, scopes["window"].ceiling_delta) == (2, 2e-6)  # epsilon alone would let 3 through
    assert scopes["window"].why.endswith("(ceiling epsilon 3 and delta 2e-06)")
    assert scopes["lifetime"].why.split(", enough")[0].endswith("at most epsilon 100000 and delta 0.001")
    assert scopes["session"].ceiling_delta is None
    only = scopes_of(loss, 32, deployment(window=3.0, lifetime=None, **deltas))[-1]
    assert only.why.split(", enough")[0].endswith("; at most delta 0.001")
    pure = {scope.unit: scope for scope in scopes_of(Loss("chunk", Fraction(1)), 32, made)}
    assert pure["window"].chunks == 3  # a loss without delta spends none of it


def test_streams_of_one_device_add_up() -> None:
    """One blink enters the chunks of both; a window of the device does not bound the chunks of one of them."""
    more = SiblingStream(replace(stream(), name="more"), 64, Loss("chunk", Fraction(2), Fraction(1, 10**6)))
    loss = Loss("chunk", Fraction(3))
    alone = deployment(window=3.0)
    assert {s.unit: s.chunks for s in scopes_of(loss, 32, alone)}["gaze event"] == 1
    both = {s.unit: s for s in scopes_of(loss, 32, replace(alone, beside=(more,)))}
    assert both["gaze event"].chunks == 3
    assert both["gaze event, all streams"].chunks == 5
    assert both["gaze event, all streams"].loss == Loss("gaze event, all streams", Fraction(13), Fraction(2, 10**6))
    assert both["gaze event, all streams"].why.endswith("enters up to 3 chunks of features and 2 chunks of more")
    assert (both["window"].chunks, both["window"].loss, both["window"].ceiling) == (None, None, 3.0)
    assert "of the device, of whichever stream; at most epsilon 3" in both["window"].why
    # 225 chunks of 3 and 112.5 of 2 fall due an hour; of three in a row at most epsilon 3 leaves
    assert "about epsilon 337.5 at 2 rows a second of features and 2 rows a second of more" in both["hour"].why
    huge = replace(more, loss=Loss("chunk", Fraction(1), Fraction(1, 2)))
    assert {s.unit: s for s in scopes_of(loss, 32, replace(alone, beside=(huge,)))}[
        "gaze event, all streams"
    ].loss is None
    made = guarantee(around=replace(DEPLOYMENT, beside=(more,)))
    assert "releases more beside this stream" in made.text()
    assert made.claim()["streams_beside"] == ["more"]
    assert "streams" not in dict(guarantee().sentences())


def test_the_guess_factor_is_that_of_the_response_and_multiplies() -> None:
    """K p from the integers of the response: 3.9 for the shed code of 4 words at 4.8, where e^4.8 allows 121."""
    made = mechanism("everyday-klt-one-64")
    response = [step.law for step in made.core.schedule.steps]
    words = {math.prod(law._cells.tolist()) for law in response}
    assert words == {4}
    assert made.gain is not None
    p = 1 - response[0].replace * 3 / 4
    assert float(made.gain) == pytest.approx(4 * p, rel=1e-12) == pytest.approx(3.9036, abs=1e-4)
    found = guarantee_of(made, deployment(window=9.6))
    text = dict(found.sentences())["guessing"]
    assert "at most 3.9 times" in text
    assert "average over releases" in text
    assert "over 2 chunks, which a window can hold, at most 15.2 times" in text
    assert f"over 240 chunks, which a session can hold, at most e^{240 * math.log(made.gain):.4g} times" in text
    claim: Any = found.claim()["guess_factor"]
    assert claim["nats"]["window"] == pytest.approx(2 * math.log(float(made.gain)))
    assert Fraction(claim["chunk_exact"]) == made.gain
    uneven = mechanism("everyday-klt-32", 24.0)
    assert uneven.gain == max(step.law.gain for step in uneven.core.schedule.steps)


@pytest.mark.parametrize("name", ["everyday-lpa-32", "everyday-cfpa-32", "everyday-dcfpa-32"])
def test_additive_noise_has_a_bound_by_half_of_epsilon(name: str) -> None:
    """A ball about its centre: no point is farther from it than half of the largest distance."""
    made = mechanism(name)
    assert made.gain is not None
    assert made.gain <= math.exp(2.4) * 1.0001
    assert made.gain > math.exp(2.4) * 0.98
    assert "at most 11 times" in dict(guarantee(name).sentences())["guessing"]


def test_without_a_figure_none_is_made_up() -> None:
    made = replace(guarantee(), gain=None)
    assert "no figure" in dict(made.sentences())["guessing"]
    assert made.claim()["guess_factor"] is None


def test_a_factor_that_is_no_number_is_said_by_its_logarithm() -> None:
    """At an epsilon in the thousands it has more digits than a float, or a text, can have."""
    large = mechanism("everyday-cfpa-32", 48_000.0)
    made = guarantee_of_recording(large, large.calibration)
    claim: Any = made.claim()["guess_factor"]
    assert (claim["chunk"], claim["chunk_exact"]) == (None, None)
    assert claim["nats"]["chunk"] > 700
    assert "at most e^" in dict(made.sentences())["guessing"]


ADDITIVE = ("integers on a grid", "generator, asked directly for each release", "charged")
FOR_ADDITIVE = (*ADDITIVE, "verified in exact arithmetic", "cannot break the system's generator")
SAYS = {
    "everyday-lpa-32": (*FOR_ADDITIVE, "every value of every released feature"),
    "everyday-cfpa-32": (*FOR_ADDITIVE, "first k Fourier coefficients of every"),
    "everyday-dcfpa-32": (*FOR_ADDITIVE, "of the difference signal of every"),
    "everyday-klt-32": (
        "k-ary randomised response",
        "exact integers",
        "the operating system's generator, asked directly for each release",
        "nothing is charged for the sampler",
        "cannot break the system's generator",
        "multiple of 2^-128",
    ),
}
NEVER = ("any amount of computing power", "unlimited", "no floating-point argument")
SAYS_NOT = {
    **dict.fromkeys(NAMES[:3], (*NEVER, "randomised response", "code word", "nothing is charged")),
    "everyday-klt-32": (*NEVER, "grid", "Laplace", "counter mode", "charged inside", "threshold", "k Fourier"),
}


@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_has_its_own_words(name: str) -> None:
    text = guarantee(name).text()
    for words in SAYS[name]:
        assert words in text, words
    for words in SAYS_NOT[name]:
        assert words not in text, words
    others = [guarantee(other).protection.law for other in NAMES if other != name]
    assert guarantee(name).protection.law not in others


def test_the_words_would_be_seen_to_be_those_of_another_mechanism() -> None:
    """The control: a text of all mechanisms, as it was, fails for klt."""
    text = replace(guarantee(), protection=guarantee("everyday-cfpa-32").protection).text()
    assert any(words in text for words in SAYS_NOT["everyday-klt-32"])
    assert not all(words in text for words in SAYS["everyday-klt-32"])


def test_fpa_speaks_of_the_whole_recording() -> None:
    made = FPA(calibrations.load("everyday-cfpa-32"), 4.8, 300)
    assert "over the whole recording" in made.protection.law
    assert "one chunk of 300 rows" in made.guarantee


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_of_a_chunk_is_said_of_a_chunk(name: str) -> None:
    sentences = dict(guarantee(name).sentences())
    assert f"factor of at most e^4.8 = {math.exp(4.8):.3g}" in sentences["odds"]
    assert "whoever knows every other chunk" in sentences["odds"]
    assert "Later releases and other chunks" in sentences["odds"]
    assert "only the sum over its chunks is a bound" in sentences["odds"]
    assert sentences["session"].startswith("the sum over its chunks; at most epsilon 1152")
    assert sentences["session"].endswith(", enough for 1 h 04 min of releases")  # 240 chunks of 16 s
    assert sentences["lifetime"].startswith("the sum over everything since the ledger began; at most epsilon 100000, ")
    assert sentences["gaze event"].startswith(
        "epsilon 14.4: one blink or saccade enters every row of its session within 30 s"
    )
    assert "parallel composition over chunks" in sentences["not claimed"]
    for words in ("in use, when and for how long", "pseudonym", "each with fresh noise", "virtual machine"):
        assert words in sentences["not protected"]


def test_a_delta_is_said_everywhere() -> None:
    loss = Loss("chunk", Fraction(2), Fraction(1e-6))
    sentences = dict(replace(guarantee(), promise=DifferentialPrivacy(loss, "one chunk")).sentences())
    assert sentences["chunk"] == "epsilon 2, delta 1e-06"
    assert "times that probability, plus 1e-06" in sentences["odds"]
    assert "the odds between" not in sentences["odds"]  # odds have no bound where there is a delta


@pytest.mark.parametrize("name", NAMES)
def test_the_claim_for_machines(name: str) -> None:
    made = mechanism(name)
    claim = guarantee_of(made, DEPLOYMENT).claim()
    assert json.loads(json.dumps(claim)) == claim
    assert claim["loss"] == {
        "unit": "chunk",
        "relation": "replace_one",
        "epsilon": 4.8,
        "delta": 0.0,
        "epsilon_exact": str(Fraction(4.8)),
        "delta_exact": "0",
        "composition": "sum",
    }
    assert claim["calibration"] == made.calibration.content_hash
    assert (claim["mechanism"], claim["model"]) == (made.name, "local")
    assert claim["unit"] == {"rows": 32, "seconds": 16.0, "features": 52}
    assert claim["not_protected"] == list(NOT_PROTECTED)
    assert str(claim["version"]).startswith("eyestream ")
    assert claim["floating_point"] == {"protection": "integers", "exact": made.protection.exact}
    scopes = claim["scopes"]
    assert isinstance(scopes, list)
    assert [scope["unit"] for scope in scopes] == [
        "gaze event",
        "second of gaze",
        "window",
        "session",
        "hour",
        "day",
        "lifetime",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_noise_of_a_test_claims_nothing(name: str) -> None:
    made = build(calibrations.load(name), 4.8, noise=SeededNoise(1))
    nothing = guarantee_of(made, DEPLOYMENT)
    assert nothing.text() == "claim: none: the noise comes from a test source"
    claim = nothing.claim()
    assert claim["loss"] is None
    assert not {"scopes", "attacker", "floating_point"} & set(claim)


def test_a_baseline_tells_both_sides() -> None:
    """Constants cost nothing; what lies in the baseline is bounded by its session alone, and nothing says less."""
    made = guarantee("everyday-klt-anchored-32")
    scopes = {scope.unit: scope for scope in made.scopes}
    for unit in ("gaze event", "second of gaze", "window"):
        inside, outside = scopes[unit], scopes[f"{unit}, in no baseline"]
        assert (inside.loss, inside.chunks, inside.ceiling) == (None, None, 1152.0)
        assert outside.loss is not None
        assert outside.loss == {s.unit: s.loss for s in guarantee().scopes}[unit]
    words = dict(made.sentences())["baseline"]
    assert "the first 4 chunks of each session (64 s) are never released and cost nothing" in words
    assert "the loss is 0" in words
    assert "every later release of its session, and costs up to the sum over them" in words
    assert "no gaze event and no second of gaze enters it and a chunk before it" in words
    assert "charged" not in words
    assert "after the baseline" in made.statement
    assert made.claim()["baseline_chunks"] == 4
    open_ended = deployment(session=None)
    words = next(s.why for s in guarantee("everyday-klt-anchored-32", open_ended).scopes if s.unit == "gaze event")
    assert words.endswith("no ceiling")


def test_without_a_baseline_nothing_is_said_of_one() -> None:
    made = guarantee()
    assert "baseline" not in dict(made.sentences())
    assert not any("baseline" in scope.unit for scope in made.scopes)
    assert made.claim()["baseline_chunks"] == 0


def test_a_baseline_of_another_stream_is_said_of_all_streams() -> None:
    loss = Loss("chunk", Fraction(1))
    anchor = calibrations.load("everyday-klt-anchored-64").takes_off
    beside = replace(DEPLOYMENT, beside=(SiblingStream(stream(), 64, loss, anchor),))
    scopes = {scope.unit: scope for scope in scopes_of(loss, 32, beside)}
    assert scopes["gaze event"].loss is not None  # of this stream alone
    assert scopes["gaze event, all streams"].loss is None
    assert scopes["gaze event, all streams, in no baseline"].loss is not None
