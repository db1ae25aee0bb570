"""NATS JetStream: raw rows in its servers' memory, and an MQTT listener of its own."""

from urllib.parse import urlsplit

from eyestream.rim.config.fleet import FleetSettings, LogEntry

__all__ = ["ENTRY"]


def _raw(fleet: FleetSettings) -> str:
    return f"Raw rows are in the memory of its servers for {fleet.raw_age_s:g} s, and on no disk"


def _tls(fleet: FleetSettings) -> bool:
    return all(one.startswith("tls://") for one in fleet.servers)


def _listener(fleet: FleetSettings) -> str:
    """Of the first server, at the usual port."""
    scheme, _, place = fleet.servers[0].rpartition("://")
    host = urlsplit(f"//{place}").hostname or "localhost"
    return f"mqtts://{host}:8883" if scheme == "tls" else f"mqtt://{host}:1883"


ENTRY = LogEntry(
    name="NATS",
    needs="nats-py",
    extra="fleet",
    opens="eyestream_fleet.logs.nats.opening:opened",
    second_place="eyestream_fleet.logs.nats.opening:second_place",
    raw=_raw,
    tls=_tls,
    listener=_listener,
)
