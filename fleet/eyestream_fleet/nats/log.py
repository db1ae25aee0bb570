"""NATS JetStream as the log of a fleet (extra ``fleet``: nats-py).

Trackers and applications speak MQTT to NATS' own MQTT listener, unchanged: topic ``a/b`` is subject ``a.b`` there. A
subject mapping of the servers (`mapping`) sends the raw rows of a device to one partition. Each partition is a stream
in memory with a short age, so that raw rows reach no disk; it is read by a consumer of this process, from an offset of
ours. What is released goes into a stream of the partition, which acknowledges it, leaves repetitions out, and publishes
it at the topic that applications know.

The server's clock stamps each message. A message's offset is its number in the stream.
"""

import asyncio
import contextlib
import functools
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RePublish, StorageType, StreamConfig, StreamInfo
from nats.js.errors import BadRequestError, KeyWrongLastSequenceError, NotFoundError

from eyestream.errors import ConfigError, LinkError
from eyestream.streams import StreamKey
from eyestream.wire.topics import is_name
from eyestream_fleet.log import Bounds, Entry, Publication

_RAW, _RELEASED, _MEMORY = "eyestream_raw", "eyestream_released", "eyestream_memory"
_TIMEOUT_S = 1.0
"""Wait for an answer: one that was asked for during an election never comes."""

_SILENT_S = 1.0
"""A consumer that gives nothing for so long is asked whether it is there: it may be on a host that is gone. Or it is on
a server whose memory is full, which takes nothing more, says that it is healthy, and lets its consumers stand still."""

_CONNECT_S = 3
_PING_S = 2
"""A host that is gone closes no connection. One is given up when two pings found no answer, before raw rows are old."""

_DUPLICATES_S = 120.0

_OTHER_SETTINGS = 10058
"""Error of NATS: a stream of this name is there, with another configuration."""

Given = ParamSpec("Given")
Result = TypeVar("Result")


def mapping(partitions: int) -> tuple[str, str]:
    """The subject mapping that servers need, from and to: the hash is that of `partition_of`."""
    return "eyestream.v1.*.*.raw", f"{_RAW}.{{{{partition({partitions},1)}}}}.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}"


def trouble(call: Callable[Given, Awaitable[Result]]) -> Callable[Given, Coroutine[Any, Any, Result]]:
    """The same call, which raises LinkError for every trouble with NATS."""

    @functools.wraps(call)
    async def wrapped(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return await call(*given, **named)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise LinkError(f"NATS: {str(error) or 'no answer in time'}") from None
        finally:
            # The client takes some cancellations for an answer: `asyncio.wait_for` of Python 3.11 does where both come
            # at once. A worker that was overtaken would then read on for ever.
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError

    return wrapped


@dataclass
class _Message(Msg):
    """Message as the client makes it: one of a stream is without the headers that its publisher gave it.

    The client takes the header ``Status`` for a word of the server, and a number. One message with it would end a
    worker, or stop it until the message is old: it would be missed, and read again, and missed again.
    """

    def __post_init__(self) -> None:
        if self.reply.startswith("$JS.ACK."):  # which the server writes
            self.headers = None


@contextlib.asynccontextmanager
async def connected(
    servers: Sequence[str], *, tls: ssl.SSLContext | None = None, user: str | None = None, password: str | None = None
) -> AsyncIterator[Client]:
    """A connection that mends itself; raises LinkError when there is none at first."""
    client = Client()
    client.msg_class = _Message
    try:
        async with asyncio.timeout(_CONNECT_S):  # it would try for ever
            await client.connect(
                list(servers),
                tls=tls,
                user=user,
                password=password,
                connect_timeout=_CONNECT_S,
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.1,  # type: ignore[arg-type]
                ping_interval=_PING_S,
                error_cb=_heard,
            )
    except (nats.errors.Error, TimeoutError, OSError) as error:
        raise LinkError(f"NATS: {str(error) or 'no answer'} from {', '.join(servers)}") from None
    try:
        yield client
    finally:
        with contextlib.suppress(OSError, nats.errors.Error):  # it was lost already
            await client.close()


async def _heard(error: Exception) -> None:
    """Ignore the client's words on its connection: each call says for itself that it failed."""


@trouble
async def make_streams(
    client: Client,
    parts: Iterable[int],
    partitions: int,
    *,
    replicas: int,
    raw_age_s: float,
    released_age_s: float,
) -> None:
    """Make streams of a fleet, those that are not there: raw rows of some partitions, and what is released of them.

    Parameters
    ----------
    parts, partitions
        Which partitions, of how many; a worker makes its own.
    replicas
        Copies of each message, in memory for raw rows: 3 where the fleet has three servers.
    raw_age_s
        How long raw rows are kept: longer than any worker is away.
    released_age_s
        How long released chunks are kept for readers of the log.

    Raises
    ------
    ConfigError
        A stream is there that was made with other settings, or for another number of partitions.
    LinkError
        The servers cannot be reached.
    """
    manager = client.jetstream(timeout=_TIMEOUT_S)
    for partition in parts:
        said = f"partition {partition} of {partitions}"
        wanted = StreamConfig(
            name=_stream(partition),
            description=f"{said}: raw rows",
            subjects=[f"{_RAW}.{partition}.*.*"],
            storage=StorageType.MEMORY,
            max_age=raw_age_s,
            num_replicas=replicas,
        )
        released = StreamConfig(
            name=released_stream(partition),
            description=f"{said}: released chunks",
            subjects=[f"{_RELEASED}.{partition}.*.*"],
            storage=StorageType.FILE,
            max_age=released_age_s,
            num_replicas=replicas,
            duplicate_window=min(_DUPLICATES_S, released_age_s),
            republish=RePublish(
                src=f"{_RELEASED}.{partition}.*.*", dest="eyestream.v1.{{wildcard(1)}}.{{wildcard(2)}}.private"
            ),
        )
        for config in (wanted, released):
            try:
                await manager.add_stream(config)
            except BadRequestError as error:
                if error.err_code != _OTHER_SETTINGS:
                    raise
                raise _other(config, await manager.stream_info(config.name or "")) from None
    await manager.create_key_value(bucket=_MEMORY, storage=StorageType.MEMORY, replicas=replicas)


def _other(wanted: StreamConfig, found: StreamInfo) -> ConfigError:
    """The error for an operator whose log has a stream with other settings."""
    had = found.config
    if had.description != wanted.description:
        return ConfigError(
            f"[fleet] partitions: stream {wanted.name} of the log is of {had.description or 'something else'}, "
            f"expected {wanted.description}; [fleet] servers are those of another fleet, or [fleet] partitions was "
            "changed"
        )
    keys = {
        "replicas": (had.num_replicas, wanted.num_replicas),
        "raw_age_s, released_age_s": (had.max_age, wanted.max_age),
    }
    other = [
        f"{key}: {new:g}, and stream {wanted.name} of the log has {old or 0:g}"
        for key, (old, new) in keys.items()
        if old != new and new
    ]
    what = "; ".join(other) or f"servers: stream {wanted.name} of the log was made otherwise"
    return ConfigError(f"[fleet] {what}; `nats stream edit {wanted.name}` changes it")


def released_stream(partition: int) -> str:
    """The name of the stream of what is released of a partition."""
    return f"EYESTREAM_RELEASED_{partition}"


def _stream(partition: int) -> str:
    return f"EYESTREAM_RAW_{partition}"


class NatsLog:
    """One partition in NATS.

    Parameters
    ----------
    client
        Connected.
    partition
        Which one.
    make
        Makes the streams again where they are gone, as after a loss of power at all servers; None: nobody does.
    """

    def __init__(self, client: Client, partition: int, make: Callable[[], Awaitable[None]] | None = None) -> None:
        self._client, self._partition, self._stream, self._make = client, partition, _stream(partition), make
        self._jetstream = client.jetstream(timeout=_TIMEOUT_S)
        self._reader: JetStreamContext.PullSubscription | None = None
        self._delivered = self._link = self._next = self._end = 0
        self._silent_s = 0.0

    @trouble
    async def bounds(self) -> Bounds:
        """See `Log`."""
        try:
            info = await self._jetstream.stream_info(self._stream)
        except NotFoundError:
            if self._make is None:
                raise
            await self._make()
            info = await self._jetstream.stream_info(self._stream)
        if info.cluster is not None and not info.cluster.leader:  # it is then said to be empty
            raise LinkError("NATS: the partition has no leader")
        first = info.state.first_seq or 1
        return Bounds(str(info.created), first, max(info.state.last_seq + 1, first))

    @trouble
    async def seek(self, offset: int) -> None:
        """See `Log`. The consumer is our own, in the server's memory, and asks for no acknowledgement."""
        before, self._reader = self._reader, None
        if before is not None:
            with contextlib.suppress(nats.errors.Error):  # it may be gone with its server
                await before.unsubscribe()
        self._delivered, self._silent_s, self._link = 0, 0.0, self._client.stats["reconnects"]
        self._next = self._end = max(offset, 1)
        self._reader = await self._jetstream.pull_subscribe(
            "",
            stream=self._stream,
            config=ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._next,
                ack_policy=AckPolicy.NONE,
                inactive_threshold=60.0,
                mem_storage=True,
                num_replicas=1,
            ),
        )

    @trouble
    async def fetch(self, most: int, wait_s: float) -> list[Entry]:
        """See `Log`. What was under way on a lost connection is missing: a LinkError says so, and `seek` mends it.

        So does one for a consumer that has gone with its server, or stands still there."""
        reader = self._reader
        if reader is None or not self._client.is_connected or self._link != self._client.stats["reconnects"]:
            raise LinkError("NATS: the connection was lost")
        messages: list[Msg] = []
        with contextlib.suppress(TimeoutError):
            messages = await reader.fetch(most, timeout=wait_s)
        if not messages:  # the client ends a wait with an error or, where the server told it first, with nothing
            self._silent_s += wait_s
            if self._silent_s >= _SILENT_S:
                await reader.consumer_info()
                await self._compare()
                self._silent_s = 0.0
            return []
        self._silent_s, entries = 0.0, []
        for message in messages:
            told = message.metadata
            self._delivered += 1
            if told.sequence.consumer != self._delivered:
                raise LinkError("NATS: messages were lost on their way")
            self._next = told.sequence.stream + 1
            key = _key(message.subject)
            entries.append(Entry(told.sequence.stream, key, message.data, told.timestamp.timestamp()))
        return entries

    async def _compare(self) -> None:
        """Raise LinkError where messages wait since the last look, or some are lost that were read."""
        end = (await self.bounds()).end
        if not self._end <= self._next <= end:
            raise LinkError("NATS: the consumer does not go on with its partition")
        self._end = end

    @trouble
    async def secret(self) -> bytes:
        """See `Log`. The first who asks makes it."""
        bucket = await self._jetstream.key_value(_MEMORY)
        with contextlib.suppress(KeyWrongLastSequenceError):
            await bucket.create("secret", secrets.token_bytes(32))
        return (await bucket.get("secret")).value or b""

    @trouble
    async def publish(self, publications: Sequence[Publication]) -> None:
        """See `Log`. NATS leaves out what comes again with the same id within two minutes."""
        answers = [
            await self._jetstream.publish_async(
                f"{_RELEASED}.{self._partition}.{one.key.device}.{one.key.stream}",
                one.payload,
                stream=released_stream(self._partition),
                headers={"Nats-Msg-Id": one.id},
            )
            for one in publications
        ]
        async with asyncio.timeout(_TIMEOUT_S):
            await asyncio.gather(*answers)


def _key(subject: str) -> StreamKey | None:
    parts = subject.split(".")
    return StreamKey(*parts[2:]) if len(parts) == 4 and all(map(is_name, parts[2:])) else None
