"""Models of events and what is synthesised of them: k-same-synth and event-synth-PD."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import norm

from eyestream.errors import RecordingError
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.corpora import event_synth, ksame_synth
from eyestream_lab.corpora.deniability import people_alike, records_alike
from eyestream_lab.corpora.event_synth import TRIES, FitCoder, Records
from eyestream_lab.corpora.events import (
    LEAST_SD_DEG,
    POINTS,
    Canvas,
    Events,
    Timeline,
    events_of,
    fitted,
    great_circle_deg,
    steps_of,
)
from eyestream_lab.corpora.run import release_with
from eyestream_lab.datasets import Dataset, gaze_kind, make_system, open_corpus
from tests.lab.corpora.worlds import gaze_corpus, seeded

Array = NDArray[np.float64]
KIND = gaze_kind(load_profile("degrees"))


def release(tmp_path: Path, name: str, corpus: Dataset[GazeRecording], seed: int = 1, **options: Any) -> Dataset[Any]:
    release_with(seeded(seed), make_system(name, **options), corpus, tmp_path / "out")
    return open_corpus(tmp_path / "out", KIND)


def test_profiles_are_fitted_as_scipy_does() -> None:
    u = np.linspace(0, 1, POINTS)
    rng = np.random.default_rng(4)
    truth = np.stack((rng.uniform(1, 9, 40), rng.uniform(0.2, 0.8, 40), rng.uniform(0.02, 0.5, 40)), axis=1)
    a, b, c = truth.T[:, :, None]
    clean = a * np.exp(-((u - b) ** 2) / c)
    np.testing.assert_allclose(fitted(clean), truth, rtol=1e-4, atol=1e-4)
    noisy = clean + 0.2 * rng.standard_normal(clean.shape)

    def squares(p: Array, values: Array) -> float:
        return float(((values - p[0] * np.exp(-((u - p[1]) ** 2) / p[2])) ** 2).sum())

    for own, values in zip(fitted(noisy), noisy, strict=True):
        found = least_squares(
            lambda p, v=values: v - p[0] * np.exp(-((u - p[1]) ** 2) / p[2]), [values.max(), 0.5, 0.1]
        )
        assert squares(own, values) <= squares(found.x, values) * (1 + 1e-3)
    flat = fitted(np.zeros((2, POINTS)))
    assert np.isfinite(flat).all()


def test_angles_are_great_circles() -> None:
    assert great_circle_deg(np.array([[0.0, 0.0]]), np.array([[3.0, 0.0]])) == pytest.approx([3.0])
    assert great_circle_deg(np.array([[0.0, 60.0]]), np.array([[90.0, 60.0]])) == pytest.approx(
        [math.degrees(math.acos(0.75))]
    )


def test_steps_end_at_one_and_are_fast_in_the_middle() -> None:
    found = steps_of(np.array([5.0, 0.5, 0.05]), 9)
    assert found[-1] == pytest.approx(1.0)
    assert (np.diff(found) > 0).all()
    assert np.argmax(np.diff(found)) in {3, 4}
    assert steps_of(np.array([5.0, 0.5, 0.05]), 1) == pytest.approx([1.0])
    assert np.isfinite(steps_of(np.array([0.0, 9.0, 0.0]), 5)).all()


def test_events_describe_their_samples(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=1)
    recording = corpus.load(corpus.parts[0])
    events = events_of(recording)
    line = events.timeline
    assert line.samples == len(recording.samples)
    assert (line.begin[1:] >= line.end[:-1]).all()
    first = int(np.flatnonzero(line.is_fixation)[0])
    own = slice(int(line.begin[first]), int(line.end[first]))
    assert events.mean[0] == pytest.approx([recording.samples.x[own].mean(), recording.samples.y[own].mean()])
    assert len(events.mean) == line.is_fixation.sum() == len(events.sd)
    assert len(events.profile) == (~line.is_fixation).sum() == len(events.landing)
    assert (events.sd >= LEAST_SD_DEG).all()
    assert 0.05 < np.median(events.sd) < 0.4


def test_a_recording_without_events_is_refused(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=1)
    recording = corpus.load(corpus.parts[0])
    with pytest.raises(RecordingError, match="has no saccade"):
        events_of(GazeRecording(recording.samples[:12], None, recording.profile, "one.csv"))


def test_a_saccade_goes_where_the_next_event_begins() -> None:
    line = Timeline(12, np.array([0, 4, 8]), np.array([4, 8, 12]), np.array([True, False, True]))
    canvas = Canvas(line)
    canvas.fixation(0, np.full((4, 2), 1.0))
    canvas.saccade(1, np.array([3.0, 0.5, 0.1]), np.array([5.0, 9.0]))
    assert canvas.xy[7] == pytest.approx([5.0, 9.0])
    assert np.isnan(canvas.xy[8:]).all()
    assert "".join(canvas.letters) == "FFFFSSSS----"


@pytest.mark.parametrize("name", ["k-same-synth", "k-same-synth-timed", "event-synth-pd", "event-synth-pd-centred"])
def test_what_is_released_loads_again_and_has_events(tmp_path: Path, name: str) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=4, tasks=("READ", "PLAY"))
    options = {"gamma": 3.0} if name.startswith("event") else {}
    out = release(tmp_path, name, corpus, k=2, **options)
    assert [(p.person, p.task) for p in out.parts] == [(p.person, p.task) for p in corpus.parts]
    for part, raw in zip(out.parts, corpus.parts, strict=True):
        made = out.load(part)
        assert made.profile.fixed_rate_hz == 60.0
        assert np.isnan(made.samples.pupil_mm).all()
        if name != "k-same-synth-timed":
            assert len(made.samples) == len(corpus.load(raw).samples)
        if name != "event-synth-pd":
            assert made.samples.valid.mean() > 0.6
            assert abs(np.nanmean(made.samples.x)) < 15
    assert out.load(out.parts[0]).labels is not None


def durations(corpus: Dataset[GazeRecording]) -> list[int]:
    return [len(corpus.load(part).samples) for part in corpus.parts]


def test_the_published_synthesis_keeps_timelines_and_the_timed_one_does_not(tmp_path: Path) -> None:
    """An attacker who reads lengths alone: always right with the first, at most one in k with the second."""
    corpus = gaze_corpus(tmp_path / "in", people=6)
    published = release(tmp_path, "k-same-synth", corpus, k=3)
    assert durations(published) == durations(corpus)  # six lengths: everybody is found
    assert make_system("k-same-synth", k=3).promise(corpus, corpus.survey()).claim.kind == "none"
    release_with(seeded(1), make_system("k-same-synth-timed", k=3), corpus, tmp_path / "timed")
    timed = durations(open_corpus(tmp_path / "timed", KIND))
    assert min(map(timed.count, timed)) >= 3
    labels = [tuple(KIND.load(tmp_path / "timed" / p.recording).labels) for p in corpus.parts]
    assert min(map(labels.count, labels)) >= 3


def test_members_of_a_group_have_one_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the draws taken out, what is left is the model, and it is the same for all of a group."""
    corpus = gaze_corpus(tmp_path / "in", people=5)
    monkeypatch.setattr(ksame_synth, "normal_fixation", lambda mean, sd, count, draws: np.repeat(mean[None], count, 0))
    release(tmp_path, "k-same-synth-timed", corpus, k=2)
    found = [(tmp_path / "out" / part.recording).read_bytes() for part in corpus.parts]
    assert min(map(found.count, found)) >= 2


def test_group_means_are_index_by_index_of_k_members_or_more() -> None:
    """With the last repeated, the mean would go on as the longest member alone does."""
    lists = [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0], [9.0]])]
    np.testing.assert_allclose(ksame_synth._mean_of(lists, 2), [[2.0], [3.0]])
    three = [*lists, np.array([[5.0], [6.0], [1.0], [7.0]])]
    np.testing.assert_allclose(ksame_synth._mean_of(three, 2), [[3.0], [4.0], [5.0]])


def test_log_density_is_that_of_independent_normals() -> None:
    rng = np.random.default_rng(1)
    values, mean, sd = rng.standard_normal((7, 2)), rng.standard_normal((5, 2)), rng.uniform(0.3, 2, (5, 2))
    wanted = [norm.logpdf(values, m, s).sum() for m, s in zip(mean, sd, strict=True)]
    np.testing.assert_allclose(Records(mean, sd, np.arange(5)).log_density(values), wanted)
    boxes = [np.log(norm.cdf((values + 0.01 - m) / s) - norm.cdf((values - 0.01 - m) / s)).sum()
             for m, s in zip(mean, sd, strict=True)]  # fmt: skip
    np.testing.assert_allclose(np.array(wanted) + 14 * math.log(0.02), boxes, atol=0.05)  # the paper's, up to width


def models(mean: Sequence[float], sd: float = 0.4, count: int = 40) -> Events:
    """One person, one fixation of `count` samples and one saccade."""
    line = Timeline(count + 5, np.array([0, count]), np.array([count, count + 5]), np.array([True, False]))
    place = np.array([mean])
    return Events(line, place, np.full((1, 2), sd), np.array([[5.0, 0.5, 0.1]]), place + 5.0, np.ones((1, 30)))


def synthesised(people: list[Events], system: Any, seed: int = 0) -> list[Canvas]:
    test = event_synth._Test(system.k, system.gamma, seeded(seed))
    fixations = Records.of([(one.mean - system.around(one.mean), one.sd) for one in people])
    coder = FitCoder()
    saccades = Records.of([coder.encode(one) for one in people])
    return [
        system._synthesised(one, test, coder, fixations.others(i), saccades.others(i)) for i, one in enumerate(people)
    ]


def test_the_literal_test_fails_for_places_and_the_centred_one_passes() -> None:
    people = [models((3.0 * i, 0.0)) for i in range(4)]
    literal = synthesised(people, make_system("event-synth-pd", k=2, gamma=3.0))
    centred = synthesised(people, make_system("event-synth-pd-centred", k=2, gamma=3.0))
    for canvas in literal:
        assert "F" not in canvas.letters  # lost, after a bounded number of draws
        assert "S" in canvas.letters
    for canvas, one in zip(centred, people, strict=True):
        assert (canvas.letters[:40] == "F").all()
        np.testing.assert_allclose(np.nanmean(canvas.xy[:40], axis=0), one.mean[0], atol=0.4)


def test_draws_are_bounded_and_then_the_event_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published loop never ends here: one of two people is 100 degrees away."""
    tried: list[int] = []
    right = people_alike
    monkeypatch.setattr(event_synth, "people_alike", lambda *given: tried.append(1) or right(*given))
    people = [models((0.0, 0.0)), models((100.0, 0.0))]
    canvases = synthesised(people, make_system("event-synth-pd", k=2, gamma=2.0))
    assert len(tried) <= 2 * 2 * TRIES
    assert all(np.isnan(canvas.xy[:40]).all() for canvas in canvases)


def published_product(self: Records, values: Array, part: slice = slice(None)) -> Array:
    """The planted fault: box probabilities multiplied, and the logarithm of that floored at the smallest float."""
    near, far = ((values + edge - self.mean[part, None]) / self.sd[part, None] for edge in (0.01, -0.01))
    boxes = norm.cdf(near) - norm.cdf(far)
    return np.asarray(np.log(np.maximum(boxes.prod(axis=(1, 2)), 5e-324)))


@pytest.mark.parametrize("faulty", [False, True])
def test_long_fixations_far_apart_do_not_pass(monkeypatch: pytest.MonkeyPatch, faulty: bool) -> None:
    """200 samples at 3 degrees from each other; products of probabilities are 0 for both, and 0 equals 0."""
    if faulty:
        monkeypatch.setattr(Records, "log_density", published_product)
    people = [models((0.0, 0.0), count=200), models((3.0, 0.0), count=200)]
    canvases = synthesised(people, make_system("event-synth-pd", k=2, gamma=2.0))
    assert all(("F" in canvas.letters) == faulty for canvas in canvases)


@pytest.mark.parametrize("faulty", [False, True])
def test_people_are_counted_not_events(monkeypatch: pytest.MonkeyPatch, faulty: bool) -> None:
    """The other person has three fixations at one's place: that is two people, not four."""
    two = models((0.0, 0.0))
    line = Timeline(125, np.array([0, 40, 80]), np.array([40, 80, 120]), np.array([True, True, True]))
    many = Events(line, np.repeat(two.mean, 3, 0), np.repeat(two.sd, 3, 0), two.profile, two.landing, two.speeds)
    if faulty:
        monkeypatch.setattr(
            event_synth, "people_alike", lambda own, others, person, gamma: records_alike(own, others, gamma)
        )
    system = make_system("event-synth-pd", k=3, gamma=2.0)
    assert ("F" in synthesised([two, many], system)[0].letters) == faulty


def crowd(seed: int, events: int, centred: bool) -> Records:
    """Fixations of five people, or codes of saccades with one deviation; places 30 degrees wide, or none."""
    rng = np.random.default_rng(seed)
    spreads = rng.lognormal(-1.2, 0.4, (5, events, 2)) if seed % 2 else np.full((5, events, 2), 0.25)
    places = np.zeros((5, events, 2)) if centred else rng.uniform(-1, 1, (5, events, 2)) * (15.0 if seed % 2 else 1.0)
    return Records.of(list(zip(places, spreads, strict=True)))


def draws_of(
    records: Records, seed: int, count: int, wider: Sequence[float] = (1.0,)
) -> Iterator[tuple[Records, Array, float]]:
    """Draws of the events of the first person; wider than their model is, where hardly anybody could make them."""
    rng = np.random.default_rng(seed)
    others, mine = records.others(0), np.flatnonzero(records.person == 0)
    for at in rng.choice(mine, count):
        seed_of = Records(records.mean[[at]], records.sd[[at]], np.zeros(1, dtype=np.intp))
        samples = int(rng.integers(1, 60)) if seed % 2 else 1
        values = records.mean[at] + records.sd[at] * rng.standard_normal((samples, 2)) * rng.choice(wider)
        yield others, values, float(seed_of.log_density(values)[0])


@pytest.mark.parametrize("faulty", [False, True])
def test_looking_at_few_records_is_looking_at_all(monkeypatch: pytest.MonkeyPatch, faulty: bool) -> None:
    """The pairwise form is the definition. The planted fault stops looking at half the distance."""
    if faulty:
        whole = Records.reach
        monkeypatch.setattr(Records, "reach", lambda *given: whole(*given) / 2)
    answers, wrong = [], 0
    for seed in range(12):
        records = crowd(seed, 400, centred=seed % 3 == 0)
        for others, values, own in draws_of(records, seed, 60, (1.0, 3.0)):
            for k, gamma in ((2, 1.1), (2, 3.0), (4, 3.0)):
                pairwise = people_alike(own, others.log_density(values), others.person, gamma) >= k
                wrong += others.enough(values, own, k, gamma) != pairwise
                answers.append(pairwise)
    assert 0.2 < np.mean(answers) < 0.8
    assert (wrong > 0) == faulty


@pytest.mark.parametrize("seed", [0, 1])
def test_a_draw_is_compared_with_as_many_records_in_a_corpus_of_four_times_the_hours(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Looking at all of them would make it four times as many."""
    looked: list[int] = []
    right = people_alike
    monkeypatch.setattr(
        event_synth, "people_alike", lambda own, others, *rest: looked.append(len(others)) or right(own, others, *rest)
    )
    sums = []
    for events in (2000, 8000):
        looked.clear()
        for others, values, own in draws_of(crowd(seed, events, centred=seed == 1), seed, 200):
            others.enough(values, own, 2, 2.0)
        sums.append(sum(looked))
    assert sums[1] < 1.5 * sums[0]
    assert sums[1] < 200 * 4 * 8000 / 10


def test_own_events_are_no_evidence() -> None:
    """The planted fault would count a person's own other fixations as people: one person alone never passes."""
    two = models((0.0, 0.0))
    line = Timeline(125, np.array([0, 40, 80]), np.array([40, 80, 120]), np.array([True, True, True]))
    many = Events(line, np.repeat(two.mean, 3, 0), np.repeat(two.sd, 3, 0), two.profile, two.landing, two.speeds)
    far = models((50.0, 0.0))
    assert "F" not in synthesised([many, far], make_system("event-synth-pd", k=2, gamma=2.0))[0].letters


def test_a_code_goes_there_and_back() -> None:
    profile = np.array([[5.0, 0.4, 0.07], [0.01, 0.9, 2.0]])
    own = replace(models((0.0, 0.0)), profile=profile)
    mean, sd = FitCoder().encode(own)
    assert (sd > 0).all()
    np.testing.assert_allclose([FitCoder().decode(one, own, i) for i, one in enumerate(mean)], profile)


def test_claims_say_what_is_not_protected(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=3)
    survey = corpus.survey()
    for name, covered in (
        ("event-synth-pd", "the place and the spread of each released fixation"),
        ("event-synth-pd-centred", "the spread of each released fixation"),
    ):
        promise = make_system(name, k=2, gamma=2.0).promise(corpus, survey)
        assert promise.claim.kind == "plausible deniability"
        assert any("drawn again until a draw passes" in said for said in promise.not_promised)
        assert f"could have given each of these: {covered}, given how many samples" in promise.claim.statement
        assert "released as it is: where each saccade landed, which is the person's own raw" in promise.claim.statement
        assert ("where each fixation was" in promise.claim.statement) is (name == "event-synth-pd-centred")
