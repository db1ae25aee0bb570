"""Feature recordings as Parquet: where pyarrow is, round trips and refusals; where it is not, the extra is named."""

import sys
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import ConfigError, RecordingError
from eyestream.rim.files.recordings import Recording, load, save


def recording() -> Recording:
    features = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32).astype(np.float64)
    features[1, 0] = features[4] = np.nan
    return Recording(np.arange(20) / 2.0, features, ("a", "b, c", "d"))


@pytest.mark.needs("pyarrow")
def test_round_trip(tmp_path: Path) -> None:
    save(recording(), tmp_path / "a.parquet")
    read = load(tmp_path / "a.parquet")
    np.testing.assert_array_equal(read.t, recording().t)
    np.testing.assert_array_equal(read.features, recording().features)
    assert read.names == recording().names


@pytest.mark.needs("pyarrow")
def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    save(recording(), path)
    data = path.read_bytes()
    for damaged in (b"", data[:-1], data[: len(data) // 2], b"PAR1" + bytes(50)):
        path.write_bytes(damaged)
        with pytest.raises(RecordingError, match=r"is not a \.parquet recording, or a damaged one"):
            load(path)
    for table, message in (
        ({"t_s": [0.0, 1.0], "a": ["x", "y"]}, "column a: expected numbers, found string"),
        ({"t_s": [0.0, 1.0]}, "at least one feature"),
        ({"t_s": [1.0, 0.0], "a": [1.0, 2.0]}, "time does not increase"),
        ({"t_s": [None, 1.0], "a": [1.0, 2.0]}, "the time is not a number"),
    ):
        parquet.write_table(arrow.table(table), path)
        with pytest.raises(RecordingError, match=message):
            load(path)
    parquet.write_table(arrow.table({"t_s": [0, 1], "a": [1, None]}), path)
    np.testing.assert_array_equal(load(path).features, [[1.0], [np.nan]])


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ConfigError, match=r"pip install 'eyestream-lab\[parquet\]'"):
        load(tmp_path / "a.parquet")
    with pytest.raises(ConfigError, match=r"pip install 'eyestream-lab\[parquet\]'"):
        save(recording(), tmp_path / "b.parquet")
