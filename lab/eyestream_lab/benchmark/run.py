"""One run of the benchmark: a corpus, systems on it, attackers on their releases, and one file of figures.

The file is written again after each system, so that an interrupted run goes on where it stopped.
"""

import datetime
import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from eyestream.errors import ConfigError, OperatorError
from eyestream.rim.files.gaze import GazeRecording
from eyestream.version import VERSION
from eyestream_lab.benchmark.attackers import LIST_VERSION, RecognitionTrial, attack_all, standardised
from eyestream_lab.benchmark.figures import Figures, Interval, area_of, figures_of, rank1_of, seen_from
from eyestream_lab.benchmark.folders import load_released, write_corpus, write_side
from eyestream_lab.benchmark.ours import PROMISE
from eyestream_lab.benchmark.outside import Cost, Program, scores_in
from eyestream_lab.benchmark.seen import Halves, cut_alike, halved, halves_of
from eyestream_lab.benchmark.useful import Released, gaze_of, rows_of, useful
from eyestream_lab.corpora.corpus import Dataset
from eyestream_lab.releases.known import known_scores
from eyestream_lab.releases.measures import halves

Array = NDArray[np.float64]
FORMAT = "eyestream-benchmark/1"
RAW = "raw"
OTHER, SAME, HELD = "another session", "the same session", "the raw recording itself"


class Attack(Struct, frozen=True):
    """One attacker: area and share at rank 1. An area below one half is that of scores to be inverted."""

    name: str
    auc: float
    rank1: float


class Setting(Struct, frozen=True, kw_only=True):
    """Attackers in one situation.

    Attributes
    ----------
    sessions
        What is known: another session of the people, another part of the same one, or the raw recording itself.
    learned, tested
        "raw" or "released".
    trials
        How many ways sessions were divided into named and unnamed ones.
    strongest
        The attacker with the area farthest from one half. `figures` are its own, of inverted scores where `inverted`.
    most_named, rank1
        The attacker who names most people, and its share.
    could_see_auc, could_see_rank1
        Where people are exchanged, the strongest of all attackers stays below in 95 of 100 orders: anything above
        could have been seen.
    """

    sessions: str
    learned: str
    tested: str
    trials: int
    strongest: str
    inverted: bool
    figures: Figures
    most_named: str
    rank1: float
    could_see_auc: float
    could_see_rank1: float
    attacks: tuple[Attack, ...]


class CorpusFacts(Struct, frozen=True):
    """The corpus of a run; sha256 is of its recordings as the systems got them."""

    name: str
    sha256: str
    people: int
    tasks: int
    tasks_are: str
    recordings: int
    hours: float
    rate_hz: float


class Judged(Struct, frozen=True, kw_only=True):
    """One system: what it promises and costs, what attackers found, and what is left; or why there is nothing."""

    name: str
    command: str
    promise: str = ""
    source: str = ""
    missing: str = ""
    cost: Cost | None = None
    settings: tuple[Setting, ...] = ()
    useful: dict[str, Interval] = field(default_factory=dict)
    refused: str = ""


class Run(Struct, frozen=True, kw_only=True):
    """One file: everything that was found on one corpus with one seed."""

    format: str = FORMAT
    version: str = VERSION
    attackers: str = LIST_VERSION
    others_attackers: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    made_on: str = ""
    seed: int = 0
    trials: int = 2
    corpus: CorpusFacts
    systems: tuple[Judged, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """A system to judge: how it is shown, how it is run, and where it comes from."""

    name: str
    program: Program | None
    """None: raw gaze."""
    command: str = ""
    source: str = ""
    missing: str = ""


def load_run(path: Path) -> Run:
    """A run from its file.

    Raises
    ------
    ConfigError
        It is no such file, or of another format.
    """
    try:
        run = msgspec.json.decode(path.read_bytes(), type=Run)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path}: is no run of the benchmark: {error}") from None
    if run.format != FORMAT:
        raise ConfigError(f"{path}: has format {run.format}; expected {FORMAT}")
    return run


def benchmark(
    corpus: Dataset[GazeRecording],
    wanted: Sequence[Wanted],
    out: Path,
    *,
    name: str = "",
    tasks_are: str = "sessions",
    attackers: Sequence[Program] = (),
    only: Sequence[str] | None = None,
    trials: int = 2,
    seed: int = 0,
    limit_s: float = 3600.0,
    sha256: str = "",
    progress: Callable[[str], None] = lambda text: None,
) -> Run:
    """Judge raw gaze and each of `wanted` on `corpus`, and write the run to `out`.

    Parameters
    ----------
    tasks_are
        "sessions", "activities", or "pieces" of one recording.
    attackers
        Programs of others, who attack beside the list.
    only
        Names of attackers of the list; None: all.
    trials
        Ways to divide the tasks, at most.
    limit_s
        Seconds for one run of a program.
    sha256
        Hash of the recordings that are meant, or how it begins.

    Raises
    ------
    ConfigError
        The corpus has too few people or tasks, or another hash, or `out` holds a run of something else.
    """
    corpus.check_cohort(3)
    if len(corpus.tasks) < 2:
        raise ConfigError(f"{corpus.folder}: has one task; expected two or more, one to learn from and one to name")
    with tempfile.TemporaryDirectory() as scratch, threadpool_limits(1):
        given = write_corpus(corpus, Path(scratch) / "in")
        facts = _facts(given, name, tasks_are)
        if not facts.sha256.startswith(sha256):
            raise ConfigError(f"{corpus.folder}: its recordings have the hash {facts.sha256[:16]}; expected {sha256}")
        judge = _Judge(given, attackers, only, trials=trials, seed=seed, limit_s=limit_s)
        run = _begun(out, Run(
            others_attackers=tuple(one.name for one in attackers), only=tuple(only or ()), seed=seed, trials=trials,
            made_on=str(datetime.datetime.now(datetime.UTC).date()), corpus=facts,
        ))  # fmt: skip
        for number, one in enumerate((Wanted(RAW, None), *wanted)):
            if one.name in {done.name for done in run.systems}:
                continue
            progress(f"{one.name}, {number} of {len(wanted)} systems done")
            found = judge.judged(one, Path(scratch) / f"out-{number}", activities=tasks_are == "activities")
            run = msgspec.structs.replace(run, systems=(*run.systems, found))
            out.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1))
    return run


def _begun(out: Path, run: Run) -> Run:
    """The run with what an earlier one found in the same circumstances."""
    if not out.exists():
        return run
    before = load_run(out)
    same = ("format", "version", "attackers", "others_attackers", "only", "seed", "trials", "corpus")
    differs = [name for name in same if getattr(before, name) != getattr(run, name)]
    if differs:
        raise ConfigError(f"{out}: holds a run with another {' and '.join(differs)}; expected a new file")
    return msgspec.structs.replace(run, systems=tuple(one for one in before.systems if not one.refused))


def _facts(corpus: Dataset[GazeRecording], name: str, tasks_are: str) -> CorpusFacts:
    digest, seconds = hashlib.sha256(), 0.0
    for part in corpus.parts:
        digest.update(f"{part.person}\t{part.task}\n".encode() + corpus.path(part).read_bytes())
        samples = corpus.load(part).samples
        seconds += float(np.ptp(samples.t))
    rate = corpus.load(corpus.parts[0]).profile.fixed_rate_hz
    return CorpusFacts(
        name or "not named", digest.hexdigest(), len(corpus.people), len(corpus.tasks), tasks_are, len(corpus.parts),
        round(seconds / 3600, 2), rate,
    )  # fmt: skip


Side = Mapping[tuple[str, str], Halves]
Cut = tuple[str, str, GazeRecording]
"""Person, task, and a recording or half of one."""
Pick = tuple[Sequence[str], int | None]
"""Tasks, and which half of each recording; None: all of it."""


class _Judge:
    """What is the same for every system of a run."""

    def __init__(
        self,
        corpus: Dataset[GazeRecording],
        attackers: Sequence[Program],
        only: Sequence[str] | None,
        *,
        trials: int,
        seed: int,
        limit_s: float,
    ) -> None:
        self._corpus, self._attackers, self._only = corpus, attackers, only
        self._seed, self._limit_s = seed, limit_s
        self._people, self._tasks = sorted(corpus.people), sorted(corpus.tasks)
        self._ways = halves(self._tasks, trials, seed)
        self._raw: Released = {(part.person, part.task): corpus.load(part) for part in corpus.parts}
        self._seen: Side = {key: halves_of(one) for key, one in self._raw.items()}
        self._rows = _rows_where_long(self._raw)

    def judged(self, one: Wanted, out: Path, *, activities: bool) -> Judged:
        """One system; a refusal is told, and the run goes on."""
        blank = Judged(name=one.name, command=one.command, source=one.source, missing=one.missing)
        cost, promise, released = None, "", self._raw
        try:
            if one.program is not None:
                out.mkdir()
                cost = one.program.run(self._limit_s, **{"in": self._corpus.folder, "out": out})
                promise = (out / PROMISE).read_text(encoding="utf-8").strip() if (out / PROMISE).is_file() else ""
                released = load_released(out, self._corpus, one.name)
            alike = {} if one.program is None else cut_alike(released)
            seen = {key: halves_of(own) for key, own in alike.items()} or self._seen
            settings = tuple(self._settings(released, seen, own=one.program is None))
        except OperatorError as error:
            return msgspec.structs.replace(blank, cost=cost, refused=str(error))
        after = self._rows if one.program is None else _rows_where_long(released)
        rows = (self._rows, after) if self._rows is not None and after is not None else None
        found = useful(self._raw, released, self._seed, rows, activities)
        return msgspec.structs.replace(blank, promise=promise, cost=cost, settings=settings, useful=found)

    def _settings(self, released: Released, seen: Side, *, own: bool) -> Iterator[Setting]:
        """All situations; of raw gaze those in which everything is raw."""
        same = [(((task,), 0), ((task,), 1)) for task in self._tasks[: len(self._ways)]]
        other = [((learn, None), (test, None)) for learn, test in self._ways]
        sides: dict[str, tuple[Side, Released]] = {"raw": (self._seen, self._raw), "released": (seen, released)}
        kinds = [("raw", "raw")] if own else [("released", "released"), ("raw", "released"), ("released", "raw")]
        for sessions, picks in ((OTHER, other), (SAME, same)):
            for learned, tested in kinds:
                few = picks if learned == tested else picks[:1]  # what counts most is tried most
                scores = self._scores(sides[learned], sides[tested], few, papers=sessions == OTHER)
                if scores:
                    yield self._setting(sessions, learned, tested, scores)
        by = [gaze_of(side) for side in (self._raw, released)]
        if not own and all(by):
            found = {name: standardised(one)[None] for name, one in known_scores(by[0], by[1]).items()}
            yield self._setting(HELD, "raw", "released", found)

    def _scores(
        self,
        known: tuple[Side, Released],
        unknown: tuple[Side, Released],
        picks: Sequence[tuple[Pick, Pick]],
        *,
        papers: bool,
    ) -> dict[str, Array]:
        """(S, P, P) of every attacker in each of S trials; those of the papers are in the first one alone."""
        found: dict[str, list[Array]] = defaultdict(list)
        gaze = all(isinstance(one, GazeRecording) for side in (known, unknown) for one in side[1].values())
        for number, (learn, test) in enumerate(picks):
            trial = RecognitionTrial(self._picked(known[0], learn), self._picked(unknown[0], test))
            own = attack_all(trial, self._seed + number, self._only, papers=papers and number == 0)
            for program in self._attackers if gaze else ():  # they read no rows
                one, other = (
                    list(_cut(side[1], self._people, pick)) for side, pick in ((known, learn), (unknown, test))
                )
                own[program.name] = standardised(self._by_program(program, one, other, number))
            for name, scores in own.items():
                found[name].append(scores)
        return {name: np.array(scores) for name, scores in found.items()}

    def _picked(self, side: Side, pick: Pick) -> list[list[Any]]:
        tasks, half = pick
        return [[side[person, task][0 if half is None else half + 1] for task in tasks] for person in self._people]

    def _by_program(self, program: Program, known: list[Cut], unknown: list[Cut], number: int) -> Array:
        """(P, P) scores of an attacker of others, who gets files, and pseudonyms in an order of their own."""
        order = np.random.default_rng([self._seed, number, 7]).permutation(len(self._people))
        pseudonyms = {self._people[person]: f"u{place:04}" for place, person in enumerate(order)}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            write_side(known, folder / "labelled", named=True)
            sides = [(pseudonyms[person], task, one) for person, task, one in unknown]
            write_side(sorted(sides, key=lambda one: one[:2]), folder / "unnamed", named=False)
            program.run(
                self._limit_s, labelled=folder / "labelled", unnamed=folder / "unnamed", scores=folder / "scores.tsv"
            )
            unnamed = [pseudonyms[person] for person in self._people]
            return scores_in(folder / "scores.tsv", unnamed, self._people, program.name)

    def _setting(self, sessions: str, learned: str, tested: str, scores: Mapping[str, Array]) -> Setting:
        areas = {name: area_of(own) for name, own in scores.items()}
        named = {name: float(rank1_of(own).mean()) for name, own in scores.items()}
        strongest = max(areas, key=lambda name: (abs(areas[name] - 0.5), named[name]))
        inverted, most = areas[strongest] < 0.5, max(named, key=lambda name: named[name])
        seen = seen_from(scores, self._seed)
        attacks = tuple(Attack(name, round(areas[name], 4), round(named[name], 4)) for name in scores)
        return Setting(
            sessions=sessions, learned=learned, tested=tested, trials=len(next(iter(scores.values()))),
            strongest=strongest, inverted=inverted,
            figures=figures_of(-scores[strongest] if inverted else scores[strongest], self._seed),
            most_named=most, rank1=round(named[most], 4),
            could_see_auc=seen["auc"], could_see_rank1=seen["rank1"], attacks=attacks,
        )  # fmt: skip


def _cut(side: Released, people: Sequence[str], pick: Pick) -> Iterator[Cut]:
    tasks, half = pick
    for person in people:
        for task in tasks:
            own = side[person, task]
            if not isinstance(own, GazeRecording):
                raise TypeError(f"{person} at {task}: expected gaze")
            yield person, task, halved(own, half)


def _rows_where_long(found: Released) -> dict[tuple[str, str], Array] | None:
    try:
        return rows_of(found)
    except OperatorError:
        return None
