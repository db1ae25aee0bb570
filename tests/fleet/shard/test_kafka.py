"""Workers on librdkafka's mock of Kafka, which has no transactions and no disks: offsets, and kills."""

import asyncio
import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eyestream.errors import LinkError
from eyestream.streams import StreamKey
from eyestream_fleet.logs.log import Publication, partition_of
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import Seen, Workers, fleet_config, kill_at_work, raw_messages

pytestmark = pytest.mark.needs("kafka")
PARTITIONS = 4
"""Of a topic that the mock makes."""


@pytest.fixture
def servers() -> Iterator[list[str]]:
    from confluent_kafka import Producer

    cluster = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 3, "log_level": 2})
    brokers = cluster.list_topics(timeout=10).brokers.values()
    yield [f"{broker.host}:{broker.port}" for broker in brokers]
    del cluster


def sender(servers: list[str]) -> Any:
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": ",".join(servers), "log_level": 2})


async def test_a_partition_is_read_from_an_offset_and_nothing_is_committed(servers: list[str]) -> None:
    from confluent_kafka import TopicPartition

    from eyestream_fleet.logs.kafka.log import RAW, KafkaLog

    producer = sender(servers)
    for number in range(5):
        producer.produce(RAW, b"%d" % number, b"d/features", partition=1)
    producer.produce(RAW, b"strange", b"d/../features", partition=1)
    assert producer.flush(10) == 0
    with contextlib.closing(KafkaLog(servers, 1)) as log:
        bounds = await log.bounds()
        assert (bounds.first, bounds.end) == (0, 6)
        await log.seek(2)
        entries = []
        while len(entries) < 4:
            entries += await log.fetch(100, 1.0)
        assert [(one.offset, one.payload) for one in entries] == [(2, b"2"), (3, b"3"), (4, b"4"), (5, b"strange")]
        assert [one.key for one in entries] == [*[StreamKey("d", "features")] * 3, None]
        assert await log.fetch(100, 0.05) == []
        await log.seek(0)
        again = []
        while len(again) < 6:
            again += await log.fetch(100, 1.0)
        assert [one.at for one in again[2:]] == [one.at for one in entries]
        (committed,) = log._consumer.committed([TopicPartition(RAW, 1)], timeout=5)
        assert committed.offset < 0
        await log.seek(99)
        with pytest.raises(LinkError, match="not available"):
            await log.fetch(1, 2.0)


async def test_brokers_that_are_gone_are_trouble_with_the_link() -> None:
    from eyestream_fleet.logs.kafka import log as kafka

    with contextlib.closing(kafka.KafkaLog(["127.0.0.1:1"], 0)) as log:
        with pytest.raises(LinkError, match="Kafka"):
            await log.bounds()
        with pytest.raises(LinkError, match="Kafka"):
            await log.publish([Publication("i", StreamKey("d", "features"), b"x")])


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_fifteen_kills(servers: list[str], tmp_path: Path) -> None:
    """As on NATS: every chunk once, with one byte string, charged once, in one session of a device."""
    from confluent_kafka import Consumer, TopicPartition

    from eyestream_fleet.logs.kafka.log import PRIVATE, RAW

    devices, chunks, luck, kills = [f"d{i}" for i in range(12)], 25, random.Random(4), 15
    producer, seen = sender(servers), Seen()
    producer.list_topics(PRIVATE, timeout=10)
    config = fleet_config(tmp_path, "kafka", servers, PARTITIONS, devices)
    with await asyncio.to_thread(Workers, config, PARTITIONS) as workers:
        reader = Consumer({"bootstrap.servers": ",".join(servers), "group.id": "outsider", "log_level": 2})
        reader.assign([TopicPartition(PRIVATE, partition, 0) for partition in range(PARTITIONS)])

        async def hear() -> None:
            while True:
                for message in await asyncio.to_thread(reader.consume, 100, 0.2):
                    assert message.error() is None
                    device = message.key().decode().partition("/")[0]
                    seen.note(dict(message.headers())["id"].decode(), device, message.value())

        hearing = asyncio.create_task(hear())
        killing = asyncio.create_task(kill_at_work(workers, seen, PARTITIONS, kills, luck))
        messages = raw_messages(devices, chunks, 16)
        for number, (key, payload) in enumerate(messages):
            producer.produce(RAW, payload, str(key), partition=partition_of(key.device, PARTITIONS))
            producer.poll(0)
            due = kills * number // len(messages)
            await until(lambda due=due: workers.kills >= due, 120.0)  # type: ignore[misc]
        assert await asyncio.to_thread(producer.flush, 10) == 0
        await killing
        await seen.wait_for(len(devices) * chunks, 60.0)
        await asyncio.to_thread(workers.stop)
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)
        reader.close()
    print(f"{seen.messages - len(seen.payloads)} sent again")
    assert seen.faults(dict.fromkeys(devices, chunks), workers.released()) == []
