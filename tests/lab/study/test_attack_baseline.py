"""A baseline that is kept for life names its wearer; one of each session's own does not. The attackers see it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import JointTables
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.books import books_of
from eyestream.core.session import Session
from eyestream.gaze.features import NAMES as FEATURES_52
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.files.books import shipped_books
from eyestream_lab.simulation.people import load_statistics, simulate
from eyestream_lab.study.people.attackers import attack
from eyestream_lab.study.people.galleries import Gallery, recalibrated, recipe
from eyestream_lab.study.people.inference import figures, trial
from eyestream_lab.study.people.run import SHIPPED, AttackTarget, cells, knowing, measure, world_of
from eyestream_lab.study.population import Population
from eyestream_lab.testing.noise import SeededNoise

Array = NDArray[np.float64]
N, PEOPLE = 32, 12


def recordings(count: int, seed: int) -> list[Recording]:
    return [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), FEATURES_52, f"sim-{seed}-{i}")
        for i, rows in enumerate(simulate(load_statistics(), count, 600.0, seed))
    ]


def released(session: Session, chunks: Array) -> NDArray[np.float32]:
    out = []
    for chunk in chunks:
        if session.awaits_baseline:
            session.anchor(chunk)
        else:
            out.append(session.release(chunk))
    return np.array(out, np.float32)


def gallery(mechanism: Mechanism, people: list[Recording], *, for_life: bool) -> Gallery:
    """Two sessions of each; `for_life` plants the fault: the second goes on with the first one's baseline."""
    known, unknown = [], []
    for one in people:
        chunks = whole_chunks(one.features, N)
        half = len(chunks) // 2
        first = mechanism.session()
        for chunk in chunks[:4]:
            first.anchor(chunk)
        kept = first.snapshot()
        known.append(released(first, chunks[4:half]))
        second = mechanism.session(kept) if for_life else mechanism.session()
        unknown.append(released(second, chunks[half + 2 :]))
    names = tuple(one.path for one in people)
    return Gallery(mechanism, names, known, unknown, [], [], mechanism.frame.active, 2.0)


@pytest.mark.long
def test_a_baseline_kept_for_life_is_seen_and_one_of_the_session_hides() -> None:
    calibration = calibrate_joint(Corpus.of(recordings(16, 1), N), anchored=True, books=shipped_books())
    assert recipe(calibration) == {"anchored": True}
    mechanism, people = build(calibration, 48.0, noise=SeededNoise(3)), recordings(PEOPLE, 2)
    area = {}
    for for_life in (False, True):
        made = gallery(mechanism, people, for_life=for_life)
        trials = [trial([(made.people, attack(name, made, seed=0))], 0) for name in ("matcher", "likelihood", "forest")]
        area[for_life] = max(figures([one], PEOPLE).area for one in trials)
    assert area[True] > 0.95
    assert area[False] < area[True] - 0.15


def test_recipes_tell_how_a_calibration_was_made() -> None:
    corpus = Corpus.of(recordings(4, 5), N)
    assert recipe(calibrate_joint(corpus, books=shipped_books())) == {}
    assert recipe(calibrate_joint(corpus)) == {"books": False}  # as calibrations of before were
    assert recipe(calibrate_joint(corpus, ranks=False)) == {"ranks": False}
    made = recipe(calibrate_joint(corpus, anchored=True, shed_identity=1.0))
    assert made == {"anchored": True, "shed_identity": pytest.approx(1.0)}


def test_what_has_no_books_is_attacked_without() -> None:
    """Calibrations of before by what they were made with; those that ship now by what `calibrate` makes."""
    shipped = calibrations.load("everyday-klt-mapped-32")
    bare: dict[str, Any] = dict.fromkeys(("book_shapes", "book_points", "book_shares", "book_weights"))
    old = replace(shipped, tables=replace(shipped.tables, **bare))  # type: ignore[type-var]
    assert (recipe(shipped), recipe(old)) == ({}, {"books": False})
    population, known = Population.of(recordings(6, 4)), tuple(range(4))
    for own, count in ((recipe(shipped), len(shipped_books())), (recipe(old), 0)):
        tables = recalibrated(population, known, N, "klt", own).tables
        assert isinstance(tables, JointTables)
        assert len(books_of(tables)) == count


@pytest.mark.long
def test_people_too_short_for_a_baseline_in_each_half_are_left_out_and_the_rest_is_attacked() -> None:
    """39 people, of nine of whom a half holds two chunks: all of it baseline, so that nothing of it is released."""
    calibration = calibrations.load("everyday-klt-anchored-64")
    people = [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), FEATURES_52, f"p{i:02}.npz")
        for i, rows in enumerate(simulate(load_statistics(), 39, 360.0, 5))
    ]
    people[:9] = [replace(one, t=one.t[:330], features=one.features[:330]) for one in people[:9]]
    subject = AttackTarget("anchored", "klt", 64, tuple(recipe(calibration).items()), calibration)
    world = world_of(Population.of(people), [subject])
    for cell in cells([subject], (9.6,), ("exemplar, raw", "matcher", "lda", "spread"), 1, 1):
        if cell.settings["how"] == SHIPPED:
            attacked, control = measure(world, **cell.settings)
            assert attacked["gallery"] == control["gallery"] == 30
    assert knowing(world, [subject]) == {subject.hash: 0}
    known = replace(calibration.provenance, recordings=world.population.hashes[7:12])
    made = replace(subject, calibration=replace(calibration, provenance=known))
    assert knowing(world, [made]) == {made.hash: 3}  # of the five, two are too short to be released
