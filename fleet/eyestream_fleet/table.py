"""``[fleet]``: the table that a fleet adds to the configuration, and what the product's commands ask of it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar
from urllib.parse import urlsplit

import msgspec

from eyestream.errors import ConfigError
from eyestream.rim.config import AddedTable, BrokerSettings, Settings

if TYPE_CHECKING:
    from eyestream.claims.facts import TrustModel

LEDGER = "ledger"
"""The name of the ledger in a shard's folder."""

_Written = Annotated[str, msgspec.Meta(min_length=1)]


class FleetSettings(AddedTable, frozen=True, forbid_unknown_fields=True):
    """``[fleet]``: where the log is, how it is cut, and where the shards lie. The log is a stream of NATS JetStream.

    Attributes
    ----------
    servers
        ``nats://host:port`` or ``tls://host:port``.
    partitions
        Fixed for the life of the ledgers.
    folder
        Has a folder for each shard, ``shard-0`` and so on; one that is missing is on another host.
    second_place
        A folder on another disk, for `eyestream.rim.ledger.second_place`; buckets of NATS when it is left out.
    replicas
        Copies of each message in the log, and of second places there.
    monitoring
        ``http://host:port`` of the monitoring page of each NATS server, by default port 8222 of each of `servers`:
        second places there are used when they tell that they outlive a loss of power.
    raw_age_s
        How long the log keeps raw rows: longer than any worker is away.
    released_age_s
        How long it keeps what is released.
    """

    servers: Annotated[tuple[_Written, ...], msgspec.Meta(min_length=1)]
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

    paths: ClassVar[tuple[str, ...]] = (
        *("folder", "second_place"),
        *("password_file", "ca_file", "cert_file", "key_file"),
    )
    instead: ClassVar[str] = "`eyestream shard --config FILE --partition N`"

    @property
    def private(self) -> BrokerSettings:
        """The MQTT listener of the first server, at the usual port, with the login of the log.

        Trackers and applications use it, and retained messages are there.
        """
        scheme, _, place = self.servers[0].rpartition("://")
        host = urlsplit(f"//{place}").hostname or "localhost"
        return BrokerSettings(
            f"mqtts://{host}:8883" if scheme == "tls" else f"mqtt://{host}:1883",
            username=self.username,
            password_file=self.password_file,
            ca_file=self.ca_file,
            cert_file=self.cert_file,
            key_file=self.key_file,
        )

    @property
    def trust_model(self) -> "TrustModel":
        """Workers on NATS, whose servers keep raw rows in memory for `raw_age_s` seconds."""
        from eyestream.claims.facts import TRACKER, TrustModel  # noqa: PLC0415  for who asks

        links = (
            "The links to it speak TLS"
            if all(one.startswith("tls://") for one in self.servers)
            else "The links to it do not speak TLS: whoever can listen on that network reads every raw row"
        )
        log = (
            "the log, NATS, is inside the trusted part. Raw rows are in the memory of its servers for "
            f"{self.raw_age_s:g} s, and on no disk. Whoever may read its raw rows, log in as a worker or "
            "change its servers sees everything: only trackers may write raw rows, and only workers may read them. "
            f"{links}. It is not trusted to keep or order anything: what it loses, repeats or invents releases no "
            "chunk twice"
        )
        trusted = (TRACKER, "the workers", "their ledgers and outboxes", "the log", "the way from tracker to worker")
        where = "in a worker of the fleet, before anything is published"
        return replace(TrustModel.guarded(), trusted=trusted, where=where, log=log)

    @property
    def ledgers(self) -> list[Path]:
        """Ledgers of the shards that are on this host, by their partitions."""
        every = (self.folder / f"shard-{partition}" / LEDGER for partition in range(self.partitions))
        return [path for path in every if path.exists()]

    def findings(self, settings: Settings) -> Iterable[tuple[str, str | None, str]]:
        """Shards on this host, and the log."""
        from eyestream_fleet.checking import fleet_findings  # noqa: PLC0415  for who checks

        return fleet_findings(self, settings)


def fleet_of(settings: Settings) -> FleetSettings:
    """The fleet of a configuration; raises ConfigError where it has none."""
    if not isinstance(settings.added, FleetSettings):
        raise ConfigError("[fleet]: missing; it says where the log is and how it is cut")
    return settings.added
