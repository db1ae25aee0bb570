"""Files as makers of eye trackers write them, made up here: each is read as it is, with a shipped profile."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from eyestream.cli.main import main
from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.profile_text import parse_profile
from eyestream.gaze.samples import Samples
from eyestream.rim.files.gaze import GazeRecording, load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.events.labels import detect
from eyestream_lab.files import layouts
from eyestream_lab.files.inspection import inspect_table, profile_text
from eyestream_lab.files.layouts import labels_of, load_layout
from eyestream_lab.simulation.gaze import gaze_of, gaze_person


def person(rate_hz: float = 120.0, seconds: float = 60.0) -> Samples:
    """A simulated person's gaze in degrees."""
    rng = np.random.default_rng(4)
    return gaze_of(gaze_person(rng), rate_hz, seconds, rng)[0]


GAZE = person()


def written(path: Path, header: str, rows: list[list[object]], delimiter: str = ",", encoding: str = "utf-8") -> Path:
    lines = [header, *(delimiter.join("" if v is None else str(v) for v in row) for row in rows)]
    path.write_bytes("\n".join([*lines, ""]).encode(encoding))
    return path


def pixels(samples: Samples, fov: tuple[float, float] = (47.7, 28.0)) -> np.ndarray:
    """(n, 2) on a screen of 1920 x 1080 pixels, looked at from its middle."""
    right, up = np.tan(np.radians([samples.x, samples.y]))
    half = np.tan(np.radians(fov) / 2)
    return np.column_stack([960 * (1 + right / half[0]), 540 * (1 - up * np.hypot(1, right) / half[1])])


@pytest.mark.parametrize("units", [("", "", ""), (" [\u03bcs]", " [DACS px]", " [mm]")])
@pytest.mark.parametrize(("decimal", "encoding"), [(".", "utf-8"), (",", "utf-16")])
def test_tobii_pro_lab_with_other_sensors(tmp_path, units, decimal, encoding):
    time, place, size = units
    header = "\t".join(
        [f"Recording timestamp{time}", "Sensor", f"Gaze point X{place}", f"Gaze point Y{place}",
         f"Pupil diameter left{size}", f"Pupil diameter right{size}", "Validity left"]
    )  # fmt: skip
    rows: list[list[object]] = []
    for i, (x, y) in enumerate(pixels(GAZE)):
        number = [f"{v:.4f}".replace(".", decimal) if np.isfinite(v) else "" for v in (x, y, 3.1, 3.3)]
        rows.append([round(i * 1e6 / 120), "Eye Tracker", *number, "Valid"])
        rows.append([round(i * 1e6 / 120) + 3000, "Mouse", "", "", "", "", ""])
    path = written(tmp_path / "lab.tsv", header, rows, "\t", encoding)
    profile = load_profile("tobii-pro-lab")
    if decimal == ",":
        with pytest.raises(RecordingError, match="a decimal comma"):
            load_gaze(path, profile)
        profile = parse_profile(profile_text(profile).replace('decimal = "point"', 'decimal = "comma"'))
    found = load_gaze(path, profile)
    assert len(found.samples) == len(GAZE)
    assert found.profile.rate_hz == 120.0
    seen = found.samples.valid & GAZE.valid
    assert seen.mean() > 0.8
    np.testing.assert_allclose(found.samples.x[seen], GAZE.x[seen], atol=0.01)
    np.testing.assert_allclose(found.samples.y[seen], GAZE.y[seen], atol=0.01)
    assert np.nanmedian(found.samples.pupil_mm) == pytest.approx(3.2)


def test_a_unit_in_the_header_that_the_profile_does_not_have(tmp_path):
    header = "Recording timestamp [ms]\tSensor\tGaze point X [DACS px]\tGaze point Y [DACS px]"
    path = written(tmp_path / "a.tsv", header, [[i * 8, "Eye Tracker", 1, 1] for i in range(9)], "\t")
    with pytest.raises(RecordingError, match=r"column 'Recording timestamp \[ms\]': profile tobii-pro-lab says 'us'"):
        load_gaze(path, load_profile("tobii-pro-lab"))
    twice = "Recording timestamp\tSensor\tGaze point X [DACS px]\tGaze point X [MCS norm]\tGaze point Y"
    path = written(tmp_path / "b.tsv", twice, [[i * 8000, "Eye Tracker", 1, 1, 1] for i in range(9)], "\t")
    with pytest.raises(RecordingError, match=r"'Gaze point X' may be 'Gaze point X \[DACS px\]' and"):
        load_gaze(path, load_profile("tobii-pro-lab"))


def test_pupil_player_gaze_that_is_not_sure_is_lost(tmp_path):
    header = (
        "gaze_timestamp,world_index,confidence,norm_pos_x,norm_pos_y,gaze_point_3d_x,gaze_point_3d_y,gaze_point_3d_z"
    )
    rows = []
    for i, (x, y) in enumerate(zip(GAZE.x, GAZE.y, strict=True)):
        right, up = np.tan(np.radians([x, y]))
        point = [500 * right, -500 * up * np.hypot(1, right), 500] if GAZE.valid[i] else [None] * 3
        rows.append([100 + i / 120, i // 4, 0.02 if 600 <= i < 624 else 0.98, 0.5, 0.5, *point])
    found = load_gaze(written(tmp_path / "gaze_positions.csv", header, rows), load_profile("pupil-player"))
    assert not found.samples.valid[600:624].any()
    others = np.ones(len(GAZE), dtype=bool)
    others[600:624] = False
    np.testing.assert_array_equal(found.samples.valid[others], GAZE.valid[others])
    np.testing.assert_allclose(found.samples.x[found.samples.valid], GAZE.x[found.samples.valid], atol=1e-6)


def test_a_threshold_needs_a_column_and_a_column_a_threshold():
    text = profile_text(load_profile("pupil-player"))
    for wrong in (
        text.replace("confidence_min = 0.6", "confidence_min = 0.0"),
        text.replace('confidence = "confidence"', ""),
    ):
        with pytest.raises(ConfigError, match="confidence_min: expected one above 0, beside"):
            parse_profile(wrong)


def test_pupil_cloud_of_invisible(tmp_path):
    header = "section id,recording id,timestamp [ns],gaze x [px],gaze y [px],worn,fixation id,blink id"
    rows: list[list[object]] = [["a", "b", 10**18 + i * 5_000_000, 544, 540, int(i != 7), "", ""] for i in range(50)]
    found = load_gaze(written(tmp_path / "gaze.csv", header, rows), load_profile("pupil-cloud-invisible"))
    assert found.profile.rate_hz == 200.0
    np.testing.assert_array_equal(found.samples.valid, [i != 7 for i in range(50)])
    np.testing.assert_allclose(found.samples.x[found.samples.valid], 0.0, atol=0.1)


def eyelink(
    path: Path, lines: list[str], screen: str = "0 0 1919 1079", rate: str = "1000.00", eyes: str = "LEFT"
) -> Path:
    head = f"** TYPE: EDF_FILE\nMSG\t1 DISPLAY_COORDS {screen}\nSAMPLES\tGAZE\t{eyes}\tRATE\t{rate}\tTRACKING\tCR\n"
    path.write_bytes((head + "".join(f"{line}\n" for line in lines)).encode("latin-1"))
    return path


def test_eyelink_screens_encodings_and_half_milliseconds(tmp_path):
    profile = load_profile("eyelink")
    lines = [f"{1000 + i // 2}\t960.0\t540.0\t900.0\t..." for i in range(40)]
    fast = load_gaze(eyelink(tmp_path / "a.asc", [*lines, "MSG\t1020 \xfcbung \xe9"], rate="2000.00"), profile)
    np.testing.assert_allclose(np.diff(fast.samples.t), 0.0005, atol=1e-9)
    assert fast.profile.rate_hz == 2000.0
    assert fast.samples.valid.all()
    with pytest.raises(RecordingError, match="its screen has 1280 x 720 pixels, and profile eyelink says 1920 x 1080"):
        load_gaze(eyelink(tmp_path / "b.asc", lines, "0 0 1279 719"), profile)
    both = [f"{1000 + i}\t960.0\t540.0\t900.0\t{'.' if i == 3 else 980.0}\t540.0\t900.0\t..." for i in range(40)]
    two = load_gaze(eyelink(tmp_path / "c.asc", both, "0.00 0.00 1920.00 1080.00", eyes="LEFT\tRIGHT"), profile)
    assert two.samples.x[3] == pytest.approx(0.0, abs=0.02)
    assert two.samples.x[4] > two.samples.x[3] + 0.2


def test_mpiidpeye(tmp_path):
    layout, profile = load_layout("mpiidpeye-gaze"), load_profile("mpiidpeye")
    rows: list[list[object]] = [[0.5 + i / 1000, 0.5, i / 30, 0.1 if i == 5 else 0.9, 60 + i, "x"] for i in range(30)]
    for header in ("x;y;time;confidence;pupil;more\n", ""):
        path = tmp_path / "Data_P3_R2.csv"
        path.write_text(header + "".join(";".join(map(str, row)) + "\n" for row in rows))
        found, _ = layouts.load_gaze(path, profile, layout)
        assert len(found.samples) == 30
        np.testing.assert_array_equal(found.samples.valid, [i != 5 for i in range(30)])
        np.testing.assert_array_equal(found.samples.pupil_mm, [60 + i for i in range(30)])
        assert labels_of(path, layout) == {"person": "3", "document": "newspaper"}


def test_equal_missing_and_unordered_times_split_no_event(tmp_path):
    profile = load_profile("degrees").at_rate(120.0)

    def runs(t):
        letters = detect(profile, Samples(t, GAZE.x, GAZE.y, GAZE.pupil_mm, GAZE.valid))[1]
        return {kind: len(re.findall(f"{kind}+", "".join(letters))) for kind in "FSB"}

    true = runs(GAZE.t)
    assert true["F"] > 60
    rng = np.random.default_rng(1)
    for wrong in ("equal", "missing", "unordered"):
        t = GAZE.t.copy()
        which = rng.choice(np.arange(2, len(t) - 2, 2), len(t) // 20, replace=False)
        if wrong == "equal":
            t[which] = t[which - 1]
        elif wrong == "missing":
            t[which] = np.nan
        else:
            t[which], t[which + 1] = t[which + 1].copy(), t[which].copy()
        found = runs(t)
        assert abs(found["F"] - true["F"]) <= 0.05 * true["F"], wrong
        assert abs(found["B"] - true["B"]) <= 1, wrong


def test_gaze_beside_the_screen_is_no_blink(tmp_path):
    """As many blinks as the person has, with a screen that the gaze often leaves."""
    away = Samples(GAZE.t, GAZE.x * 1.0, GAZE.y * 1.0, GAZE.pupil_mm, GAZE.valid)
    place = pixels(away, fov=(20.0, 12.0))
    outside = ((place < 0) | (place > (1920, 1080))).any(axis=1) & GAZE.valid
    assert outside.mean() > 0.05
    lines = [
        f"{1000 + i * 8}\t" + ("\t.\t." if not np.isfinite(p).all() else f"{p[0]:.1f}\t{p[1]:.1f}") + "\t1.0\t..."
        for i, p in enumerate(place)
    ]
    text = profile_text(load_profile("eyelink")).replace("47.7", "20.0").replace("28.0", "12.0")
    found = load_gaze(
        eyelink(tmp_path / "a.asc", [line.replace("\t\t", "\t") for line in lines], rate="125.00"), parse_profile(text)
    )
    beside = outside & (np.abs(place - (960, 540)) < (1920, 1080)).all(axis=1)
    assert found.samples.valid[beside].all()


@pytest.mark.parametrize(
    ("unit", "scale", "header"),
    [
        ("deg", 1.0, "t_s,x_deg,y_deg,pupil_mm"),
        ("deg", 1.0, "time,gaze_x,gaze_y,diameter"),
        ("rad", np.pi / 180, "time,gaze_x,gaze_y,diameter"),
    ],
)
def test_inspect_tells_degrees_from_radians(tmp_path, unit, scale, header):
    rows = [[f"{i / 120:.6f}", x * scale, y * scale, 3.2] for i, (x, y) in enumerate(zip(GAZE.x, GAZE.y, strict=True))]
    proposal = inspect_table(written(tmp_path / "a.csv", header, rows))
    assert proposal.plain["gaze_unit"] == unit
    assert proposal.plain["time_unit"] == "s"
    assert proposal.tables["columns"]["pupil"] == [header.split(",")[3]]


def test_inspect_proposes_what_reads_the_file(tmp_path, capsys):
    header = "Recording timestamp [\u03bcs];Sensor;Gaze point X [DACS px];Gaze point Y [DACS px];Validity left"
    rows: list[list[object]] = []
    for i, (x, y) in enumerate(pixels(GAZE)):
        told = [f"{v:.2f}".replace(".", ",") if np.isfinite(v) else "" for v in (x, y)]
        rows += [[round(i * 1e6 / 120), "Eye Tracker", *told, 1], [round(i * 1e6 / 120), "Mouse", "", "", ""]]
    path = written(tmp_path / "lab.csv", header, rows, ";", "utf-16")
    target = tmp_path / "mine.toml"
    main(["inspect", str(path), "--out", str(target)])
    said = capsys.readouterr().out
    assert "time in us, 120 samples a second" in said
    assert "only rows of 'Eye Tracker' are gaze" in said
    assert 'decimal = "comma"' in said
    assert "this looks like a person's gaze" in said
    assert f"written: {target}. Next: eyestream extract {path} --profile {target} --out DIR" in said
    assert len(load_gaze(path, load_profile(str(target))).samples) == len(GAZE)
    with pytest.raises(SystemExit, match="2"):
        main(["inspect", str(path), "--out", str(target)])
    assert "exists already" in capsys.readouterr().err


def test_inspect_names_the_shipped_profile_and_takes_labels_but_no_name_of_a_person(tmp_path, capsys):
    places = np.column_stack((GAZE.x, GAZE.y)) / (60.0, -46.0) + 0.5
    rows = [[f"{i / 120:.6f}", *place, 3.2, 3.1, "FSB"[i % 3]] for i, place in enumerate(places.tolist())]
    path = written(tmp_path / "P07.csv", "t_s,x,y,pupil_right_mm,pupil_left_mm,event", rows)
    proposal = inspect_table(path)
    assert proposal.plain["name"] == "mine"
    assert proposal.tables["columns"]["label"] == "event"
    said = "\n".join(proposal.reasons)
    assert "shipped profile smi-glasses has these columns, a camera of 60 x 46 degrees" in said
    assert "column 'event': labels of events, B, F, S" in said
    assert "other words" not in said
    assert any("is it the image of a scene camera" in line for line in proposal.assumed)
    main(["inspect", str(path), "--out", str(tmp_path / "Our Lab.toml")])
    assert 'name = "our-lab"' in capsys.readouterr().out
    path.write_text(path.read_text().replace(",F\n", ",Fix\n").replace(",S\n", ",Sac\n"))
    assert "column 'event': labels of events, B, and other words, which are no events" in inspect_table(path).reasons


def test_inspect_says_what_is_unusual(tmp_path, capsys):
    rows = [[f"{i / 120:.6f}", x / 50, y / 50] for i, (x, y) in enumerate(zip(GAZE.x, GAZE.y, strict=True))]
    path = written(tmp_path / "a.csv", "t_s,x_deg,y_deg", rows)
    main(["inspect", str(path)])
    said = capsys.readouterr().out
    assert "unusual" in said
    assert "check the unit" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "names of 3 columns or more are wanted"),
        ("1,2,3\n4,5,6\n", "a header with the names of the columns is wanted"),
        ("name,x,y\nA,1,2\nB,2,3\n", "no column looks like the time"),
        ("t_s,x,y\n2,1,2\n1,2,3\n", "time does not go forward in 't_s'"),
        ("", "is empty"),
        ("t_s,x,y\n", "has a header and no rows"),
        ("t_s,alpha,beta\n0,1,2\n0.01,2,3\n", "no two columns look like gaze"),
        ("t_s,x,y\n0,1,\n0.01,,3\n", "no sample has both"),
    ],
)
def test_inspect_refuses_by_name(tmp_path, text, said):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(RecordingError, match=said):
        inspect_table(path)


def extracted(tmp_path: Path, path: Path, *words: str) -> GazeRecording:
    """What the profile that `inspect` writes reads."""
    main(["inspect", str(path), *words, "--out", str(tmp_path / "mine.toml")])
    return load_gaze(path, load_profile(str(tmp_path / "mine.toml")))


@pytest.mark.parametrize("has_time", [True, False])
def test_inspect_takes_names_and_a_rate_where_a_file_has_none(tmp_path, capsys, has_time):
    rows = [[i / 120, x, y, 0][not has_time :] for i, (x, y) in enumerate(pixels(GAZE))]
    path = tmp_path / "a.csv"
    path.write_text("".join(",".join("" if np.isnan(v) else str(v) for v in row) + "\n" for row in rows))
    with pytest.raises(SystemExit):
        main(["inspect", str(path)])
    assert "--columns t_s,x,y,-" in capsys.readouterr().err
    names = "t_s,x,y,-" if has_time else "x,y,-"
    if not has_time:
        with pytest.raises(SystemExit):
            main(["inspect", str(path), "--columns", names])
        assert "--rate HZ" in capsys.readouterr().err
    found = extracted(tmp_path, path, "--columns", names, *([] if has_time else ["--rate", "120"]))
    assert found.profile.rate_hz == 120.0
    np.testing.assert_allclose(found.samples.t, GAZE.t, atol=1e-6)
    np.testing.assert_array_equal(found.samples.valid, GAZE.valid)


@pytest.mark.parametrize("kind", ["matrix", "variables"])
def test_inspect_reads_matlab(tmp_path, capsys, kind):
    place = np.nan_to_num(pixels(GAZE))
    t_us = np.arange(len(GAZE)) * 1e6 / 120
    path, words = tmp_path / "a.mat", ["--columns", "t_us,-,x_px,y_px"]
    if kind == "matrix":
        matrix = np.column_stack([t_us, np.zeros(len(GAZE)), place])
        savemat(path, {"ETdata": {"pos": matrix, "screenRes": np.array([1024.0, 768.0])}})
        with pytest.raises(SystemExit):
            main(["inspect", str(path)])
        assert "the 4 columns of 'ETdata.pos' have no names" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            main(["inspect", str(path), "--columns", "t_us,x,y"])
        assert "no matrix has 3 columns; the matrices are ETdata.pos (7200 x 4)" in capsys.readouterr().err
    else:
        savemat(path, {"t_us": t_us, "x_px": place[:, 0], "y_px": place[:, 1]})
        words = []
    found = extracted(tmp_path, path, *words)
    assert found.profile.zero_is_lost
    np.testing.assert_array_equal(found.samples.valid, GAZE.valid)


@pytest.mark.parametrize("data", [b"", b"not a matrix" * 20, b"MATLAB 5.0 MAT-file" + bytes(200)])
def test_a_damaged_file_of_matlab_is_refused(tmp_path, data):
    (tmp_path / "a.mat").write_bytes(data)
    with pytest.raises(RecordingError, match=r"a\.mat: "):
        inspect_table(tmp_path / "a.mat")


def test_inspect_of_what_is_no_table(tmp_path, capsys):
    (tmp_path / "a.asc").write_text("x")
    for name, said in (
        ("a.asc", "try --profile with profile eyelink"),
        ("", "is a folder, expected a file"),
        ("b", "no such"),
    ):
        with pytest.raises(SystemExit):
            main(["inspect", str(tmp_path / name)])
        assert said in capsys.readouterr().err
