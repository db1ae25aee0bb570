"""What a task word should cost, what it beats at the same price, and who is linked where tasks repeat.

python -m tools.make.task_prices DesktopActivity.zip

GazeGraph's seven people, six activities each; four calibrate and three are released, seven times (`task_figures`).
Prices are a minute of chunks of 32 s. In brackets: 95 % over people; of areas, over the seven divisions.

- *words*: the judge of residual rows, one word a chunk by randomised response, as `task-words` releases.
- *no history*: a judge of rows as they are, released in the same way.
- *noisy posterior*: how likely the judge of residual rows takes each task to be, with Laplace noise on each number.

Linking: two pseudonyms of a person, each with all six tasks, of the first and of the last two minutes of a recording.
Attackers know the task of each chunk, and the pseudonyms of three people by name.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.testing.noise import SeededNoise
from eyestream_lab.words.calibrate import calibrate_words
from eyestream_lab.words.decision import DecisionLaw, Judge
from eyestream_lab.words.directions import LabelledSession, residual_rows
from eyestream_lab.words.mechanism import TaskWords
from tests.rigs.linking.galleries import name_pseudonyms
from tests.rigs.linking.sessions import SeenSession
from tools.make.task_figures import CALIBRATION, RELEASED, SESSIONS, TASKS, N, Recordings, pseudonym, recordings

Array = NDArray[np.float64]

PRICES = (18.0, 9.0, 4.5, 2.25)
_PART = 240
"""Rows of a recording's first and last part."""


class Division:
    """Four people calibrate."""

    def __init__(self, given: Recordings, calibrating: Sequence[int]) -> None:
        self.given, self.calibrating = given, calibrating
        known = [pseudonym(given, person, CALIBRATION[0]) for person in calibrating]
        self.mechanism = TaskWords(calibrate_words(known, N, sessions=SESSIONS), 1.0)
        judge: Judge = self.mechanism.core.judge  # type: ignore[attr-defined]
        self.judge, self.kept = judge, self.mechanism.frame.active
        raw = [(level, task) for person in calibrating for _, task, level in self.raw(pseudonym(given, person, 0))]
        self.plain = Judge.learned(np.array([level for level, _ in raw]), np.array([task for _, task in raw]))

    def raw(self, sessions: Sequence[LabelledSession]) -> Iterator[tuple[int, str, Array]]:
        """Number of the session, its task and the mean of each of its chunks; the first session is left out."""
        for number, session in enumerate(sessions[1:]):
            for chunk in whole_chunks(session.rows.features, N):
                yield number, session.task, np.nanmean(chunk, axis=1)[self.kept]

    def residual(self, sessions: Sequence[LabelledSession]) -> Iterator[tuple[int, str, Array]]:
        """The same of residual rows."""
        for number, one in enumerate(residual_rows(sessions, N, self.mechanism.remembering)):
            for chunk in whole_chunks(one.features, N):
                yield number, one.task, np.nanmean(chunk, axis=1)[self.kept]


def scores_of(judge: Judge, level: Array) -> Array:
    """(K,) how likely each task is to the judge."""
    standard = np.clip(np.nan_to_num((level - judge.mean) / judge.sd), -5.0, 5.0)
    scores = judge.weights @ standard + judge.bias
    odds = np.exp(scores - scores.max())
    return np.asarray(odds / odds.sum())


def votes(way: str, scores: Array, epsilon: float, rng: np.random.Generator, noise: SeededNoise) -> Array:
    """(C, K) what of each chunk's scores (C, K) goes out."""
    count = scores.shape[1]
    if way == "noisy posterior":
        return np.asarray(scores + rng.laplace(0.0, 2.0 / epsilon, scores.shape))  # of two, at most 2 in all
    law = DecisionLaw(count, epsilon)
    words = [(int(one.argmax()) + int(noise.draw(law)[0])) % count for one in scores]
    return np.eye(count)[words]


def right(division: Division, way: str, person: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Share of chunks, and of recordings by the sum of their chunks, whose task is right."""
    judge, levels = (division.plain, division.raw) if way == "no history" else (division.judge, division.residual)
    rng, noise, chunks, whole = np.random.default_rng((seed, person)), SeededNoise(seed), [], []
    for order in RELEASED:
        found = list(levels(pseudonym(division.given, person, order)))
        out = votes(way, np.array([scores_of(judge, level) for _, _, level in found]), epsilon, rng, noise)
        truth = np.array([judge.tasks.index(task) for _, task, _ in found])
        number = np.array([own for own, _, _ in found])
        chunks.append((out.argmax(axis=1) == truth).mean())
        whole += [out[number == own].sum(axis=0).argmax() == truth[number == own][0] for own in np.unique(number)]
    return float(np.mean(chunks)), float(np.mean(whole))


def part_of(session: LabelledSession, part: slice) -> LabelledSession:
    """Some rows of a session."""
    rows = session.rows
    return LabelledSession(session.task, Recording(rows.t[part], rows.features[part], rows.names, rows.path))  # type: ignore[attr-defined]


def linked(division: Division, people: Sequence[int], epsilon: float | None) -> float:
    """The largest area of the attackers; None: of raw rows."""
    judge, noise, galleries = division.judge, SeededNoise(3), []
    levels = division.raw if epsilon is None else division.residual
    usual: dict[str, list[Array]] = {task: [] for task in TASKS}
    for person in division.calibrating:
        for _, task, level in levels(pseudonym(division.given, person, 0)):
            usual[task].append(level)
    middle = {task: np.mean(own, axis=0) for task, own in usual.items() if own}
    for order in RELEASED:
        pair: tuple[list[SeenSession], list[SeenSession]] = ([], [])
        for seen, part, seed in zip(pair, (slice(_PART), slice(-_PART, None)), (order, order + 50), strict=True):
            for person in people:
                own = [part_of(one, part) for one in pseudonym(division.given, person, seed)]
                found = list(levels(own))
                if epsilon is None:
                    out = np.array([level - middle[task] for _, task, level in found])
                else:
                    scores = np.array([scores_of(judge, level) for _, _, level in found])
                    said = votes("words", scores, epsilon, np.random.default_rng(0), noise)
                    tasks = np.eye(len(judge.tasks))[[judge.tasks.index(task) for _, task, _ in found]]
                    out = (tasks[:, :, None] * said[:, None, :]).reshape(len(found), -1)  # which is taken for which
                seen.append(SeenSession(str(person), "all", out[:, :, None]))
        galleries.append(pair)
    return max(name_pseudonyms(galleries).values())


def between(values: Sequence[float]) -> str:
    """``.54 [.47, .61]``: mean, and 95 % over what they are of."""
    rng, own = np.random.default_rng(1), np.array(values)
    low, high = np.percentile(own[rng.integers(0, len(own), (2000, len(own)))].mean(axis=1), [2.5, 97.5])
    return f"{own.mean():.2f} [{low:.2f}, {high:.2f}]"


def main() -> None:
    given = recordings(Path(sys.argv[1]))
    turns = [[(first + i) % 7 + 1 for i in range(7)] for first in range(7)]
    divisions = [(Division(given, turn[:4]), turn[4:]) for turn in turns]
    for price in PRICES:
        epsilon = price * N / 120
        for way in ("words", "no history", "noisy posterior"):
            each: dict[int, list[tuple[float, float]]] = {}
            for seed, (division, people) in enumerate(divisions):
                for person in people:
                    each.setdefault(person, []).append(right(division, way, person, epsilon, seed))
            people_mean = np.array([np.mean(own, axis=0) for own in each.values()])
            chunk, whole = (between(column) for column in people_mean.T.tolist())
            print(f"{price:g} a minute, {way}: chunk {chunk}, recording {whole}", flush=True)
        print(f"{price:g} a minute, linked: {between([linked(d, p, epsilon) for d, p in divisions])}", flush=True)
    print(f"raw, linked: {between([linked(d, p, None) for d, p in divisions])}", flush=True)


if __name__ == "__main__":
    main()
