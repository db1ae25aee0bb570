"""Devices that come and go while a worker serves others, and logs that are those of another fleet."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError, ShardError
from eyestream.rim.config import load as load_tables
from eyestream.rim.files import calibrations
from eyestream.rim.plan import Plan, load
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.status import Status
from eyestream_fleet import fleet
from eyestream_fleet.fleet import enrol, found_shard, run_shard
from eyestream_fleet.log import partition_of
from eyestream_fleet.roll import Roll
from eyestream_fleet.table import fleet_of
from eyestream_fleet.worker import ShardWorker
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import fleet_config
from tests.rigs.nats import NatsServer

pytestmark = pytest.mark.needs("nats")

PARTITIONS = 2
OWN = [name for name in (f"d{number}" for number in range(20)) if partition_of(name, PARTITIONS) == 1][:3]
FOREIGN = next(name for name in (f"d{number}" for number in range(20)) if partition_of(name, PARTITIONS) == 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    made = NatsServer(tmp_path / "nats", PARTITIONS)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def plan(server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(fleet, "FOLLOW_S", 0.05)
    return load(fleet_config(tmp_path, [server.url], PARTITIONS, [], private=server.mqtt_url, pages=[server.page_url]))


async def enrolled(plan: Plan, devices: list[str], *, remove: bool = False) -> int:
    return (await enrol(plan.settings, devices, remove=remove, now=0))[1]


@contextlib.asynccontextmanager
async def at_work(plan: Plan, partition: int) -> AsyncIterator[ShardWorker]:
    stop, workers = asyncio.Event(), asyncio.Queue[ShardWorker]()

    @contextlib.asynccontextmanager
    async def noted(worker: ShardWorker) -> AsyncIterator[None]:
        workers.put_nowait(worker)
        yield

    work = asyncio.create_task(run_shard(plan, partition, lambda: 20_000, stop, noted))
    ready = asyncio.create_task(workers.get())
    await asyncio.wait([work, ready], return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        ready.cancel()
        await work
    yield ready.result()
    stop.set()
    await work


async def write(plan: Plan, partition: int, roll: Roll) -> None:
    """As a hand would."""
    from eyestream_fleet.nats.opening import rolls_of

    async with rolls_of(fleet_of(plan.settings)) as rolls:
        held = await rolls.read(partition)
        assert await rolls.write(partition, roll.pack(), 0 if held is None else held[0])


def served(worker: ShardWorker) -> set[str]:
    return {key.device for key in worker.shard.streams}


async def test_devices_come_and_go_and_come_back_while_others_are_served(server: NatsServer, plan: Plan) -> None:
    names = calibrations.load("everyday-cfpa-32").names
    first, second, _ = OWN
    await found_shard(plan, 1, 0)
    async with asyncio.timeout(60), at_work(plan, 1) as worker:
        assert served(worker) == set()
        await enrolled(plan, [first, FOREIGN])
        async with subscribe(server.mqtt_url, first) as chunks, subscribe(server.mqtt_url, second) as others:
            await until(lambda: chunks.status == Status("online", "ready") and chunks.meta is not None)
            assert served(worker) == {first}
            async with (
                Publisher(server.mqtt_url, first, names, 2.0) as publisher,
                Publisher(server.mqtt_url, second, names, 2.0) as other,
            ):
                rows = np.full((32, len(names)), 0.5, np.float32)
                await publisher.send(rows)
                one = await anext(aiter(chunks))
                await other.send(rows)  # nobody serves it
                await until(lambda: worker.shard.rejected["topic"] > 0)
                await enrolled(plan, [second])
                await until(lambda: others.status == Status("online", "ready"))
                await other.send(rows)
                await anext(aiter(others))
                await publisher.send(rows)
                assert (await anext(aiter(chunks))).session == one.session, "it goes on where it was"
                assert await enrolled(plan, [first], remove=True) == 2
                await until(lambda: chunks.status == Status("offline", "stopped"))
                assert served(worker) == {second}
                assert len(worker.shard.former) == 1
                await enrolled(plan, [first])
                await until(lambda: chunks.status == Status("online", "ready"))
                await publisher.send(rows)
                assert (await anext(aiter(chunks))).session == one.session, "and where it was before it went"


async def test_a_worker_keeps_its_devices_while_its_roll_is_wrong_or_old(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    await found_shard(plan, 1, 0)
    await enrolled(plan, OWN[:2])
    async with asyncio.timeout(60), at_work(plan, 1) as worker:
        await until(lambda: worker.stands)
        for wrong, said in (
            (Roll(1, PARTITIONS, 50, (OWN[0], FOREIGN)), f"names '{FOREIGN}', which is of partition 0"),
            (Roll(1, 250, 51, (OWN[0],)), "the log has that of partition 1 of 250"),
            (Roll(1, PARTITIONS, -1, (OWN[0],)), "is older than the one that was taken"),
        ):
            caplog.clear()
            await write(plan, 1, wrong)
            await until(lambda said=said: said in caplog.text, 20.0)  # type: ignore[misc]
            assert served(worker) == set(OWN[:2])
        await write(plan, 1, Roll(1, PARTITIONS, 52, (OWN[2],)))
        await until(lambda: served(worker) == {OWN[2]})


async def test_a_worker_does_not_begin_with_a_roll_that_names_a_device_of_another_partition(plan: Plan) -> None:
    await found_shard(plan, 1, 0)
    await write(plan, 1, Roll(1, PARTITIONS, 50, (OWN[0], FOREIGN)))
    with pytest.raises(ShardError, match=f"names '{FOREIGN}', which is of partition 0.*--remove {FOREIGN}"):
        async with at_work(plan, 1):
            pass
    assert await enrolled(plan, [FOREIGN], remove=True) == 1
    async with at_work(plan, 1) as worker:
        assert served(worker) == {OWN[0]}


async def test_a_partition_has_one_shard(plan: Plan, tmp_path: Path) -> None:
    """A second ledger for the same devices would let them spend everything once more."""
    await found_shard(plan, 1, 0)
    (tmp_path / "shards").rename(tmp_path / "elsewhere")
    with pytest.raises(
        ShardError, match=r"partition 1: has shard \w+, as eyestream_shard_1 of NATS says.*another fleet"
    ):
        await found_shard(plan, 1, 0)
    assert not (tmp_path / "shards").exists()


async def test_a_partition_has_one_shard_also_where_second_places_are_folders(
    server: NatsServer, plan: Plan, tmp_path: Path
) -> None:
    """A fleet of as many partitions that names these servers would release the devices of the roll from its ledger."""
    plans = []
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
        path = fleet_config(tmp_path / name, [server.url], PARTITIONS, [], private=server.mqtt_url)
        plans.append(load(path))
        await found_shard(plans[-1], 1, 0)
    await enrolled(plan, OWN[:1])
    async with asyncio.timeout(60), at_work(plans[0], 1) as worker:
        with pytest.raises(ShardError, match=r"shard \w+: partition 1 of the log is that of shard \w+"):
            async with at_work(plans[1], 1) as second:
                assert served(worker) == served(second) == set(OWN[:1])
    from eyestream_fleet.nats.log import connected

    async with asyncio.timeout(60), connected([server.url]) as client:
        for one in (plans[0], plans[1]):  # it begins again; and the other one does when the key was taken away
            async with at_work(one, 1) as worker:
                assert served(worker) == set(OWN[:1])
            await (await client.jetstream().key_value("eyestream_rolls")).delete("shard-1")


async def test_the_log_of_a_fleet_with_other_partitions_is_refused(plan: Plan, tmp_path: Path) -> None:
    await found_shard(plan, 1, 0)
    path = tmp_path / "fleet.toml"
    text = path.read_text()
    path.write_text(text.replace("partitions = 2", "partitions = 250"))
    for make in (lambda given: found_shard(given, 1, 0), lambda given: run_shard(given, 1, lambda: 0, asyncio.Event())):
        with pytest.raises(ConfigError, match="EYESTREAM_RAW_1 of the log is of partition 1 of 2: raw rows, expected"):
            await make(load(path))
    path.write_text(text.replace("raw_age_s = 900.0", "raw_age_s = 60.0"))
    with pytest.raises(ConfigError, match=r"raw_age_s.*: 60, and stream EYESTREAM_RAW_1 of the log has 900"):
        await found_shard(load(path), 1, 0)


async def test_chunks_lie_in_a_stream_of_their_partition_and_are_heard_at_their_topic(
    server: NatsServer, plan: Plan
) -> None:
    from eyestream.streams import StreamKey
    from eyestream_fleet.log import Publication
    from eyestream_fleet.nats.log import NatsLog, connected, make_streams, released_stream

    async with connected([server.url]) as client:
        await make_streams(client, [0, 1], PARTITIONS, replicas=1, raw_age_s=900.0, released_age_s=3600.0)
        heard = await client.subscribe("eyestream.v1.*.*.private")
        for partition in (0, 1):
            chunk = Publication(f"chunk {partition}", StreamKey(f"d{partition}", "features"), b"bytes")
            await NatsLog(client, partition).publish([chunk, chunk])
            message = await heard.next_msg(5.0)
            assert message.subject == f"eyestream.v1.d{partition}.features.private"
            assert (await client.jetstream().stream_info(released_stream(partition))).state.messages == 1
        with pytest.raises(TimeoutError):
            await heard.next_msg(0.1)  # a repetition is heard by nobody


def test_the_command_enrols_and_says_how_many(plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "names").write_text("\n".join(OWN))
    config = ["enrol", "--config", str(tmp_path / "fleet.toml")]
    main([*config, "--file", str(tmp_path / "names"), FOREIGN])
    main([*config, "--remove", OWN[0]])
    main(config)
    assert capsys.readouterr().out.splitlines() == [
        "2 rolls have changed; 4 devices are enrolled",
        "1 rolls have changed; 3 devices are enrolled",
        "0 rolls have changed; 3 devices are enrolled",
    ]
    for wrong, said in ((["a/b"], "cannot be the name"), (["--file", str(tmp_path / "none")], "cannot be read")):
        with pytest.raises(SystemExit) as ended:
            main([*config, *wrong])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err


async def test_a_roll_that_no_server_takes_is_refused_with_its_size(plan: Plan) -> None:
    many = (name for name in (f"hmd-{number:060d}" for number in range(60_000)))
    with pytest.raises(
        ConfigError, match=r"the roll of partition \d would have \d+ bytes, and the servers take 1048576"
    ):
        await enrol(plan.settings, list(many), remove=False, now=0)


async def test_a_file_that_names_its_devices_has_no_rolls(server: NatsServer, tmp_path: Path) -> None:
    settings = load_tables(fleet_config(tmp_path, [server.url], PARTITIONS, ["d"]))
    with pytest.raises(ConfigError, match=r"\[\[device\]\]: the file names the devices"):
        await enrol(settings, ["e"], remove=False, now=0)
