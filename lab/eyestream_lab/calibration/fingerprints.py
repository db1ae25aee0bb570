"""A calibration knows the recordings again that it was made from: hashes of whole recordings, and of rows.

A hash of the whole recording is lost when one cell is changed. So rows are hashed one by one, and of every `_WINDOW`
rows in sequence the smallest hash is kept ("winnowing", Schleimer, Wilkerson, Aiken, SIGMOD 2003): about one row in 16.
Whatever shares that many rows in sequence with a recording - cut, shifted, other rows changed - shares a fingerprint
with it. Not noticed: a copy of which every row is changed, if only by its last digit.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration

_WINDOW = 32


def recording_hash(features: NDArray[np.float64]) -> str:
    """Hash of a recording's rows (m, F) as a whole; 32 hexadecimal digits.

    Of the values as float32, so that a recording is known again in another file format.
    """
    digest = hashlib.blake2b(repr(features.shape).encode(), digest_size=16)
    digest.update(_single(features).tobytes())
    return digest.hexdigest()


def row_fingerprints(features: NDArray[np.float64]) -> NDArray[np.uint64]:
    """(K,) different hashes of some rows of a recording (m, F), increasing; K = 0 where no row tells anything.

    Rows that hold fewer than two different numbers are left out: many recordings share those.
    """
    rows = _single(features) + np.float32(0.0)  # -0 is 0
    rows[~np.isfinite(rows)] = np.nan  # one NaN for all
    telling = np.array([len(np.unique(row[np.isfinite(row)])) > 1 for row in rows], dtype=np.bool_)
    hashes = [int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest(), "little") for row in rows[telling]]
    if not hashes:
        return np.empty(0, dtype=np.uint64)
    every = np.array(hashes, dtype=np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(every, min(_WINDOW, len(every)))
    return np.unique(windows.min(axis=1))


def _single(features: NDArray[np.float64]) -> NDArray[np.float32]:
    """The values as float32, whatever they are; a copy or the array itself."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(features, dtype="<f4")


def made_from(calibration: Calibration, features: NDArray[np.float64]) -> bool:
    """Whether the recording with rows `features` (m, F), as it is, is one that a calibration was made from.

    The answer has no noise: it is for who holds the recording, and for nothing that is published.
    """
    return recording_hash(features) in calibration.provenance.recordings


def overlap(calibration: Calibration, features: NDArray[np.float64]) -> float:
    """Share of the recording with rows `features` (m, F) that a calibration was made from, by its fingerprints.

    1 when it is one of the recordings as it was; a calibration of version 0.1.0 knows whole recordings alone. As
    `made_from`, it is for who holds the recording.
    """
    if made_from(calibration, features):
        return 1.0
    own, known = row_fingerprints(features), calibration.fingerprints
    return float(np.isin(own, known).mean()) if len(own) and len(known) else 0.0
