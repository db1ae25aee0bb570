"""`eyestream check --laptop`: the plain broker is fit for one machine, and named where others reach it."""

import subprocess
import sys
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.ops.check_brokers import laptop_findings
from eyestream.rim import config, plan
from tests.rigs.mosquitto import Mosquitto

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]


def initialised(folder: Path, url: str) -> Path:
    subprocess.run([*COMMAND, "init", str(folder)], check=True, capture_output=True)
    path = folder / "sidecar.toml"
    path.write_text(path.read_text().replace("mqtt://localhost:1883", url))
    return path


@pytest.mark.long
def test_the_path_of_the_readme_passes_whole(mosquitto: Mosquitto, tmp_path: Path) -> None:
    path = initialised(tmp_path / "sidecar", mosquitto.url)
    done = subprocess.run(
        [*COMMAND, "check", "--laptop", "--config", path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert all(line.startswith("pass") for line in lines[:-1])
    assert len(lines) > 10
    assert lines[-1].startswith("fit for a laptop")
    words = [*COMMAND, "check", "--laptop", "--config", path, "--tracker", "x"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2


@pytest.mark.needs("mosquitto")
async def test_a_broker_that_other_machines_reach_is_named(tmp_path: Path) -> None:
    """Another address of the loopback stands for that of a network."""
    broker = Mosquitto(tmp_path)
    text = broker._configuration.read_text()
    settings = config.load(initialised(tmp_path / "sidecar", broker.url))
    for listener, fine in ((f"listener {broker.port} 127.0.0.1", True), (f"listener {broker.port} 0.0.0.0", False)):
        broker._configuration.write_text(text.replace(f"listener {broker.port} 127.0.0.1", listener))
        broker.start()
        found = await laptop_findings(settings, None, ["127.0.0.2"])
        broker.stop()
        [only] = [one for one in found if "only this machine" in one.what]
        assert only.passed == fine, str(only)
        if not fine:
            assert f"listener {broker.port} 127.0.0.1" in only.remedy
    [down] = [one for one in await laptop_findings(settings, None, []) if not one.passed]
    assert down.remedy == f"Start one: mosquitto -p {broker.port} &"


@pytest.mark.needs("mosquitto")
def test_a_check_resolves_the_configuration_once(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, load_stream_parts = [], plan._load_stream_parts
    monkeypatch.setattr(plan, "_load_stream_parts", lambda *given: made.append(given) or load_stream_parts(*given))
    path = initialised(tmp_path / "sidecar", mosquitto.url)
    main(["check", "--laptop", "--config", str(path)])
    assert "pass  private broker: it takes a chunk of this configuration" in capsys.readouterr().out
    assert len(made) == 1
