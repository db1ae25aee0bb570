"""Tables of gaze and events, as the profile `degrees` and `eyestream events` declare them."""

import gzip
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.samples import Samples

Array = NDArray[np.float64]
Labels = NDArray[np.str_]


def save_gaze(samples: Samples, labels: Labels, path: Path) -> None:
    """Write `t_s,x_deg,y_deg,pupil_mm,label`; cells are empty where the eye was lost."""
    numbers = (samples.t, _seen(samples, samples.x), _seen(samples, samples.y), samples.pupil_mm)
    _write(("t_s", "x_deg", "y_deg", "pupil_mm", "label"), numbers, labels, path)


def save_events(samples: Samples, events: Labels, path: Path) -> None:
    """Write `t_s,x_deg,y_deg,event`, one line a sample; cells are empty where the eye was lost."""
    numbers = (samples.t, _seen(samples, samples.x), _seen(samples, samples.y))
    _write(("t_s", "x_deg", "y_deg", "event"), numbers, events, path)


def _seen(samples: Samples, values: Array) -> Array:
    return np.where(samples.valid, values, np.nan)


def _write(header: Sequence[str], numbers: Sequence[Array], letters: Labels, path: Path) -> None:
    """A table with commas, packed when the name ends with .gz: the same table is the same bytes."""
    columns = [[format(value, ".6f") for value in numbers[0].tolist()]]
    for column in numbers[1:]:
        columns.append([format(value, ".4f") if math.isfinite(value) else "" for value in column.tolist()])
    lines = [",".join(header), *map(",".join, zip(*columns, letters.tolist(), strict=True))]
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.name.lower().endswith(".gz") else data)
