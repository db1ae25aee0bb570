"""Kafka: raw rows on its brokers' disks, and no second place."""

from eyestream.rim.config.fleet import FleetSettings, LogEntry

__all__ = ["ENTRY"]


def _raw(fleet: FleetSettings) -> str:
    return "Raw rows are on its brokers' disks, for as long as their topic says"


def _tls(fleet: FleetSettings) -> bool:
    return fleet.ca_file is not None


ENTRY = LogEntry(
    name="Kafka",
    needs="confluent-kafka",
    extra="kafka",
    opens="eyestream_fleet.logs.kafka.opening:opened",
    second_place=None,
    raw=_raw,
    tls=_tls,
)
