"""Layouts of published data sets, each on a small made-up file; and what is refused."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.features import NAMES as FEATURES_52
from eyestream.rim.files import recordings
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.files.layouts import SHIPPED, labels_of, load_features, load_gaze, load_layout

PAGE = Path(__file__).resolve().parents[3] / "docs/datasets.md"


def table(path, columns, rows=3, delimiter=","):
    """Value of row i and column j: 100 i + j."""
    lines = [delimiter.join(str(100 * i + j) for j in range(columns)) for i in range(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_mpiidpeye(tmp_path, delimiter):
    layout = load_layout("mpiidpeye")
    path = table(tmp_path / "Data_P7_R2_Pami_Features_52.csv", 52, delimiter=delimiter)
    recording = load_features(path, layout)
    assert recording.names == FEATURES_52
    np.testing.assert_array_equal(recording.t, [30.0, 30.5, 31.0])
    assert recording.features[2, 51] == 251
    assert labels_of(path, layout) == {"person": "7", "document": "newspaper"}


def test_mpiiprivaceye_leaves_what_follows_the_features_unread(tmp_path):
    layout = load_layout("mpiiprivaceye")
    path = tmp_path / "P1_R3_data.csv"
    path.write_text(
        "\n".join(",".join([*(str(j) for j in range(52)), "0.5", "private, they said"[:7]]) for _ in range(2))
    )
    recording = load_features(path, layout)
    assert recording.features.shape == (2, 52)
    np.testing.assert_array_equal(recording.t, [30.0, 31.0])
    assert labels_of(path, layout) == {"person": "1", "session": "3"}


def test_the_command_makes_rows_and_the_labels_that_the_study_reads(tmp_path, capsys):
    files = [table(tmp_path / f"Data_P{p}_R{r}_Pami_Features_52.csv", 52) for p in (1, 2) for r in (1, 3)]
    words = ["extract", *map(str, files), "--layout", "mpiidpeye", "--labels", str(tmp_path / "labels.csv")]
    main([*words, "--out", str(tmp_path / "rows")])
    with (tmp_path / "labels.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["person"], line["document"]) for line in lines] == [
        ("1", "comic"),
        ("1", "textbook"),
        ("2", "comic"),
        ("2", "textbook"),
    ]
    assert sorted(line["recording"] for line in lines) == sorted(path.stem for path in (tmp_path / "rows").iterdir())
    assert recordings.load(tmp_path / "rows" / f"{files[0].stem}.npz").rate_hz == 2.0
    with pytest.raises(SystemExit):
        main([*words, "--out", str(tmp_path / "again"), "--profile", "degrees"])
    assert "holds rows of features, no gaze" in capsys.readouterr().err


@pytest.fixture
def published(tmp_path):
    """The layout and the profile that the page shows."""
    paths = []
    for text in re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL):
        name = re.match(r"# (\S+\.toml):", text)
        assert name is not None
        paths.append(tmp_path / name[1])
        paths[-1].write_text(text)
    return paths


def dgaze_file(path, *, hz=100.0, seconds=40.0, names="Timestamp\tGazeX\tGazeY\tHeadVelX\tHeadVelY\tScene"):
    """Gaze that goes slowly to the right, and a column that nobody names."""
    lines = [f"{i * 1000 / hz}\t{0.1 * (i % 100)}\t0.5\t{i * 0.01}\t{-i * 0.02}\t7" for i in range(int(hz * seconds))]
    path.write_text("\n".join([names, *lines]) + "\n")
    return path


def ehtask_file(path, columns=8, ms=10):
    """As the published files are, 40 s: the eyes go to the right in steps of a hundredth of the screen."""
    lines = []
    for i in range(4000):
        values = [
            1_600_000_000_000 + i * ms,
            1 + i * 3 // 10,
            i * 0.01,
            -i * 0.02,
            f"{0.4 + 0.01 * (i // 50 % 20):.2f}",
        ]
        lines.append("\t".join(map(str, [*values, "0.50", "12.5", "-3.1"][:columns])))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_ehtask(tmp_path, capsys):
    layout, profile = load_layout("ehtask"), load_profile("ehtask")
    path = ehtask_file(tmp_path / "User_07_Video_02_Task_3.txt")
    got, head = load_gaze(path, profile, layout)
    assert labels_of(path, layout) == {"person": "07", "video": "02", "task": "saliency"}
    assert got.profile.rate_hz == 100.0
    assert got.samples.valid.all()
    np.testing.assert_allclose(head["head_latitude"], -0.02 * np.arange(4000))
    assert set(head) == {"head_longitude", "head_latitude"}
    # the authors' formula: an eye before the middle of 1080 x 1200 pixels, 110 degrees high; half the height is up
    right = np.rad2deg(np.arctan((0.59 - 0.5) * 1080 / (600 / np.tan(np.deg2rad(55)))))
    np.testing.assert_allclose([got.samples.x[-1], got.samples.y[-1]], [right, 0.0], atol=0.01)
    main(["extract", str(path), "--layout", "ehtask", "--profile", "ehtask", "--out", str(tmp_path / "rows")])
    assert "motion of the head (head_longitude, head_latitude), which nothing here protects" in capsys.readouterr().out
    rows = recordings.load(tmp_path / "rows" / "User_07_Video_02_Task_3.npz")
    assert not any("head" in name for name in rows.names)


def test_what_is_not_ehtask_is_refused(tmp_path):
    layout, profile = load_layout("ehtask"), load_profile("ehtask")
    with pytest.raises(RecordingError, match="line 1: 8 columns are wanted by layout ehtask, found 7 by tab"):
        load_gaze(ehtask_file(tmp_path / "short.txt", columns=7), profile, layout)
    with pytest.raises(ConfigError, match="made for 100 samples a second, not 1000"):
        load_gaze(ehtask_file(tmp_path / "fast.txt", ms=1), profile, layout)


def test_gaze_and_head_by_the_layout_and_profile_of_the_page(tmp_path, published, capsys):
    layout, profile = load_layout(str(published[0])), load_profile(str(published[1]))
    path = dgaze_file(tmp_path / "User_01_Scene_2.txt")
    got, head = load_gaze(path, profile, layout)
    assert got.profile.rate_hz == 100.0
    assert got.samples.valid.all()
    np.testing.assert_allclose(head["HeadVelY"], -0.02 * np.arange(4000))
    assert set(head) == {"HeadVelX", "HeadVelY"}
    words = ["extract", str(path), "--layout", str(published[0]), "--profile", str(published[1])]
    main([*words, "--out", str(tmp_path / "rows"), "--labels", str(tmp_path / "labels.csv")])
    assert "motion of the head (HeadVelX, HeadVelY), which nothing here protects" in capsys.readouterr().out
    rows = recordings.load(tmp_path / "rows" / "User_01_Scene_2.npz")
    assert not any("head" in name.lower() for name in rows.names)
    assert (tmp_path / "labels.csv").read_text() == "recording,person,scene\nUser_01_Scene_2,01,2\n"
    other = dgaze_file(tmp_path / "other.txt", names="Timestamp\tGazeX\tGazeY\tVelX\tHeadVelY\tScene")
    with pytest.raises(RecordingError, match="no column 'HeadVelX'"):
        load_gaze(other, profile, layout)


def test_names_may_stand_in_the_layout_and_not_in_the_file(tmp_path, published):
    layout = tmp_path / "plain.toml"
    layout.write_text(
        'name = "x"\nholds = "gaze"\ndelimiters = ["tab"]\ncolumns = ["Timestamp", "GazeX", "GazeY", "..."]\n'
    )
    path = dgaze_file(tmp_path / "a.txt")
    path.write_text(path.read_text().partition("\n")[2])
    got, head = load_gaze(path, load_profile(str(published[1])), load_layout(str(layout)))
    assert not head
    assert len(got.samples) == 4000


@pytest.mark.parametrize(
    ("columns", "said"),
    [(51, "line 1: 52 columns are wanted by layout mpiidpeye, found 51 by comma, 1 by semicolon"), (53, "found 53")],
)
def test_files_with_other_columns_are_refused(tmp_path, columns, said):
    path = table(tmp_path / "Data_P1_R1_Pami_Features_52.csv", columns)
    with pytest.raises(RecordingError, match=said):
        load_features(path, load_layout("mpiidpeye"))


def test_what_is_not_there_or_not_a_number_is_named(tmp_path, published):
    layout = load_layout("mpiidpeye")
    with pytest.raises(RecordingError, match="no such file"):
        load_features(tmp_path / "none.csv", layout)
    with pytest.raises(RecordingError, match="is a folder"):
        load_features(tmp_path, layout)
    path = table(tmp_path / "Data_P1_R1_Pami_Features_52.csv", 52)
    path.write_text(path.read_text().replace("103", "many"))
    with pytest.raises(RecordingError, match="line 2: column 'rate_large_saccades' holds no number"):
        load_features(path, layout)
    with pytest.raises(RecordingError, match=r"other\.csv: the name is not one of layout mpiidpeye"):
        labels_of(tmp_path / "other.csv", layout)
    short = tmp_path / "short.toml"
    short.write_text('name = "x"\nholds = "gaze"\ndelimiters = ["tab"]\ncolumns = ["Timestamp", "GazeX", "..."]\n')
    with pytest.raises(RecordingError, match="no column 'GazeY'"):
        load_gaze(ehtask_file(tmp_path / "a.txt"), load_profile(str(published[1])), load_layout(str(short)))
    with pytest.raises(RecordingError, match="of rows of features, not of gaze"):
        load_gaze(path, load_profile(str(published[1])), layout)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "x"', "holds: missing; expected 'features' or 'gaze'"),
        ('name = "x"\nholds = "gaze"\nwidth = 3', "width: unknown key"),
        ('name = "x"\nholds = "gaze"', "columns: expected names without a header"),
        ('name = "x"\nholds = "features"\ncolumns = ["features"]', "step_s: expected more than 0"),
        ('name = "x"\nholds = "gaze"\ncolumns = ["...", "a"]', "'...' at the end only"),
        ('name = "x"\nholds = "gaze"\ncolumns = ["a", "a"]', "different names"),
        ('name = "x"\nholds = "gaze"\ncolumns = ["a"]\nhead = ["b"]', "head: expected names out of columns"),
        ('name = "x"\nholds = "gaze"\ncolumns = ["a"]\nfile = "("', "not a regular expression"),
        ('name = "x"\nholds = "gaze"\ncolumns = ["a"]\nfile = "(?P<task>.)"', "a group"),
        ("name = ", "not TOML"),
    ],
)
def test_layouts_that_are_none(tmp_path, text, said):
    path = tmp_path / "l.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_layout(str(path))


def test_names_of_layouts():
    assert SHIPPED == ("ehtask", "mpiidpeye", "mpiidpeye-gaze", "mpiiprivaceye")
    with pytest.raises(ConfigError, match="not one of ehtask, mpiidpeye"):
        load_layout("dgaze")
