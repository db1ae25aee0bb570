"""Results of attackers against a system, from cells that `eyestream study --datasets` keeps."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from eyestream.errors import ConfigError

CELLS = "-v3.json"
"""How names of cells end; the number is of what a cell holds. A change of a measure raises it, and cells are made
again."""


@dataclass(frozen=True)
class Attacked:
    """Shares of people whom attackers named rightly.

    Attributes
    ----------
    corpus, people, made_on
        What was studied, of how many people, and on which day.
    chance
        The share that a guess has.
    shares
        By attacker, tested on raw and on released recordings.
    """

    corpus: str
    people: int
    made_on: str
    chance: float
    shares: Mapping[str, tuple[float, float]]

    def facts(self) -> dict[str, object]:
        """For machines."""
        both = {name: {"raw": raw, "released": released} for name, (raw, released) in self.shares.items()}
        told = {"corpus": self.corpus, "people": self.people, "made_on": self.made_on, "chance": self.chance}
        return told | {"named_rightly": both}

    def lines(self) -> Iterator[str]:
        """For readers."""
        yield f"Attackers: a study of {self.corpus} ({self.people} people, {self.made_on}) released that corpus in the"
        yield f"same way. They named this share of people rightly; a guess names {self.chance:.2f}."
        yield "The shares are computed from raw recordings, and the claim does not cover them."
        yield ""
        yield "| attacker | raw recordings | released recordings |"
        yield "|---|---|---|"
        for name, (raw, released) in self.shares.items():
            yield f"| {name} | {raw:.2f} | {released:.2f} |"


class _Cell(msgspec.Struct):
    """Part of a cell that is needed; that of the raw corpus has no mechanism, and one of maps no attackers."""

    corpus: str
    people: int
    made_on: str
    chance_person: float
    splits: int
    mechanism: str = ""
    options: dict[str, Any] = {}
    recognised: dict[str, dict[str, list[float]]] = {}


def attacked(study: Path, system: str, options: Mapping[str, object]) -> Attacked:
    """Results of the study in a folder for a system with its options.

    Of several cells the one with most splits; of these the one with most attackers, then the last one.

    Raises
    ------
    ConfigError
        when it has no such cell, or a damaged one.
    """
    wanted = json.loads(json.dumps(dict(options)))
    cells = [_cell(path) for path in sorted((study / "cells").glob(f"*{CELLS}"))]
    own = [one for one in cells if one.mechanism == system and one.options == wanted and one.recognised]
    if not own:
        given = ", ".join(f"{name} = {value}" for name, value in wanted.items())
        expected = f"expected one of eyestream study --datasets --only {system}"
        raise ConfigError(f"--study {study}: has no cell of {system} with {given or 'no options'}; {expected}")
    one = max(own, key=lambda cell: (cell.splits, len(cell.recognised), cell.made_on))
    shares = {name: (_mean(both["raw"]), _mean(both["released"])) for name, both in one.recognised.items()}
    return Attacked(one.corpus, one.people, one.made_on, one.chance_person, shares)


def _cell(path: Path) -> _Cell:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Cell)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: is no cell of a study: {error}") from None


def _mean(shares: list[float]) -> float:
    return round(sum(shares) / len(shares), 4)
