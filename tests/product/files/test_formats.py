"""Formats of recordings come in by a door that every distribution has, and the ending of a name decides."""

import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import ConfigError, EyestreamError, RecordingError
from eyestream.rim.files import formats, gaze, recordings
from eyestream.rim.files.profiles import load_profile

PAGE = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text().partition("## A format of your own")[2]
MODULE = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)[0]
ENTRY_POINTS = re.findall(r'```toml\n\[project\.entry-points\."(.*?)"\]\n(.*?)```', PAGE, flags=re.DOTALL)[0]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of the page, installed as pip does it."""
    group, points = ENTRY_POINTS
    about = tmp_path / "installed" / "angles-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: angles\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{points.replace(chr(34), '')}")
    (about.parent / "angles.py").write_text(MODULE)
    monkeypatch.syspath_prepend(about.parent)
    formats._installed.cache_clear()
    yield
    formats._installed.cache_clear()


@pytest.mark.usefixtures("installed")
def test_a_format_of_another_package_is_read_as_ours_are(tmp_path: Path) -> None:
    angles = np.column_stack([np.linspace(-3, 3, 500), np.zeros(500)])
    (path := tmp_path / "P33.ANGLES").write_bytes(angles.astype("<f4").tobytes())
    got = gaze.load_gaze(path, load_profile("degrees"))
    assert got.profile.rate_hz == 100.0
    np.testing.assert_allclose(got.samples.x, angles[:, 0], atol=1e-6)
    with pytest.raises(RecordingError, match="a recording is a"):
        recordings.load(path)
    with pytest.raises(RecordingError, match=r"is read from .*\.angles"):
        gaze.load_gaze(path.rename(tmp_path / "a.other"), load_profile("degrees"))


@pytest.mark.usefixtures("installed")
def test_a_packed_file_is_handed_on_only_where_the_format_takes_it(tmp_path: Path) -> None:
    (tmp_path / "a.angles.gz").write_bytes(b"")
    with pytest.raises(RecordingError, match="gaze is read from"):
        gaze.load_gaze(tmp_path / "a.angles.gz", load_profile("degrees"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.asc", "an EyeLink file: pip install eyestream-lab"),
        ("sub-01_physio.tsv.gz", "a BIDS file: pip install eyestream-lab"),
        ("a.XDF", r"an XDF file: pip install 'eyestream-lab\[xdf\]'"),
        ("a.parquet", r"a Parquet file: pip install 'eyestream-lab\[parquet\]'"),
    ],
)
def test_without_the_laboratory_its_formats_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setattr(formats, "_installed", dict)
    (tmp_path / name).write_bytes(b"")
    for read in (recordings.load, lambda path: gaze.load_gaze(path, load_profile("degrees"))):
        with pytest.raises(ConfigError, match=said):
            read(tmp_path / name)


def test_what_is_no_format_is_refused_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("dat", "eyestream.errors:ConfigError", "eyestream.formats")
    monkeypatch.setattr(formats, "_installed", lambda: {".dat": point})
    (tmp_path / "a.dat").write_bytes(b"")
    with pytest.raises(EyestreamError, match=r"eyestream\.errors:ConfigError: is no .*Format"):
        recordings.load(tmp_path / "a.dat")
