"""A second place in a key-value bucket of NATS, one for each partition; and a bucket with the rolls of all partitions.

Both are files on the servers' disks, which are not the shard's. A bucket for each partition has a leader of its own, so
second places are spread over the servers as the partitions are. It holds one shard, by name: that of another fleet, and
a second shard of the same partition, are refused.

NATS answers that a value is stored, and by default writes it to its disk within two minutes. A loss of power would take
what a shard has published from what is remembered of it. A client is not told how a server is set, so its monitoring
page is asked, and a server that does not sync at each writing (``sync_interval: always``) is refused.
"""

import asyncio
import contextlib
import logging
import ssl
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException

import msgspec
from nats.aio.client import Client
from nats.js.api import StorageType
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError, NotFoundError

from eyestream.errors import ConfigError, LinkError, ShardError
from eyestream_fleet.nats.log import trouble
from eyestream_fleet.second_place import RevisedPlace

_KEY = "shard"
_ROLLS = "eyestream_rolls"
_PAGE_S = 2.0

_LOG = logging.getLogger("eyestream.shard")


def bucket_name(partition: int) -> str:
    """Name of the second place of a partition."""
    return f"eyestream_shard_{partition}"


@trouble
async def make_bucket(client: Client, name: str, replicas: int) -> None:
    """Make it where there is none. Raises LinkError."""
    jetstream = client.jetstream()
    try:
        await jetstream.stream_info(f"KV_{name}")
    except NotFoundError:
        await jetstream.create_key_value(bucket=name, storage=StorageType.FILE, replicas=replicas)


async def check_durable(
    client: Client, name: str, replicas: int, pages: Sequence[str], tls: ssl.SSLContext | None, *, new: bool
) -> None:
    """Refuse a bucket that a loss of power may roll back, or that has fewer copies than it should.

    Parameters
    ----------
    client
        Connected.
    name, replicas
        Of the bucket, and the copies that it should have.
    pages
        Addresses of the servers' monitoring pages.
    tls
        For pages at ``https://``.
    new
        Whether every server that holds the bucket must answer. Later one of them may be away, and is warned of: it was
        asked when the shards were made, and whenever a worker began while it was there.

    Raises
    ------
    ConfigError
        A server does not sync at each writing, or no page tells whether they do; or the copies are too few.
    LinkError
        The servers cannot be reached.
    """
    copies, holders = await _holders(client, name)
    if copies < replicas:
        raise ConfigError(
            f"[fleet] replicas: is {replicas}, and the bucket of the second place has {copies}; "
            f"`nats stream edit KV_{name} --replicas {replicas}` adds some"
        )
    told = dict(filter(None, await asyncio.gather(*(asyncio.to_thread(_told, page, tls) for page in pages))))
    lax = sorted(name for name, always in told.items() if not always)
    if lax:
        raise ConfigError(
            f"[fleet] second_place: the NATS server {', '.join(lax)} does not sync at each writing, so a loss of power "
            "may roll the second place back; set `sync_interval: always` in its jetstream { } and start it again, or "
            "name a folder on another disk"
        )
    silent = sorted(holders - told.keys())
    if silent and (new or silent == sorted(holders)):
        raise ConfigError(
            f"[fleet] second_place: nobody tells whether the NATS server {', '.join(silent)} syncs at each writing; "
            f"let [fleet] monitoring name the servers' monitoring pages (asked: {', '.join(pages)}), or name a folder "
            "on another disk"
        )
    if silent:
        _LOG.warning("the monitoring page of %s does not answer: whether it syncs is not known", ", ".join(silent))


@trouble
async def _holders(client: Client, name: str) -> tuple[int, set[str]]:
    """How many copies the bucket has, and names of the servers that hold them."""
    info = await client.jetstream().stream_info(f"KV_{name}")
    cluster = info.cluster
    if cluster is None or not cluster.leader:
        raise LinkError("NATS: the second place has no leader")
    names = {cluster.leader, *(peer.name for peer in cluster.replicas or () if peer.name)}
    return info.config.num_replicas or 1, names


class _Config(msgspec.Struct):
    sync_always: bool = False


class _JetStream(msgspec.Struct):
    config: _Config


class _Page(msgspec.Struct):
    server_name: str
    jetstream: _JetStream


def _told(page: str, tls: ssl.SSLContext | None) -> tuple[str, bool] | None:
    """Name of the server with this monitoring page, and whether it syncs at each writing; None: it does not answer."""
    try:
        with urllib.request.urlopen(f"{page.rstrip('/')}/varz", timeout=_PAGE_S, context=tls) as answer:
            told = msgspec.json.decode(answer.read(), type=_Page)
    except (OSError, HTTPException, msgspec.DecodeError):  # the last one: it has no JetStream, or is no such page
        return None
    return told.server_name, told.jetstream.config.sync_always


class Bucket(RevisedPlace):
    """A `SecondPlace` of a partition, for one worker."""

    def __init__(self, client: Client, partition: int) -> None:
        super().__init__()
        self._cell = _Cell(client, bucket_name(partition), _KEY)

    async def holder(self) -> str | None:
        """The name of the shard that it remembers; None: it remembers none. Raises LinkError."""
        held = await self._cell.get()
        return None if held is None else held[1].partition(b" ")[0].decode("ascii", "replace")

    async def _get(self, ledger: str) -> tuple[int, bytes] | None:
        held = await self._cell.get()
        if held is None:
            return None
        name, _, value = held[1].partition(b" ")
        if name != ledger.encode():
            raise ShardError(
                f"shard {ledger}: the second place, bucket {self._cell.bucket} of NATS, is that of shard "
                f"{name.decode('ascii', 'replace')}; [fleet] servers are those of another fleet, or the folder is "
                "another shard's"
            )
        return held[0], value

    async def _set(self, ledger: str, value: bytes, last: int) -> int | None:
        return await self._cell.set(ledger.encode() + b" " + value, last)


class Rolls:
    """The rolls of all partitions (`eyestream_fleet.roll`), as bytes."""

    def __init__(self, client: Client, replicas: int) -> None:
        self._client, self._replicas = client, replicas

    async def read(self, partition: int) -> tuple[int, bytes] | None:
        """Revision and bytes of the roll of a partition; None: there is none. Raises LinkError."""
        return await _Cell(self._client, _ROLLS, str(partition)).get()

    async def write(self, partition: int, data: bytes, last: int) -> bool:
        """Write a roll if its newest revision is `last`, 0: none; whether it was.

        Raises LinkError; ConfigError: it is larger than what the servers take.
        """
        if len(data) > (most := self._client.max_payload):
            raise ConfigError(
                f"[fleet] partitions: the roll of partition {partition} would have {len(data)} bytes, and the servers "
                f"take {most} in a message; a fleet of so many devices needs more partitions"
            )
        await make_bucket(self._client, _ROLLS, self._replicas)
        return await _Cell(self._client, _ROLLS, str(partition)).set(data, last) is not None

    async def claim(self, partition: int, shard: str) -> None:
        """Note that a shard has its partition. Raises LinkError; ShardError: another one has it.

        For shards whose second place is a folder: no two of these know of each other.
        """
        await make_bucket(self._client, _ROLLS, self._replicas)
        cell = _Cell(self._client, _ROLLS, f"shard-{partition}")
        await cell.create(shard.encode())
        held = await cell.get()
        if held is None:
            raise LinkError("NATS: which shard has the partition is not known yet")
        if held[1] != shard.encode():
            raise ShardError(
                f"shard {shard}: partition {partition} of the log is that of shard "
                f"{held[1].decode('ascii', 'replace')}; [fleet] servers are those of another fleet, or the partition "
                "has two shards. If that one is lost for ever, give its devices new pseudonyms, and take its name away "
                f"with `nats kv del {_ROLLS} shard-{partition} --force`"
            )


class _Cell:
    """One value in a bucket."""

    def __init__(self, client: Client, bucket: str, key: str) -> None:
        self.bucket, self._key, self._jetstream = bucket, key, client.jetstream(timeout=2.0)

    @trouble
    async def get(self) -> tuple[int, bytes] | None:
        """Revision and value; None: there is none."""
        try:
            entry = await (await self._jetstream.key_value(self.bucket)).get(self._key)
        except (KeyNotFoundError, NotFoundError):
            return None
        return entry.revision or 0, entry.value or b""

    @trouble
    async def create(self, value: bytes) -> None:
        """Write where there is no value, or one that was deleted."""
        with contextlib.suppress(KeyWrongLastSequenceError):
            await (await self._jetstream.key_value(self.bucket)).create(self._key, value)

    @trouble
    async def set(self, value: bytes, last: int) -> int | None:
        """Write if the newest revision is `last` (0: none), and give the new one; None: it is another."""
        try:
            return await (await self._jetstream.key_value(self.bucket)).update(self._key, value, last=last)
        except KeyWrongLastSequenceError:
            return None
