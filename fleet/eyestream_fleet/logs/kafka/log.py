"""Kafka as the log of a fleet (extra ``kafka``: confluent-kafka).

Raw rows are in `RAW`, released chunks in `PRIVATE`; the key of a message is ``device/stream``. Whoever writes raw rows
chooses the partition by `eyestream_fleet.logs.log.partition_of`: Kafka's own partitioners are others. A worker is
assigned its partition and seeks to its own offset. It is in no group, commits nothing and uses no transaction: bytes of
a transaction that is aborted stay in the log, where an adversary reads them.

A message's time is that of the topic: set ``message.timestamp.type=LogAppendTime`` for the brokers' clock. The same
message may be in `PRIVATE` twice, with the same id in its header ``id`` and the same bytes. Kafka keeps raw rows on
disks.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from eyestream.errors import LinkError
from eyestream.streams import StreamKey
from eyestream.wire.topics import is_name
from eyestream_fleet.logs.log import Bounds, Entry, Publication

__all__ = ["PRIVATE", "RAW", "KafkaLog"]

RAW, PRIVATE = "eyestream.raw", "eyestream.private"

_TIMEOUT_S = 5.0

Given = ParamSpec("Given")
Result = TypeVar("Result")


def _in_a_thread(call: Callable[Given, Result]) -> Callable[Given, Coroutine[Any, Any, Result]]:
    """The same call in a thread, as the library waits; LinkError for every trouble with Kafka."""

    @functools.wraps(call)
    async def wrapped(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return await asyncio.to_thread(call, *given, **named)
        except (KafkaException, BufferError) as error:
            raise LinkError(f"Kafka: {error}") from None

    return wrapped


class KafkaLog:
    """One partition in Kafka.

    Parameters
    ----------
    servers
        ``host:port`` of some brokers.
    partition
        Which one.
    options
        Further settings of librdkafka, as for TLS and login.
    """

    def __init__(self, servers: Sequence[str], partition: int, options: dict[str, str] | None = None) -> None:
        shared = {"bootstrap.servers": ",".join(servers), "log_level": 2, **(options or {})}
        self._partition = partition
        self._consumer = Consumer(
            {
                **shared,
                "group.id": f"eyestream-{partition}",  # required; nobody joins it
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
            }
        )
        self._producer = Producer(
            {**shared, "enable.idempotence": True, "message.timeout.ms": int(1000 * _TIMEOUT_S), "linger.ms": 0}
        )

    def close(self) -> None:
        """Give the connections up."""
        self._consumer.close()
        self._producer.purge()

    @_in_a_thread
    def bounds(self) -> Bounds:
        """As `Log`. A topic that is made again in the same cluster looks like one that was cut off."""
        cluster = self._consumer.list_topics(RAW, timeout=_TIMEOUT_S).cluster_id
        place = TopicPartition(RAW, self._partition)
        first, end = self._consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S, cached=False)
        return Bounds(str(cluster), first, end)

    @_in_a_thread
    def seek(self, offset: int) -> None:
        """As `Log`."""
        self._consumer.assign([TopicPartition(RAW, self._partition, offset)])

    @_in_a_thread
    def fetch(self, most: int, wait_s: float) -> list[Entry]:
        """As `Log`."""
        first = self._consumer.poll(wait_s)
        messages = [] if first is None else [first, *self._consumer.consume(most - 1, 0.0)]
        return [_entry(message) for message in messages]

    async def secret(self) -> None:
        """As `Log`: Kafka keeps everything on disks."""

    @_in_a_thread
    def publish(self, publications: Sequence[Publication]) -> None:
        """As `Log`."""
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)

        for one in publications:
            self._producer.produce(
                PRIVATE, one.payload, str(one.key), on_delivery=delivered, headers={"id": one.id.encode()}
            )
            self._producer.poll(0)
        if self._producer.flush(2 * _TIMEOUT_S) or failed:
            raise KafkaException(*failed[:1])


def _entry(message: Message) -> Entry:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    device, _, stream = (message.key() or b"").decode(errors="replace").partition("/")
    key = StreamKey(device, stream) if is_name(device) and is_name(stream) else None
    offset, (_, at_ms) = message.offset(), message.timestamp()
    assert offset is not None
    return Entry(offset, key, message.value() or b"", at_ms / 1000)
