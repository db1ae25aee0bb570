import numpy as np
import pytest

from eyestream_lab.study import classification, tables
from eyestream_lab.study.classifiers import ATTACKERS, CLASSIFIERS, RadialBasisNetwork, attack, match_means
from eyestream_lab.study.people.run import page
from eyestream_lab.study.population import Population
from eyestream_lab.study.sources import World, prepare


def blobs(people, rows, distance, seed):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).normal(size=(people, 5)) * distance
    return [rng.normal(size=(rows, 5)) + centre for centre in centres]


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_every_attacker_finds_people_who_differ_and_guesses_when_they_do_not(attacker):
    for distance, least, most in ((2.0, 0.95, 1.0), (0.0, 0.0, 0.35)):
        known, unknown = blobs(8, 80, distance, 1), blobs(8, 80, distance, 2)
        scores = attack(attacker, known, [unknown, known], stride=2, block=8, seed=0)
        assert len(scores) == 2
        rate = (scores[0].argmax(axis=1) == np.arange(8)).mean()
        assert least <= rate <= most


def test_radial_basis_network_is_the_published_one():
    rows = np.array([[0.0], [2.0], [10.0], [14.0]])
    network = RadialBasisNetwork(0, centres=1)
    network.fit(rows, np.array([0, 0, 1, 1]))
    mean, deviation = rows.mean(), rows.std()
    centres = (np.array([1.0, 12.0]) - mean) / deviation
    sigma = np.array([1.0, 2.0]) / deviation + 1e-5
    scaled = (rows - mean) / deviation
    phi = np.exp(-((scaled - centres) ** 2) / (2 * sigma**2))
    expected = phi @ np.linalg.lstsq(phi, np.repeat(np.eye(2), 2, axis=0), rcond=None)[0]
    np.testing.assert_allclose(network.scores(rows), expected, atol=1e-9)


def test_mean_matcher_needs_all_rows_to_beat_noise():
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(12, 5))
    noisy = [[person + 10 * rng.normal(size=(4000, 5)) for person in truth] for _ in range(2)]
    assert (np.argmax(match_means(noisy[0], noisy[1], 32), axis=1) == np.arange(12)).mean() > 0.9


@pytest.mark.parametrize(("p", "said"), [(0.016, "found people"), (0.017, "was not seen to find anybody")])
def test_the_sentence_of_a_page_says_by_which_rule_people_are_found(p, said):
    """The smallest p of three attackers times three; it need not be that of the largest area."""
    figures = {"subject": "s", "how": "made anew", "n": 32, "epsilon": 4.8, "hash": "", "control": "", "people": 30}
    figures |= dict.fromkeys(("rate", "rate_low", "rate_high", "area_low", "area_high", "chance", "mean_rank"), 0.5)
    figures |= {"gallery": 15, "least_rate": 0.2, "least_area": 0.6, "trials": 1}
    rows = [figures | {"attacker": name, "area": area, "p": own} for name, area, own in (
        ("forest", 0.8, 0.3), ("matcher", 0.7, p), ("lda", 0.6, 0.5))]  # fmt: skip
    text = page(rows, "nobody", 30)
    assert f"the strongest of 3 attackers, forest, {said}: area 0.80" in text
    assert f"smallest p {p:.3f}, of matcher, times 3: {3 * p:.2g}" in text
    shipped = [row | {"how": "as it is", "calibrated": 21} for row in rows]
    assert "`s`, as it is, 30 people of this corpus (21 of them calibrated it), galleries" in page(shipped, "c", 30)
    assert "All of the people calibrated" not in text


def test_labels_are_learned_from_other_people(world):
    # one label that a feature tells, one that nothing tells: the second must not be better than its chance
    population = world.population
    fast = [population.recording(i)[:, 0].mean() for i in range(len(population.people))]
    told = tuple("fast" if value > np.median(fast) else "slow" for value in fast)
    rows = population.rows.copy()
    for i, value in enumerate(told):
        rows[population.starts[i] : population.starts[i + 1], 1] += 50.0 if value == "fast" else 0.0
    changed = Population(
        population.names,
        population.rate_hz,
        rows,
        population.present,
        population.starts,
        population.people,
        population.hashes,
        {"told": told, "name": population.people},
    )
    labelled = World(changed, world.calibrations)
    settings = {"source": "raw", "mechanism": "raw", "n": 32, "per_minute": 0.0, "seed": 0, "stride": 20}
    records = tables.measure(labelled, task="told", **settings)
    assert max(record["voted"] for record in records if not record["where"]) == 1.0
    # who was left out was never seen: no classifier can say the name of a person it did not learn
    records = tables.measure(labelled, task="name", **settings)
    assert [record["voted"] for record in records if not record["where"]] == [0.0] * len(CLASSIFIERS)


def test_vote_and_its_ties():
    assert classification.vote(np.array([2, 2, 1]), 2) == 1.0
    assert classification.vote(np.array([2, 2, 1]), 1) == 0.0
    assert classification.vote(np.array([2, 2, 1, 1]), 1) == 0.5


@pytest.mark.long
def test_people_of_the_corpus_are_recognised_raw_and_not_behind_strong_noise(everyday):
    world = prepare(Population.of(everyday), (32,), lambda text: None)
    settings = {"task": "person", "n": 32, "seed": 0, "stride": 20}
    raw = tables.measure(world, source="raw", mechanism="raw", per_minute=0.0, **settings)
    assert min(record["voted"] for record in raw) > 0.5
    assert raw[0]["chance"] == pytest.approx(1 / 15)
    private = tables.measure(world, source="CFPA", mechanism="cfpa", per_minute=1.8, **settings)
    assert max(record["voted"] for record in private) < 0.35
    # one draw of noise over the whole recording: people are told by their noise
    whole = tables.measure(world, source="FPA", mechanism="fpa", per_minute=1.8, **settings)
    assert min(record["per_window"] for record in whole) > 0.9
