"""``[fleet]``: a log that partitions devices among workers, for `eyestream shard`. One file serves all of them."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

__all__ = ["FleetSettings"]

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
        Copies of each message in the log.
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
    raw_age_s: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    released_age_s: Annotated[float, msgspec.Meta(gt=0)] = 3600.0
    username: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
