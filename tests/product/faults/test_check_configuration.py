"""`eyestream check --config-only`: what a reload runs first, so that it fails with the reason."""

import re
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.ops.deployment.layout import unit_text


@pytest.fixture
def path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    main(["init", str(tmp_path / "s"), "--mechanism", "cfpa"])
    (tmp_path / "s" / "ledger").unlink()  # nothing here looks at it, nor at a broker
    capsys.readouterr()
    return tmp_path / "s" / "sidecar.toml"


def check(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(["check", "--config-only", "--config", str(path), *more])
    except SystemExit as ended:
        code = int(ended.code or 0)
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_configuration_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = check(path, capsys)
    assert code == 0
    assert out.splitlines()[0] == "pass  calibration, epsilon, budget and sources fit"
    assert "broker" not in out
    text = path.read_text()
    path.write_text(text.replace("window_epsilon = 9.6", "window_epsilon = 4.7"))
    code, out, _ = check(path, capsys)
    assert code == 1
    assert "window_epsilon: expected at least the epsilon of one chunk" in out
    path.write_text(text.replace("session_epsilon", "session_epsilom"))
    code, out, err = check(path, capsys)
    assert (code, out) == (2, "")
    assert "session_epsilom: unknown key" in err
    assert check(path, capsys, "--laptop")[0] == 2


def test_what_run_and_guarantee_refuse_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A class of processes beside a baseline: all else of it is as `init` wrote it."""
    main(["init", str(tmp_path / "klt")])
    path = tmp_path / "klt" / "sidecar.toml"
    text, count = re.subn(r"(?m)^# (correlation = )", r"\1", path.read_text())
    assert count == 1
    assert check(path, capsys)[0] == 0
    path.write_text(text)
    code, out, _ = check(path, capsys)
    assert code == 1
    said = "[stream.privacy] correlation: leave it out for a calibration with a baseline"
    assert out.startswith(f"fail  calibration, epsilon, budget and sources fit: {said}")
    for command in ("run", "guarantee"):
        with pytest.raises(SystemExit, match="2"):
            main([command, "--config", str(path)])
        assert said in capsys.readouterr().err


def test_a_reload_runs_it_first_and_stops_where_it_fails() -> None:
    """systemd runs the lines in order, and those behind one that fails not at all (systemd.service(5), ExecReload)."""
    commands = re.findall(r"(?m)^ExecReload=(.*)$", unit_text("eyestream", "/opt/eyestream/bin/eyestream"))
    first, second = commands
    assert first == "/opt/eyestream/bin/eyestream check --config-only --config /etc/eyestream/sidecar.toml"
    assert second == "/bin/kill -HUP $MAINPID"
