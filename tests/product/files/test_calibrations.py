"""Calibration files: round trips, the content hash, the shipped ones, refusals in one line."""

import dataclasses
import json
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, PerFeatureTables, Provenance
from eyestream.errors import CalibrationError
from eyestream.gaze.features import NAMES as FEATURES_52
from eyestream.gaze.features import UNITS
from eyestream.gaze.profile_text import front_end_mark
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.calibration import declared_range

Array = NDArray[np.float64]
SHIPPED_HASHES = {
    "everyday-klt-32": "9cd3014fc40264d3f8349b6bb869072e",
    "everyday-cfpa-64": "02f3a79da336afde23ae8f9cff7e2609",
}
"""As version 0.1.0 shipped them."""
OLD = Path(__file__).resolve().parents[1] / "tape" / "calibrations"


def calibration(mechanism: str = "cfpa", n: int = 4) -> Calibration:
    rng = np.random.default_rng(0)
    shapes = {"centre": (2, n), "mean": (2, n), "truncation": (2, 3), "overlap": (2, 3), "energy": (2, 3)}
    tables = {f.name: rng.random(shapes.get(f.name, (2,))) for f in fields(PerFeatureTables)}
    return Calibration(
        mechanism=mechanism,
        names=("a", "ü"),
        units=("1", "s"),
        rate_hz=2.0,
        n=n,
        k=2,
        declared=np.array([False, True]),
        lo=np.array([0.0, -1.0]),
        hi=np.array([1.0, 2.0]),
        fill=np.array([0.5, 0.0]),
        tables=PerFeatureTables(**tables),
        provenance=Provenance("a corpus", 3, 9, 0.95, ("00", "11"), "tests"),
    )


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "file.with.dots"
    calibrations.save(calibration(), path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # no suffix is added
    read = calibrations.load(path)
    assert read.header() == calibration().header()
    for (name, ours), (other, theirs) in zip(read.arrays(), calibration().arrays(), strict=True):
        assert name == other
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert read.content_hash == calibration().content_hash
    assert read.provenance == calibration().provenance


def every_change() -> list[tuple[str, Calibration]]:
    base = calibration()
    changed: list[tuple[str, Calibration]] = [
        ("mechanism", replace(base, mechanism="dcfpa")),
        ("names", replace(base, names=("a", "u"))),
        ("order of names", replace(base, names=("ü", "a"))),
        ("units", replace(base, units=("1", "1"))),
        ("rate", replace(base, rate_hz=np.nextafter(2.0, 3.0))),
        ("k", replace(base, k=None)),
        ("provenance", replace(base, provenance=replace(base.provenance, coverage=0.96))),
        ("recordings", replace(base, provenance=replace(base.provenance, recordings=("00",)))),
        ("declared", replace(base, declared=np.array([True, True]))),
    ]
    for name in ("lo", "hi", "fill"):
        array = getattr(base, name).copy()
        array[1] = np.nextafter(array[1], np.inf)
        changed.append((name, replace(base, **{name: array})))
    for field in fields(PerFeatureTables):
        array = getattr(base.tables, field.name).copy()
        array.flat[-1] = np.nextafter(array.flat[-1], np.inf)
        changed.append((field.name, replace(base, tables=replace(base.tables, **{field.name: array}))))  # type: ignore[type-var]
    return changed


def test_every_figure_has_its_part_in_the_hash() -> None:
    hashes = {calibration().content_hash} | {changed.content_hash for _, changed in every_change()}
    assert len(hashes) == 1 + len(every_change())
    assert calibration().content_hash == calibration().content_hash


def rewritten(path: Path, change: Any) -> None:
    """Store the file's members again, changed, with correct check sums: a forger's file, not a damaged one."""
    with np.load(path) as stored:
        members = {name: stored[name] for name in stored.files}
    change(members)
    with open(path, "wb") as file:
        np.savez(file, **members)


def header_change(**values: Any) -> Any:
    def change(members: dict[str, Any]) -> None:
        header = json.loads(str(members["header"])) | values
        members["header"] = np.array(json.dumps(header, sort_keys=True))

    return change


@pytest.mark.parametrize("member", ["lo", "hi", "fill", "declared", "tables.radius", "tables.centre", "tables.energy"])
def test_a_changed_array_is_found(tmp_path: Path, member: str) -> None:
    path = tmp_path / "a.npz"
    calibrations.save(calibration(), path)

    def change(members: dict[str, Any]) -> None:
        array = members[member]
        array.reshape(-1).view(np.uint8)[0] ^= 1

    rewritten(path, change)
    with pytest.raises(CalibrationError, match="does not agree with its hash"):
        calibrations.load(path)


@pytest.mark.parametrize("values", [{"rate_hz": 2.5}, {"k": 3}, {"mechanism": "dcfpa"}, {"names": ["a", "b"]}])
def test_a_changed_header_is_found(tmp_path: Path, values: dict[str, Any]) -> None:
    path = tmp_path / "a.npz"
    calibrations.save(calibration(), path)
    rewritten(path, lambda members: None)
    calibrations.load(path)  # rewriting alone is harmless
    rewritten(path, header_change(**values))
    with pytest.raises(CalibrationError, match="does not agree with its hash"):
        calibrations.load(path)


def drop(*names: str) -> Any:
    def change(members: dict[str, Any]) -> None:
        for name in names:
            del members[name]

    return change


@pytest.mark.parametrize(
    "change",
    [
        drop("header"),
        drop("lo"),
        drop("tables.radius"),
        header_change(schema_version=2),
        header_change(names=["a"]),
        header_change(n=5),
        header_change(n="four"),
        header_change(k=17),
        header_change(provenance=None),
        lambda members: members.update(header=np.array("[1, 2]")),
        lambda members: members.update(header=np.array("no json")),
        lambda members: members.update({"tables.more": np.zeros(2)}),
        lambda members: members.update(lo=np.array([np.nan, 0.0])),
        lambda members: members.update(lo=np.array(["a", "b"])),
    ],
)
def test_a_foreign_file_is_refused_in_one_line(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "a.npz"
    calibrations.save(calibration(), path)
    rewritten(path, change)
    with pytest.raises(CalibrationError) as refusal:
        calibrations.load(path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("data", [b"", b"something else", b"PK\x03\x04 and then nothing"])
def test_what_is_no_calibration_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with pytest.raises(CalibrationError, match="is not a calibration file"):
        calibrations.load(path)
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(CalibrationError, match="is not a calibration file"):
        calibrations.load(tmp_path / "a.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.txt", "hello")
    with pytest.raises(CalibrationError, match="is not a calibration file"):
        calibrations.load(path)


def test_damage_anywhere_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    calibrations.save(calibration(), path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for turn in range(400):
        data = bytearray(whole)
        if turn % 3:
            data[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        else:
            data = data[: rng.integers(len(data))]
        path.write_bytes(data)
        try:
            assert calibrations.load(path).content_hash == calibration().content_hash  # only dates and the like differ
        except CalibrationError:
            refused += 1
    assert refused > 200


def test_an_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(CalibrationError, match="everyday-cfpa-32") as refusal:
        calibrations.load("everyday-cfpa-31")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("mechanism", ["lpa", "cfpa", "dcfpa"])
@pytest.mark.parametrize("n", [32, 64, 128])
def test_shipped_calibrations(mechanism: str, n: int) -> None:
    name = f"everyday-{mechanism}-{n}"
    assert name in calibrations.shipped()
    shipped = calibrations.load(name)
    assert (shipped.mechanism, shipped.n, shipped.k, shipped.rate_hz) == (mechanism, n, None, 2.0)
    assert shipped.names == FEATURES_52
    assert shipped.constant.tolist() == [name in ("wb1_min", "wb2_min", "wb3_min", "wb4_min") for name in FEATURES_52]
    assert shipped.provenance.people == len(set(shipped.provenance.recordings)) == 30
    assert shipped.provenance.coverage == 0.95
    assert isinstance(shipped.tables, PerFeatureTables)
    assert shipped.tables.centre.shape == (52, n)
    assert shipped.tables.truncation.shape == (52, 1 if mechanism == "lpa" else n // 2 + 1)


@pytest.mark.parametrize(
    ("names", "rate", "complaint"),
    [
        (("a",), 2.0, "1 features, the calibration 2"),
        (("a", "b"), 2.0, "feature 1 is 'b'"),
        (("ü", "a"), 2.0, "feature 0 is 'ü'"),
        (("a", "ü"), 2.1, "2.1 rows a second"),
    ],
)
def test_a_stream_of_another_kind_is_refused(names: tuple[str, ...], rate: float, complaint: str) -> None:
    calibration().check_stream(("a", "ü"), 2.01)
    with pytest.raises(CalibrationError, match=complaint):
        calibration().check_stream(names, rate)


def test_figures_that_do_not_fit_each_other_are_refused() -> None:
    base = calibration()
    for wrong in (
        {"names": ()},
        {"names": ("a", "a")},
        {"units": ("1",)},
        {"lo": np.array([2.0, 0.0])},
        {"lo": np.array([0.0])},
        {"fill": np.array([np.inf, 0.0])},
        {"n": 3},
        {"n": 0},
        {"k": 0},
        {"k": 4},
        {"tables": replace(base.tables, radius=np.array([np.nan, 1.0]))},  # type: ignore[type-var]
    ):
        with pytest.raises(CalibrationError):
            replace(base, **wrong)


@pytest.mark.parametrize(("mechanism", "factor"), [("lpa", 8 / 2), ("cfpa", 8**0.5 / 2), ("dcfpa", 29**0.5 / 2)])
def test_a_declared_range_has_the_radius_of_the_range(mechanism: str, factor: float) -> None:
    ranged = declared_range(calibration(mechanism), 8)
    assert isinstance(ranged.tables, PerFeatureTables)
    np.testing.assert_allclose(ranged.tables.radius, [factor * 1.0, 0.0])
    assert ranged.provenance.coverage is None
    assert ranged.n == 8


def test_fingerprints_are_part_of_the_content_hash_and_old_files_keep_theirs(tmp_path: Path) -> None:
    base = calibration()
    assert "fingerprints" not in dict(base.arrays())
    assert replace(base, fingerprints=np.array([3], dtype=np.uint64)).content_hash != base.content_hash
    for name, content_hash in SHIPPED_HASHES.items():
        old = calibrations.load(OLD / f"{name}.npz")
        assert old.content_hash == content_hash
        assert old.front_end is None
    assert "tables.stays" in dict(calibrations.load(OLD / "everyday-cfpa-64.npz").arrays())
    with pytest.raises(CalibrationError, match="fingerprints"):
        replace(base, fingerprints=np.array([2.0, 1.0]))


def test_shipped_ones_tell_their_front_end_and_fit_trackers_with_the_same_detector(tmp_path: Path) -> None:
    glasses = front_end_mark(load_profile("smi-glasses"))
    for name in calibrations.shipped():
        made = calibrations.load(name)
        assert made.front_end == glasses, name
        assert made.units == UNITS, name
        assert "mean_mean_diameter" in made.provenance.corpus, "three people have no pupils"
        assert made.check_front_end(glasses)
    lsl = front_end_mark(load_profile("lsl").at_rate(250.0))
    assert not made.check_front_end(lsl)  # another tracker, but rows mean the same
    calibrations.save(made, tmp_path / "again")
    assert calibrations.load(tmp_path / "again").front_end == glasses


def test_another_front_end_is_refused_with_the_remedy() -> None:
    glasses = load_profile("smi-glasses")
    other = dataclasses.replace(glasses, detection=dataclasses.replace(glasses.detection, fixation_min_s=0.1))
    known = calibrations.load("everyday-klt-32")
    said = r"was made from rows of front end .* \(profile smi-glasses\)"
    with pytest.raises(CalibrationError, match=said) as refused:
        known.check_front_end(front_end_mark(other))
    assert "eyestream calibrate" in str(refused.value)
    with pytest.raises(CalibrationError, match="does not tell which front end made its rows"):
        calibrations.load(OLD / "everyday-klt-32.npz").check_front_end(front_end_mark(glasses))


def test_a_name_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        CalibrationError, match=r"everyday-klt-shed-32: no such file, and none of .*everyday-klt-one-32"
    ):
        calibrations.load("everyday-klt-shed-32")


def test_a_shipped_name_needs_no_look_into_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working directory may be one that the process may not enter: root's, when `check` goes on as another user."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "everyday-klt-32").write_text("something else")
    assert calibrations.load("everyday-klt-32").mechanism == "klt"
