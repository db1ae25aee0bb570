"""The person of each recording: by a table, by a pattern in names of files, or each another person."""

import csv
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from eyestream.errors import ConfigError

EACH = "each"
_PREFIX = re.compile(r"(sub-[A-Za-z0-9]+|[A-Za-z0-9]+)[_\-]")
_WHO = ("participant_id", "person")


def people_of(names: Sequence[str], answer: str) -> dict[str, dict[str, str]]:
    """The person of each recording, in the form of `eyestream_lab.study.population.read_labels`.

    Parameters
    ----------
    names
        Of recordings, up to the first dot.
    answer
        `EACH`; or a file with tabs or commas and the columns recording, and participant_id or person; or a pattern
        (a regular expression) with one group in parentheses: that part of a name is the person's.

    Raises
    ------
    ConfigError
        The file or the pattern leaves a recording without a person, or cannot be used.
    """
    if answer == EACH:
        return {name: {"person": name} for name in names}
    found = _by_table(Path(answer)) if Path(answer).is_file() else _by_pattern(names, answer)
    missing = [name for name in names if not found.get(name)]
    if missing:
        raise ConfigError(f"--people {answer}: tells no person of recording {missing[0]}")
    return {name: {"person": found[name]} for name in names}


def check_one_person_each(names: Sequence[str]) -> None:
    """Raise ConfigError where names look as if several recordings were of one person: nobody said that they are not.

    They do where what stands before the first dash or underscore is shared by some, and is not the same for all.
    """
    shared: dict[str, list[str]] = defaultdict(list)
    for name in names:
        match = _PREFIX.match(name)
        shared[match[1] if match else name].append(name)
    several = next((own for own in shared.values() if len(own) > 1), None)
    if several is not None and len(shared) > 1:
        raise ConfigError(
            f"{several[0]} and {several[1]} may be of one person, and figures of identity would be wrong then: "
            "expected --people with a table (recording, participant_id), a pattern such as '([^_-]+)', or --people each"
        )


def _by_table(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--people {path}: cannot be read: {error}") from None
    lines = list(csv.DictReader(text.splitlines(), delimiter="\t" if "\t" in text.partition("\n")[0] else ","))
    who = next((column for column in _WHO if lines and column in lines[0]), None)
    if who is None or "recording" not in lines[0]:
        raise ConfigError(f"--people {path}: expected the columns recording, and participant_id or person")
    found: dict[str, str] = {}
    for line in lines:
        name = (line["recording"] or "").split(".")[0]
        if found.setdefault(name, line[who] or "") != (line[who] or ""):
            raise ConfigError(f"--people {path}: recording {name} has two people")
    return found


def _by_pattern(names: Sequence[str], answer: str) -> dict[str, str]:
    try:
        pattern = re.compile(answer)
    except re.error as error:
        raise ConfigError(f"--people {answer}: is no file, and no regular expression: {error}") from None
    if pattern.groups != 1:
        raise ConfigError(f"--people {answer}: expected a file that is there, or a pattern with one (group)")
    return {name: match[1] or "" for name in names if (match := pattern.match(name))}
