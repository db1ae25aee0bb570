"""Gaze in XDF files (github.com/sccn/xdf/wiki/Specifications), as recorders of Lab Streaming Layer write them.

The stream is the one that has channels with the labels that the profile calls its columns; units are those that the
channels tell. pyxdf reads it (extra `xdf`); whether the file is whole is looked at here, because pyxdf reads a part of
a file as if it were all of it.
"""

import gzip
import struct
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np

from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.delimited import is_packed, reading
from eyestream.rim.files.formats import Format
from eyestream.rim.files.gaze_columns import UNITS, GazeColumns, wanted_columns

_HEADER, _FOOTER = 2, 6
_LENGTHS = {1: "<B", 4: "<I", 8: "<Q"}
# What pyxdf, XML and numpy raise for a file with wrong bytes in it.
_DAMAGED = (OSError, EOFError, ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error, ParseError)


def read_xdf(path: Path, profile: Profile) -> GazeColumns:
    """Times (s, of the recording's clock) and the channels that the profile names.

    Raises
    ------
    RecordingError
        when the file is damaged or cut off, no stream or more than one has the channels, or their units are missing or
        others.
    ConfigError
        when pyxdf is not installed, or the profile's time is not in seconds.
    """
    if profile.time_unit != "s":
        raise ConfigError(f'{path}: XDF tells time in seconds: profile {profile.name} needs time_unit = "s"')
    try:
        import pyxdf  # noqa: PLC0415  an extra
    except ImportError:
        raise ConfigError(f"{path}: XDF needs pyxdf: pip install 'eyestream-lab[xdf]'") from None
    _check_whole(path)
    options = {"synchronize_clocks": False, "dejitter_timestamps": False, "verbose": False}
    try:
        streams, _ = pyxdf.load_xdf(str(path), **options)
        found = [(stream, _labels(stream)) for stream in streams]
        wanted = set(profile.columns.gaze)
        fits = [(stream, labels) for stream, labels in found if wanted <= labels.keys()]
    except _DAMAGED as error:
        raise RecordingError(f"{path}: is not an XDF file, or a damaged one ({type(error).__name__})") from None
    if len(fits) != 1:
        names = ", ".join(repr(name) for name in profile.columns.gaze)
        how_many = "no stream has" if not fits else f"{len(fits)} streams have"
        raise RecordingError(f"{path}: {how_many} the channels {names} of profile {profile.name}: one is wanted")
    ((stream, labels),) = fits
    return _columns(path, profile, stream, labels)


def _columns(path: Path, profile: Profile, stream: dict[str, Any], labels: dict[str, tuple[int, str]]) -> GazeColumns:
    time, pupil = profile.columns.time, profile.columns.pupil
    numbers = [name for name in wanted_columns(profile, [*labels]) if name != time]
    for name in numbers:
        if name not in labels:
            raise RecordingError(f"{path}: no channel {name!r}; the channels are {', '.join(map(repr, labels))}")
    units = {**dict.fromkeys(profile.columns.gaze, profile.gaze_unit), **dict.fromkeys(pupil, profile.pupil_unit)}
    for name in numbers:
        unit = units.get(name)
        if unit is not None and labels[name][1].lower() not in UNITS.get(unit, {unit}):
            told = f"its unit is {labels[name][1]!r}" if labels[name][1] else "it has no unit"
            raise RecordingError(f"{path}: channel {name!r}: {told}, {unit!r} is wanted by profile {profile.name}")
    try:
        values = np.asarray(stream["time_series"], dtype=np.float64).reshape(-1, len(labels))
        times = np.asarray(stream["time_stamps"], dtype=np.float64)
    except (ValueError, TypeError):
        raise RecordingError(f"{path}: the stream of gaze holds no numbers") from None
    table: dict[str, Any] = {name: values[:, labels[name][0]] for name in numbers}
    return GazeColumns.of(profile, table | {time: times})


def _labels(stream: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Index and unit of the channels of a stream that tells their labels."""
    description = (stream["info"].get("desc") or [None])[0] or {}
    channels = ((description.get("channels") or [None])[0] or {}).get("channel") or []
    texts = [tuple((channel.get(key) or [""])[0] or "" for key in ("label", "unit")) for channel in channels]
    if len(texts) != int(stream["info"]["channel_count"][0]) or len({label for label, _ in texts}) != len(texts):
        return {}
    return {label: (index, unit) for index, (label, unit) in enumerate(texts)}


def _check_whole(path: Path) -> None:
    """The chunks fill the file, and every stream that begins also ends."""
    with reading(path):
        data = gzip.decompress(path.read_bytes()) if is_packed(path) else path.read_bytes()
    if data[:4] != b"XDF:":
        raise RecordingError(f"{path}: is not an XDF file")
    at, begun, ended = 4, 0, 0
    while at < len(data):
        form = _LENGTHS.get(data[at])
        if form is None:
            raise RecordingError(f"{path}: is a damaged XDF file")
        if at + 1 + data[at] > len(data):
            raise RecordingError(f"{path}: the XDF file is cut off")
        (length,) = struct.unpack_from(form, data, at + 1)
        at += 1 + data[at] + length
        if at > len(data) or length < 2:
            raise RecordingError(f"{path}: the XDF file is cut off")
        tag = int.from_bytes(data[at - length : at - length + 2], "little")
        begun, ended = begun + (tag == _HEADER), ended + (tag == _FOOTER)
    if ended < begun:
        raise RecordingError(f"{path}: the XDF file is cut off: {begun - ended} of {begun} streams have no end")


FORMAT = Format(gaze=read_xdf, packed=True)
