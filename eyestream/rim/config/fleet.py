"""``[fleet]``: a log that partitions devices among workers, for `eyestream shard`. One file serves all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import msgspec

__all__ = ["FleetSettings", "LogEntry", "log_of"]

LOGS = {"nats": "eyestream_fleet.logs.nats", "kafka": "eyestream_fleet.logs.kafka"}
"""Kinds of log. Each is a package with an `ENTRY`, which is imported when a configuration names it."""

Text = Annotated[str, msgspec.Meta(min_length=1)]


class FleetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the log is, how it is cut, and where the shards lie.

    Attributes
    ----------
    log
        Which one.
    servers
        ``nats://host:port`` or ``tls://host:port``; ``host:port`` of Kafka.
    partitions
        Fixed for the life of the ledgers.
    folder
        Has a folder for each shard, ``shard-0`` and so on; one that is missing is on another host.
    second_place
        A folder on another disk, for `eyestream.rim.ledger.second_place`; with NATS a bucket there when it is left out.
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

    log: Literal["nats", "kafka"]
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


@dataclass(frozen=True)
class LogEntry:
    """What the product knows of a kind of log.

    Attributes
    ----------
    name
        As people write it.
    needs, extra
        The package of its client, and the extra of eyestream that installs it.
    opens
        ``module:NAME`` of what is called with a fleet, a partition, and whether its shard is made now. It gives an
        asynchronous context with the `eyestream_fleet.logs.log.Log` of the partition and a second place there, or None.
        Only its module needs the client.
    second_place
        ``module:NAME`` of what is called with a fleet, and gives an asynchronous context with its second place, for
        those who only look; None: it has none.
    raw
        Where raw rows are, and for how long, in a sentence.
    tls
        Whether all links of a fleet to it speak TLS.
    listener
        Address of its own MQTT listener, where it has one: for trackers, applications, and what is retained for them.
    """

    name: str
    needs: str
    extra: str
    opens: str
    second_place: str | None
    raw: Callable[[FleetSettings], str]
    tls: Callable[[FleetSettings], bool]
    listener: Callable[[FleetSettings], str] | None = None


def log_of(fleet: FleetSettings) -> LogEntry:
    """The kind of log that a fleet names."""
    found: LogEntry = import_module(LOGS[fleet.log]).ENTRY
    return found
