"""What a table of gaze holds, by its header and its numbers: a proposal for a profile, with its reasons.

Units are told by brackets in the header, else by the range of the numbers and by how fast gaze moves. A proposal is not
knowledge: whoever recorded the file knows the unit, and has to compare.
"""

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.intake import PER_S
from eyestream.gaze.profile import LONGEST_RATE_HZ, SHORTEST_RATE_HZ
from eyestream.gaze.profile_text import toml_value
from eyestream.rim.files.delimited import DELIMITERS, opened, read_header, read_numbers
from eyestream.rim.files.gaze import LETTERS
from eyestream.rim.files.gaze_columns import UNITS
from eyestream.rim.files.profiles import matching_profiles

__all__ = ["Proposal", "inspect_table"]

Array = NDArray[np.float64]

_TIME = re.compile(r"time|^t(_|$|\b)|^n$", re.I)
_NOT_GAZE = re.compile(r"pupil|diam|head|mouse|fixation|saccade|eye.?(pos|cent)|origin|acc|gyro|world|index|id$", re.I)
_GAZE = re.compile(r"gaze|por\b|azimuth|elevation|norm_pos|^[xyz]\b|^[xyz]_|_[xyz]$", re.I)
_PUPIL = re.compile(r"pupil|diam", re.I)
_VALID = re.compile(r"valid|tracked|worn", re.I)
_LABEL = re.compile(r"event|label", re.I)
_CONFIDENCE = re.compile(r"confidence", re.I)
_AXES = ((r"\bazimuth\b", "elevation"), (r"(?<![a-z])x(?![a-z])", "y"))
_SLOW, _NARROW = 7.0, 1.5
"""Radians a second that hardly any step of gaze reaches; degrees within which nobody's gaze stays half of the time."""


@dataclass
class Proposal:
    """What a profile should say, and why.

    Attributes
    ----------
    plain
        Keys outside of any table.
    tables
        Keys of each table.
    reasons
        A line for each thing that was found.
    assumed
        What the file does not say, and has to be written by whoever knows.
    """

    plain: dict[str, object] = field(default_factory=dict)
    tables: dict[str, dict[str, object]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    def toml(self) -> str:
        """The profile."""
        lines = [f"{key} = {toml_value(value)}" for key, value in self.plain.items()]
        for name, table in self.tables.items():
            lines += ["", f"[{name}]", *(f"{key} = {toml_value(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def inspect_table(path: Path) -> Proposal:
    """Look at a text table with a header.

    Raises
    ------
    RecordingError
        when it is no table with a header, or nothing in it looks like the time or like gaze.
    """
    delimiter = _delimiter(path)
    header = read_header(path, DELIMITERS[delimiter])
    proposal = Proposal({"name": "mine"})  # not the file's: it stands in all rows that are made, and may be a person's
    usual = "comma" if path.name.lower().removesuffix(".gz").endswith(".csv") else "tab"
    table: dict[str, object] = {} if delimiter == usual else {"delimiter": delimiter}
    decimal = _decimal(path, DELIMITERS[delimiter])
    if decimal == ",":
        table["decimal"] = "comma"
    only = _sensor(path, header, DELIMITERS[delimiter])
    if only:
        table["only"] = only
        proposal.reasons.append(f"column {only[0]!r}: only rows of {only[1]!r} are gaze")
    columns = read_numbers(path, header, delimiter=DELIMITERS[delimiter], decimal=decimal, only=only)
    proposal.reasons.insert(0, f"{len(header)} columns by {delimiter}, {len(next(iter(columns.values()), []))} rows")
    seconds = _time(path, columns, proposal)
    _gaze(path, columns, seconds, proposal)
    _others(columns, proposal)
    _labels(path, header, DELIMITERS[delimiter], proposal)
    if table:
        proposal.tables["table"] = table
    for known in matching_profiles(header)[:1]:
        lens = known.camera
        wide = f", a camera of {lens.field_of_view_x_deg:g} x {lens.field_of_view_y_deg:g} degrees" if lens else ""
        said = f"shipped profile {known.name} has these columns{wide}"
        proposal.reasons.append(f"{said}: try --profile {known.name} if that is your tracker")
    return proposal


def _delimiter(path: Path) -> str:
    with opened(path) as file:
        first = file.readline()
    counts = {name: len(first.split(sign)) for name, sign in DELIMITERS.items() if name != "space"}
    best = max(counts, key=lambda name: counts[name])
    if not first:
        raise RecordingError(f"{path}: is empty")
    if counts[best] < 3:
        raise RecordingError(f"{path}: line 1: names of three columns or more are wanted, by comma, semicolon or tab")
    return best


def _decimal(path: Path, delimiter: str) -> str:
    """A comma, where most cells with one are numbers by it."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in _rows(path, delimiter, 200) for cell in row]
    commas = sum(bool(re.fullmatch(r"-?\d+,\d+", cell)) for cell in cells)
    return "," if commas > sum(bool(re.fullmatch(r"-?\d+\.\d+", cell)) for cell in cells) else "."


def _rows(path: Path, delimiter: str, most: int) -> list[list[str]]:
    with opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        next(reader, None)
        return [row for row, _ in zip(reader, range(most), strict=False)]


def _sensor(path: Path, header: Sequence[str], delimiter: str) -> list[str]:
    """The column and the value that tell rows of an eye tracker from others."""
    for index, name in enumerate(header):
        if name.lower() == "sensor":
            values = [row[index].strip() for row in _rows(path, delimiter, 5_000) if len(row) > index]
            eyes = sorted({value for value in values if "eye" in value.lower()})
            if eyes and any(value != eyes[0] for value in values):
                return [name, eyes[0]]
    return []


def _unit(name: str, among: Sequence[str]) -> str | None:
    """What the header says of a unit, in brackets or at the end of a name."""
    words = re.findall(r"[^\W\d_]+", name.lower().replace("\u03bc", "u").replace("\u00b5", "u"))
    return next((unit for unit in among if set(words) & UNITS[unit]), None)


def _time(path: Path, columns: dict[str, Array], proposal: Proposal) -> Array:
    """Seconds. The first column that is called like a time and goes forward."""
    back = ""
    for name, values in columns.items():
        steps = np.diff(values[np.isfinite(values)])
        if not _TIME.search(name) or len(steps) == 0:
            continue
        if np.count_nonzero(steps > 0) < 0.5 * len(steps):
            back = f", and time does not go forward in {name!r}"
            continue
        step = float(np.median(steps[steps > 0]))
        units = [unit for unit, scale in PER_S.items() if SHORTEST_RATE_HZ <= scale / step <= LONGEST_RATE_HZ]
        told = _unit(name, tuple(PER_S))
        unit = told if told in units else (units[0] if units else None)
        if unit is None:
            continue
        proposal.plain["time_unit"] = unit
        proposal.tables["columns"] = {"time": name}
        still = 1.0 - np.count_nonzero(steps > 0) / len(steps)
        said = f"column {name!r}: time in {unit}, {PER_S[unit] / step:.4g} samples a second"
        proposal.reasons.append(f"{said}{f', {still:.1%} of the times do not go forward' if still else ''}")
        return values / PER_S[unit]
    if not any(map(len, columns.values())):
        raise RecordingError(f"{path}: has a header and no rows")
    told = ", ".join(map(repr, columns))
    raise RecordingError(f"{path}: no column looks like the time; the columns of numbers are {told}{back}")


def _gaze(path: Path, columns: dict[str, Array], seconds: Array, proposal: Proposal) -> None:
    """Columns, unit and axis of gaze."""
    names = _axes(list(columns))
    if not names:
        raise RecordingError(f"{path}: no two columns look like gaze; the columns are {', '.join(map(repr, columns))}")
    points = np.column_stack([columns[name] for name in names])
    seen = np.isfinite(points).all(axis=1)
    if not seen.any():
        raise RecordingError(f"{path}: columns {names[0]!r} and {names[1]!r}: no sample has both")
    proposal.tables["columns"]["gaze"] = names
    low, high = np.percentile(points[seen], [2.0, 98.0], axis=0)
    ranges = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))
    unit, why = ("vector", "three components") if len(names) == 3 else _gaze_unit(names, points[seen], seconds[seen])
    down = unit in {"px", "image", "vector"}
    proposal.plain |= {"gaze_unit": unit, "y_axis": "down" if down else "up"}
    both = " and ".join(map(repr, names[:2]))
    proposal.reasons.append(f"columns {both}: gaze in {unit} ({why}), {ranges}, {1.0 - seen.mean():.1%} lost")
    proposal.assumed.append(f'y_axis = "{proposal.plain["y_axis"]}": the file does not say where y grows to')
    if unit in {"px", "image"}:
        camera: dict[str, object] = {"field_of_view_x_deg": 47.7, "field_of_view_y_deg": 28.0}
        if unit == "px":
            wide, high_px = (int(math.ceil(max(edge, 1.0) / 10.0) * 10) for edge in high)
            camera |= {"width_px": max(wide, 320), "height_px": max(high_px, 240)}
            proposal.assumed.append("[camera] width_px and height_px: the largest gaze, rounded up; write the screen's")
        proposal.tables["camera"] = camera
        proposal.assumed.append("[camera] field_of_view: a screen of 531 x 299 mm, 600 mm away; write yours")
        proposal.assumed.append("is it the image of a scene camera, on glasses? All angles hang on that camera's field")


def _axes(names: Sequence[str]) -> list[str]:
    """Columns of x and y, or of x, y and z, whose names differ by the axis alone; those called gaze first."""
    found: list[tuple[int, int, list[str]]] = []
    for place, name in enumerate(names):
        if not _GAZE.search(name) or _NOT_GAZE.search(name):
            continue
        for axis, other in _AXES:
            partner = re.sub(axis, other, name, count=1, flags=re.I)
            same = [known for known in names if known.lower() == partner.lower() != name.lower()]
            if not same:
                continue
            depth = [known for known in names if known.lower() == re.sub(axis, "z", name, count=1, flags=re.I).lower()]
            three = bool(depth) and "azimuth" not in axis
            rank = 2 * bool(_unit(name, ("deg",))) + ("gaze" in name.lower()) + ("3d" in name.lower() and three)
            found.append((-rank, place, [name, same[0], *(depth if three else [])]))
            break
    return min(found)[2] if found else []


def _gaze_unit(names: Sequence[str], points: Array, seconds: Array) -> tuple[str, str]:
    """The unit and why. In a wrong unit gaze would move too slowly or too fast, or lie where no eye looks."""
    told = _unit(names[0], ("deg", "rad", "px", "image"))
    if told is not None:
        return told, "its name says so"
    steps = np.hypot(*np.diff(points, axis=0).T) / np.maximum(np.diff(seconds), 1e-6)
    fast = float(np.percentile(steps, 90.0)) if len(steps) else 0.0
    furthest = float(np.percentile(np.abs(points).max(axis=1), 75.0))
    low, middle, high = np.percentile(points, [25.0, 50.0, 75.0], axis=0)
    spread = float((high - low).max())
    if furthest > 90.0:
        return "px", f"by its range: a quarter lies {furthest:.3g} and more from 0"
    near = float((np.abs(points - 0.5).max(axis=1) <= 1.5).mean())
    if spread < _NARROW and near > 0.7:
        said = f"by its range: {near:.0%} lie between -1 and 2, which is narrow for degrees"
        return ("rad", said) if np.abs(middle).max() < 0.2 and fast < _SLOW else ("image", said)
    return "deg", f"by its range, and {fast:.3g} a second at the 90th percentile"


def _others(columns: dict[str, Array], proposal: Proposal) -> None:
    """Pupils, confidence, and what the tracker says of a lost eye."""
    named = proposal.tables["columns"]
    pupils = [name for name in columns if _PUPIL.search(name) and not _VALID.search(name) and "pos" not in name.lower()]
    sizes = [columns[name][columns[name] > 0] for name in pupils]
    middle = float(np.median(np.concatenate(sizes))) if any(len(part) for part in sizes) else math.nan
    if 1.0 <= middle <= 10.0:
        named["pupil"] = pupils[:2]
        proposal.plain["pupil_unit"] = "mm"
        proposal.reasons.append(f"columns {', '.join(map(repr, pupils[:2]))}: pupils, {middle:.2f} mm in the middle")
    elif pupils and math.isfinite(middle):
        proposal.reasons.append(f"column {pupils[0]!r}: {middle:.4g} in the middle is no diameter in mm; left out")
    sure = next((name for name in columns if _CONFIDENCE.search(name)), None)
    if sure is not None and np.nanmax(columns[sure]) <= 1.0:
        named["confidence"] = sure
        proposal.plain["confidence_min"] = 0.6
        below = float(np.mean(~(columns[sure] >= 0.6)))
        proposal.reasons.append(f"column {sure!r}: {below:.1%} of the samples are below a confidence of 0.6")
    valid = next((name for name in columns if _VALID.search(name) and len(np.unique(columns[name])) <= 3), None)
    if valid is not None and float(np.mean(np.nan_to_num(columns[valid]) != 0.0)) >= 0.5:
        named["valid"] = valid
        proposal.reasons.append(f"column {valid!r}: 0 where the eye was not tracked, by its name")


def _labels(path: Path, header: Sequence[str], delimiter: str, proposal: Proposal) -> None:
    """A column of words that are those of events."""
    for place, name in enumerate(header):
        if _LABEL.search(name):
            words = {row[place].strip() for row in _rows(path, delimiter, 5_000) if len(row) > place}
            known = sorted(word for word in words if LETTERS.get(word.lower(), "-") != "-")
            if known:
                proposal.tables["columns"]["label"] = name
            said = f"labels of events, {', '.join(known)}" if known else "no word for a fixation, saccade or blink"
            more = ", and other words, which are no events" if known and words - {*known, "", "-"} else ""
            proposal.reasons.append(f"column {name!r}: {said}{more}")
