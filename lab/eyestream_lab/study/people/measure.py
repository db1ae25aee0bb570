"""Cells of the attacks on people: one attacker on one way of releasing, one random split, both roles."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eyestream.core.anchor import BASELINE_S
from eyestream.core.calibration import Calibration
from eyestream.core.calibration.calibration import product
from eyestream.core.mechanisms import build
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.people.attackers import applies, attack
from eyestream_lab.study.people.galleries import Gallery, Sight, everybody, gallery, recalibrated, roles, usable
from eyestream_lab.study.people.inference import AttackTrial, figures, trial
from eyestream_lab.study.population import Population
from eyestream_lab.study.sources import World

__all__ = [
    "HELD_OUT",
    "KEY",
    "PART",
    "RAW",
    "SHIPPED",
    "SHUFFLED",
    "AttackTarget",
    "cells",
    "knowing",
    "measure",
    "summarise",
]

PART = "people"
VERSION = 1
"""Version of what these cells compute."""

HELD_OUT, SHIPPED, RAW = "made anew", "as it is", "raw"
"""How a calibration is attacked: made anew from half of the people by its own recipe, the others released, and the
reverse; the file itself, everybody released, whoever calibrated it among them; no mechanism at all."""

SHUFFLED = "control: names shuffled"

KEY = ("subject", "n", "how", "epsilon", "attacker", "control", "hash")
"""What tells rows of figures apart."""


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
    mechanism = build(calibration, float(settings["epsilon"]))
    return gallery(population, sight, mechanism, n, reverse=reverse, active=mechanism.frame.active)


def _known(mechanism: str) -> str:
    """The name of a mechanism that may be named by its place: processes that were started anew do not know it yet."""
    return mechanism_elsewhere(mechanism, "--mechanism").name if ":" in mechanism else mechanism


def world_of(population: Population, subjects: Sequence[AttackTarget]) -> AttackedWorld:
    """What the cells look at."""
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
