"""Folders of recordings that programs of others read and write: plain tables `t_s,x_deg,y_deg`, and who is who."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError
from eyestream.gaze.features import NAMES
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.corpus import PARTICIPANTS, Dataset, Part, open_corpus, participants_table
from eyestream_lab.corpora.kinds import ROWS, gaze_kind
from eyestream_lab.releases.gaze import places

UNNAMED = "recordings.tsv"
"""In a folder to name: pseudonym, recording, task."""


def write_recording(recording: GazeRecording, path: Path) -> None:
    """A table `t_s,x_deg,y_deg`, a line a sample; cells are empty where the eye was lost. Time begins at 0."""
    t = recording.samples.t - recording.samples.t[:1]
    lines = ["t_s,x_deg,y_deg"]
    for moment, (x, y) in zip(t.tolist(), places(recording).tolist(), strict=True):
        seen = math.isfinite(x) and math.isfinite(y)
        lines.append(f"{moment:.6f},{x:.4f},{y:.4f}" if seen else f"{moment:.6f},,")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def write_corpus(corpus: Dataset[GazeRecording], folder: Path) -> Dataset[GazeRecording]:
    """The corpus as such tables, with `participants.tsv`, in a new folder."""
    folder.mkdir(parents=True)
    parts = []
    for number, part in enumerate(corpus.parts):
        own = replace(part, recording=f"r{number:04}.csv")
        write_recording(corpus.load(part), folder / own.recording)
        parts.append(own)
    (folder / PARTICIPANTS).write_text(participants_table(corpus.label_names, parts), encoding="utf-8")
    return open_corpus(folder, gaze_kind(load_profile("degrees").at_rate(_rate(corpus))))


def _rate(corpus: Dataset[GazeRecording]) -> float:
    return corpus.load(corpus.parts[0]).profile.fixed_rate_hz


def load_released(folder: Path, corpus: Dataset[Any], who: str) -> dict[tuple[str, str], GazeRecording | Recording]:
    """What a system wrote, by person and task: recordings of gaze under the names of the raw ones, or as its own
    `participants.tsv` names them; those that end with .npz are rows of the 52 features.

    Raises
    ------
    ConfigError
        A recording is missing, or cannot be read.
    """
    if not (folder / PARTICIPANTS).exists():
        missing = [part.recording for part in corpus.parts if not (folder / part.recording).is_file()]
        if missing:
            raise ConfigError(
                f"{who}: wrote no {missing[0]}; expected a file for each of {len(corpus.parts)} recordings"
            )
        (folder / PARTICIPANTS).write_text(participants_table(corpus.label_names, corpus.parts), encoding="utf-8")
    profile = load_profile("degrees")
    found: dict[tuple[str, str], GazeRecording | Recording] = {}
    rows = any(folder.glob("*.npz"))
    released: Dataset[Any] = open_corpus(folder, ROWS if rows else gaze_kind(profile))
    for part in released.parts:
        one = found[part.person, part.task] = released.load(part)
        if isinstance(one, Recording) and one.names != NAMES:
            raise ConfigError(f"{who}: {part.recording} has {', '.join(one.names[:3])} ...; expected all 52 features")
    lacking = [part for part in corpus.parts if (part.person, part.task) not in found]
    if lacking:
        raise ConfigError(f"{who}: released nothing of {lacking[0].person} at {lacking[0].task}")
    return found


def write_side(sides: Sequence[tuple[str, str, GazeRecording]], folder: Path, *, named: bool) -> None:
    """Recordings (person or pseudonym, task, gaze) in a new folder, with a table of who they are of."""
    folder.mkdir(parents=True)
    lines = []
    for number, (person, task, recording) in enumerate(sides):
        lines.append(Part(person, f"r{number:04}.csv", task))
        write_recording(recording, folder / lines[-1].recording)
    text = participants_table((), lines)
    if named:
        (folder / PARTICIPANTS).write_text(text, encoding="utf-8")
    else:
        (folder / UNNAMED).write_text(text.replace("participant_id", "pseudonym", 1), encoding="utf-8")
