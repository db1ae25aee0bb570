"""The attacker who knows the law of additive noise, and the figures that attacks are told in."""

import json
from dataclasses import replace

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.calibration.tables import JointTables
from eyestream.core.mechanisms import build
from eyestream.errors import ConfigError
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.cli import study
from eyestream_lab.mechanisms import noise_likelihood as noise
from eyestream_lab.parts import part_of
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.study.people.attackers import ATTACKERS, USUAL, attack
from eyestream_lab.study.people.galleries import Gallery, halves_apart, recalibrated, recipe
from eyestream_lab.study.people.inference import figures, least_rate, trial
from eyestream_lab.study.people.run import (
    SHUFFLED,
    AttackTarget,
    cells,
    measure,
    page,
    subjects_of,
    summarise,
    world_of,
)
from eyestream_lab.study.population import Population
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise

PLAIN = [name for name in ATTACKERS if name not in {"deep", "spread"}]


def test_density_of_normal_and_laplace_noise_is_the_convolution():
    tau, b = np.array(0.7), np.array(1.3)
    grid = np.linspace(-40, 40, 400_001)
    normal = np.exp(-0.5 * (grid / tau) ** 2) / (tau * np.sqrt(2 * np.pi))
    for z in (-3.0, 0.2, 8.0):
        expected = np.trapezoid(normal * np.exp(-np.abs(z - grid) / b) / (2 * b), grid)
        logs, slope, curve = noise.log_density(np.array(z), tau, b)
        assert logs == pytest.approx(np.log(expected), abs=1e-6)
        step = 1e-4
        below, above = (noise.log_density(np.array(z + d), tau, b) for d in (-step, step))
        assert slope == pytest.approx((above[0] - below[0]) / (2 * step), abs=1e-5)
        assert curve == pytest.approx((above[1] - below[1]) / (2 * step), abs=1e-5)


@pytest.mark.parametrize("name", ["lpa", "cfpa", "dcfpa"])
def test_noisy_coordinates_are_read_off_the_published_chunk(name):
    chunk = np.random.default_rng(1).normal(size=(52, 32))
    calibration = calibrations.load(f"everyday-{name}-32")
    silent = build(calibration, 48.0, noise=ZeroNoise())
    chunk = calibration.fill[:, None] + 0.01 * calibration.tables.radius[:, None] * chunk
    read = noise.values_of(silent, silent.release(chunk)[None].astype(np.float32))
    meant = noise.coordinates_of(silent, chunk[None])
    scale = np.broadcast_to(
        silent.core.private.law.sd[:, None] * silent.core.private.steps, silent.core.private.law.shape
    )
    kept = np.broadcast_to(silent.core.private.steps > 0, scale.shape)
    assert (np.abs(read - meant) < 2e-2 * scale[kept]).all()
    with pytest.raises(ConfigError, match=name):
        noise.values_of(build(calibration, 48.0, smooth=True), chunk[None].astype(np.float32))


def test_known_law_and_known_people_give_the_odds_of_bayes():
    """One direction, noise far above what people do: the score is the log-odds that enumeration gives."""
    rng = np.random.default_rng(4)
    model = noise.PersonModel(
        np.zeros(3), np.array([[1.0], [0.5], [-1.0]]), np.array([[1.0]]), np.full(3, 0.2), np.array([0.8, 1.0, 1.5])
    )
    grid = np.linspace(-6, 6, 2001)
    prior = np.exp(-0.5 * grid**2)
    prior /= prior.sum()

    def exact(values):
        apart = values[None] - grid[:, None, None] * model.directions[:, 0]
        return noise.log_density(apart, model.within, model.scale)[0].sum(axis=(1, 2))

    def evidence(logs):
        return np.log((np.exp(logs - logs.max()) * prior).sum()) + logs.max()

    who = rng.normal(size=10)
    sessions = [
        [
            model.directions[:, 0] * u + 0.2 * rng.normal(size=(20, 3)) + rng.laplace(size=(20, 3)) * model.scale
            for u in who
        ]
        for _ in range(2)
    ]
    logs = [[exact(values) for values in group] for group in sessions]
    expected = [[evidence(a + b) - evidence(a) - evidence(b) for b in logs[0]] for a in logs[1]]
    known, unknown = ([noise.noisy_session(model, values) for values in group] for group in sessions)
    ours = noise.scores_of(model, known, unknown)
    near = np.array(expected) > -1  # far out the tails of Laplace's law are not those of a quadratic
    assert near.sum() > 15
    np.testing.assert_allclose(ours[near], np.array(expected)[near], atol=0.4)
    assert np.corrcoef(ours.ravel(), np.ravel(expected))[0, 1] > 0.98


@pytest.fixture(scope="module")
def people():
    drawn = simulate(load_statistics(), 12, 420.0, 3)
    return Population.of(
        [Recording(np.arange(len(r)) / 2.0, r.astype(float), NAMES, f"p{i:02d}", True) for i, r in enumerate(drawn)]
    )


def material(distance, mechanism, seed):
    """Twelve people who differ by `distance` standard deviations in every feature, or do not."""
    rng = np.random.default_rng(seed)
    calibration = mechanism.calibration
    sd = np.where(calibration.constant, 0.0, calibration.tables.scale)[:, None]
    mean = calibration.tables.mean
    mean = mean[:, None] if mean.ndim == 1 else mean
    own = distance * rng.normal(size=(12, 52, 1))

    def chunks(person, count=8):
        return mean + sd * (
            own[person] + 0.3 * rng.normal(size=(count, 52, 1)) + 0.1 * rng.normal(size=(count, 52, 32))
        )

    def released(person):
        session = mechanism.session()
        return np.array([session.release(chunk) for chunk in chunks(person)], np.float32)

    return Gallery(
        mechanism=mechanism,
        people=tuple(map(str, range(12))),
        known=[released(i) for i in range(12)],
        unknown=[released(i) for i in range(12)],
        minutes=[chunks(i, 4) for i in range(12)],
        background=[chunks(i) for i in range(12)],
        active=mechanism.frame.active,
        rate_hz=2.0,
    )


@pytest.mark.parametrize("attacker", PLAIN)
@pytest.mark.parametrize("name", ["klt", pytest.param("cfpa", marks=pytest.mark.long)])
def test_every_attacker_finds_people_who_differ_and_guesses_when_they_do_not(attacker, name):
    epsilon = 24.0 if name == "klt" else 4800.0
    mechanism = build(calibrations.load(f"everyday-{name}-32"), epsilon, noise=SeededNoise(8))
    for distance, least, most in ((1.0, 0.8, 1.0), (0.0, 0.25, 0.72)):
        gallery = material(distance, mechanism, 5)
        made = trial([(gallery.people, attack(attacker, gallery, 0))], 0)
        assert least <= np.mean(made.areas) <= most
        assert (made.p < 0.01) == (distance > 0)


def movers(differ):
    """Twelve people whose features have one mean, and go as far as their own factors say, or all the same."""
    rng = np.random.default_rng(6)
    reach = np.exp(differ * rng.normal(size=(12, 20, 1)))

    def released(person):
        drawn = rng.normal(size=(10, 20, 1)) + 0.3 * rng.normal(size=(10, 20, 32))
        return (reach[person] * drawn).astype(np.float32)

    known, unknown = ([released(i) for i in range(12)] for _ in range(2))
    return Gallery(None, tuple(map(str, range(12))), known, unknown, [], [], np.arange(20), 2.0)


def test_who_compares_spread_finds_who_moves_otherwise_and_does_not_see_what_a_constant_adds():
    for differ, least, most in ((0.5, 0.9, 1.0), (0.0, 0.25, 0.72)):
        made = trial([("abcdefghijkl", attack("spread", movers(differ), 0))], 0)
        assert least <= np.mean(made.areas) <= most
        assert (made.p < 0.01) == (differ > 0)
    gallery = movers(0.5)
    offset = np.linspace(-1, 1, 20, dtype=np.float32)[:, None]
    moved = replace(gallery, unknown=[chunks + offset for chunks in gallery.unknown])
    np.testing.assert_allclose(attack("spread", moved, 0), attack("spread", gallery, 0), atol=1e-3)


def test_who_compares_spread_finds_whose_features_move_together_otherwise():
    rng = np.random.default_rng(9)
    signs = np.sign(rng.normal(size=(12, 20, 1)))  # all go as far: what goes with what differs

    def released(person):
        return (signs[person] * rng.normal(size=(10, 1, 32)) + rng.normal(size=(10, 20, 32))).astype(np.float32)

    known, unknown = ([released(i) for i in range(12)] for _ in range(2))
    gallery = Gallery(None, tuple(map(str, range(12))), known, unknown, [], [], np.arange(20), 2.0)
    made = trial([(gallery.people, attack("spread", gallery, 0))], 0)
    assert np.mean(made.areas) > 0.75
    assert made.p < 0.01


def test_figures_by_hand():
    scores = np.array([[3.0, 1.0, 2.0], [5.0, 4.0, 3.0], [1.0, 1.0, 1.0]])
    made = trial([("abc", scores)], 0)
    assert made.firsts == (1.0, 0.0, pytest.approx(1 / 3))
    assert made.ranks == (1.0, 2.0, 2.0)
    # right ones z-scored: 1.22, 0, 0; wrong ones: -1.22, 0, 1.22, -1.22, 0, 0
    assert made.areas == (pytest.approx(5.5 / 6), pytest.approx(3.5 / 6), pytest.approx(3.5 / 6))
    told = figures([made], 3)
    assert (told.people, told.rate, told.mean_rank, told.chance) == (
        3,
        pytest.approx(4 / 9),
        pytest.approx(5 / 3),
        1 / 3,
    )


def test_the_permutation_test_is_fair_and_intervals_are_over_people():
    rng = np.random.default_rng(1)
    ps = [trial([("abcdefgh", rng.normal(size=(8, 8)))], seed).p for seed in range(80)]
    assert 0.01 < np.mean(np.array(ps) <= 0.1) < 0.2
    assert trial([("abcdefgh", np.eye(8))], 0).p < 0.01
    # the same people again and again make no interval narrower
    once = [trial([("abcdefgh", rng.normal(size=(8, 8)) + 1.0 * np.eye(8))], 0)]
    width = [(f.area_high - f.area_low) for f in (figures(once, 8), figures(once * 20, 8))]
    assert width[1] == pytest.approx(width[0])


def test_the_smallest_rate_that_so_many_people_show():
    # 30 people at 1/15: five right names have p = 0.049, and come in 80 % of the cases at 0.214 or more
    assert least_rate(30, 1 / 15) == pytest.approx(0.214, abs=0.002)
    assert least_rate(300, 1 / 15) < 0.12


def test_halves_share_no_gaze_and_recipes_are_read_off_calibrations():
    for n, gap in ((32, 2), (64, 1), (128, 1)):
        first, second = halves_apart(15, n, 2.0)
        assert second.start - first.stop == gap
        assert first.stop >= 6
    assert recipe(calibrations.load("everyday-klt-32")) == {"ranks": False}
    assert recipe(calibrations.load("everyday-klt-mapped-32")) == {}
    anchored = calibrations.load("everyday-klt-anchored-32")
    assert recipe(anchored) == {"anchored": True}
    before = replace(anchored, tables=replace(anchored.tables, shares=None))  # as of 0.2.0
    assert recipe(before) == {"anchored": True, "shares": False}
    shed = {"shed_identity": pytest.approx(1.0), "ranks": False}
    assert recipe(calibrations.load("everyday-klt-one-64")) == shed
    assert recipe(calibrations.load("everyday-cfpa-32")) == {"coverage": 0.95}


@pytest.mark.long
def test_cells_say_what_was_attacked_and_the_shuffled_control_is_at_chance(people):
    calibration = calibrations.load("everyday-klt-one-32")
    subject = AttackTarget("everyday-klt-one-32", "klt", 32, tuple(recipe(calibration).items()), calibration)
    world = world_of(people, [subject])
    work = cells([subject], [24.0], ["likelihood", "matcher"], 3, 1)
    assert len(work) == 3 + 2 * 2 * 3  # no likelihood of raw rows
    records = [cell.settings | record for cell in work for record in measure(world, **cell.settings)]
    shipped = [r for r in records if r["how"] == "as it is"]
    assert {r["attacked"] for r in shipped} == {calibration.content_hash}
    anew = next(r for r in records if r["how"] == "made anew")
    assert len(anew["people"]) == len(set(anew["people"])) == 12  # both roles: everybody once
    assert len(set(anew["attacked"].split())) == 2
    table = summarise(records)
    control = [row["area"] for row in table if row["control"] == SHUFFLED]
    assert 0.35 < np.mean(control) < 0.65
    text = page(table, "12 simulated people", 12)
    assert calibration.content_hash in text
    assert "galleries of 6" in text


@pytest.mark.long
@pytest.mark.parametrize("name", ["everyday-klt-128", "everyday-klt-one-128"])
def test_what_is_attacked_anew_is_made_as_what_ships(everyday, name):
    """The recipe that is read off a shipped calibration makes that calibration again, from the same people."""
    shipped = calibrations.load(name)
    population = Population.of(everyday)
    every = tuple(range(len(everyday)))
    again = recalibrated(population, every, shipped.n, shipped.mechanism, recipe(shipped))
    for ours, theirs in zip(modes_of(again.tables), modes_of(shipped.tables), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6 * np.abs(theirs).max())
    np.testing.assert_allclose(again.tables.weights, shipped.tables.weights)
    np.testing.assert_allclose(again.tables.mean, shipped.tables.mean, rtol=1e-6, atol=1e-9)


def modes_of(tables: JointTables) -> np.ndarray:
    """(2, A M, A M) covariances of the modes, which do not depend on the signs of the directions."""
    return tables.expand.T @ tables.covariances @ tables.expand


def test_the_study_attacks_the_weight_that_ships():
    forms = [dict(form.calibration) for form in part_of("klt").forms if not form.best]
    shipped = [recipe(calibrations.load(f"everyday-{name}-32")) for name in ("klt", "klt-one")]
    assert [form.get("shed_identity") for form in forms] == [own.get("shed_identity") for own in shipped]


def test_the_command_writes_the_table_and_keeps_what_it_does_not_make_anew(people, tmp_path, capsys):
    for index in range(6):
        recordings.save(
            Recording(np.arange(840) / 2.0, people.recording(index), NAMES, f"p{index}.npz", True),
            tmp_path / f"p{index}.npz",
        )
    words = ["study", *(str(tmp_path / f"p{i}.npz") for i in range(6)), "--out", str(tmp_path / "out"), "--jobs", "1"]
    words += ["--splits", "1", "--epsilon", "24", "--calibration", "everyday-klt-one-32", "--attack"]
    main([*words, "matcher"])
    main([*words, "likelihood"])
    told = json.loads((tmp_path / "out" / "attacks.json").read_text())
    assert {row["attacker"] for row in told["figures"]} == {"matcher", "likelihood"}
    assert told["people"] == 6
    text = (tmp_path / "out" / "attacks.md").read_text()
    assert "6 people of this corpus" in text
    assert capsys.readouterr().out.count("attacks.md") == 2
    (tmp_path / "out" / "attacks.json").write_text("[]")
    with pytest.raises(SystemExit):
        main([*words, "matcher"])
    assert "no figures of attacks" in capsys.readouterr().err


def test_a_mechanism_elsewhere_is_attacked_by_its_place():
    entry = mechanism_elsewhere("gaussian_mean:ENTRY", "--mechanism")
    subjects = subjects_of([], entry.name, "gaussian_mean:ENTRY", (32,))
    assert [(s.mechanism, s.n, s.hash) for s in subjects] == [("gaussian_mean:ENTRY", 32, "")]


def test_the_command_offers_every_attacker():
    """It must not import them to know their names: they need an extra."""
    assert [name.replace("exemplar-raw", "exemplar, raw") for name in study._ATTACKERS] == list(ATTACKERS)
    assert (*USUAL, "deep") == tuple(ATTACKERS)
