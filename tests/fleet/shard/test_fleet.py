"""A fleet's configuration: what cannot be used is said before anything is made."""

import asyncio
from pathlib import Path

import pytest

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
        ("partitions = 2", 'partitions = 2\nlog = "kafka"', r"\[fleet\] log: unknown key"),
        ("replicas", "copies", r"\[fleet\] copies: unknown key"),
        pytest.param(
            "servers",
            'ca_file = "ca.pem"\nservers',
            "servers that begin with tls://",
            marks=pytest.mark.needs("nats"),
        ),
    ],
)
async def test_a_mistake_is_said_by_its_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = fleet_config(tmp_path, ["nats://127.0.0.1:1"], 2, ["d"])
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=said):
        await made(path)
    assert not (tmp_path / "shards").exists()


async def test_without_a_fleet_there_is_no_shard(tmp_path: Path) -> None:
    path = fleet_config(tmp_path, ["nats://127.0.0.1:1"], 2, ["d"])
    text = path.read_text()
    path.write_text(text[: text.index("[fleet]")] + text[text.index("[[stream]]") :])
    with pytest.raises(ConfigError, match=r"\[fleet\]: missing"):
        await made(path)
    with pytest.raises(ConfigError, match=r"\[fleet\]: missing"):
        await run_shard(plan.load(path), 0, lambda: 0, asyncio.Event())


@pytest.mark.parametrize(
    ("server", "url"), [("tls://nats-0:4222", "mqtts://nats-0:8883"), ("nats://10.0.0.1", "mqtt://10.0.0.1:1883")]
)
def test_a_fleet_needs_no_broker_in_its_file(tmp_path: Path, server: str, url: str) -> None:
    """What applications read beside the chunks goes to the listener of its first server, with the same login."""
    path = fleet_config(tmp_path, [server], 2, ["d"])
    text = path.read_text().replace('[private]\nurl = "mqtt://127.0.0.1:1"\n', "")
    path.write_text(text.replace("[fleet]", '[fleet]\nusername = "worker"\npassword_file = "secret"'))
    private = load(path).private
    assert (private.url, private.username, private.password_file) == (url, "worker", tmp_path / "secret")


@pytest.mark.parametrize("partition", [-1, 2])
async def test_a_partition_that_is_not_there(tmp_path: Path, partition: int) -> None:
    with pytest.raises(ConfigError, match=r"expected 0 to 1"):
        await made(fleet_config(tmp_path, ["nats://127.0.0.1:1"], 2, ["d"]), partition)


@pytest.mark.needs("nats")
async def test_a_log_that_cannot_be_reached_leaves_nothing_made(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match=r"NATS: no answer from nats://127\.0\.0\.1:1"):
        await made(fleet_config(tmp_path, ["nats://127.0.0.1:1"], 2, ["d"]))
    assert not (tmp_path / "shards").exists()
    assert not (tmp_path / "second").exists()


@pytest.mark.needs("nats")
async def test_a_worker_waits_for_its_log_until_it_is_stopped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    planned = plan.load(fleet_config(tmp_path, ["nats://127.0.0.1:1"], 2, ["d"]))
    stop = asyncio.Event()
    work = asyncio.create_task(run_shard(planned, 0, lambda: 0, stop))
    await until(lambda: caplog.text.count("trying again until it is back") >= 2)
    stop.set()
    with pytest.raises(LinkError, match="NATS"):
        await work
