"""Figures of `lab/eyestream_lab/words/TASKS.md` on real activities: GazeGraph's seven people, six activities each.

    python -m tools.make.task_figures DesktopActivity.zip clean      people 5 to 7, directions of people 1 to 4
    python -m tools.make.task_figures DesktopActivity.zip rotations  four calibrate and three are released, seven times

Geometry is assumed: an image of 99 x 53 degrees, rows of the file 1/30 s apart, y up. Person 8 is a copy of 3 and
left out.
"""

import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from eyestream.core.mechanisms import KLT, build
from eyestream.gaze.features import NAMES
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.samples import Samples
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.testing.noise import SeededNoise
from eyestream_lab.words.calibrate import calibrate_words
from eyestream_lab.words.decision import DecisionLaw, Judge, SpanMean, decide
from eyestream_lab.words.directions import (
    LabelledSession,
    ResidualRows,
    calibrate_tasks,
    remembering_of,
    residual_rows,
)
from tests.rigs.linking.galleries import name_pseudonyms
from tests.rigs.linking.sessions import SeenSession, link_sessions

Array = NDArray[np.float64]
Recordings = dict[tuple[int, str], Recording]

TASKS = ("BROWSE", "PLAY", "READ", "SEARCH", "WATCH", "WRITE")
N, SESSIONS = 64, 7
"""Rows of a chunk, and sessions of a pseudonym: one more than there are, so that no history ends."""
PER_MINUTE = {18: 9.6, 9: 4.8}
"""Epsilon of a chunk of 32 s, by epsilon a minute."""
CALIBRATION, BACKGROUND, RELEASED, HALVED = range(8), range(20, 24), range(100, 106), range(100, 124)
"""Seeds of the orders in which a person's recordings come."""


def recordings(archive: Path) -> Recordings:
    """Rows of everybody, without pupils, blinks and constants."""
    kept = [i for i, name in enumerate(NAMES) if not any(w in name for w in ("diameter", "blink", "_min"))]
    profile, found = load_profile("degrees").at_rate(30.0), {}
    with zipfile.ZipFile(archive) as files:
        for person in range(1, 8):
            for task in TASKS:
                name = f"DesktopActivity/P{person}/P{person}_{task}.csv"
                x, y = (2 * np.genfromtxt(io.BytesIO(files.read(name)), delimiter=",") - 1).T
                right, up = (
                    np.degrees(np.arctan(at * np.tan(np.radians(wide / 2)))) for at, wide in ((x, 99.0), (y, 53.0))
                )
                rows = FrontEnd(profile).feed(Samples.of(np.arange(len(x)) / 30.0, right, up)).values[:, kept]
                names = tuple(NAMES[i] for i in kept)
                found[person, task] = Recording(np.arange(len(rows)) / 2.0, rows, names, f"P{person}_{task}")
    return found


def pseudonym(given: Recordings, person: int, seed: int, part: slice = slice(None)) -> list[LabelledSession]:
    """The recordings of a person in a random order, or a part of them."""
    order = np.random.default_rng((seed, person)).permutation(len(TASKS))[part]
    return [LabelledSession(TASKS[i], given[person, TASKS[i]]) for i in order]


class Trial:
    """Some people calibrate, and others' sessions are released."""

    def __init__(self, given: Recordings, calibrating: Sequence[int], epsilon: float) -> None:
        self.given, self.calibrating = given, calibrating
        self.remembering = remembering_of([given[p, task] for p in calibrating for task in TASKS], SESSIONS)
        self.orders = [pseudonym(given, p, seed) for p in calibrating for seed in CALIBRATION]
        calibration = calibrate_tasks(self.orders, N, self.remembering)
        self.kept = np.flatnonzero(~calibration.constant)
        self.mechanism = KLT(calibration, epsilon, noise=SeededNoise(1))
        known = [pseudonym(given, p, CALIBRATION[0]) for p in calibrating]
        self.words = build(calibrate_words(known, N, sessions=SESSIONS), epsilon, noise=SeededNoise(2))

    def judged(self, rows: int | None) -> Judge:
        """A judge of spans of so many rows."""
        public = [residual for order in self.orders for residual in residual_rows(order, N, self.remembering)]
        levels = [(level, residual.task) for residual in public for level in levels_of(residual, rows)]
        return Judge.learned(np.array([level for level, _ in levels]), np.array([task for _, task in levels]))

    def released(self, person: int, sessions: Sequence[LabelledSession]) -> Iterator[SeenSession]:
        """What comes out of a pseudonym."""
        for residual in residual_rows(sessions, N, self.remembering):
            session = self.mechanism.session()
            chunks = [session.release(chunk)[self.kept] for chunk in whole_chunks(residual.features, N)]
            yield SeenSession(str(person), residual.task, np.array(chunks))

    def worded(self, person: int, sessions: Sequence[LabelledSession]) -> Iterator[SeenSession]:
        """One decision word a chunk, as a unit vector: what a sidecar releases."""
        last = None
        for one in sessions:
            last = self.words.session_after(last)
            chunks = whole_chunks(one.rows.features, N)
            if last.awaits_baseline:
                for chunk in chunks:
                    last.anchor(chunk)
                continue
            words = [int(last.release(chunk).argmax()) for chunk in chunks]
            yield SeenSession(str(person), one.task, np.eye(len(self.words.schema.names))[words][:, :, None])

    def raw(self, person: int, sessions: Sequence[LabelledSession]) -> Iterator[SeenSession]:
        """The same sessions as they are, what attackers find without any protection."""
        for session in sessions[1:]:
            yield SeenSession(str(person), session.task, whole_chunks(session.rows.features, N)[:, self.kept])


def joined(
    how: Callable[[int, Sequence[LabelledSession]], Iterator[SeenSession]], given: Recordings, person: int, seed: int
) -> Iterator[SeenSession]:
    """Two pseudonyms of three recordings each, all that was released of each as one."""
    for name, part in (("first", slice(3)), ("second", slice(3, 6))):
        chunks = [seen.chunks for seen in how(person, pseudonym(given, person, seed, part))]
        yield SeenSession(str(person), name, np.concatenate(chunks))


def usefulness(known: Sequence[SeenSession], groups: Sequence[Sequence[SeenSession]]) -> dict[str, float]:
    """Share of chunks, and of sessions, whose task a subscriber's linear judge says, learned on `known`."""
    described = np.concatenate([seen.chunks.mean(axis=2) for seen in known])
    tasks = np.concatenate([[seen.task] * len(seen.chunks) for seen in known])
    mean, sd = described.mean(axis=0), described.std(axis=0) + 1e-12
    judge = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.3).fit((described - mean) / sd, tasks)
    chunks, sessions = [], []
    for seen in (seen for group in groups for seen in group):
        logs = judge.predict_log_proba((seen.chunks.mean(axis=2) - mean) / sd)
        chunks.append((judge.classes_[logs.argmax(axis=1)] == seen.task).mean())
        sessions.append(judge.classes_[logs.mean(axis=0).argmax()] == seen.task)
    return {"chunk": float(np.mean(chunks)), "recording": float(np.mean(sessions))}


def levels_of(residual: ResidualRows, rows: int | None) -> Iterator[Array]:
    """Level of each span of so many residual rows; None: of the session."""
    for part in whole_chunks(residual.features, rows or len(residual.features)):
        mean = SpanMean(len(part))
        mean.take(part)
        yield mean.level


def decided(trial: Trial, people: Sequence[int]) -> dict[str, float]:
    """Share of the words of chunks, and of sessions by their most frequent word, that are right."""
    names, chunks, sessions = trial.words.schema.names, [], []
    for person in people:
        for seed in RELEASED:
            for seen in trial.worded(person, pseudonym(trial.given, person, seed)):
                said = seen.chunks[:, :, 0].argmax(axis=1)
                chunks.append(np.mean([names[word] == seen.task for word in said]))
                sessions.append(names[int(np.bincount(said).argmax())] == seen.task)
    return {"words": float(np.mean(chunks)), "recording": float(np.mean(sessions))}


def decided_once(trial: Trial, people: Sequence[int], epsilon: float) -> dict[str, float]:
    """Share of sessions whose one decision word is right."""
    judge = trial.judged(None)
    law, noise = DecisionLaw(len(judge.tasks), epsilon), SeededNoise(2)
    sessions = []
    for person in people:
        for seed in RELEASED:
            for residual in residual_rows(pseudonym(trial.given, person, seed), N, trial.remembering):
                [said] = [decide(judge, law, level, noise) for level in levels_of(residual, None)]
                sessions.append(judge.tasks[said] == residual.task)
    return {"recording": float(np.mean(sessions))}


def look(given: Recordings, calibrating: Sequence[int], people: Sequence[int]) -> dict[str, object]:
    """All figures of one division of the people."""
    figures: dict[str, object] = {"calibrating": list(calibrating), "released": list(people)}
    for per_minute, epsilon in PER_MINUTE.items():
        trial = Trial(given, calibrating, epsilon)
        for how in (trial.released, trial.worded, *((trial.raw,) if per_minute == 18 else ())):
            known = [s for p in calibrating for seed in BACKGROUND for s in how(p, pseudonym(given, p, seed))]
            background = [s for p in calibrating for s in how(p, pseudonym(given, p, BACKGROUND[0]))]
            groups = [[s for p in people for s in how(p, pseudonym(given, p, seed))] for seed in RELEASED]
            others = [s for p in calibrating for s in joined(how, given, p, BACKGROUND[0])]
            halves = [[s for p in people for s in joined(how, given, p, seed)] for seed in HALVED]
            each = {p: usefulness(known, [[s for s in g if s.person == str(p)] for g in groups]) for p in people}
            figures[f"{how.__name__} {per_minute}"] = {
                "of each": each,
                "one pseudonym": link_sessions(groups, background),
                "one pseudonym, every pair": link_sessions(groups, background, every=True),
                "two pseudonyms": link_sessions(halves, others),
                "named": name_pseudonyms([(group[::2], group[1::2]) for group in halves]),
            }
        figures[f"decision a chunk {per_minute}"] = decided(trial, people)
    figures["decision a session"] = {epsilon: decided_once(trial, people, epsilon) for epsilon in (2.0, 4.0, 9.6)}
    return figures


def main() -> None:
    given = recordings(Path(sys.argv[1]))
    if sys.argv[2] == "clean":
        print(json.dumps(look(given, (1, 2, 3, 4), (5, 6, 7)), indent=1))
        return
    for first in range(7):
        turn = [(first + i) % 7 + 1 for i in range(7)]
        print(json.dumps(look(given, turn[:4], turn[4:])), flush=True)


if __name__ == "__main__":
    main()
