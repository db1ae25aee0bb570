"""Workers on a real NATS server: partitions, trackers that speak MQTT, and kills."""

import asyncio
import contextlib
import random
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import nats.errors
import numpy as np
import pytest

from eyestream.errors import ConfigError, LinkError, ShardError
from eyestream.ops.metrics import serve
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.second_place import Lengths, Remembered
from eyestream.rim.mqtt.transport import Backoff
from eyestream.rim.plan import load
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream.streams import StreamKey
from eyestream.wire.status import Status
from eyestream_fleet.command import worker_pages
from eyestream_fleet.fleet import accept_shard, copies_of_shard, found_shard, run_shard
from eyestream_fleet.log import Log, Publication, partition_of
from eyestream_fleet.nats.log import trouble
from eyestream_fleet.worker import ShardWorker
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import Seen, Workers, fleet_config, kill_at_work, raw_messages
from tests.rigs.nats import NatsServer

pytestmark = pytest.mark.needs("nats")
PARTITIONS = 2


@pytest.mark.parametrize("said", ["an answer", nats.errors.Error()])
async def test_a_cancellation_that_the_client_takes_for_an_answer_ends_the_task(said: str | Exception) -> None:
    """Else a worker that was overtaken, of which one task has failed, reads on for ever beside the other worker."""

    @trouble
    async def ask() -> None:
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            if isinstance(said, Exception):
                raise said from None

    async def read() -> None:
        for _ in range(20):
            with contextlib.suppress(LinkError):
                await ask()

    async def overtaken() -> None:
        await asyncio.sleep(0)
        raise ShardError("another worker is at work")

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            group.create_task(overtaken())

    working = asyncio.create_task(work())
    await asyncio.wait([working], timeout=1.0)
    assert working.done()
    assert isinstance(working.exception(), ExceptionGroup)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    made = NatsServer(tmp_path / "nats", PARTITIONS)
    made.start()
    yield made
    made.kill()


def files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


@contextlib.asynccontextmanager
async def logs(server: NatsServer) -> AsyncIterator[list[Log]]:
    """Every partition."""
    from eyestream_fleet.nats.log import NatsLog, connected, make_streams

    async with connected([server.url]) as client:
        await make_streams(client, range(PARTITIONS), PARTITIONS, replicas=1, raw_age_s=60.0, released_age_s=60.0)
        yield [NatsLog(client, partition) for partition in range(PARTITIONS)]


async def test_a_tracker_that_speaks_mqtt_reaches_the_partition_of_its_device(server: NatsServer) -> None:
    devices = ["hmd-1", "d0", "abc", "zz9"]
    async with logs(server) as cut:
        for device in devices:
            async with Publisher(server.mqtt_url, device, ("a", "b"), 2.0) as publisher:
                await publisher.send(np.zeros((1, 2), np.float32))
        found = {}
        for partition, log in enumerate(cut):
            await log.seek((await log.bounds()).first)
            found |= {entry.key: partition for entry in await log.fetch(100, 0.5)}
    assert found == {StreamKey(device, "features"): partition_of(device, PARTITIONS) for device in devices}
    assert set(found.values()) == {0, 1}, "control: more than one partition"


async def test_a_log_is_read_again_from_an_offset_and_leaves_repetitions_out(server: NatsServer) -> None:
    from eyestream_fleet.nats.log import connected, released_stream

    async with logs(server) as (log, _), connected([server.url]) as client:
        before = await log.bounds()
        for number in range(5):
            await client.publish("eyestream_raw.0.d.features", b"%d" % number)
        await client.flush()
        await log.seek(before.first)
        entries = await log.fetch(100, 0.5)
        assert [entry.payload for entry in entries] == [b"0", b"1", b"2", b"3", b"4"]
        assert await log.fetch(100, 0.1) == []
        await log.seek(entries[3].offset)
        again = await log.fetch(100, 0.5)
        assert [(one.offset, one.at, one.payload) for one in again] == [
            (one.offset, one.at, one.payload) for one in entries[3:]
        ]
        assert (await log.bounds()).end == entries[-1].offset + 1
        chunk = Publication("one", StreamKey("d", "features"), b"bytes")
        await log.publish([chunk, chunk])
        await log.publish([chunk])
        assert (await client.jetstream().stream_info(released_stream(0))).state.messages == 1


@pytest.mark.parametrize("status", ["100", "404", "408", "409", "503", "", "x", "9" * 5000])
async def test_headers_of_a_publisher_stop_no_partition(server: NatsServer, status: str) -> None:
    """The library takes ``Status`` for a word of the server, also in a message that a tracker has published."""
    from eyestream_fleet.nats.log import connected

    async with logs(server) as (log, _), connected([server.url]) as tracker:
        await log.seek((await log.bounds()).first)
        for payload in (b"before", b"", b"theirs", b"after"):
            strange = {"Status": status, "Description": "Idle", "Nats-Consumer-Stalled": "x", "Nats-Last-Stream": "1"}
            headers = strange if payload in (b"", b"theirs") else None
            await tracker.publish("eyestream_raw.0.d.features", payload, headers=headers)
        await tracker.flush()
        heard: list[bytes] = []
        while len(heard) < 4 and (entries := await log.fetch(100, 5.0)):  # each time what is there
            heard += [entry.payload for entry in entries]
        assert heard == [b"before", b"", b"theirs", b"after"]
        assert await log.fetch(100, 0.1) == []


async def test_a_consumer_that_could_not_be_made_is_made_the_next_time(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while servers elect a leader: the old consumer is given up by then, and must not be given up again."""

    async def slow(*given: object, **named: object) -> None:
        raise TimeoutError

    async with logs(server) as (log, _):
        await log.seek(1)
        with monkeypatch.context() as patch:
            patch.setattr(log._jetstream, "pull_subscribe", slow)  # type: ignore[attr-defined]
            with pytest.raises(LinkError):
                await log.seek(1)
        with pytest.raises(LinkError, match="connection was lost"):
            await log.fetch(1, 0.1)
        await log.seek(1)
        assert await log.fetch(1, 0.1) == []


async def test_a_consumer_that_stands_still_is_left_whichever_way_the_client_says_so(server: NatsServer) -> None:
    """A wait ends with nothing instead of an error where the server's word is there first."""

    async def nothing(*given: object, **named: object) -> list[object]:
        return []

    async with logs(server) as (log, _):
        await log.seek(1)
        log._reader.fetch = nothing  # type: ignore[attr-defined]
        await log._jetstream.publish("eyestream_raw.0.d.features", b"waits")  # type: ignore[attr-defined]
        for _ in range(3):
            assert await log.fetch(1, 0.5) == []
        with pytest.raises(LinkError, match="does not go on"):
            await log.fetch(1, 0.5)


async def test_a_partition_without_a_leader_is_trouble_and_not_empty(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers then says that it is empty, or what is left there."""
    from nats.js.api import ClusterInfo

    async with logs(server) as (log, _):
        stream_info = log._jetstream.stream_info  # type: ignore[attr-defined]

        async def leaderless(name: str) -> Any:
            return (await stream_info(name)).evolve(cluster=ClusterInfo(leader=None, name="fleet", replicas=[]))

        monkeypatch.setattr(log._jetstream, "stream_info", leaderless)  # type: ignore[attr-defined]
        with pytest.raises(LinkError, match="no leader"):
            await log.bounds()


async def test_a_server_that_is_gone_is_trouble_with_the_link_and_its_log_is_another_one(server: NatsServer) -> None:
    async with logs(server) as (log, _):
        before = await log.bounds()
        await log.seek(before.first)
        server.kill()
        for call in (log.bounds(), log.seek(1), log.publish([Publication("i", StreamKey("d", "f"), b"x")])):
            with pytest.raises(LinkError, match="NATS"):
                await call
        with pytest.raises(LinkError):
            await log.fetch(5, 0.1)
        server.start()
    async with logs(server) as (log, _):
        assert (await log.bounds()).epoch != before.epoch


@contextlib.asynccontextmanager
async def buckets(server: NatsServer, count: int) -> AsyncIterator[list[Any]]:
    """As many processes have, on one connection."""
    from eyestream_fleet.nats.bucket import Bucket, bucket_name, make_bucket
    from eyestream_fleet.nats.log import connected

    async with connected([server.url]) as client:
        for _ in range(2):
            await make_bucket(client, bucket_name(0), 1)
        yield [Bucket(client, 0) for _ in range(count)]


def of(ledger: int, outbox: int, life: str = "a" * 32) -> Remembered:
    return Remembered(Lengths(ledger, outbox), life)


async def test_a_second_place_in_a_bucket(server: NatsServer) -> None:
    async with buckets(server, 2) as (bucket, other):
        assert (await bucket.holder(), await bucket.read("a")) == (None, None)
        await bucket.write("a", of(2**40, 7))
        assert await other.read("a") == of(2**40, 7)
        assert await other.holder() == "a"
        await other._set("a", b"5 6 0123456789abcdef", other._revision)
        assert await bucket.read("a") == of(5, 6, ""), "of a version whose lives had no tokens"
        await bucket._set("a", b"something", bucket._revision)
        with pytest.raises(ShardError, match="holds something else"):
            await bucket.read("a")


async def test_the_bucket_of_another_fleet_is_refused_by_name(server: NatsServer) -> None:
    """To look, to begin, and to accept."""
    async with buckets(server, 1) as (bucket,):
        await bucket.write("a", of(1, 1))
        said = (
            r"shard b: the second place, bucket eyestream_shard_0 of NATS, is that of shard a; .*those of another fleet"
        )
        with pytest.raises(ShardError, match=said):
            await bucket.read("b")


async def test_of_two_workers_on_copies_of_a_shard_one_ends(server: NatsServer) -> None:
    """Whoever was there first is told so before it publishes; the one that wrote last goes on."""
    async with buckets(server, 2) as (first, second):
        await first.write("a", of(1, 1))
        assert await second.read("a") == of(1, 1)
        await second.write("a", of(1, 1, "b" * 32))
        for _ in range(3):
            with pytest.raises(ShardError, match="another worker is at work on a copy"):
                await first.write("a", of(2, 3))
        await second.write("a", of(3, 3, "b" * 32))


async def test_a_second_place_whose_answer_was_lost_is_written_again(server: NatsServer) -> None:
    """As in an election: what was written then may be older by now than what is to be written."""
    async with buckets(server, 2) as (bucket, other):
        await bucket.write("a", of(1, 1))
        before, tried = bucket._revision, {of(2, 2): b"life aaaa 2 2 stamp"}
        await bucket._set("a", tried[of(2, 2)], before)
        bucket._tried = tried
        with pytest.raises(LinkError, match="was lost"):
            await bucket.write("a", of(3, 3))
        await bucket.write("a", of(3, 3))
        assert await other.read("a") == of(3, 3)


async def test_a_copy_of_a_process_is_another_worker(server: NatsServer) -> None:
    """As of a machine that was copied at work: both have one token, and both write the same lengths."""
    async with buckets(server, 2) as (one, copied):
        await one.write("a", of(1, 1))
        copied._revision = one._revision
        await copied.write("a", of(2, 2))
        with pytest.raises(ShardError, match="another worker"):
            await one.write("a", of(2, 2))


async def test_a_shard_whose_second_place_was_lost_goes_on_when_somebody_accepts_it(
    server: NatsServer, tmp_path: Path
) -> None:
    """And no copy of it does any more. Looking makes no bucket."""
    from eyestream_fleet.nats.log import connected

    planned = load(fleet_config(tmp_path, [server.url], PARTITIONS, ["d0"], pages=[server.page_url]))
    own, copy = tmp_path / "shards" / "shard-0", tmp_path / "copy"
    await found_shard(planned, 0, 0)
    shutil.copytree(own, copy)
    async with connected([server.url]) as client:
        await client.jetstream().delete_key_value("eyestream_shard_0")
        assert (await copies_of_shard(planned, 0, [own, copy]))[1] is None
        assert "KV_eyestream_shard_0" not in [one.config.name for one in await client.jetstream().streams_info()]
    assert await accept_shard(planned, 0) == (own, Lengths(0, 0), Lengths(0, 0))
    copies, remembered = await copies_of_shard(planned, 0, [own, copy])
    assert remembered is not None
    assert [one.can_go_on(remembered) for one in copies] == [True, False]


@pytest.mark.parametrize(
    ("durable", "told", "new", "said"),
    [
        (True, True, True, None),
        (False, True, False, r"n0 does not sync at each writing.*`sync_interval: always`"),
        (True, False, False, r"nobody tells whether the NATS server n0 syncs.*\[fleet\] monitoring"),
        (False, False, True, r"nobody tells whether the NATS server n0 syncs"),
    ],
)
async def test_a_second_place_that_a_loss_of_power_may_roll_back_is_refused(
    tmp_path: Path, durable: bool, told: bool, new: bool, said: str | None
) -> None:
    server = NatsServer(tmp_path / "nats", 1, durable=durable)
    server.start()
    pages = [server.page_url if told else "http://127.0.0.1:1"]
    try:
        planned = load(fleet_config(tmp_path, [server.url], 1, ["d0"], pages=pages))
        stop = asyncio.Event()
        stop.set()
        work = found_shard(planned, 0, 0) if new else run_shard(planned, 0, lambda: 0, stop)
        with contextlib.nullcontext() if said is None else pytest.raises(ConfigError, match=said):
            await work
        assert (tmp_path / "shards").exists() == (said is None)
    finally:
        server.kill()


async def test_the_secret_of_a_log_is_one_and_lives_in_memory_alone(server: NatsServer, tmp_path: Path) -> None:
    async with logs(server) as (one, other):
        secret = await one.secret()
        assert secret is not None
        assert len(secret) == 32
        assert await other.secret() == secret
    server.kill()
    assert not any(secret in data for data in files(tmp_path))
    server.start()
    async with logs(server) as (one, _):
        assert await one.secret() != secret


async def test_a_tracker_and_an_application_speak_mqtt_as_to_a_sidecar(server: NatsServer, tmp_path: Path) -> None:
    devices = ["d0", "d1", "d2"]
    config = fleet_config(tmp_path, [server.url], PARTITIONS, devices, private=server.mqtt_url)
    names = calibrations.load("everyday-cfpa-32").names
    with await asyncio.to_thread(Workers, config, PARTITIONS) as workers:
        async with asyncio.timeout(60), subscribe(server.mqtt_url, "d1") as chunks:
            await until(lambda: chunks.meta is not None, 60.0)
            async with Publisher(server.mqtt_url, "d1", names, 2.0) as publisher:
                for _ in range(4):
                    await publisher.send(np.full((8, len(names)), 0.5, np.float32))
                chunk = await anext(aiter(chunks))
        assert chunk.values.shape == (len(names), 32)
        assert chunk.names == names
        await asyncio.to_thread(workers.stop)


async def read(port: int, path: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def test_a_worker_says_how_it_is(server: NatsServer, tmp_path: Path) -> None:
    """Status for applications, figures for Prometheus: at work, without its log, on one made again, at the end."""
    path = fleet_config(tmp_path, [server.url], PARTITIONS, ["d0"], private=server.mqtt_url)
    planned, stop, ports, workers = load(path), asyncio.Event(), list[int](), list[ShardWorker]()
    await found_shard(planned, partition := partition_of("d0", PARTITIONS), 0)

    @contextlib.asynccontextmanager
    async def window(worker: ShardWorker) -> AsyncIterator[None]:
        async with serve(0, worker_pages(worker)) as port:
            ports.append(port)
            workers.append(worker)
            yield

    names = calibrations.load("everyday-cfpa-32").names
    async with asyncio.timeout(60), subscribe(server.mqtt_url, "d0") as chunks:
        work = asyncio.create_task(run_shard(planned, partition, lambda: 20_000, stop, window))
        await until(lambda: chunks.status == Status("online", "ready"))
        async with Publisher(server.mqtt_url, "d0", names, 2.0) as publisher:
            await publisher.send(np.full((32, len(names)), 0.5, np.float32))
            await anext(aiter(chunks))
        assert await read(ports[0], "/healthz") == (200, "ok\n")
        figures = (await read(ports[0], "/metrics"))[1]
        for line in ('rows_total{fate="accepted"} 32', "chunks_released_total 1", 'link_up{side="log"} 1'):
            assert f"eyestream_{line}\n" in figures
        server.kill()
        await until(lambda: not workers[0].stands)
        assert await read(ports[0], "/healthz") == (503, "log\n")
        chunks.status = None
        server.start()
        await until(lambda: workers[0].stands and chunks.status == Status("online", "ready"))
        assert await read(ports[0], "/healthz") == (200, "ok\n")
        figures = (await read(ports[0], "/metrics"))[1]
        for line in ('losses_total{kind="made_again"} 1', 'losses_total{kind="cut_off"} 0', "offsets_missing_total 0"):
            assert f"eyestream_log_{line}\n" in figures
        stop.set()
        await work
        await until(lambda: chunks.status == Status("offline", "stopped"))


async def test_a_worker_says_that_it_has_stopped_although_its_link_is_away(
    server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has kept that it is ready, and is back; the worker's log stands, and its other link is about to."""
    path = fleet_config(tmp_path, [server.url], PARTITIONS, ["d0"], private=server.mqtt_url)
    partition, stop, workers = partition_of("d0", PARTITIONS), asyncio.Event(), list[ShardWorker]()
    await found_shard(planned := load(path), partition, 0)

    @contextlib.asynccontextmanager
    async def window(worker: ShardWorker) -> AsyncIterator[None]:
        workers.append(worker)
        yield

    class Never(Backoff):
        def pause(self) -> float:
            return 1000.0

    monkeypatch.setattr("eyestream.rim.mqtt.reconnecting.Backoff", Never)
    async with asyncio.timeout(60):
        work = asyncio.create_task(run_shard(planned, partition, lambda: 20_000, stop, window))
        async with subscribe(server.mqtt_url, "d0") as chunks:
            await until(lambda: chunks.status == Status("online", "ready"))
        server.kill()
        await until(lambda: not workers[0].stands)
        server.start()
        await until(lambda: workers[0].stands)
        async with subscribe(server.mqtt_url, "d0") as chunks:
            await until(lambda: chunks.status == Status("online", "ready"))
            stop.set()
            await work
            await until(lambda: chunks.status == Status("offline", "stopped"))


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_twenty_kills(server: NatsServer, tmp_path: Path) -> None:
    """Two workers as processes: every chunk once, with one byte string, charged once, in one session of a device."""
    from eyestream_fleet.nats.log import connected

    devices, chunks, luck = [f"d{i}" for i in range(20)], 40, random.Random(3)
    seen, config = Seen(), fleet_config(tmp_path, [server.url], PARTITIONS, devices)
    async with connected([server.url]) as client:
        with await asyncio.to_thread(Workers, config, PARTITIONS) as workers:

            async def hear() -> None:
                async for message in (await client.subscribe("eyestream.v1.*.*.private")).messages:
                    seen.note((message.headers or {})["Nats-Msg-Id"], message.subject.split(".")[2], message.data)

            hearing = asyncio.create_task(hear())
            killing = asyncio.create_task(kill_at_work(workers, seen, PARTITIONS, 20, luck))
            jetstream, messages = client.jetstream(), raw_messages(devices, chunks, 16)
            for number, (key, payload) in enumerate(messages):
                await jetstream.publish(f"eyestream.v1.{key.device}.{key.stream}.raw", payload)
                due = 20 * number // len(messages)  # the rows last as long as the kills
                await until(lambda due=due: workers.kills >= due, 120.0)  # type: ignore[misc]
            await killing
            await seen.wait_for(len(devices) * chunks, 60.0)
            await asyncio.to_thread(workers.stop)
            await asyncio.sleep(0.2)
            hearing.cancel()
    print(f"{seen.messages - len(seen.payloads)} sent again, longest gap {seen.longest_gap_s:.2f} s")
    assert seen.faults(dict.fromkeys(devices, chunks), workers.released()) == []
