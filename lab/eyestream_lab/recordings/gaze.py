"""Releases of recorded gaze, slot by slot: what makes the slots, and how the release is written.

A file has `t` (m,), the middles of the slots on the recording's own clock in seconds; `gaze` (m, 2), degrees to the
right and up; and `gaze_error`, `lost` and `word`, (m,) each. `claim.json` beside the files says what holds of each.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.entry import referred
from eyestream.core.mechanisms.registry import entry_of
from eyestream.gaze.entry import USUAL, FrontEndEntry
from eyestream.rim.files.recordings import Recording
from eyestream.streams import GAZE
from eyestream_lab.recordings.released import Released


def front_end_of(calibration: Calibration) -> FrontEndEntry:
    """The front end that makes the rows of a calibration from gaze."""
    own = entry_of(calibration.mechanism).front_end
    made: FrontEndEntry = USUAL if own is None else referred(own)(calibration)
    return made


def save_released_gaze(recording: Recording, path: Path) -> None:
    """Write a release of gaze."""
    columns = dict(zip(recording.names, recording.features.T, strict=True))
    gaze = np.stack([columns.pop(name) for name in GAZE], axis=1)
    with open(path, "wb") as file:  # a file object, so that numpy adds no suffix
        np.savez_compressed(file, t=recording.t, gaze=gaze, **columns)


def write_claim(released: Sequence[Released], files: Sequence[Path], path: Path) -> None:
    """Write the claim of several releases of one mechanism; each file's own claim is in it."""
    first = released[0].guarantee
    told = {
        "claim": 1,
        "unit": first.loss.unit,
        "epsilon": float(first.loss.epsilon),
        "slot_s": first.seconds,
        "t": released[0].t,
        "epsilon_in_any": {str(seconds): float(epsilon) for seconds, epsilon in first.in_any.items()},
        "use": first.protection.use,
        "files": {
            file.name: {"slots": one.chunks, "epsilon": one.epsilon} for file, one in zip(files, released, strict=True)
        },
        "guarantee": first.claim(),
    }
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
