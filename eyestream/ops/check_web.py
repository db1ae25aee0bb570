"""The port for web pages: MQTT over WebSocket (RFC 6455; MQTT 5, section 6), tried as a page without a login would."""

import asyncio
import base64
import secrets

from eyestream.ops.check_ports import Port, name_finding
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import CONNECT_SECONDS

__all__ = ["entry_finding", "web_findings"]

_CONNECT = b"\x10\x0c\0\4MQTT\4\2\0\n\0\0"
"""CONNECT of MQTT 3.1.1: a clean session, no name, no login."""

_CONNACK, _WELCOME = 0x20, 0


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
        if not (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 "):
            return None
        mask = secrets.token_bytes(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(_CONNECT))
        writer.write(bytes([0x82, 0x80 | len(masked)]) + mask + masked)
        kind, length = await reader.readexactly(2)
        packet = await reader.readexactly(length)
        return packet[3] if kind == 0x82 and len(packet) >= 4 and packet[0] == _CONNACK else None
    finally:
        writer.close()
