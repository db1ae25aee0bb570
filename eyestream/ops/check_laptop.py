"""Whether one broker without logins, on a machine of one person, is what it should be: for trying things out.

What is asked of people's data is not asked here: whoever runs a program on this machine may enter, write and read. What
is asked is that nobody else can.
"""

import asyncio
import ipaddress
import secrets
import socket
from collections.abc import Iterable

from eyestream.errors import ConfigError, LinkError
from eyestream.ops.check_owners import owner_finding
from eyestream.ops.check_sizes import size_finding
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.config import Settings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import CONNECT_SECONDS, Message, connect
from eyestream.rim.plan import Plan

__all__ = ["addresses_elsewhere", "laptop_findings"]

_FAR = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
"""Addresses of documentation (RFC 5737, 3849): which of ours would be used to go there? Nothing is sent."""


async def laptop_findings(settings: Settings, plan: Plan | None, elsewhere: Iterable[str]) -> list[Finding]:
    """Try the brokers of a configuration from this machine.

    Parameters
    ----------
    settings, plan
        The configuration, and the same resolved; None where it cannot be.
    elsewhere
        Addresses under which other machines know this one.
    """
    findings = []
    sides = {"private": settings.private} | ({"raw": settings.raw} if settings.raw is not None else {})
    for side, broker in sides.items():
        what = f"{side} broker: the sidecar gets in"
        try:
            endpoint = Endpoint.of(broker)
            async with connect(endpoint, client_id=f"check-{secrets.token_hex(4)}", deliver=_ignore):
                findings.append(good(what))
        except ConfigError as error:
            findings.append(bad(what, str(error), f"Correct [{side}]"))
            continue
        except LinkError as error:
            how = "Start the broker" if endpoint.unix else f"Start one: mosquitto -p {endpoint.port} &"
            findings.append(bad(what, str(error), how))
            continue
        findings.append(await _only_here(side, endpoint, elsewhere))
        if side == "private":
            findings += [await size_finding(endpoint, [endpoint], plan), await owner_finding(endpoint, settings)]
    return findings


def addresses_elsewhere() -> list[str]:
    """Addresses of this machine that others use; none where it has no network."""
    found = []
    for far, family in _FAR:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((far, 9))
            except OSError:
                continue
            found.append(str(probe.getsockname()[0]))
    return found


async def _only_here(side: str, endpoint: Endpoint, elsewhere: Iterable[str]) -> Finding:
    """A broker without logins must listen on the loopback alone, or on a Unix socket."""
    what = f"{side} broker: only this machine reaches it"
    if endpoint.unix:
        return good(what)
    if not _is_loopback(endpoint.host):
        return bad(what, f"{endpoint} is another machine", f"Name localhost in [{side}] url, or leave --laptop out")
    for address in elsewhere:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, writer = await asyncio.open_connection(address, endpoint.port)
        except (OSError, TimeoutError):
            continue
        writer.close()
        remedy = f"Let it listen on the loopback: listener {endpoint.port} 127.0.0.1"
        return bad(what, f"it answers at {address} too", remedy)
    return good(what)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _ignore(message: Message) -> None:
    """It listens to nothing."""
