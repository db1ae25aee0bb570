"""A deep attacker for `eyestream benchmark`: in this folder, `--attacker dense_network:dense_network`.

The network of `eyestream_lab.study.people.deep`, on velocities and places of samples. Needs the extra `deep`.
"""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files.profiles import load_profile
from eyestream_lab.benchmark.folders import UNNAMED
from eyestream_lab.corpora.corpus import PARTICIPANTS
from eyestream_lab.corpora.kinds import gaze_kind
from eyestream_lab.releases.deep import sample_rows
from eyestream_lab.study.people.deep import LearningSettings, sequence_scores

__all__ = ["dense_network"]

Sessions = dict[str, list[NDArray[np.float64]]]
"""By person or pseudonym, (n, 5) of each recording."""


def dense_network(
    labelled: Path, unnamed: Path, scores: Path, settings: type[LearningSettings] = LearningSettings
) -> None:
    """Write the cosine similarity of each pseudonym with each person, the mean over recordings, as a table."""
    known, unknown = _sessions(labelled, PARTICIPANTS), _sessions(unnamed, UNNAMED)
    found = sequence_scores(list(known.values()), list(unknown.values()), (), 0, settings)
    lines = [
        f"{pseudonym},{person},{score}"
        for pseudonym, own in zip(unknown, found, strict=True)
        for person, score in zip(known, own.mean(axis=0).tolist(), strict=True)
    ]
    scores.write_text("\n".join(["pseudonym,participant_id,score", *lines, ""]), encoding="utf-8")


def _sessions(folder: Path, table: str) -> Sessions:
    """Recordings of a folder by the first column of its table."""
    load, found = gaze_kind(load_profile("degrees")).load, Sessions()
    with (folder / table).open(newline="", encoding="utf-8") as file:
        for who, recording, *_ in list(csv.reader(file, delimiter="\t"))[1:]:
            found.setdefault(who, []).append(sample_rows(load(folder / recording)))
    return found
