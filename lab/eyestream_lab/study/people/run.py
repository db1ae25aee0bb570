"""Attacks on people from recordings to a page: `eyestream study --attack`."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.core.anchor import BASELINE_S
from eyestream.core.calibration import Calibration, product
from eyestream.errors import ConfigError
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files.recordings import Recording
from eyestream_lab.parts import part_of
from eyestream_lab.study.cells import Cell, Record, compute, how_far
from eyestream_lab.study.people.attackers import USUAL, applies, attack
from eyestream_lab.study.people.galleries import Gallery, Sight, everybody, gallery, recalibrated, recipe, roles, usable
from eyestream_lab.study.people.inference import AttackTrial, figures, trial
from eyestream_lab.study.population import Population
from eyestream_lab.study.sources import World

_HEAD = """# Who is recognised by whom: figures

Written by `eyestream study --attack`; [attacks.md](attacks.md) says what the attackers do. The same figures, with seeds
and hashes, lie beside this page as JSON.

Corpus: {corpus}.
Everybody's recording is cut into two halves, with at least 30 s left out between them; each half is released as a
session of its own. One half is labelled, the other is to be named; which one changes from
split to split.

- **{held_out}**: a random half of the people calibrates, by the recipe of the shipped file, and the other half is
  released; then the roles change. Everybody is attributed once a split.
- **{shipped}**: the shipped file itself (content hash in the table). All people are released. How many of them
  calibrated it stands beside the figures: the attacker's model knows these very people.

"Right names": share, with the 95 % interval over people (bootstrap). "Area": under the ROC curve of "same person or
not"; 0.5 is chance. "p": permutation of the names, twice the median over splits. "Found people": the smallest p of all
attackers, times their number (Bonferroni, for one of several may be lucky), is at most 0.05. "Could show": the smallest
true rate and area that one split of so many people shows with a chance of 80 % (one-sided 5 %): what lies below may be
there and not be seen.
"""

PART = "people"
VERSION = 1
"""Version of what these cells compute."""

HELD_OUT, SHIPPED, RAW = "made anew", "as it is", "raw"
"""How a calibration is attacked: made anew from half of the people by its own recipe, the others released, and the
reverse; the file itself, everybody released, whoever calibrated it among them; no mechanism at all."""

SHUFFLED = "control: names shuffled"

KEY = ("subject", "n", "how", "epsilon", "attacker", "control", "hash")
"""Keys that tell rows of figures apart."""


@dataclass(frozen=True)
class AttackTarget:
    """A way of releasing.

    Attributes
    ----------
    name : of the calibration, or of the mechanism.
    mechanism : its name, or the place of one that lives elsewhere.
    n : rows of a chunk.
    recipe : what its calibration is made with.
    calibration : the file's; None where there is only a recipe.
    """

    name: str
    mechanism: str
    n: int
    recipe: tuple[tuple[str, Any], ...]
    calibration: Calibration | None = None

    @property
    def hash(self) -> str:
        """Content hash of the calibration; empty where there is only a recipe."""
        return "" if self.calibration is None else self.calibration.content_hash


def cells(
    subjects: Sequence[AttackTarget],
    epsilons: Sequence[float],
    attackers: Sequence[str],
    splits: int,
    deep_splits: int,
) -> list[Cell]:
    """One cell for each subject, epsilon, attacker and split; raw rows once for each chunk length."""
    made = {"made_by": product(), "people_version": VERSION}
    work = []
    for n in sorted({subject.n for subject in subjects}):
        raw = {"subject": "raw", "mechanism": "", "n": n, "recipe": {}, "hash": "", "how": RAW, "epsilon": 0.0}
        for attacker in attackers:
            if applies(attacker, None):
                work += [
                    Cell(PART, made | raw | {"attacker": attacker, "split": split})
                    for split in range(deep_splits if attacker == "deep" else splits)
                ]
    for subject in subjects:
        for epsilon in epsilons:
            for attacker in attackers:
                own = {"subject": subject.name, "mechanism": subject.mechanism, "n": subject.n}
                own |= {"recipe": dict(subject.recipe), "hash": subject.hash, "epsilon": epsilon, "attacker": attacker}
                for how in (HELD_OUT, *((SHIPPED,) if subject.calibration is not None else ())):
                    few = deep_splits if attacker == "deep" else splits
                    work += [Cell(PART, made | own | {"how": how, "split": split}) for split in range(few)]
    return work


@dataclass(frozen=True, eq=False)
class AttackedWorld(World):
    """The people, and the calibrations that are attacked as they are, by content hash."""

    shipped: dict[str, Calibration]


def _baseline(recipe: Mapping[str, Any], population: Population, n: int) -> int:
    """Chunks of `n` rows that the baseline of such a calibration takes; 0: it takes none."""
    return math.ceil(BASELINE_S * population.rate_hz / n) if recipe.get("anchored") else 0


def measure(world: AttackedWorld, **settings: Any) -> list[Record]:
    """The trial of one cell, and of the same scores with the names of the unknowns shuffled."""
    population, n, split = world.population, int(settings["n"]), int(settings["split"])
    how, attacker = str(settings["how"]), str(settings["attacker"])
    baseline = _baseline(dict(settings["recipe"]), population, n)
    shipped = how == SHIPPED
    sights = (everybody(population, n, baseline),) if shipped else roles(population, n, split, baseline)
    galleries = [_gallery(world, settings, sight) for sight in sights]
    if not all(applies(attacker, one.mechanism) for one in galleries):
        return []
    scored = [(one.people, attack(attacker, one, seed=split)) for one in galleries]
    rng = np.random.default_rng((split, 1))
    mixed = [(names, scores[rng.permutation(len(scores))]) for names, scores in scored]
    size = len(galleries[0].people)
    hashes = " ".join(one.mechanism.calibration.content_hash for one in galleries if one.mechanism is not None)
    return [
        asdict(trial(given, split)) | {"gallery": size, "control": control, "attacked": hashes}
        for control, given in (("", scored), (SHUFFLED, mixed))
    ]


def _gallery(world: AttackedWorld, settings: dict[str, Any], sight: Sight) -> Gallery:
    population, n, split, how = world.population, int(settings["n"]), int(settings["split"]), settings["how"]
    reverse = bool(split % 2)
    if how == RAW:
        every = np.flatnonzero(population.rows.std(axis=0) > 0)
        return gallery(population, sight, None, n, reverse=reverse, active=every)
    if how == SHIPPED:
        calibration = world.shipped[str(settings["hash"])]
    else:
        name = _known(str(settings["mechanism"]))
        calibration = recalibrated(population, sight.calibrating, n, name, dict(settings["recipe"]))
    mechanism = world.build(calibration, float(settings["epsilon"]))
    return gallery(population, sight, mechanism, n, reverse=reverse, active=mechanism.frame.active)


def _known(mechanism: str) -> str:
    """The name of a mechanism that may be named by its place: processes that were started anew do not know it yet."""
    return mechanism_elsewhere(mechanism, "--mechanism").name if ":" in mechanism else mechanism


def world_of(population: Population, subjects: Sequence[AttackTarget]) -> AttackedWorld:
    """The world that the cells look at."""
    return AttackedWorld(population, {}, {s.hash: s.calibration for s in subjects if s.calibration is not None})


def summarise(records: Sequence[Record]) -> list[Record]:
    """Figures of every subject, way, epsilon and attacker over the splits; those of the control among them."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        key = tuple(record[name] for name in KEY)
        groups.setdefault(key, []).append(record)
    table = []
    for (subject, n, how, epsilon, attacker, control, digest), group in groups.items():
        trials = [AttackTrial(**{name: _tuple(r[name]) for name in AttackTrial.__dataclass_fields__}) for r in group]
        row = {"subject": subject, "n": n, "how": how, "epsilon": epsilon, "attacker": attacker, "control": control}
        table.append(row | {"hash": digest} | asdict(figures(trials, int(group[0]["gallery"]))))
    return table


def knowing(world: AttackedWorld, subjects: Sequence[AttackTarget]) -> dict[str, int]:
    """How many of the people who are released calibrated each file, by its hash."""
    population, known = world.population, dict[str, int]()
    for subject in subjects:
        if subject.calibration is not None:
            own = usable(population, subject.n, _baseline(dict(subject.recipe), population, subject.n))
            recordings = set(subject.calibration.provenance.recordings)
            known[subject.hash] = sum(population.hashes[i] in recordings for i in own)
    return known


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def page(summary: Sequence[Record], corpus: str, people: int) -> str:
    """Tables of all figures: raw rows, then each subject, strongest attacker first."""
    parts = [_HEAD.format(corpus=corpus, held_out=HELD_OUT, shipped=SHIPPED)]
    own = [row for row in summary if not row["control"]]
    parts.append("## The strongest attacker of each\n\n" + _strongest(own))
    parts.append("## Raw rows\n\n" + _table([row for row in own if row["how"] == RAW], ("n", "attacker")))
    for subject in dict.fromkeys(row["subject"] for row in own if row["how"] != RAW):
        rows = [row for row in own if row["subject"] == subject]
        digest = f" (`{rows[0]['hash']}`)" if rows[0]["hash"] else ""
        parts.append(f"## {subject}{digest}\n")
        for how in (HELD_OUT, SHIPPED):
            there = [row for row in rows if row["how"] == how]
            if there:
                parts.append(f"{_sentence(there, subject, how, people)}\n\n" + _table(there, ("epsilon", "attacker")))
    control = [row for row in summary if row["control"]]
    if control:
        area = sum(row["area"] for row in control) / len(control)
        rate = sum(row["rate"] / row["chance"] for row in control) / len(control)
        worst = max(control, key=lambda row: abs(row["area"] - 0.5))
        parts.append(
            f"## Control\n\nThe same scores of all attackers with the names of the unknowns shuffled: area "
            f"{area:.3f} on average over {len(control)} rows, right names {rate:.2f} times chance; the row furthest "
            f"from chance has area {worst['area']:.2f}.\n"
        )
    return "\n".join(parts)


def _sentence(rows: Sequence[Record], subject: str, how: str, people: int) -> str:
    """Corpus, people, attacker and interval of the strongest attack, in words."""
    said = []
    for epsilon in sorted({row["epsilon"] for row in rows}):
        group = [row for row in rows if row["epsilon"] == epsilon]
        best = max(group, key=lambda row: row["area"])
        least = min(group, key=lambda row: row["p"])
        corrected = min(1.0, least["p"] * len(group))
        verdict = "found people" if corrected <= 0.05 else "was not seen to find anybody"
        said.append(
            f"at epsilon {epsilon:g} the strongest of {len(group)} attackers, "
            f"{best['attacker']}, {verdict}: area {_interval(best, 'area')}, right names {_interval(best, 'rate')} "
            f"(chance {best['chance']:.3f}; smallest p {least['p']:.3f}, of {least['attacker']}, times {len(group)}: "
            f"{corrected:.2g})"
        )
    knew = f" ({rows[0]['calibrated']} of them calibrated it)" if "calibrated" in rows[0] else ""
    return (
        f"`{subject}`, {how}, {rows[0]['people']} people of this corpus{knew}, galleries of {rows[0]['gallery']}: "
        + ("; ".join(said) + ".")
    )


def _strongest(rows: Sequence[Record]) -> str:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        groups.setdefault((row["subject"], row["how"], row["n"], row["epsilon"]), []).append(row)
    best = [max(group, key=lambda row: row["area"]) for group in groups.values()]
    text = "The largest of several areas is biased upward; the tables below have all of them.\n\n"
    return text + _table(best, ("subject", "how", "n", "epsilon", "attacker"))


def _table(rows: Sequence[Record], keys: tuple[str, ...]) -> str:
    heads = {"subject": "released by", "how": "calibration", "n": "rows a chunk", "epsilon": "epsilon of a chunk"}
    names = [*(heads.get(key, key) for key in keys), "right names", "chance", "mean rank", "of", "area", "p"]
    names += ["could show: rate, area", "splits"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in sorted(rows, key=lambda row: (row["subject"], row["how"], row["n"], row["epsilon"], -row["area"])):
        own = [f"{row[key]:g}" if isinstance(row[key], float) else str(row[key]) for key in keys]
        own += [_interval(row, "rate"), f"{row['chance']:.3f}", f"{row['mean_rank']:.1f}", str(row["gallery"])]
        own += [_interval(row, "area"), f"{row['p']:.3f}"]
        own += [f"{row['least_rate']:.2f}, {row['least_area']:.2f}", str(row["trials"])]
        lines.append("| " + " | ".join(own) + " |")
    return "\n".join(lines) + "\n"


def _interval(row: Record, name: str) -> str:
    return f"{row[name]:.2f} [{row[name + '_low']:.2f}, {row[name + '_high']:.2f}]"


@dataclass(frozen=True)
class Scope:
    """How much is attacked.

    Attributes
    ----------
    epsilons : of a chunk.
    attackers : names of `eyestream_lab.study.people.attackers`.
    splits : random splits of the people.
    deep_splits : the same for the deep attacker, which takes minutes for each.
    """

    epsilons: tuple[float, ...] = (2.4, 4.8, 24.0, 48.0)
    attackers: tuple[str, ...] = USUAL
    splits: int = 20
    deep_splits: int = 2


def subjects_of(
    shipped: Sequence[tuple[str, Calibration]], mechanism: str | None, place: str | None, chunks: Sequence[int]
) -> list[AttackTarget]:
    """Targets of attacks: calibrations by name, or a mechanism as `eyestream study` calibrates it.

    Parameters
    ----------
    shipped
        Name and calibration; attacked as they are, and made anew by their own recipe.
    mechanism
        Its name; None: all of `shipped`. Where `shipped` holds none of it, it is attacked by the recipes of its entry.
    place
        Of a mechanism that lives elsewhere.
    chunks
        Rows a chunk, where there are only recipes.
    """
    chosen = [
        AttackTarget(name, c.mechanism, c.n, tuple(recipe(c).items()), c)
        for name, c in shipped
        if mechanism in (None, c.mechanism)
    ]
    if mechanism is None or chosen:
        return chosen
    recipes = {
        tuple(form.calibration.items()) for form in part_of(mechanism).forms if form.attacked and not form.best
    } or {()}
    named = {f"{mechanism}" + "".join(f" {key} {value:g}" for key, value in own): own for own in sorted(recipes)}
    return [AttackTarget(f"{name}-{n}", place or mechanism, n, own) for n in chunks for name, own in named.items()]


def attack_people(
    recordings: Sequence[Recording],
    out: Path,
    subjects: Sequence[AttackTarget],
    scope: Scope,
    *,
    corpus: str,
    labels: dict[str, dict[str, str]] | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    seed: int | None = None,
    table: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Attack and write the page; finished cells lie in `out`/cells and are not computed again.

    Parameters
    ----------
    corpus
        What the recordings are, in words, for the page.
    jobs, cluster, seed
        As of `compute`.
    table
        Where the page goes; by default `out`/attacks.md. The same figures lie beside it as .json; figures that are
        there already, of the same recordings, stay where they are not made anew.

    Raises
    ------
    ConfigError
        There is nothing to attack, too few people, or a file cannot be written.
    """
    if not subjects:
        raise ConfigError("--mechanism, --calibration: there is nothing of that to attack")
    population = Population.of(recordings, labels)
    people = len(usable(population, max(subject.n for subject in subjects)))
    world = world_of(population, subjects)
    target = table if table is not None else out / "attacks.md"

    def count(done: int, total: int, left: float | None) -> None:
        progress(how_far(done, total, left))

    try:
        work = cells(subjects, scope.epsilons, scope.attackers, scope.splits, scope.deep_splits)
        records = compute(
            world,
            work,
            measures={PART: measure},
            folder=out / "cells",
            jobs=jobs,
            cluster=cluster,
            seed=seed,
            progress=count,
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_suffix(".json")
        known = knowing(world, subjects)
        made = [
            row | ({"calibrated": known[row["hash"]]} if row["how"] == SHIPPED else {})
            for row in summarise(records[PART])
        ]
        summary = _with_earlier(beside, made, list(population.hashes))
        told = {
            "made_by": product(),
            "corpus": corpus,
            "people": people,
            "recordings": list(population.hashes),
            "seeds": "split s: numpy default_rng(s) draws who calibrates; classifiers and the network take s; "
            f"the noise of the mechanisms has {'no seed' if seed is None else f'seed {seed}'}",
            "figures": summary,
        }
        beside.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        target.write_text(page(summary, corpus, people), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}") from None
    return target


def _with_earlier(path: Path, summary: Sequence[Record], hashes: list[str]) -> list[Record]:
    """`summary`, and the rows of an earlier page of the same recordings that it does not replace."""
    if not path.is_file():
        return list(summary)
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
        kept = earlier["figures"] if earlier["recordings"] == hashes else []
        rows = {tuple(row[name] for name in KEY): row for row in (*kept, *summary)}
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{path}: no figures of attacks; expected a file that this command wrote, or none") from None
    return list(rows.values())
