"""The ports of a deployment for other machines, tried from this one, under the name that they are for.

One of them may be for web pages: MQTT over WebSocket (RFC 6455; MQTT 5, section 6).
"""

import asyncio
import base64
import dataclasses
import secrets
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from eyestream.errors import ConfigError
from eyestream.ops.deployment.layout import at, read_manifest
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.mqtt.endpoint import Endpoint, tls_fault
from eyestream.rim.mqtt.transport import CONNECT_SECONDS

__all__ = [
    "NO_PORTS",
    "Port",
    "Ports",
    "entry_finding",
    "name_finding",
    "ports_of",
    "web_findings",
    "web_listener",
    "web_port_of",
]

_LOOPBACK = "127.0.0.1"

_CONNECT = b"\x10\x0c\0\4MQTT\4\2\0\n\0\0"
"""CONNECT of MQTT 3.1.1: a clean session, no name, no login."""

_CONNACK, _WELCOME = 0x20, 0


@dataclasses.dataclass(frozen=True, slots=True)
class Port:
    """A broker's port for other machines.

    Attributes
    ----------
    host : the name, or address, that they use.
    endpoint : the way to it from here, without a login; its certificate must be of the deployment's own authority.
    """

    host: str
    endpoint: Endpoint


Ports = Mapping[str, Port]
"""By broker, ``raw`` and ``private``; a broker that other machines do not reach is not in it."""

NO_PORTS: Ports = MappingProxyType({})


def ports_of(root: Path) -> Ports:
    """Ports of the deployment at `root`. Raises ConfigError when its list or its authority cannot be read."""
    manifest = read_manifest(root)
    found = {} if manifest is None else manifest.outside
    return {side: Port(host, Endpoint(_LOOPBACK, port, tls=_trusting(root))) for side, (host, port) in found.items()}


def web_port_of(root: Path) -> Port | None:
    """The WebSocket listener of the private broker at `root`; None where there is none, or this user may not look.

    Raises as `ports_of`.
    """
    path = at(root, "/etc/eyestream/private/private.conf")
    try:
        number = web_listener(path.read_text(encoding="utf-8"))
    except OSError:  # what is missing, `deployment_findings` says
        return None
    found = ports_of(root).get("private")
    if found is None or number is None:
        return None
    return Port(found.host, dataclasses.replace(found.endpoint, port=number))


def web_listener(text: str) -> int | None:
    """The port on which a configuration of mosquitto listens for WebSockets; None where there is none.

    >>> web_listener("listener 8883\\nlistener 9443\\nprotocol websockets")
    9443
    """
    port = None
    for words in (line.split() for line in text.splitlines()):
        if words[:1] == ["listener"]:
            port = int(words[1])
        elif words == ["protocol", "websockets"]:
            return port
    return None


async def name_finding(side: str, port: Port, which: str = "port for other machines") -> Finding:
    """Whether it shows a certificate for the name that other machines use, as they will look at it."""
    what = f"{side} broker: its {which} shows a certificate for {port.host}"
    context, way = port.endpoint.tls, port.endpoint
    assert context is not None
    named = ssl.create_default_context()
    named.load_verify_locations(cadata=b"".join(context.get_ca_certs(binary_form=True)))
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(way.host, way.port, ssl=named, server_hostname=port.host)
        writer.close()
    except ssl.SSLError as error:
        return bad(what, tls_fault(error), "eyestream deploy --upgrade / after the name was corrected")
    except (OSError, TimeoutError) as error:
        return bad(what, f"{way}: {error}", f"systemctl status eyestream-{side}")
    return good(what)


def _trusting(root: Path) -> ssl.SSLContext:
    """Certificates of the deployment's authority, for whatever name: the name is looked at by `name_finding`."""
    path = at(root, "/etc/eyestream/certificates/ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # of 127.0.0.1; who has a certificate of this authority is a broker of ours
    try:
        context.load_verify_locations(path)
    except (OSError, ssl.SSLError):
        raise ConfigError(f"{path}: cannot be read as a PEM file of certificates") from None
    return context


async def web_findings(port: Port) -> list[Finding]:
    """Whether it shows the right certificate, and lets nobody in without a login."""
    return [await name_finding("private", port, "WebSocket port"), await entry_finding(port.endpoint)]


async def entry_finding(way: Endpoint) -> Finding:
    """Whether a page without a login is refused."""
    what = "private broker, WebSocket port: nobody gets in without a login"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            answer = await _answer(way)
    except (OSError, TimeoutError, asyncio.LimitOverrunError) as error:
        return bad(what, f"{way}: {error or 'no answer'}", "systemctl status eyestream-private")
    except asyncio.IncompleteReadError:  # it hangs up, which lets nobody in
        return good(what)
    if answer is None:
        return bad(what, f"{way} speaks no MQTT over WebSocket", "Put `protocol websockets` after its listener")
    return (
        good(what)
        if answer != _WELCOME
        else bad(what, "a page was let in", "Set allow_anonymous false on the listener")
    )


async def _answer(way: Endpoint) -> int | None:
    """The broker's answer to a CONNECT without a login; None where it does not speak MQTT over WebSocket."""
    reader, writer = await asyncio.open_connection(way.host, way.port, ssl=way.tls)
    try:
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        head = (
            "GET / HTTP/1.1",
            f"Host: {way}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
        )
        more = (f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Protocol: mqtt", "", "")
        writer.write("\r\n".join((*head, *more)).encode())
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:  # mosquitto 2.1 hangs up on what is no MQTT
            return None
        if not answer.startswith(b"HTTP/1.1 101 "):
            return None
        mask = secrets.token_bytes(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(_CONNECT))
        writer.write(bytes([0x82, 0x80 | len(masked)]) + mask + masked)
        kind, length = await reader.readexactly(2)
        packet = await reader.readexactly(length)
        return packet[3] if kind == 0x82 and len(packet) >= 4 and packet[0] == _CONNACK else None
    finally:
        writer.close()
