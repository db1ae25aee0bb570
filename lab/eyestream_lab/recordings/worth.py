"""Whether recordings are worth their epsilon: looked at before anything is reserved, by who holds the raw data.

**A weak baseline.** Where fewer than half of a baseline's rows have values, its mean is off the person's. Of 30 people
of the corpus the squared error of that mean was 0.46 of the variance within a person with all rows, 0.65 with half of
them, 0.86 with one; with none, the whole recording is missing. The price is the same.

**What choosing tells.** Which rows are released does not depend on values. A *later* baseline shows in a release, as an
output without noise: let it be one of m times, chosen by looking. Then it tells up to log2(m) bits of the recordings,
and no epsilon bounds them. Chosen before anybody looked ("from the third minute on", says the protocol of a study) it
tells nothing. So it is the operator's public option, one for all recordings of a run, and nothing here takes it in
silence. Leaving a recording out of a data set is a choice of the same kind.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import LEAST_SEEN
from eyestream.core.calibration import Calibration
from eyestream.errors import CalibrationError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.fingerprints import made_from, overlap

Indices = NDArray[np.intp]

_MOST_SHARED = 0.1
"""Share of a recording's rows that may be in a calibration by chance: rows of a lost eye are all alike."""

_LEAST_DISTINCT = 0.5
"""Share of a recording's rows, for one of them to tell whose it is. Where rows are categories, everybody
has the same few."""


def refuse_own_people(calibration: Calibration, recording: Recording, name: str) -> None:
    """Raise CalibrationError where the calibration was made from rows of the recording `name`.

    Its figures are public, and without noise: nothing could be claimed of a release of the people it was made from.
    Rows are known again by their fingerprints, also where a recording was cut. Rows of another profile are not. Where
    most rows are alike, only the whole recording is known again.
    """
    rows = np.nan_to_num(recording.features[np.isfinite(recording.features).any(axis=1)])
    distinct = len(np.unique(rows, axis=0)) >= _LEAST_DISTINCT * len(rows)
    shared = overlap(calibration, recording.features) if distinct else float(made_from(calibration, recording.features))
    if shared > _MOST_SHARED:
        raise CalibrationError(
            f"{name}: the calibration was made from this recording, so nothing could be claimed of its release: take a "
            "calibration of other people"
        )


def obstacles(
    recordings: Sequence[Recording], calibration: Calibration, released: Indices, *, first: int = 0, baseline: int = 0
) -> Iterator[str]:
    """One line for each reason not to release a recording; it is about raw values, and not to be published.

    Parameters
    ----------
    released
        (d,) which features are.
    first, baseline
        Row at which a release begins, and how many rows from there make a baseline; 0: it takes none.
    """
    known: dict[bytes, str] = {}
    for recording in recordings:
        seen, rows = _seen(released, recording)[first:], blake2b(recording.features.tobytes()).digest()
        after, chunk = seen[baseline:], min(calibration.n, max(len(seen) - baseline, 0))
        if rows in known:
            yield f"{recording.path}: holds the very rows of {known[rows]}: they would be released and charged twice"
        known.setdefault(rows, recording.path)
        if len(after) == 0:
            yield f"{recording.path}: has {len(recording.t)} rows, expected more than {first + baseline}" + (
                f", as its baseline takes {baseline}" if baseline else ""
            )
        elif seen[:baseline].sum() < LEAST_SEEN * baseline:
            yield (
                f"{recording.path}: {int(seen[:baseline].sum())} of the {baseline} rows of its baseline have values, "
                f"expected {LEAST_SEEN:.0%}: all that is released would hang on them"
            )
        elif after.sum() < LEAST_SEEN * chunk:
            yield f"{recording.path}: {int(after.sum())} of its {len(after)} rows have values, expected half a chunk"


def better_start(
    recordings: Sequence[Recording], calibration: Calibration, released: Indices, *, first: int, baseline: int
) -> int | None:
    """The first whole second after row `first` where all recordings have enough for a baseline; None: there is none.

    To be offered to the operator, with what choosing it tells.
    """
    all_seen, rate = [_seen(released, recording) for recording in recordings], calibration.rate_hz
    longest = min(len(seen) for seen in all_seen) - baseline
    for second in range(int(first / rate) + 1, int(longest / rate) + 1):
        row = int(np.ceil(second * rate))
        if row < longest and all(seen[row : row + baseline].mean() >= LEAST_SEEN for seen in all_seen):
            return second
    return None


def without_values(
    recording: Recording, calibration: Calibration, released: Indices, *, first: int = 0, baseline: int = 0
) -> tuple[str, ...]:
    """Features that are missing from all that is released: without any value in the baseline, or in the recording."""
    rows = recording.features[first : first + baseline] if baseline else recording.features[first:]
    seen = np.flatnonzero(np.isfinite(rows).any(axis=0))
    return tuple(calibration.names[index] for index in released if index not in seen)


def _seen(released: Indices, recording: Recording) -> NDArray[np.bool_]:
    """(m,) whether a row has values: at least half of those that are released."""
    present = np.isfinite(recording.features[:, released])
    return np.asarray(present.mean(axis=1) >= LEAST_SEEN)
