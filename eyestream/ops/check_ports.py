"""Test from this machine the ports that other machines use, under the host name that they use.

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

_LOOPBACK = "127.0.0.1"

_CONNECT = b"\x10\x0c\0\4MQTT\4\2\0\n\0\0"
"""CONNECT of MQTT 3.1.1: a clean session, no name, no login."""

_CONNACK, _ACCEPTED = 0x20, 0


@dataclasses.dataclass(frozen=True, slots=True)
class Port:
    """A broker's port for other machines.

    Attributes
    ----------
    host : the name, or address, that they use.
    endpoint : how to reach it from here, without a login. The deployment's authority must have signed its certificate.
    """

    host: str
    endpoint: Endpoint


Ports = Mapping[str, Port]
"""Port by broker (``raw``, ``private``), without brokers that other machines cannot reach."""

NO_PORTS: Ports = MappingProxyType({})


def ports_of(root: Path) -> Ports:
    """Ports of the deployment at `root`. Raises ConfigError when its list or its authority cannot be read."""
    manifest = read_manifest(root)
    found = {} if manifest is None else manifest.outside
    return {
        broker: Port(host, Endpoint(_LOOPBACK, port, tls=_tls_context(root))) for broker, (host, port) in found.items()
    }


def web_port_of(root: Path) -> Port | None:
    """The WebSocket listener of the private broker at `root`. None: it has none, or this user may not read it.

    Raises as `ports_of`.
    """
    path = at(root, "/etc/eyestream/private/private.conf")
    try:
        number = web_listener(path.read_text(encoding="utf-8"))
    except OSError:  # `deployment_findings` reports missing files
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


async def name_finding(broker: str, port: Port, which: str = "port for other machines") -> Finding:
    """Check the certificate against the name that other machines use, as their clients verify it."""
    what = f"{broker} broker: its {which} shows a certificate for {port.host}"
    context, endpoint = port.endpoint.tls, port.endpoint
    assert context is not None
    named = ssl.create_default_context()
    named.load_verify_locations(cadata=b"".join(context.get_ca_certs(binary_form=True)))
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(
                endpoint.host, endpoint.port, ssl=named, server_hostname=port.host
            )
        writer.close()
    except ssl.SSLError as error:
        return bad(what, tls_fault(error), "eyestream deploy --upgrade / after the name was corrected")
    except (OSError, TimeoutError) as error:
        return bad(what, f"{endpoint}: {error}", f"systemctl status eyestream-{broker}")
    return good(what)


def _tls_context(root: Path) -> ssl.SSLContext:
    """Accept any certificate of the deployment's authority. `name_finding` checks the name."""
    path = at(root, "/etc/eyestream/certificates/ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # we connect to 127.0.0.1; only our brokers have certificates of this authority
    try:
        context.load_verify_locations(path)
    except (OSError, ssl.SSLError):
        raise ConfigError(f"{path}: cannot be read as a PEM file of certificates") from None
    return context


async def web_findings(port: Port) -> list[Finding]:
    """Whether it shows the right certificate, and lets nobody in without a login."""
    return [await name_finding("private", port, "WebSocket port"), await anonymous_login_finding(port.endpoint)]


async def anonymous_login_finding(endpoint: Endpoint) -> Finding:
    """Whether a page without a login is refused."""
    what = "private broker, WebSocket port: nobody gets in without a login"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            answer = await _answer(endpoint)
    except (OSError, TimeoutError, asyncio.LimitOverrunError) as error:
        return bad(what, f"{endpoint}: {error or 'no answer'}", "systemctl status eyestream-private")
    except asyncio.IncompleteReadError:  # it hangs up, which lets nobody in
        return good(what)
    if answer is None:
        return bad(what, f"{endpoint} speaks no MQTT over WebSocket", "Put `protocol websockets` after its listener")
    return (
        good(what)
        if answer != _ACCEPTED
        else bad(what, "a page was let in", "Set allow_anonymous false on the listener")
    )


async def _answer(endpoint: Endpoint) -> int | None:
    """The broker's answer to a CONNECT without a login; None where it does not speak MQTT over WebSocket."""
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=endpoint.tls)
    try:
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        head = (
            "GET / HTTP/1.1",
            f"Host: {endpoint}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
        )
        more = (f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Protocol: mqtt", "", "")
        writer.write("\r\n".join((*head, *more)).encode())
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:  # mosquitto 2.1 closes a connection that does not speak MQTT
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
