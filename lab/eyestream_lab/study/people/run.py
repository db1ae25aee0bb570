"""Attacks on people from recordings to a page: `eyestream study --attack`."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eyestream.core.calibration import Calibration
from eyestream.core.calibration.calibration import product
from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.parts import part_of
from eyestream_lab.study.cells import Record, compute, how_far
from eyestream_lab.study.people.attackers import USUAL
from eyestream_lab.study.people.galleries import recipe, usable
from eyestream_lab.study.people.measure import KEY, PART, SHIPPED, Subject, cells, knowing, measure, summarise, world_of
from eyestream_lab.study.people.page import page
from eyestream_lab.study.population import Population

__all__ = ["Scope", "attack_people", "subjects_of"]


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
) -> list[Subject]:
    """What is attacked: calibrations by name, or a mechanism as `eyestream study` calibrates it.

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
        Subject(name, c.mechanism, c.n, tuple(recipe(c).items()), c)
        for name, c in shipped
        if mechanism in (None, c.mechanism)
    ]
    if mechanism is None or chosen:
        return chosen
    recipes = {
        tuple(form.calibration.items()) for form in part_of(mechanism).forms if form.attacked and not form.best
    } or {()}
    named = {f"{mechanism}" + "".join(f" {key} {value:g}" for key, value in own): own for own in sorted(recipes)}
    return [Subject(f"{name}-{n}", place or mechanism, n, own) for n in chunks for name, own in named.items()]


def attack_people(
    recordings: Sequence[Recording],
    out: Path,
    subjects: Sequence[Subject],
    scope: Scope,
    *,
    corpus: str,
    labels: dict[str, dict[str, str]] | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    table: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Attack and write the page; finished cells lie in `out`/cells and are not computed again.

    Parameters
    ----------
    corpus
        What the recordings are, in words, for the page.
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
            world, work, measures={PART: measure}, folder=out / "cells", jobs=jobs, cluster=cluster, progress=count
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
            "the noise of the mechanisms has no seed",
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
