"""`eyestream inspect`: what a file of gaze holds, and the profile that reads it."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.doubt import GAZE_DOUBTS
from eyestream.gaze.entry import USUAL
from eyestream.gaze.profile import NEWEST
from eyestream.gaze.profile_text import parse_profile
from eyestream.rim.files.extraction import LEAST_FORWARD
from eyestream.rim.files.gaze import GazeRecording, load_gaze
from eyestream.rim.files.profiles import SHIPPED, load_profile
from eyestream.rim.files.recordings import check_file
from eyestream_lab.cli.options import check_targets
from eyestream_lab.events.labels import count, detect
from eyestream_lab.files.inspection import inspect_eyelink, inspect_table

_USUAL = {"fixations": (0.5, 5.0), "saccades": (0.5, 5.0), "blinks": (0.02, 0.8)}
"""Usual events a second, roughly: outside of this a unit or a column is wrong more often than the eye."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "inspect",
        help="look at a file of gaze, and propose the profile that reads it",
        description="Say which columns look like time, gaze, pupils and confidence. Say in which unit, by their names, "
        "range and speed, how many samples a second there are, and how many are lost. Propose a profile as TOML, read "
        "the file with it, and say whether the result looks like a person's gaze. FILE is only read.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help=".csv, .tsv, .txt or .asc, also with .gz, or .mat")
    parser.add_argument(
        "--columns", metavar="NAMES", help="names of the columns of a FILE without a header, by commas; - is none"
    )
    parser.add_argument("--rate", type=float, metavar="HZ", help="samples a second of a FILE without a column of time")
    parser.add_argument("--profile", metavar="P", help="try this profile instead of proposing one")
    parser.add_argument("--out", type=Path, metavar="TOML", help="write the proposed profile; must not exist")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="draw the first minute as it is read")


def main(options: argparse.Namespace) -> None:
    """Look, propose and try.

    Raises
    ------
    ConfigError
        The profile is unknown, or the proposal cannot be written.
    RecordingError
        The file is no table of gaze.
    """
    name = options.file.name.lower().removesuffix(".gz")
    check_file(options.file)
    if name.endswith(".npz"):
        raise RecordingError(f"{options.file}: .npz files hold rows, not gaze: try eyestream fit")
    if options.profile is None and not name.endswith((".csv", ".tsv", ".txt", ".asc", ".mat")):
        known = f"one of {', '.join(SHIPPED)}, or your own"
        raise RecordingError(f"{options.file}: not a table of text or MATLAB: try --profile with {known}")
    unusual: list[str] = []
    if options.profile is not None:
        gaze = load_gaze(options.file, load_profile(options.profile))
    else:
        names = options.columns.split(",") if options.columns else []
        gaze, unusual = _proposed(options.file, options.out, names, options.rate)
    _tried(gaze, unusual)
    if options.profile is None and options.out is not None:
        print(f"written: {options.out}. Next: eyestream extract {options.file} --profile {options.out} --out DIR")
    if options.picture is not None:
        check_targets([options.file], [options.picture], what="picture", plural="pictures")
        _draw(gaze, options.picture)


def _proposed(
    path: Path, out: Path | None, names: Sequence[str], rate_hz: float | None
) -> tuple[GazeRecording, list[str]]:
    is_eyelink = path.name.lower().removesuffix(".gz").endswith(".asc")
    proposal = inspect_eyelink(path) if is_eyelink else inspect_table(path, names, rate_hz)
    if out is not None:
        proposal.plain["name"] = re.sub(r"[^a-z0-9-]+", "-", out.stem.lower()).strip("-") or "mine"
    text = proposal.toml()
    for line in proposal.reasons:
        print(line)
    print(f"\n{text}")
    for line in proposal.assumed:
        print(f"not in the file: {line}")
    if out is not None:
        try:
            with out.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise ConfigError(f"{out}: exists already; nothing was written") from None
        except OSError as error:
            raise ConfigError(f"{out}: cannot be written: {error.strerror}") from None
    return load_gaze(path, parse_profile(text, "the proposed profile")), proposal.unusual


def _tried(gaze: GazeRecording, unusual: Sequence[str]) -> None:
    """Say what comes of it, and what is unusual."""
    runs = count(gaze.samples, *detect(gaze.profile, gaze.samples))
    t = gaze.samples.t[np.isfinite(gaze.samples.t)]
    seconds = max(float(t[-1] - t[0]), 1e-9) if len(t) else 1e-9
    lost = 1.0 - float(gaze.samples.valid.mean())
    print(f"\nread with it: {len(gaze.samples)} samples, {seconds:.0f} s, {lost:.1%} lost")
    strange = [*unusual] + (
        ["most samples are lost: gaze in another unit, or [camera] of another size"] if lost > 0.5 else []
    )
    kept = (
        float(np.mean(np.diff(np.maximum.accumulate(np.nan_to_num(gaze.samples.t, nan=-np.inf))) > 0))
        if len(t) > 1
        else 0
    )
    if kept < LEAST_FORWARD:
        strange.append(f"{1.0 - kept:.1%} of the times do not go forward: eyestream extract refuses the file")
    if seconds < USUAL.window_s:
        strange.append(
            f"{seconds:.0f} s is less than the {USUAL.window_s:g} s of a row: eyestream extract makes none. Join "
            "the trials of a person, with their times, into one file"
        )
    if gaze.doubt is not None:
        strange.append(GAZE_DOUBTS[gaze.doubt])
    for name, (least, most) in _USUAL.items():
        rate = runs[name[0].upper()] / seconds
        print(f"{name:<10} {rate:.2f} a second")
        if seconds >= 30.0 and not least <= rate <= most:
            strange.append(f"{rate:.2f} {name} a second; people have about {least:g} to {most:g}: check the unit")
    for line in strange:
        print(f"unusual: {line}")
    own = gaze.profile.detection.algorithm
    if own != NEWEST:
        print(
            f"counted as `eyestream events` counts, by algorithm {NEWEST}. Rows count by algorithm {own}: [detection]"
        )
    if not strange:
        print("this looks like a person's gaze")


def _draw(gaze: GazeRecording, target: Path) -> None:
    """The first minute, in degrees."""
    from eyestream_lab.study.figures import panels, to_png  # noqa: PLC0415  the rest does without matplotlib

    shown = gaze.samples.t <= gaze.samples.t[0] + 60.0
    t = gaze.samples.t[shown] - gaze.samples.t[0]
    figure, axes = panels(2, columns=1, height=2.2, share_y=False)
    for axis, values, label in zip(axes, (gaze.samples.x, gaze.samples.y), ("to the right", "up"), strict=True):
        axis.plot(t, values[shown], linewidth=0.8)
        axis.set_ylabel(f"{label}, degrees", fontsize=8)
    axes[-1].set_xlabel("s", fontsize=8)
    try:
        target.write_bytes(to_png(figure))
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror}") from None
