"""A partition in NATS out of a fleet's configuration, and a second place there."""

import contextlib
import functools
import ssl
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import urlsplit

from nats.aio.client import Client

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import secret_in, tls_context
from eyestream_fleet.log import Log
from eyestream_fleet.nats.bucket import Bucket, Rolls, bucket_name, check_durable, make_bucket
from eyestream_fleet.nats.log import NatsLog, connected, make_streams
from eyestream_fleet.second_place import SecondPlace
from eyestream_fleet.table import FleetSettings


class Opened(NamedTuple):
    """A partition, its second place there, and the rolls of the fleet."""

    log: Log
    place: Bucket
    rolls: Rolls


@contextlib.asynccontextmanager
async def opened(fleet: FleetSettings, partition: int, *, new: bool) -> AsyncIterator[Opened]:
    """The partition, and a second place there if no folder is one; the streams are made by whoever comes first.

    Raises
    ------
    ConfigError
        Files of TLS are named, and the servers do not speak it; the second place may be rolled back (`new` as for
        `check_durable`); or the log was made otherwise (`make_streams`).
    LinkError
        The servers cannot be reached.
    """
    async with _client(fleet) as client:
        make = functools.partial(
            make_streams,
            client,
            [partition],
            fleet.partitions,
            replicas=fleet.replicas,
            raw_age_s=fleet.raw_age_s,
            released_age_s=fleet.released_age_s,
        )
        await make()
        if fleet.second_place is None:
            name = bucket_name(partition)
            await make_bucket(client, name, fleet.replicas)
            pages = _pages(fleet)
            secret = any(page.startswith("https://") for page in pages)
            tls = ssl.create_default_context(cafile=fleet.ca_file) if secret else None  # takes a while to make
            await check_durable(client, name, fleet.replicas, pages, tls, new=new)
        yield Opened(NatsLog(client, partition, make), Bucket(client, partition), Rolls(client, fleet.replicas))


@contextlib.asynccontextmanager
async def second_place(fleet: FleetSettings, partition: int) -> AsyncIterator[SecondPlace]:
    """The second place there, if it was made; nothing is. Raises as `opened`."""
    async with _client(fleet) as client:
        yield Bucket(client, partition)


@contextlib.asynccontextmanager
async def rolls_of(fleet: FleetSettings) -> AsyncIterator[Rolls]:
    """The rolls of a fleet. Raises as `opened`."""
    async with _client(fleet) as client:
        yield Rolls(client, fleet.replicas)


def _pages(fleet: FleetSettings) -> list[str]:
    """Where the servers' monitoring pages are; if nothing is set, at the usual port of the servers that are named."""
    hosts = [urlsplit(server if "://" in server else f"nats://{server}").hostname or "" for server in fleet.servers]
    usual = [f"http://{f'[{host}]' if ':' in host else host}:8222" for host in hosts]
    return list(fleet.monitoring) or usual


@contextlib.asynccontextmanager
async def _client(fleet: FleetSettings) -> AsyncIterator[Client]:
    server, files = fleet.servers[0], (fleet.ca_file, fleet.cert_file, fleet.key_file)
    if any(files) and not server.startswith("tls://"):
        raise ConfigError("[fleet] servers: ca_file, cert_file and key_file need servers that begin with tls://")
    login = BrokerSettings(server, ca_file=fleet.ca_file, cert_file=fleet.cert_file, key_file=fleet.key_file)
    async with connected(
        fleet.servers,
        tls=tls_context(login) if server.startswith("tls://") else None,
        user=fleet.username,
        password=None if fleet.password_file is None else secret_in(fleet.password_file),
    ) as client:
        yield client
