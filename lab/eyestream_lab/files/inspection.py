"""Inspection of a table of gaze, by its header and its numbers: a proposal for a profile, with its reasons.

Units are told by brackets in the header, else by the range of the numbers and by how fast gaze moves. A proposal is not
knowledge: whoever recorded the file knows the unit, and has to compare.
"""

import csv
import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.intake import PER_S
from eyestream.gaze.profile import LONGEST_RATE_HZ, SHORTEST_RATE_HZ, Profile
from eyestream.rim.files.delimited import DELIMITERS, is_number, opened, read_header, read_numbers
from eyestream.rim.files.gaze import LETTERS
from eyestream.rim.files.gaze_columns import UNITS
from eyestream.rim.files.profiles import matching_profiles
from eyestream_lab.files.eyelink import screen_of
from eyestream_lab.files.matlab import matlab_columns

Array = NDArray[np.float64]

_TIME = re.compile(r"time|^t(_|$|\b)|^n$", re.I)
_NOT_GAZE = re.compile(
    r"pupil|diam|head|mouse|fixation|saccade|eye.?(pos|cent(?!.*dir)|loc)|origin|acc|gyro|world|index|(\b|_)id$|hand|controller|"
    r"hmd|camera|body|target|object|hit",
    re.I,
)
_GAZE = re.compile(r"gaze|por\b|\bbpog|azimuth|elevation|yaw|norm_pos|^[xyz]\b|^[xyz]_|_[xyz]$", re.I)
_PUPIL = re.compile(r"pupil|diam", re.I)
_VALID = re.compile(r"valid|tracked|worn|status|bpogv", re.I)
_LOST = re.compile(r"blink|error|loss|lost", re.I)
_OTHERS = re.compile(r"head|hand|controller|mouse|world|body|hmd|camera|event|media", re.I)
_ONE_EYE = re.compile(r"left|right|(?<![a-z])[lr](?![a-z])", re.I)
_OPEN = re.compile(r"open", re.I)
_LABEL = re.compile(r"event|label", re.I)
_CONFIDENCE = re.compile(r"confidence", re.I)
_DIRECTION = re.compile(r"dir|forward|vector|vec\b|ray|eye", re.I)
_BOTH = re.compile(r"comb|cyclop|cent|both|average|mean", re.I)
_AT = re.compile(r"(?<!norm.)pos|origin|hit|point_?of_?regard_?3d", re.I)
_AXES = (
    (r"(?i)\bazimuth\b", "elevation", ""),
    (r"(?i)(?<![a-z])yaw(?![a-z])", "pitch", ""),
    (r"(?i)horizontal", "vertical", ""),
    (r"(?<![A-Za-z])[xX](?![A-Za-z])", "y", "z"),
    (r"(?<=[a-z])X(?![a-z])|(?<=POG)X$", "Y", "Z"),
)
"""How the first axis is called, and the others in its place."""
_SLOW, _NARROW = 7.0, 1.5
"""Radians a second that hardly any step of gaze reaches; degrees within which nobody's gaze stays half of the time."""


_BARE = "; if the file has no header, give the names of its columns: --columns t_s,x,y,-"


@dataclass
class Proposal:
    """Proposed keys of a profile, with reasons.

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
    unusual
        Why this may be no gaze.
    """

    plain: dict[str, object] = field(default_factory=dict)
    tables: dict[str, dict[str, object]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    unusual: list[str] = field(default_factory=list)

    def toml(self) -> str:
        """The profile."""
        lines = [f"{key} = {toml_value(value)}" for key, value in self.plain.items()]
        for name, table in self.tables.items():
            lines += ["", f"[{name}]", *(f"{key} = {toml_value(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def inspect_table(path: Path, names: Sequence[str] = (), rate_hz: float | None = None) -> Proposal:
    """Look at a table: of text, or of MATLAB.

    Parameters
    ----------
    names
        Names of its columns where it has none; "-" and "" are columns that nobody needs.
    rate_hz
        Samples a second where it has no time.

    Raises
    ------
    RecordingError
        when it is no table, or has no header, no time or nothing that looks like gaze, and nobody gave them.
    """
    names = [name.strip() if name.strip() not in {"", "-"} else f"column {i}" for i, name in enumerate(names, start=1)]
    proposal = Proposal({"name": "mine"})  # not the file's: it stands in all rows that are made, and may be a person's
    if path.name.lower().endswith(".mat"):
        columns = matlab_columns(path, names)
        proposal.reasons.append(f"{len(columns)} columns, {len(next(iter(columns.values())))} rows")
        _found(path, columns, rate_hz, proposal, {"names": names} if names else {})
        return proposal
    delimiter = _delimiter(path, 2 if names else 3)
    header = names or _header(path, DELIMITERS[delimiter])
    usual = "comma" if path.name.lower().removesuffix(".gz").endswith(".csv") else "tab"
    table: dict[str, object] = {"names": names} if names else {}
    table |= {} if delimiter == usual else {"delimiter": delimiter}
    decimal = _decimal(path, DELIMITERS[delimiter])
    if decimal == ",":
        table["decimal"] = "comma"
    only = _sensor(path, header, DELIMITERS[delimiter])
    if only:
        table["only"] = only
        proposal.reasons.append(f"column {only[0]!r}: only rows of {only[1]!r} are gaze")
    signs = {"delimiter": DELIMITERS[delimiter], "decimal": decimal}
    columns = read_numbers(path, header, header=not names, only=only, **signs)
    proposal.reasons.insert(0, f"{len(header)} columns by {delimiter}, {len(next(iter(columns.values()), []))} rows")
    _found(path, columns, rate_hz, proposal, table)
    _labels(path, header, DELIMITERS[delimiter], proposal)
    for known in matching_profiles(header)[:1]:
        lens = known.camera
        wide = f", a camera of {lens.field_of_view_x_deg:g} x {lens.field_of_view_y_deg:g} degrees" if lens else ""
        said = f"shipped profile {known.name} has these columns{wide}"
        proposal.reasons.append(f"{said}: try --profile {known.name} if that is your tracker")
    return proposal


def _found(
    path: Path, columns: dict[str, Array], rate_hz: float | None, proposal: Proposal, table: dict[str, object]
) -> None:
    """What the columns are."""
    seconds = _time(path, columns, proposal) if rate_hz is None else _even(columns, rate_hz, proposal)
    _gaze(path, columns, seconds, proposal)
    _others(columns, proposal)
    if table:
        proposal.tables["table"] = table


def inspect_eyelink(path: Path) -> Proposal:
    """Look at an EyeLink `.asc` file: its screen is in it, and the angle of that screen is not.

    Raises
    ------
    RecordingError
        It cannot be read, or does not tell its screen.
    """
    screen = screen_of(path)
    if screen is None:
        raise RecordingError(
            f"{path}: has no DISPLAY_COORDS: try --profile with profile eyelink, copied, with your screen in [camera]"
        )
    plain = {"name": "mine", "time_unit": "ms", "gaze_unit": "px", "y_axis": "down"}
    camera = {"width_px": screen[0], "height_px": screen[1], "field_of_view_x_deg": 47.7, "field_of_view_y_deg": 28.0}
    tables: dict[str, dict[str, object]] = {"columns": {"time": "time", "gaze": ["x", "y"]}, "camera": dict(camera)}
    reasons = [
        f"DISPLAY_COORDS: a screen of {screen[0]} x {screen[1]} pixels",
        "shipped profile eyelink reads such files",
    ]
    assumed = ["[camera] field_of_view: a screen of 531 x 299 mm, 600 mm away; write yours"]
    return Proposal(dict(plain), tables, reasons, assumed)


def _delimiter(path: Path, least: int) -> str:
    with opened(path) as file:
        first = file.readline()
    counts = {name: len(first.split(sign)) for name, sign in DELIMITERS.items() if name != "space"}
    best = max(counts, key=lambda name: counts[name])
    if not first:
        raise RecordingError(f"{path}: is empty")
    if counts[best] < least:
        wanted = f"names of {least} columns or more are wanted, by comma, semicolon or tab{_BARE}"
        raise RecordingError(f"{path}: line 1: {wanted}")
    return best


def _header(path: Path, delimiter: str) -> list[str]:
    with opened(path) as file:
        first = next(csv.reader(file, delimiter=delimiter), [])
    if any(is_number(cell) for cell in first):
        raise RecordingError(f"{path}: line 1: a header with the names of the columns is wanted{_BARE}")
    return read_header(path, delimiter)


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
    """Unit in the header, in brackets or at the end of a name."""
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
        said = f"column {name!r}: time in {unit}, {_rate_hz(steps, step) * PER_S[unit]:.4g} samples a second"
        proposal.reasons.append(f"{said}{f', {still:.1%} of the times do not go forward' if still else ''}")
        return values / PER_S[unit]
    if not any(map(len, columns.values())):
        raise RecordingError(f"{path}: has a header and no rows")
    told = ", ".join(map(repr, columns))
    even = "If samples follow each other evenly, give their rate: --rate HZ"
    raise RecordingError(f"{path}: no column looks like the time; the columns of numbers are {told}{back}. {even}")


def _even(columns: dict[str, Array], rate_hz: float, proposal: Proposal) -> Array:
    """Seconds of samples that follow each other at a rate."""
    proposal.plain |= {"rate_hz": rate_hz, "time_unit": "s"}
    proposal.tables["columns"] = {"time": ""}
    proposal.reasons.append(f"no column is the time: {rate_hz:g} samples a second")
    return np.arange(len(next(iter(columns.values()), []))) / rate_hz


def _gaze(path: Path, columns: dict[str, Array], seconds: Array, proposal: Proposal) -> None:
    """Columns, unit and axis of gaze."""
    names = _axes(columns)
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
    down = unit in {"px", "image"}
    if unit == "vector":
        down = "gaze_point_3d" in names[0] and not _is_unit(points)  # in the coordinates of a scene camera
        _say_lengths(names, points[seen], proposal)
    proposal.plain |= {"gaze_unit": unit, "y_axis": "down" if down else "up"}
    zeros = float(np.mean((points == 0.0).all(axis=1)))
    if zeros > 0.0 and unit in {"px", "image", "vector"}:
        proposal.plain["zero_is_lost"] = True
        proposal.reasons.append(f"{zeros:.1%} of the samples are 0 in all components: the eye was lost")
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
        proposal.assumed.append(
            "is it the image of a scene camera, on glasses? All angles depend on that camera's field"
        )


def _rate_hz(steps: Array, middle: float) -> float:
    """Samples by the time that they take, pauses of a tracker left out; steps of a few sizes have no honest middle."""
    usual = steps[(steps > 0) & (steps < 10.0 * middle)]
    return len(usual) / float(usual.sum())


def _say_lengths(names: Sequence[str], points: Array, proposal: Proposal) -> None:
    """Whether three components are a direction, and where it points."""
    if not _is_unit(points):
        low, high = np.percentile(np.linalg.norm(points, axis=1), [5.0, 95.0])
        proposal.unusual.append(
            f"columns {', '.join(map(repr, names))} have lengths of {low:.3g} to {high:.3g}, and a direction has 1. Is "
            "it the point that is looked at, seen from the eye? A position of the eye is not gaze"
        )
    if float(np.median(points[:, 2])) < 0.0:
        proposal.unusual.append(
            f"column {names[2]!r} is negative straight ahead, as OpenXR has it: change its sign in the file. Else all "
            "gaze lies behind the wearer, and is lost"
        )


def _axes(columns: Mapping[str, Array]) -> list[str]:
    """Columns of x and y, or of x, y and z, whose names differ by the axis alone; a direction outranks a position."""
    found: list[tuple[int, int, list[str]]] = []
    for place, name in enumerate(columns):
        for axis, second, third in _AXES:
            if re.search(axis, name) is None:
                continue
            plain = re.sub(axis, "", name)
            partner, depth, fourth = (_partner(columns, name, axis, letter) for letter in (second, third, "w"))
            if partner is None or fourth is not None:  # x, y, z and w turn a head
                continue
            names = [name, partner, *([depth] if depth is not None else [])]
            unit = depth is not None and _is_unit(np.column_stack([columns[own] for own in names]))
            if _NOT_GAZE.search(plain) or not (_GAZE.search(name) or (unit and _DIRECTION.search(name))):
                continue
            rank = 8 * bool(_unit(name, ("deg",))) + 4 * unit + 2 * ("gaze" in name.lower())
            rank += (
                bool(_BOTH.search(name)) + ("3d" in name.lower() and depth is not None) - 8 * bool(_AT.search(plain))
            )
            found.append((-rank, place, names))
            break
    return min(found)[2] if found else []


def _partner(names: Iterable[str], name: str, axis: str, letter: str) -> str | None:
    """The column that is called as this one, but for the axis."""
    if not letter:
        return None
    wanted = re.sub(axis, letter, name, count=1).lower()
    return next((known for known in names if known.lower() == wanted != name.lower()), None)


def _is_unit(points: Array) -> bool:
    """Whether components are of directions: of length 1, where they are not all 0."""
    lengths = np.linalg.norm(points[np.isfinite(points).all(axis=1)], axis=1)
    lengths = lengths[lengths > 0.0]
    return len(lengths) > 0 and float(np.mean(np.abs(lengths - 1.0) < 0.01)) > 0.9


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
    _losses(columns, proposal)


def _losses(columns: dict[str, Array], proposal: Proposal) -> None:
    """Columns of what was not tracked: flags, codes, the numbers of blinks, and lids."""
    named = proposal.tables["columns"]
    gaze = str(named["gaze"][0])  # type: ignore[index]
    tracked = []
    for name, values in columns.items():
        known = values[np.isfinite(values)]
        few = len(np.unique(known)) <= 8
        if _LOST.search(name) and "lost" not in named and len(known) < len(values) + (few or "id" in name.lower()):
            marked = float(np.mean(np.nan_to_num(values) != 0.0))
            if marked < 0.5:
                named["lost"] = name
                proposal.reasons.append(f"column {name!r}: neither empty nor 0 where the eye was lost, {marked:.1%}")
        elif _VALID.search(name) and few and not _OTHERS.search(name) and len(known):
            tracked.append(name)
    tracked.sort(
        key=lambda name: (
            bool(_PUPIL.search(name)),
            bool(_ONE_EYE.search(name)) and not _ONE_EYE.search(gaze),
            not _BOTH.search(name),
            -_likeness(name, gaze),
        )
    )
    for name in tracked[:1]:
        marked = float(np.mean(np.nan_to_num(columns[name]) != 0.0))
        if marked >= 0.5:
            named["valid"] = name
            proposal.reasons.append(f"column {name!r}: 0 where the eye was not tracked, {1.0 - marked:.1%}")
        elif "lost" not in named and re.search("valid", name, re.I):  # Tobii Studio: 0 is sure, 4 is lost
            named["lost"] = name
            proposal.reasons.append(f"column {name!r}: a code that is not 0 where the eye was lost, {marked:.1%}")
    lids = [name for name in columns if _OPEN.search(name) and not _VALID.search(name)]
    parts = [columns[name][np.isfinite(columns[name])] for name in lids]
    if lids and all(len(part) and part.min() >= 0.0 and part.max() <= 1.05 and np.median(part) > 0.3 for part in parts):
        named["openness"] = lids[:2]
        proposal.plain["openness_min"] = 0.2
        told = ", ".join(map(repr, lids[:2]))
        proposal.reasons.append(
            f"columns {told}: how far the lids are open, 0 to 1; below 0.2 of both the eye is closed"
        )


def _likeness(name: str, other: str) -> float:
    return SequenceMatcher(None, name.lower(), other.lower()).ratio()


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


def profile_text(profile: Profile) -> str:
    """TOML that `eyestream.gaze.profile_text.parse_profile` turns into the same profile; every value written out."""
    plain, tables = [], []
    for outer in dataclasses.fields(profile):
        value = getattr(profile, outer.name)
        if dataclasses.is_dataclass(value):
            tables.append(f"\n[{outer.name}]")
            tables += [
                f"{inner.name} = {toml_value(getattr(value, inner.name))}" for inner in dataclasses.fields(value)
            ]
        elif value is not None:
            plain.append(f"{outer.name} = {toml_value(value)}")
    return "\n".join([*plain, *tables]) + "\n"


def toml_value(value: Any) -> str:
    """Text, number, truth or a list of them, as TOML has it."""
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # a basic string of TOML
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)
