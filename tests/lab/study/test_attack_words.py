"""The attacker who reads code words: what is read is what was sent, and what is made of it is what Bayes would make."""

from dataclasses import replace

import numpy as np
import pytest

from eyestream.core.mechanisms import CFPA, KLT
from eyestream.core.mechanisms.klt.books import books_of
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.files.books import shipped_books
from eyestream_lab.mechanisms.klt.word_likelihood import believe, cells_of, prior, tell_scores, word_scores
from eyestream_lab.mechanisms.klt.words import decode
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise

N = 32


@pytest.fixture(scope="module")
def corpus():
    drawn = simulate(load_statistics(), 8, 300.0, 7)
    return Corpus.of(
        [Recording(np.arange(len(r)) / 2.0, r.astype(float), NAMES, f"{i}") for i, r in enumerate(drawn)], N
    )


@pytest.fixture(scope="module")
def shed(corpus):
    return calibrate_joint(corpus, shed_identity=1.0)


@pytest.fixture(scope="module")
def booked(corpus):
    return calibrate_joint(corpus, books=shipped_books())


class Overheard:
    """A noise that is watched, and the words that came out of the responses."""

    def __init__(self, noise):
        self.noise = noise
        self.draws = []

    def draw(self, law):
        self.draws.append(self.noise.draw(law))
        return self.draws[-1]


@pytest.mark.parametrize(("weight", "epsilon"), [(0.0, 4.8), (0.0, 24.0), (1.0, 4.8), (32.0, 0.48)])
def test_every_word_is_read_off_the_float32_chunks_and_weights_are_undone(corpus, weight, epsilon):
    noise = Overheard(SeededNoise(5))
    mechanism = KLT(calibrate_joint(corpus, shed_identity=weight), epsilon, noise=noise)
    session = mechanism.session()
    published = [session.release(chunk).astype(np.float32) for chunk in corpus.chunks[:25]]
    read = decode(mechanism, published)
    assert all(evidence.decoded for evidence in read)
    replaced = 0
    for evidence, drawn in zip(read, noise.draws, strict=True):
        if drawn[0]:  # the response put a word of its own there: that is what must be read
            np.testing.assert_array_equal(evidence.word, drawn[1:])
            replaced += 1
    assert replaced or epsilon > 20


@pytest.mark.parametrize(("epsilon", "coordinates"), [(3.8, (1, 3)), (4.8, (1,)), (19.2, (2,))])
def test_words_of_books_are_read_too(booked, corpus, epsilon, coordinates):
    noise = Overheard(SeededNoise(6))
    mechanism = KLT(booked, epsilon, noise=noise)
    session = mechanism.session()
    read = decode(mechanism, [session.release(chunk).astype(np.float32) for chunk in corpus.chunks[:25]])
    assert all(evidence.decoded for evidence in read)
    assert {len(evidence.word) for evidence in read} == set(
        coordinates
    )  # three: before the book of three bits is better
    replaced = [(e.word, drawn[1:]) for e, drawn in zip(read, noise.draws, strict=True) if drawn[0]]
    for word, drawn in replaced:
        np.testing.assert_array_equal(word, drawn)
    assert replaced or epsilon > 15


def test_a_cell_of_a_book_tells_a_belief_what_counting_tells(booked):
    """Its probability and the mean behind it, of a belief that is narrower than the public one, and elsewhere."""
    book = books_of(booked.tables)[2]
    assert len(book.points) == 32
    rng, size = np.random.default_rng(3), book.end
    axes, variances = np.linalg.qr(rng.standard_normal((size, size)))[0], rng.uniform(0.2, 0.9, size)
    centre = rng.standard_normal(size)
    mean = axes @ (rng.standard_normal(size) * np.sqrt(1 - variances)) + centre
    covariance = (axes * variances) @ axes.T
    states = rng.multivariate_normal(mean, covariance, 2**15)
    y = states - centre
    words = ((book.points**2) @ book.weights - 2 * (y * book.weights) @ book.points.T).argmin(axis=1)
    share = np.bincount(words, minlength=32) / len(words)
    means, covariances, logs = cells_of(book).weigh(
        np.tile(mean, (32, 1)),
        np.tile(covariance, (32, 1, 1)),
        np.eye(size),
        np.tile(centre, (32, 1)),
        np.arange(32),
    )
    often = np.flatnonzero(share > 0.003)
    counted = np.log(share[often])

    def off(found):
        return float(np.sqrt((share[often] * (found[often] - counted) ** 2).sum()))

    assert off(logs) < 0.2
    assert off(np.log(book.shares)) > 0.6  # as if nothing were known of the person
    told, left = 0.0, 0.0
    for word in often:
        inside = states[words == word]
        moved = inside.mean(axis=0) - mean
        assert np.linalg.norm(means[word] - inside.mean(axis=0)) < 0.3 * np.linalg.norm(moved)
        told += share[word] * np.trace(covariances[word])
        left += share[word] * np.trace(np.cov(inside.T))
    assert told == pytest.approx(left, rel=0.1)
    assert left < 0.85 * np.trace(covariance) * share[often].sum()


def test_books_of_equal_content_share_their_cells(booked):
    book, again = (books_of(tables)[0] for tables in (booked.tables, replace(booked.tables)))
    assert book is not again
    assert cells_of(book) is cells_of(again)
    other = replace(book, weights=book.weights[::-1].copy())
    assert not np.array_equal(cells_of(other).pull, cells_of(book).pull)
    moved = replace(book, points=book.points + 0.1)
    assert not np.array_equal(cells_of(moved).pull, cells_of(book).pull)


def test_believing_words_of_books_finds_the_person(booked, corpus):
    """Nearer to the true scores than without a word, and surer; a word that was not decoded tells nothing."""
    mechanism = KLT(booked, 4.8, noise=SeededNoise(2))
    core, step = mechanism.core, mechanism.core.step()
    near = far = 0.0
    for chunk in corpus.chunks[:12]:
        told = decode(mechanism, [mechanism.release(chunk).astype(np.float32)])
        after, _ = believe(core, prior(core, 1), [told])
        scores = step.scores(mechanism._workspaces.take()[0].admit(chunk).copy())
        d = len(scores)
        near += float(((after.mean[0].reshape(-1, d).sum(axis=0) - scores) ** 2).sum())
        far += float((scores**2).sum())
        assert np.linalg.eigvalsh(after.covariance[0]).min() > -1e-9
        assert np.trace(after.covariance[0]) < np.trace(core.schedule.motion.stationary)
    assert near < 0.75 * far
    nothing = replace(told[0], word=np.full(1, -1))
    after, logs = believe(core, prior(core, 1), [[nothing]])
    np.testing.assert_array_equal(after.mean, 0.0)
    assert logs[0] == 0.0


def test_a_truthful_word_is_the_cell_that_holds_the_scores(corpus):
    mechanism = KLT(calibrate_joint(corpus), 24.0, noise=ZeroNoise())
    session = mechanism.session()
    step, published = mechanism.core.step(), []
    for turn, chunk in enumerate(corpus.chunks[:6]):
        admitted = mechanism._workspaces.take()[0].admit(chunk).copy()
        scores = step.scores(admitted)
        published.append(session.release(chunk).astype(np.float32))
        evidence = decode(mechanism, published)[-1]
        seen = mechanism.core.schedule.steps[turn].directions @ scores
        assert ((evidence.low <= seen + 1e-6) & (seen <= evidence.high + 1e-6)).all()


def test_what_is_no_word_is_said_to_be_none(corpus):
    mechanism = KLT(calibrate_joint(corpus), 4.8, noise=SeededNoise(1))
    published = mechanism.release(corpus.chunks[0]).astype(np.float32)
    changed = published.copy()
    changed[mechanism.frame.active[3], 4] += 1e-3 * np.ptp(published)
    assert not decode(mechanism, [changed])[0].decoded
    candidates = prior(mechanism.core, 2)
    scores = word_scores(mechanism.core, candidates, [decode(mechanism, [changed])])
    np.testing.assert_array_equal(scores, [[0.0, 0.0]])


def test_only_code_words_can_be_decoded():
    from eyestream.errors import ConfigError

    with pytest.raises(ConfigError, match="cfpa"):
        decode(CFPA(calibrations.load("everyday-cfpa-32"), 4.8), [])


class Grid:
    """Bayes' rule on a lattice of (what stays, what passes): the reference, sharing nothing with the attacker."""

    def __init__(self, core, points=61, width=4.5):
        stays, passes = (float(c[0, 0]) for c in core.tables.covariances)
        self.core, self.pole = core, float(core.tables.poles[1])
        axis = np.linspace(-width, width, points)
        self.u, self.v = axis * np.sqrt(stays), axis * np.sqrt(passes)
        normal = np.exp(-0.5 * axis**2)
        self.first = normal / normal.sum()
        moved = np.exp(-0.5 * (self.v[:, None] - self.pole * self.v[None]) ** 2 / (passes * (1 - self.pole**2)))
        self.moves = moved / moved.sum(axis=0)  # [to, from]

    def filter(self, session, about_u):
        """Belief about u after a session, and its log-probability; `about_u` (points,) before it."""
        joint = about_u[:, None] * self.first[None]
        total = 0.0
        for turn, evidence in enumerate(session):
            if turn:
                joint = joint @ self.moves.T
            step = self.core.schedule.steps[min(turn, 63)]
            words, rho = len(step.points[0]), step.law.replace
            seen = step.directions[0, 0] * (self.u[:, None] + self.v[None])
            inside = (evidence.low[0] <= seen) & (seen < evidence.high[0])
            joint = joint * ((1 - rho) * inside + rho / words)
            total += np.log(joint.sum())
            joint = joint / joint.sum()
        return joint.sum(axis=1), total


@pytest.mark.long
def test_the_likelihood_attacker_names_as_many_as_bayes_can(shed):
    """People of the model itself: one score, words of a few bits, the reference enumerates every state."""
    whole = float(shed.tables.covariances.sum())  # so that people differ: 0.7 of the variance stays with them
    tables = replace(shed.tables, covariances=whole * np.array([[[0.7]], [[0.3]]]))
    mechanism = KLT(replace(shed, tables=tables), 4.8, noise=SeededNoise(11))
    core, rng, step = mechanism.core, np.random.default_rng(2), mechanism.core.step()
    grid = Grid(core)
    stays, passes = (np.sqrt(float(c[0, 0])) for c in core.tables.covariances)
    pole = grid.pole

    def session(u, length=24):
        v, released, one = passes * rng.normal(), [], mechanism.session()
        for _ in range(length):
            values, chunk = np.empty((len(core.mean), N)), np.zeros((mechanism.features, N))
            step.chunk(np.array([u + v]), values)  # the chunk that has this score
            chunk[mechanism.frame.active] = values
            released.append(one.release(chunk).astype(np.float32))
            v = pole * v + passes * np.sqrt(1 - pole**2) * rng.normal()
        return decode(mechanism, released)

    ours, theirs, same, people = [], [], [], 8
    for _ in range(12):
        who = stays * rng.normal(size=people)
        known, unknown = [session(u) for u in who], [session(u) for u in who]
        candidates, _ = believe(core, prior(core, people), known)
        scores = word_scores(core, candidates, unknown)
        beliefs = [grid.filter(one, grid.first)[0] for one in known]
        exact = np.array([[grid.filter(one, b)[1] for b in beliefs] for one in unknown])
        exact -= np.array([grid.filter(one, grid.first)[1] for one in unknown])[:, None]
        same.append(np.corrcoef(scores.ravel(), exact.ravel())[0, 1])
        ours += (scores.argmax(axis=1) == np.arange(people)).tolist()
        theirs += (exact.argmax(axis=1) == np.arange(people)).tolist()
    assert np.mean(theirs) > 0.25  # by chance 0.125
    assert np.mean(ours) >= np.mean(theirs) - 0.04
    assert np.mean(same) > 0.95


def test_one_word_has_the_probability_that_the_law_gives_it(shed):
    mechanism = KLT(shed, 4.8, noise=SeededNoise(3))
    core = mechanism.core
    chunks = [mechanism.release(np.full((52, N), value)) for value in (-1e9, 1e9)]
    told = [decode(mechanism, [chunk.astype(np.float32)]) for chunk in chunks]
    _, logs = believe(core, prior(core, 2), told)
    words = len(core.schedule.steps[0].points[0])
    grid = Grid(core, points=801)
    for session, value in zip(told, logs, strict=True):
        assert value == pytest.approx(grid.filter(session, grid.first)[1], abs=0.02)
    assert words == 4


def test_told_scores_leave_what_kalman_leaves(shed):
    core = KLT(shed, 4.8, noise=ZeroNoise()).core
    stays, passes = (float(c[0, 0]) for c in core.tables.covariances)
    after = tell_scores(core, prior(core, 1), np.array([[0.7]]))
    assert after.mean[0].sum() == pytest.approx(0.7)
    assert after.mean[0, 0] == pytest.approx(0.7 * stays / (stays + passes))
    assert after.covariance[0, 0, 0] == pytest.approx(stays * passes / (stays + passes))
    many = tell_scores(core, prior(core, 1), np.full((400, 1), 0.7))
    assert many.mean[0, 0] == pytest.approx(0.7, abs=0.05)
