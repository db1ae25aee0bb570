"""A fleet's configuration: what cannot be used is said before anything is made."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

import eyestream
from eyestream.errors import ConfigError, LinkError
from eyestream.rim import plan
from eyestream.rim.config import load
from eyestream_fleet.fleet import found_shard, run_shard
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import fleet_config


async def made(path: Path, partition: int = 0) -> None:
    await found_shard(plan.load(path), partition, 0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("partitions = 2", "partitions = 0", r"\[fleet\] partitions"),
        ('log = "nats"', 'log = "pulsar"', r"\[fleet\] log"),
        ("replicas", "copies", r"\[fleet\] copies: unknown key"),
        pytest.param(
            'log = "nats"\nservers',
            'log = "nats"\nca_file = "ca.pem"\nservers',
            "servers that begin with tls://",
            marks=pytest.mark.needs("nats"),
        ),
    ],
)
async def test_a_mistake_is_said_by_its_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = fleet_config(tmp_path, "nats", ["nats://127.0.0.1:1"], 2, ["d"])
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=said):
        await made(path)
    assert not (tmp_path / "shards").exists()


async def test_without_a_fleet_there_is_no_shard(tmp_path: Path) -> None:
    path = fleet_config(tmp_path, "nats", ["nats://127.0.0.1:1"], 2, ["d"])
    text = path.read_text()
    path.write_text(text[: text.index("[fleet]")] + text[text.index("[[stream]]") :])
    with pytest.raises(ConfigError, match=r"\[fleet\]: missing"):
        await made(path)
    with pytest.raises(ConfigError, match=r"\[fleet\]: missing"):
        await run_shard(plan.load(path), 0, lambda: 0, asyncio.Event())


@pytest.mark.parametrize(
    ("log", "server", "url"),
    [
        ("nats", "tls://nats-0:4222", "mqtts://nats-0:8883"),
        ("nats", "nats://10.0.0.1", "mqtt://10.0.0.1:1883"),
        ("kafka", "nats-0:9092", "mqtt://localhost:1883"),
    ],
)
def test_a_fleet_needs_no_broker_in_its_file(tmp_path: Path, log: str, server: str, url: str) -> None:
    """What applications read beside the chunks goes to the listener of its first server, with the same login."""
    path = fleet_config(tmp_path, log, [server], 2, ["d"])
    text = path.read_text().replace('[private]\nurl = "mqtt://127.0.0.1:1"\n', "")
    path.write_text(text.replace("[fleet]", '[fleet]\nusername = "worker"\npassword_file = "secret"'))
    private = load(path).private
    assert private.url == url
    assert (private.username, private.password_file) == (
        ("worker", tmp_path / "secret") if log == "nats" else (None, None)
    )


def test_nobody_else_knows_a_kind_of_log() -> None:
    """Another one is a package beside them, and a line in what configurations know."""
    package = Path(eyestream.__file__).parent
    known = re.compile("[\"'](nats|kafka)[\"']|rim[./]logs[./](nats|kafka)")
    files = [*package.glob("rim/**/*.py"), *package.glob("cli/*.py")]
    knowing = {path.relative_to(package) for path in files if known.search(path.read_text("utf-8"))}
    assert {path for path in knowing if path.parts[:2] != ("rim", "logs")} == {Path("rim/config/fleet.py")}


@pytest.mark.parametrize("partition", [-1, 2])
async def test_a_partition_that_is_not_there(tmp_path: Path, partition: int) -> None:
    with pytest.raises(ConfigError, match=r"expected 0 to 1"):
        await made(fleet_config(tmp_path, "nats", ["nats://127.0.0.1:1"], 2, ["d"]), partition)


@pytest.mark.parametrize(("log", "module"), [("nats", "nats"), ("kafka", "confluent_kafka")])
async def test_an_extra_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for known in [f"eyestream_fleet.logs.{log}.{name}" for name in ("log", "bucket", "opening")]:
        monkeypatch.delitem(sys.modules, known, raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'eyestream\[(fleet|kafka)\]'"):
        await made(fleet_config(tmp_path, log, ["127.0.0.1:1"], 2, ["d"]))
    assert not (tmp_path / "shards").exists()


async def test_kafka_needs_a_second_place(tmp_path: Path) -> None:
    path = fleet_config(tmp_path, "kafka", ["127.0.0.1:1"], 2, ["d"])
    path.write_text(path.read_text().replace('second_place = "./second"\n', ""))
    with pytest.raises(ConfigError, match="second_place: missing"):
        await made(path)


@pytest.mark.needs("nats")
async def test_a_log_that_cannot_be_reached_leaves_nothing_made(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match=r"NATS: no answer from nats://127\.0\.0\.1:1"):
        await made(fleet_config(tmp_path, "nats", ["nats://127.0.0.1:1"], 2, ["d"]))
    assert not (tmp_path / "shards").exists()
    assert not (tmp_path / "second").exists()


@pytest.mark.needs("nats")
async def test_a_worker_waits_for_its_log_until_it_is_stopped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    planned = plan.load(fleet_config(tmp_path, "nats", ["nats://127.0.0.1:1"], 2, ["d"]))
    stop = asyncio.Event()
    work = asyncio.create_task(run_shard(planned, 0, lambda: 0, stop))
    await until(lambda: caplog.text.count("trying again until it is back") >= 2, 30.0)
    stop.set()
    with pytest.raises(LinkError, match="NATS"):
        await work
