"""The attacker who knows the law of a mechanism, on a corpus of the benchmark: whether the list misses what he finds.

python -m tools.verification.benchmark_likelihood FOLDER [--draws N]

FOLDER has `participants.tsv`, gaze in degrees, and two or more tasks a person. `klt` and `cfpa` of the presets release
the whole chunks of each recording, and nothing smooths them afterwards: the attacker reads words and noisy values as
they were drawn. He knows another session, released or raw (`eyestream_lab.study.people.white_box`), or holds the raw
recording itself, under whose rows the probability of what was released is exact. By Neyman and Pearson's lemma nobody
who holds it tells two people better apart. Prints areas and shares at rank 1, the mean over draws.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.rim.elsewhere import imported
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.benchmark.attackers import standardised
from eyestream_lab.benchmark.figures import area_of, rank1_of
from eyestream_lab.benchmark.neighbours import PRESETS
from eyestream_lab.benchmark.ours import spec_of
from eyestream_lab.benchmark.useful import rows_of
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.corpora.kinds import gaze_kind
from eyestream_lab.corpora.layouts import open_folder
from eyestream_lab.mechanisms.klt.words import decode, schedule_step
from eyestream_lab.mechanisms.noise_likelihood import PersonModel, coordinates_of, values_of
from eyestream_lab.study.people.galleries import Gallery
from eyestream_lab.study.people.white_box import WhiteBox
from eyestream_lab.study.ways import study_part

Array = NDArray[np.float64]
Chunks = Mapping[tuple[str, str], Array]
"""(T, F, n) by person and task."""


def held(mechanism: Mechanism, released: list[Array], raw: list[Array], scale: Array) -> Array:
    """(U, C) log-probabilities of released sessions under the rows of raw ones, up to what all candidates share."""
    core = mechanism.core
    if not isinstance(core, JointCore):
        values, sides = (
            [of(mechanism, own) for own in side] for of, side in ((values_of, released), (coordinates_of, raw))
        )
        return np.array([[-(np.abs(a - b) / scale).sum() for b in sides] for a in values])
    step, frame = core.step(), mechanism.frame
    told = [decode(mechanism, own.astype(np.float32)) for own in released]
    scores = [[step.scores(np.clip(chunk[frame.active], *frame.range)).copy() for chunk in own] for own in raw]
    found = np.zeros((len(told), len(scores)))
    for turn in range(len(released[0])):
        now = schedule_step(core, turn)
        rho, words = now.law.replace, float(np.prod([len(points) for points in now.points]))
        at = np.array([now.directions @ own[turn] for own in scores])
        for row, session in enumerate(told):
            inside = ((at >= session[turn].low) & (at < session[turn].high)).all(axis=1)
            found[row] += np.log((1 - rho) * inside + rho / words)
    return found


def scores_of(mechanism: Mechanism, raw: Chunks, rate_hz: float) -> dict[str, list[Array]]:
    """Scores (P, P) by situation, of one draw of everybody's sessions."""
    people, tasks = (sorted({key[place] for key in raw}) for place in (0, 1))
    released = {}
    for key, chunks in raw.items():
        session = mechanism.session()
        released[key] = np.array([session.release(chunk.copy()) for chunk in chunks])
    place = study_part(mechanism.name).white_box
    assert place is not None
    box = imported(place, WhiteBox, "white box")
    found = defaultdict(list)
    active = mechanism.frame.active
    scale = PersonModel.of(mechanism, list(raw.values())).scale if mechanism.name == "cfpa" else np.ones(1)
    for learn, test in ((tasks[0], tasks[1]), (tasks[1], tasks[0])):
        known, unknown = ([released[person, task].astype(np.float32) for person in people] for task in (learn, test))
        minutes = [raw[person, learn] for person in people]
        gallery = Gallery(mechanism, tuple(people), known, unknown, minutes, list(raw.values()), active, rate_hz)
        found["another session, released learned"].append(box.labelled(gallery, known))
        found["another session, raw learned"].append(box.seen_raw(gallery))
    for task in tasks[:2]:
        sessions, rows = ([side[person, task] for person in people] for side in (released, raw))
        found["the raw recording itself"].append(held(mechanism, sessions, rows, scale))
    return found


def main() -> None:
    """Release, attack and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    corpus = open_folder(options.folder, gaze_kind(load_profile("degrees")))
    rows = rows_of({(part.person, part.task): corpus.load(part) for part in corpus.parts})
    for preset in ("klt", "cfpa"):
        _, given = spec_of(PRESETS[preset].spec)
        mechanism = build(given["calibration"], given["epsilon"])
        fill = mechanism.calibration.fill[:, None]
        count = min(map(len, rows.values())) // mechanism.n
        cut = {key: whole_chunks(own, mechanism.n)[:count] for key, own in rows.items()}
        raw = {key: np.where(np.isfinite(own), own, fill) for key, own in cut.items()}
        drawn = [scores_of(mechanism, raw, mechanism.calibration.rate_hz) for _ in range(options.draws)]
        for situation in drawn[0]:
            every = [np.array([standardised(one) for one in draw[situation]]) for draw in drawn]
            area, named = (np.mean([of(one) for one in every]) for of in (area_of, lambda one: rank1_of(one).mean()))
            print(f"{preset:5} {situation:36} area {area:.3f}  named {named:.3f}  ({count} chunks a session)")


if __name__ == "__main__":
    main()
