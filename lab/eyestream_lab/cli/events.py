"""`eyestream events`: fixations, saccades and blinks of recordings of gaze."""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np

from eyestream.cli.options import add_profile
from eyestream.errors import ConfigError
from eyestream.gaze.doubt import GAZE_DOUBTS
from eyestream.gaze.profile import NEWEST, Algorithm, Profile
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.cli.options import check_targets
from eyestream_lab.events.labels import count, detect
from eyestream_lab.events.scoring import KINDS, Score
from eyestream_lab.files.gaze_writing import save_events

_PLURALS = {"F": "fixations", "S": "saccades", "B": "blinks"}
_OTHER_WORDS = "most labels are other words than F, S, B (or fixation, saccade, blink), and are left out of the scores"


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "events",
        help="fixations, saccades and blinks of recordings of gaze, scored where labels are",
        description="Find events as they can be found live, and write DIR/FILE for each: t_s,x_deg,y_deg,event, one "
        "line a sample, event being F fixation, S saccade, B blink or - none. Where a file has labels, say how well "
        "they agree: F1 of samples, F1 of events (an event is found when it is the first to overlap a true one, each "
        "counted once) and kappa; samples with other labels, as pursuits and noise, are left out.",
    )
    parser.add_argument("gaze", nargs="+", type=Path, metavar="FILE", help="as the profile declares it, also with .gz")
    add_profile(parser, required=True)
    parser.add_argument("--out", type=Path, metavar="DIR", help="made if it does not exist; without it only count")
    parser.add_argument(
        "--algorithm",
        type=int,
        choices=get_args(Algorithm),
        default=NEWEST,
        metavar="N",
        help="2: lids are found where no loss is reported, and saccades are whole; 1: as rows count them, unless "
        "their profile has another one (default %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object: each of the files, and all of them")


def main(options: argparse.Namespace) -> None:
    """Find, write and count.

    Raises
    ------
    ConfigError
        There is no such profile, two files have one name, or DIR cannot be written.
    RecordingError
        A file is not what the profile declares.
    """
    profile = load_profile(options.profile)
    if options.out is not None:
        targets = [options.out / path.name for path in options.gaze]
        check_targets(options.gaze, targets, what="events", plural="events")
    told: list[dict[str, Any]] = []
    scores: list[Score] = []
    for path in options.gaze:
        said, score = _found(path, profile, options)
        scores += [] if score is None else [score]
        told.append(said)
        if not options.json:
            print(_line(str(path), said))
    counted = ("samples", "lost", *_PLURALS.values())
    whole: dict[str, Any] = {key: sum(said[key] for said in told) for key in counted}
    if scores:
        whole |= _agreement(sum(scores[1:], scores[0]))
    if options.json:
        print(json.dumps({"profile": profile.name, "files": told, "all": whole}))
    elif len(told) > 1:
        print(_line("all", whole))


def _found(path: Path, profile: Profile, options: argparse.Namespace) -> tuple[dict[str, Any], Score | None]:
    """Write the events of one recording; gives the line on it, and its score where it has labels."""
    gaze = load_gaze(path, profile)
    events, found = detect(gaze.profile, gaze.samples, options.algorithm)
    if options.out is not None:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            save_events(gaze.samples, found, options.out / path.name)
        except OSError as error:
            raise ConfigError(f"{options.out}: cannot be written: {error.strerror}") from None
    runs = count(gaze.samples, events, found)
    said: dict[str, Any] = {"file": str(path), "rate_hz": gaze.profile.fixed_rate_hz, "samples": len(found)}
    said["lost"] = int(np.count_nonzero(~gaze.samples.valid))
    said |= {name: runs[kind] for kind, name in _PLURALS.items()}
    if gaze.doubt is not None:
        print(f"eyestream events: warning: {path}: {GAZE_DOUBTS[gaze.doubt]}", file=sys.stderr)
    if gaze.labels is None:
        return said, None
    known, other = np.isin(gaze.labels, list(_PLURALS)), gaze.labels == "?"
    if other.sum() > known.sum():
        print(f"eyestream events: warning: {path}: {_OTHER_WORDS}", file=sys.stderr)
    if not known.any():
        return said, None
    score = Score.of(gaze.labels, found)
    return said | _agreement(score), score


def _agreement(score: Score) -> dict[str, Any]:
    """The score for JSON: null where there was nothing to find."""

    def number(value: float) -> float | None:
        return round(value, 4) if math.isfinite(value) else None

    return {
        "labelled": score.known,
        "f1_samples": {kind: number(score.samples[kind].f1) for kind in KINDS},
        "f1_events": {kind: number(score.events[kind].f1) for kind in KINDS},
        "kappa": {kind: number(score.kappa(kind)) for kind in KINDS},
    }


def _line(name: str, said: dict[str, Any]) -> str:
    counts = ", ".join(f"{said[key]} {key}" for key in ("samples", "lost", *_PLURALS.values()))
    line = f"{name}: {counts}"
    if "kappa" in said:

        def three(values: dict[str, float | None]) -> str:
            return " ".join(f"{kind} {'-' if value is None else f'{value:.3f}'}" for kind, value in values.items())

        line += f"; F1 of samples {three(said['f1_samples'])}; of events {three(said['f1_events'])}"
        line += f"; kappa {three(said['kappa'])}"
    return line
