"""A second place in a key-value bucket of NATS: files on the servers' disks, which are not the shard's.

NATS answers that a value is stored, and by default writes it to its disk within two minutes. A loss of power would take
what a shard has published from what is remembered of it. A client is not told how a server is set, so its monitoring
page is asked, and a server that does not sync at each writing (``sync_interval: always``) is refused.
"""

import asyncio
import logging
import ssl
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException

import msgspec
from nats.aio.client import Client
from nats.js.api import StorageType
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError, NotFoundError

from eyestream.errors import ConfigError, LinkError
from eyestream_fleet.nats.log import trouble
from eyestream_fleet.second_place import RevisedPlace

__all__ = ["Bucket", "check_durable", "make_bucket"]

_NAME = "eyestream_shards"
_STREAM = f"KV_{_NAME}"
_PAGE_S = 2.0

_LOG = logging.getLogger("eyestream.shard")


@trouble
async def make_bucket(client: Client, replicas: int) -> None:
    """Make it where there is none. Raises LinkError."""
    jetstream = client.jetstream()
    try:
        await jetstream.stream_info(_STREAM)
    except NotFoundError:
        await jetstream.create_key_value(bucket=_NAME, storage=StorageType.FILE, replicas=replicas)


async def check_durable(
    client: Client, replicas: int, pages: Sequence[str], tls: ssl.SSLContext | None, *, new: bool
) -> None:
    """Refuse a bucket that a loss of power may roll back, or that has fewer copies than it should.

    Parameters
    ----------
    client
        Connected.
    replicas
        Copies that the bucket should have.
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
    copies, holders = await _holders(client)
    if copies < replicas:
        raise ConfigError(
            f"[fleet] replicas: is {replicas}, and the bucket of the second place has {copies}; "
            f"`nats stream edit {_STREAM} --replicas {replicas}` adds some"
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
async def _holders(client: Client) -> tuple[int, set[str]]:
    """How many copies the bucket has, and names of the servers that hold them."""
    info = await client.jetstream().stream_info(_STREAM)
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
    """A `SecondPlace` for one worker."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._jetstream = client.jetstream(timeout=2.0)

    @trouble
    async def _get(self, ledger: str) -> tuple[int, bytes] | None:
        try:
            entry = await (await self._jetstream.key_value(_NAME)).get(ledger)
        except (KeyNotFoundError, NotFoundError):
            return None
        return entry.revision or 0, entry.value or b""

    @trouble
    async def _set(self, ledger: str, value: bytes, last: int) -> int | None:
        try:
            return await (await self._jetstream.key_value(_NAME)).update(ledger, value, last=last)
        except KeyWrongLastSequenceError:
            return None
