"""A partition in Kafka out of a fleet's configuration."""

import contextlib
from collections.abc import AsyncIterator

from eyestream.rim.config.fleet import FleetSettings
from eyestream.rim.mqtt.endpoint import secret_in
from eyestream_fleet.logs.kafka.log import KafkaLog
from eyestream_fleet.logs.log import Log
from eyestream_fleet.second_place import SecondPlace

__all__ = ["opened"]


@contextlib.asynccontextmanager
async def opened(fleet: FleetSettings, partition: int, new: bool) -> AsyncIterator[tuple[Log, SecondPlace | None]]:
    """The partition. Raises ConfigError for a password file that cannot be read."""
    files = {"ca": fleet.ca_file, "certificate": fleet.cert_file, "key": fleet.key_file}
    options = {f"ssl.{name}.location": str(path) for name, path in files.items() if path is not None}
    if fleet.username is not None and fleet.password_file is not None:
        options |= {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": fleet.username}
        options["sasl.password"] = secret_in(fleet.password_file)
    if options:
        options["security.protocol"] = "SASL_SSL" if "sasl.username" in options else "SSL"
    with contextlib.closing(KafkaLog(fleet.servers, partition, options)) as log:
        yield log, None
