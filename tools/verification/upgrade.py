"""Version 0.2.0 at work, then this version on its configuration, ledger and calibration: nothing spent is forgotten.

    python -m tools.verification.upgrade

Takes 0.2.0 out of the history of this repository (commit 835a989c), and runs it with the packages of this environment
and a mosquitto of its own; then this version in its place. About a minute. The exit code is 1 unless

- the old configuration and ledger start as they are; what `budget` shows before and after is the same sum, and the next
  session adds to it;
- a calibration of 0.2.0 by its path, and another calibration than before, keep every spend;
- an application of either version hears a sidecar of the other;
- 0.2.0, put back, goes on with the ledger.
"""

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from tests.rigs.mosquitto import Mosquitto
from tools.verification.deployment_host import finish, say

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "835a989c"
COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]
ROWS_A_CHUNK = 64


class Version:
    """A version of eyestream, started from its sources."""

    def __init__(self, sources: Path) -> None:
        self._environment = os.environ | {"PYTHONPATH": str(sources), "PYTHONSAFEPATH": "1"}
        self._sources = sources

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """A command, to its end."""
        return subprocess.run(
            [*COMMAND, *map(str, words)],
            env=self._environment, capture_output=True, text=True, check=False, timeout=120, cwd=self._sources,
        )  # fmt: skip

    def listen(self, config: Path, url: str) -> "subprocess.Popen[str]":
        """An application that ends after two chunks."""
        words = ("listen", "--device", device(config), "--broker", url, "--chunks", "2")
        return subprocess.Popen(
            [*COMMAND, *words],
            env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self._sources,
        )  # fmt: skip

    def serve(self, config: Path, url: str, recording: Path) -> tuple[str, str]:
        """Start a sidecar, replay a recording as its tracker, stop it; what the two said."""
        log = config.with_name("log")
        with log.open("w") as file:
            sidecar = subprocess.Popen(
                [*COMMAND, "run", "--config", str(config)],
                env=self._environment, stderr=file, text=True, cwd=self._sources,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while log.read_text().count("connected to") < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        sent = self.run("replay", recording, "--device", device(config), "--broker", url, "--speed", "max")
        time.sleep(2)
        sidecar.terminate()
        sidecar.wait(timeout=20)
        return log.read_text(), sent.stderr


def device(config: Path) -> str:
    """The pseudonym in a configuration."""
    return re.findall(r'^id = "(.*)"', config.read_text(), re.M)[0]


def spent(version: Version, ledger: Path, name: str) -> float:
    """Epsilon of a device since the ledger began, as `budget` of this version says."""
    done = version.run("budget", "--ledger", ledger, "--json")
    return float(json.loads(done.stdout)["devices"][name]["epsilon"])


def heard(ear: "subprocess.Popen[str]") -> bool:
    """Whether it got what it waits for."""
    try:
        ear.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        ear.kill()
        ear.communicate()
    return ear.returncode == 0


def main() -> None:
    """Try it."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        archive = subprocess.run(["git", "archive", COMMIT], check=True, capture_output=True, cwd=ROOT).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(base / "old", filter="data")
        with Mosquitto(base) as broker:
            walk(Version(base / "old"), Version(ROOT), base, broker.url)
    finish()


def walk(old: Version, new: Version, base: Path, url: str) -> None:
    """From one version to the other, and back."""
    place, people = base / "sidecar", base / "people"
    new.run("simulate", "--people", "1", "--seconds", "200", "--seed", "5", "--out", people)
    done = old.run("init", place)
    say(done.returncode == 0, "0.2.0 makes a configuration and a ledger", done.stderr)
    config, ledger, recording = place / "sidecar.toml", place / "ledger", people / "sim-000.npz"
    config.write_text(config.read_text().replace("mqtt://localhost:1883", url))
    name = device(config)
    ear = new.listen(config, url)
    old.serve(config, url, recording)
    say(heard(ear), "an application of this version hears a sidecar of 0.2.0")
    sums = [spent(old, ledger, name), spent(new, ledger, name)]
    say(sums[0] == sums[1] > 0, "both versions show the same spend", f"epsilon {sums}")
    ear = old.listen(config, url)
    new.serve(config, url, recording)
    say(heard(ear), "an application of 0.2.0 hears this version")
    sums.append(spent(new, ledger, name))
    say(sums[-1] >= sums[-2] + 4.8, "the next session adds to it", f"epsilon {sums[-1]}")
    kept = base / "old" / "eyestream/data/calibrations/everyday-klt-anchored-64.npz"
    config.write_text(config.read_text().replace('"everyday-klt-anchored-64"', f'"{kept}"'))
    done = new.run("guarantee", "--config", config)
    say(done.returncode == 0, "a calibration of 0.2.0 is read from its file", done.stderr)
    new.serve(config, url, recording)
    sums.append(spent(new, ledger, name))
    say(sums[-1] >= sums[-2] + 4.8, "with it every spend stays", f"epsilon {sums[-1]}")
    config.write_text(config.read_text().replace(str(kept), "everyday-klt-32"))
    done = new.run("check", "--laptop", "--config", config)
    say("in chunks of 64 rows" in done.stdout, "check names another chunk length than the ledger's")
    old.serve(config, url, recording)
    sums.append(spent(old, ledger, name))
    say(sums[-1] > sums[-2], "0.2.0, put back, goes on with every spend", f"epsilon {sums[-1]}")


if __name__ == "__main__":
    main()
