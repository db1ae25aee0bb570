"""A calibration that was made from rows of another front end than the stream's is refused, with the remedy."""

import shutil
from pathlib import Path

import msgspec
import pytest

from eyestream.cli.main import main
from eyestream.errors import CalibrationError
from eyestream.ops.check_host import configuration_findings
from eyestream.rim import config
from eyestream.rim.config import Settings, SourceEntry
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream_lab.files.inspection import profile_text
from tests.rigs.sidecar import NO_BROKER, settings_for


def with_source(settings: Settings, **changes: object) -> Settings:
    source = SourceEntry("mqtt", "hmd-1", rate_hz=200.0)
    return msgspec.structs.replace(settings, source=(msgspec.structs.replace(source, **changes),))


def another_detector(folder: Path) -> str:
    text = profile_text(load_profile("mqtt"))
    assert "onset_deg_per_s = 40.0" in text
    path = folder / "mine.toml"
    path.write_text(text.replace("\nonset_deg_per_s = 40.0", "\nonset_deg_per_s = 55.0"))
    return str(path)


def test_the_detector_of_the_calibration_is_taken_on_another_tracker(tmp_path: Path) -> None:
    settings = with_source(settings_for(NO_BROKER, tmp_path))
    assert resolved(settings).mechanisms["features"].n == 32
    *_, known, price = configuration_findings(settings, tmp_path / "sidecar.toml").findings
    assert known.passed
    assert price.passed
    assert "made with its detector and another tracker" in str(known)
    assert "one second of gaze enters up to 3 chunks of features, epsilon 14.4" in str(price)


def test_another_detector_is_refused_by_run_and_check(tmp_path: Path) -> None:
    settings = with_source(settings_for(NO_BROKER, tmp_path), profile=another_detector(tmp_path))
    with (
        pytest.raises(
            CalibrationError, match=r"front end \w{16}.* whose events are others\. Take a shipped calibration"
        ),
        assemble(resolved(settings), lambda: 20_000),
    ):
        pass
    (finding,) = configuration_findings(settings, tmp_path / "sidecar.toml").findings
    assert not finding.passed
    assert "eyestream calibrate" in str(finding)


def test_a_calibration_of_0_1_0_tells_no_front_end(tmp_path: Path) -> None:
    old = Path(__file__).parents[1] / "tape" / "calibrations" / "everyday-cfpa-32.npz"
    settings = with_source(settings_for(NO_BROKER, tmp_path))
    (stream,) = settings.stream
    there = shutil.copy(old, tmp_path / "old.npz")
    privacy = msgspec.structs.replace(stream.privacy, calibration=str(there))
    settings = msgspec.structs.replace(settings, stream=(msgspec.structs.replace(stream, privacy=privacy),))
    with pytest.raises(CalibrationError, match="does not tell which front end made its rows"):
        resolved(settings)


def test_the_command_says_it_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "s")])
    path = tmp_path / "s" / "sidecar.toml"
    another_detector(path.parent)
    path.write_text(path.read_text() + '\n[source]\nkind = "mqtt"\nrate_hz = 200.0\nprofile = "./mine.toml"\n')
    assert config.load(path).source[0].rate_hz == 200.0
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["guarantee", "--config", str(path)])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "whose events are others" in said
    assert said.count("\n") == 1
