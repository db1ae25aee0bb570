"""``[fleet]``: a log that partitions devices among workers, for `eyestream shard`. One file serves all of them."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

__all__ = ["FleetSettings"]

Text = Annotated[str, msgspec.Meta(min_length=1)]


class FleetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the log is, how it is cut, and where the shards lie. The log is a stream of NATS JetStream.

    Attributes
    ----------
    servers
        ``nats://host:port`` or ``tls://host:port``.
    partitions
        Fixed for the life of the ledgers.
    folder
        Has a folder for each shard, ``shard-0`` and so on; one that is missing is on another host.
    second_place
        A folder on another disk, for `eyestream.rim.ledger.second_place`; a bucket of NATS when it is left out.
    replicas
        Copies of each message in the log, and of a second place there.
    monitoring
        ``http://host:port`` of the monitoring page of each NATS server, by default port 8222 of each of `servers`: a
        second place there is used when they tell that it outlives a loss of power.
    raw_age_s
        How long the log keeps raw rows: longer than any worker is away.
    released_age_s
        How long it keeps what is released.
    """

    servers: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    partitions: Annotated[int, msgspec.Meta(ge=1, le=65_536)]
    folder: Path
    second_place: Path | None = None
    replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 3
    monitoring: tuple[Annotated[str, msgspec.Meta(pattern="^https?://")], ...] = ()
    raw_age_s: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    released_age_s: Annotated[float, msgspec.Meta(gt=0)] = 3600.0
    username: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @property
    def speaks_tls(self) -> bool:
        """Whether all links of the fleet to its log speak TLS."""
        return all(one.startswith("tls://") for one in self.servers)

    @property
    def listener(self) -> str:
        """MQTT listener of the first server, at the usual port: for trackers, applications and retained messages."""
        scheme, _, place = self.servers[0].rpartition("://")
        host = urlsplit(f"//{place}").hostname or "localhost"
        return f"mqtts://{host}:8883" if scheme == "tls" else f"mqtt://{host}:1883"
