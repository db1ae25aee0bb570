"""Programs of others: a system that writes a folder from a folder, an attacker that writes a table of scores.

A program is a command with {in} and {out}, or {labelled}, {unnamed} and {scores}, or a Python function that takes such
paths, named `package.module:NAME`. Its time and memory are those of the process and of all that it waited for.
"""

import csv
import json
import math
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eyestream.errors import ConfigError

Array = NDArray[np.float64]

SYSTEM_PLACES = ("in", "out")
ATTACKER_PLACES = ("labelled", "unnamed", "scores")
_CALL = (
    "import importlib, pathlib, sys; m, _, n = sys.argv[1].partition(':'); "
    "getattr(importlib.import_module(m), n)(*map(pathlib.Path, sys.argv[2:]))"
)
_LAUNCH = """
import json, os, subprocess, sys, time
limit, told, used, *words = sys.argv[1:]
begun = time.monotonic()
with open(told, "wb") as errors:
    process = subprocess.Popen(words, stderr=errors, start_new_session=os.name == "posix")
    try:
        status = process.wait(float(limit))
    except subprocess.TimeoutExpired:
        status = "late"
        os.killpg(process.pid, 9) if os.name == "posix" else process.kill()
        process.wait()
figures = [round(time.monotonic() - begun, 3)]
if os.name == "posix":
    import resource
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1e6 if sys.platform == "darwin" else 1e3
    figures += [round(spent.ru_utime + spent.ru_stime, 3), round(spent.ru_maxrss / unit, 1)]
with open(used, "w") as file:
    json.dump([status, *figures], file)
"""
_LINES_SHOWN = 3


class Cost(Struct, frozen=True):
    """Cost of one run: seconds by the clock and of processors, the largest memory of a process; None where unknown."""

    wall_s: float
    processor_s: float | None = None
    peak_mb: float | None = None


@dataclass(frozen=True)
class Program:
    """A command whose words may hold names of places in braces."""

    name: str
    words: tuple[str, ...]

    def run(self, limit_s: float, **places: Path) -> Cost:
        """Run it.

        Raises
        ------
        ConfigError
            It does not end in `limit_s`, or ends with an error, whose last lines are shown.
        """
        words = [_filled(word, places) for word in self.words]
        with tempfile.TemporaryDirectory() as scratch:
            told, used = Path(scratch) / "errors", Path(scratch) / "used"
            # A small process in between: memory that this one holds would count as the program's.
            launcher = [sys.executable, "-S", "-c", _LAUNCH, str(limit_s), str(told), str(used), *words]
            subprocess.run(launcher, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
            status, *figures = json.loads(used.read_text(encoding="ascii"))
            if status == "late":
                raise ConfigError(f"{self.name}: did not end in {limit_s:g} s; expected that, or a larger --limit")
            if status != 0:
                lines = told.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_LINES_SHOWN:]
                raise ConfigError(f"{self.name}: ended with {status}: {' / '.join(lines) or 'it printed no error'}")
        return Cost(*figures)


def _filled(word: str, places: Mapping[str, Path]) -> str:
    for name, path in places.items():
        word = word.replace(f"{{{name}}}", str(path))
    return word


def program_of(text: str, places: Sequence[str], where: str) -> Program:
    """The program of an option: [NAME=]COMMAND with all of `places`, or [NAME=]package.module:NAME.

    Raises
    ------
    ConfigError
        It is neither.
    """
    name, equals, rest = text.partition("=")
    named = bool(equals) and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
    own, command = (name, rest) if named else ("", text)
    missing = [place for place in places if f"{{{place}}}" not in command]
    if not missing:
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise ConfigError(f"{where} {text}: {error}") from None
        program = shutil.which(words[0])
        if program is None:
            raise ConfigError(f"{where} {text}: there is no program {words[0]}; expected its path, or one in PATH")
        return Program(own or Path(words[0]).stem, (str(Path(program).resolve()), *words[1:]))
    module, colon, function = command.partition(":")
    if colon and all(part.isidentifier() for part in (*module.split("."), function)):
        call = (sys.executable, "-c", _CALL, command, *(f"{{{place}}}" for place in places))
        return Program(own or function, call)
    raise ConfigError(
        f"{where} {text}: lacks {{{missing[0]}}}; expected a command with "
        f"{', '.join(f'{{{place}}}' for place in places)}, or package.module:NAME of a Python function"
    )


def scores_in(path: Path, unnamed: Sequence[str], people: Sequence[str], who: str) -> Array:
    """Scores (U, P) of a table with tabs or commas and the columns pseudonym, participant_id and score.

    Raises
    ------
    ConfigError
        It is no such table, or a pair is missing, there twice, unknown or without a number.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{who}: wrote no table of scores that can be read") from None
    header, *lines = csv.reader(text.splitlines(), delimiter="\t" if "\t" in text else ",") or [[]]
    columns = ("pseudonym", "participant_id", "score")
    if any(header.count(column) != 1 for column in columns):
        raise ConfigError(f"{who}: scores have columns {', '.join(header) or 'none'}; expected {', '.join(columns)}")
    at = [header.index(column) for column in columns]
    rows, places = ({name: i for i, name in enumerate(names)} for names in (unnamed, people))
    found = np.full((len(unnamed), len(people)), np.nan)
    for number, line in enumerate(lines, start=2):
        cells = [line[i] for i in at] if len(line) == len(header) else ["", "", ""]
        if cells[0] not in rows or cells[1] not in places or not math.isfinite(score := _number(cells[2])):
            raise ConfigError(f"{who}: scores, line {number}: expected a pseudonym, a participant_id and a number")
        if np.isfinite(found[rows[cells[0]], places[cells[1]]]):
            raise ConfigError(f"{who}: scores, line {number}: a second score of {cells[0]} and {cells[1]}")
        found[rows[cells[0]], places[cells[1]]] = score
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        raise ConfigError(f"{who}: no score of {unnamed[row]} and {people[column]}; expected one of every pair")
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
