"""No raw value makes numpy warn: a line in a log, or a process that ends, would tell of the value.

The suite turns warnings into errors, as an operator may.
"""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.chunking.chunks import ChunkBuffer
from eyestream.core.frame import Domain
from eyestream.core.mechanisms import build
from eyestream.core.whole import release_rows
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.wire.envelope import from_bin, to_bin
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.calibration.fingerprints import recording_hash, row_fingerprints
from eyestream_lab.fpa import FPA

SIGNALLING = 0x7F800001
CASES = [
    ("everyday-lpa-32", {}),
    ("everyday-cfpa-32", {"k": 3}),
    ("everyday-cfpa-32", {"k": 17, "clip": True}),
    ("everyday-dcfpa-32", {"smooth": True}),
    ("everyday-klt-32", {}),
]


@pytest.fixture(autouse=True)
def as_errors() -> None:
    """Also when this file is run with other settings."""
    warnings.simplefilter("error")


def singles(patterns: NDArray[np.uint32]) -> NDArray[np.float32]:
    return patterns.view(np.float32)


def every_nan() -> NDArray[np.uint32]:
    """(2^24 - 2,) bit patterns of all NaNs of float32, quiet and signalling, of both signs."""
    payloads = np.arange(1, 2**23, dtype=np.uint32)
    return np.concatenate([0x7F800000 + payloads, 0xFF800000 + payloads])


def hostile(seed: int, rows: int) -> NDArray[np.float32]:
    """(rows, 52) NaNs of all kinds, infinities, subnormals, the largest numbers, zeros of both signs, and any bits."""
    rng = np.random.default_rng(seed)
    special = [SIGNALLING, 0xFF800001, 0x7FC00000, 0x7FFFFFFF, 0x7F800000, 0xFF800000, 1, 0x007FFFFF, 0x80000001]
    special += [0x7F7FFFFF, 0xFF7FFFFF, 0, 0x80000000]
    some = rng.choice(np.array(special, dtype=np.uint32), (rows, 52))
    return singles(np.where(rng.random((rows, 52)) < 0.7, some, rng.integers(0, 2**32, (rows, 52), dtype=np.uint32)))


def test_control_a_signalling_nan_warns_where_nothing_is_done() -> None:
    with pytest.raises(RuntimeWarning):
        np.zeros(1)[:] = singles(np.array([SIGNALLING], dtype=np.uint32))


def test_every_nan_goes_into_a_chunk_and_is_imputed() -> None:
    patterns = every_nan()
    assert len(patterns) == 2**24 - 2
    for part in np.array_split(patterns, 64):
        values = singles(part)[: len(part) // 64 * 64].reshape(64, -1)  # 64 rows
        buffer = ChunkBuffer(64, values.shape[1])
        buffer.put(0, values[:40])
        buffer.put(30, values[30:])  # ten of them twice
        chunk = buffer.values()
        assert np.isnan(chunk).all()
        domain = Domain(*(np.full(len(chunk), bound) for bound in (-1.0, 1.0, 0.25)), 64)
        assert (domain.admit(chunk) == 0.25).all()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_releases_of_hostile_rows(name: str, options: dict[str, object]) -> None:
    session = build(calibrations.load(name), 4.8, **options).session()
    for seed in range(20):
        rows = hostile(seed, 32)
        buffer = ChunkBuffer(32, 52)
        buffer.put(0, rows)
        assert np.isfinite(session.release(buffer.values())).all()
        assert np.isfinite(session.release(rows.T)).all()  # float32, as a library user may
        huge = 1e308 * np.random.default_rng(seed).choice([-1.0, 1.0, 5e-324], (52, 32))
        assert np.isfinite(session.release(huge)).all()


def test_whole_recordings_files_and_hashes(tmp_path: Path) -> None:
    rows = hostile(0, 100)
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
    wide[0, 0] = 1e300
    calibration = calibrations.load("everyday-cfpa-32")
    assert np.isfinite(release_rows(FPA(calibration, 4.8, 100), wide)).all()
    names = calibration.names
    for name in ("a.npz", "a.csv"):
        recordings.save(Recording(np.arange(100) / 2.0, wide, names), tmp_path / name)
        again = recordings.load(tmp_path / name).features
        assert recording_hash(again) == recording_hash(recordings.load(tmp_path / name).features)
    np.savez(tmp_path / "b.npz", t=np.arange(100) / 2.0, features=rows, names=np.array(names))
    loaded = recordings.load(tmp_path / "b.npz")
    assert len(row_fingerprints(loaded.features)) > 0
    people = [Recording(np.arange(100) / 2.0, wide, names, "somebody")]
    assert np.isfinite(Corpus.of(people, 32).chunks).all()


def test_the_wire_both_ways() -> None:
    rows = hostile(1, 50)
    shape, data = to_bin(rows)
    assert from_bin(shape, data).tobytes() == rows.tobytes()
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64) * 1e200
    assert to_bin(wide)[0] == (50, 52)
