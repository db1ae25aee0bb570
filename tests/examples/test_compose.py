"""The compose file: what it names exists, nothing is open to other machines, and its commands do what they should.

No container is started here: the commands run as processes of this machine, beside a broker with the same file.
"""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from eyestream.cli.main import commands
from eyestream_lab.embedded import free_port
from tests.rigs.container_files import check_compose
from tests.rigs.mosquitto import Mosquitto

ROOT = Path(__file__).parents[2]
FILE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
PROGRAM = Path(sys.executable).with_name("eyestream")
PATIENCE_SECONDS = 60


def test_what_it_names_is_there() -> None:
    check_compose(FILE)
    files = [ROOT / volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    named = [file for file in files if file != ROOT / "ledger"]
    assert [file.name for file in named] == ["compose.conf", "javascript"]
    assert all(file.exists() for file in named)
    build = SERVICES["sidecar"]["build"]
    container = (ROOT / build["context"] / build["dockerfile"]).read_text()
    assert "FROM debian:bookworm-slim AS product\n" in container
    assert container.splitlines()[-1] == "FROM product", "who names no target gets the product alone"
    assert "VOLUME /var/lib/eyestream\n" in container
    assert 'ENTRYPOINT ["/opt/eyestream/bin/eyestream"]' in container
    known = {"broker", "sidecar", "tracker", "page"}
    assert SERVICES.keys() == known
    assert {other for service in SERVICES.values() for other in service.get("depends_on", ())} <= known


def test_each_service_waits_until_what_it_needs_is_healthy_and_comes_back() -> None:
    """A health condition on a service without a check would wait for ever."""
    for name, service in SERVICES.items():
        assert service["restart"] == "unless-stopped", name
        for other, condition in service.get("depends_on", {}).items():
            checked = "test" in SERVICES[other].get("healthcheck", {})
            assert checked or condition["condition"] == "service_started", f"{name} waits for {other}"
    assert "HEALTHCHECK" in (ROOT / "Containerfile").read_text()


def test_who_calls_a_command_of_the_laboratory_has_its_image() -> None:
    """And nobody else: the sidecar's image is the product alone."""
    lab = {name for name, (place, _) in commands().items() if place.startswith("eyestream_lab.")}
    for name, service in SERVICES.items():
        called = set(re.findall(r"bin/eyestream (\w+)", str(service.get("command"))))
        target = service.get("build", {}).get("target")
        assert (target == "laboratory") == bool(called & lab), name
    assert {SERVICES[name]["image"] for name in ("sidecar", "page")} == {"eyestream"}
    assert SERVICES["tracker"]["image"] == "eyestream-lab"


def test_no_other_machine_reaches_it() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:1883:1883", "127.0.0.1:9001:9001", "127.0.0.1:8000:8000"]
    assert not any(service.get("network_mode") == "host" for service in SERVICES.values())
    assert "network_mode" not in SERVICES["broker"]


def command(service: str, folder: Path, port: int) -> list[str]:
    """Of a service, for this machine: with its paths and port, and fifty times as fast."""
    shell, option = SERVICES[service]["entrypoint"]
    [script] = SERVICES[service]["command"]
    for there, here in (
        ("$$", "$"),
        ("/opt/eyestream/bin/eyestream", str(PROGRAM)),
        ("/var/lib/eyestream", str(folder)),
        ("/tmp/people", str(folder / "people")),
        ("mqtt://localhost:1883", f"mqtt://localhost:{port}"),
        ("--speed 4 ", "--speed 200 "),
    ):
        script = script.replace(there, here)
    return [shell, option, script]


@contextlib.asynccontextmanager
async def at_work(words: list[str], folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A service at work, stopped after the body as a container is."""
    with (folder / "log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, stderr=log)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    """One with the file of the compose file, and a sidecar's configuration for its port."""
    made, web = Mosquitto(tmp_path), free_port()
    text = (ROOT / "config" / "mosquitto" / "compose.conf").read_text()
    for there, here in (("1883", made.port), ("9001", web)):
        text = text.replace(f"listener {there}\n", f"listener {here} 127.0.0.1\n")
    made._configuration.write_text(text + ("user root\n" if os.geteuid() == 0 else ""))
    subprocess.run([PROGRAM, "init", tmp_path / "sidecar"], check=True, timeout=PATIENCE_SECONDS, capture_output=True)
    file = tmp_path / "sidecar" / "sidecar.toml"
    file.write_text(file.read_text().replace("mqtt://localhost:1883", made.url))
    made.start()
    yield made
    made.stop()


@pytest.mark.needs("mosquitto")
@pytest.mark.long
async def test_its_commands_play_a_person_and_release_chunks(broker: Mosquitto, tmp_path: Path) -> None:
    async with (
        at_work(command("sidecar", tmp_path, broker.port), tmp_path),
        at_work(command("tracker", tmp_path, broker.port), tmp_path) as tracker,
    ):
        assert tracker.stdout is not None
        said = await asyncio.wait_for(tracker.stdout.readline(), PATIENCE_SECONDS)
        device = said.decode().removeprefix("device ").strip()
        assert f'id = "{device}"' in (tmp_path / "sidecar" / "sidecar.toml").read_text()
        words = [sys.executable, str(ROOT / "examples" / "python" / "listen.py"), broker.url, device, "1"]
        async with at_work(words, tmp_path) as listener:
            printed, _ = await asyncio.wait_for(listener.communicate(), PATIENCE_SECONDS)
    assert b"chunk" in printed, (tmp_path / "log").read_text()


def test_a_sidecar_of_its_own_is_made_where_there_is_none(tmp_path: Path) -> None:
    shell, option, script = command("sidecar", tmp_path, 1)
    first = script.splitlines()[0]
    for _ in range(2):  # the second time nothing is made
        subprocess.run([shell, option, first], check=True, timeout=PATIENCE_SECONDS, capture_output=True)
        made = (tmp_path / "sidecar" / "sidecar.toml").read_text()
    assert "mqtt://localhost:1883" in made
    subprocess.run([shell, option, script.splitlines()[1]], check=True, timeout=PATIENCE_SECONDS)
    assert "\n[metrics]\nport = 9464\n" in (tmp_path / "sidecar" / "sidecar.toml").read_text()
    assert (tmp_path / "sidecar" / "ledger").is_file()
