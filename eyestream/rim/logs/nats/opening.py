"""A partition in NATS out of a fleet's configuration, and a second place there."""

import contextlib
import functools
from collections.abc import AsyncIterator

from eyestream.errors import ConfigError
from eyestream.rim.config.fleet import FleetSettings
from eyestream.rim.config.tables import BrokerSettings
from eyestream.rim.ledger.second_place import SecondPlace
from eyestream.rim.logs.log import Log
from eyestream.rim.logs.nats.bucket import Bucket, make_bucket
from eyestream.rim.logs.nats.log import NatsLog, connected, make_streams
from eyestream.rim.mqtt.endpoint import secret_in, tls_context

__all__ = ["opened"]


@contextlib.asynccontextmanager
async def opened(fleet: FleetSettings, partition: int) -> AsyncIterator[tuple[Log, SecondPlace | None]]:
    """The partition and a second place there; the streams are made by whoever comes first.

    Raises
    ------
    ConfigError
        Files of TLS are named, and the servers do not speak it.
    LinkError
        The servers cannot be reached.
    """
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
        make = functools.partial(
            make_streams,
            client,
            [partition],
            replicas=fleet.replicas,
            raw_age_s=fleet.raw_age_s,
            released_age_s=fleet.released_age_s,
        )
        await make()
        await make_bucket(client, fleet.replicas)
        yield NatsLog(client, partition, make), Bucket(client)
