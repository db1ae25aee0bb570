"""How a link begins and ends: the socket, which version of MQTT, the greeting, the goodbye.

MQTT 5 is tried first. A broker that answers as one of 3.1.1, refuses the version, hangs up or says nothing is asked
again, on a new connection, in 3.1.1. Nothing of that is remembered: a broker may be replaced by another one while it is
away.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

from eyestream.errors import ConfigError, LinkError
from eyestream.rim.mqtt.carrier import Carrier
from eyestream.rim.mqtt.client import Client
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.greeting import Greeting, OtherVersionError
from eyestream.rim.mqtt.lookup import addresses
from eyestream.wire import mqtt, mqtt5
from eyestream.wire.mqtt5_reasons import OTHER_VERSION, reason
from eyestream.wire.mqtt_packets import Connack, Message

__all__ = ["enter"]

PROBE_SHARE = 1 / 3
"""Of our patience, for a broker that may not know what to answer in MQTT 5: amqtt waits for more bytes then."""


class Attempt(Protocol):
    """One try to connect in one version."""

    async def __call__(
        self,
        endpoint: Endpoint,
        greeting: Greeting,
        deliver: Callable[[Message], None],
        patience_s: float,
        *,
        five: bool,
    ) -> tuple[Carrier, Callable[[bool], Awaitable[None]]]:
        """As `enter`; raises OtherVersionError where 3.1.1 is worth a try."""


async def enter(
    endpoint: Endpoint, greeting: Greeting, deliver: Callable[[Message], None], patience_s: float
) -> tuple[Carrier, Callable[[bool], Awaitable[None]]]:
    """Connect and be greeted; what `deliver` raises meanwhile comes out as it is.

    Returns
    -------
    Carrier, Callable[[bool], Awaitable[None]]
        The connection, and what closes it: True after work that was done, False for who falls over.

    Raises
    ------
    ConfigError
        The client that is asked for is not installed.
    LinkError
        Nobody listens, does not answer within `patience_s` seconds, is no broker or refuses us.
    """
    attempt = _foreign() if endpoint.client == "aiomqtt" else _attempt
    if endpoint.version != "3.1.1":
        try:
            return await attempt(endpoint, greeting, deliver, patience_s, five=True)
        except OtherVersionError:
            if endpoint.version == "5":
                raise
    return await attempt(endpoint, greeting, deliver, patience_s, five=False)


def _foreign() -> "Attempt":
    try:
        from eyestream.rim.mqtt.foreign import attempt  # noqa: PLC0415  an extra
    except ImportError:
        raise ConfigError("aiomqtt is not installed: pip install 'eyestream[aiomqtt]'") from None
    return attempt


def _goodbye(client: Client, greeting: Greeting, *, in_order: bool) -> bytes:
    """What to say before we close the link: nothing, in 3.1.1, where the last will shall be said.

    A will that the broker would delay we say ourselves: that the link is lost is no question any more.
    """
    five, will = client.version == mqtt5.NAME, greeting.will
    if in_order or will is None:
        return mqtt5.DISCONNECT_AND_FORGET if five and greeting.will_delay_s else mqtt.DISCONNECT
    if not five:
        return b""
    if not will.delay_s:
        return mqtt5.DISCONNECT_WITH_WILL
    said = mqtt5.encode_publish(will.topic, will.payload, packet_id=0, retain=True)
    return said + mqtt5.DISCONNECT_AND_FORGET


async def _attempt(
    endpoint: Endpoint, greeting: Greeting, deliver: Callable[[Message], None], patience_s: float, *, five: bool
) -> tuple[Client, Callable[[bool], Awaitable[None]]]:
    """One connection in one version; closed again when it does not come to a link."""
    cannot = f"cannot connect to the broker at {endpoint}"
    client = Client(deliver, greeting.keepalive_s, mqtt5 if five else mqtt, greeting.outgoing)
    entered, hello = False, b""
    try:
        async with asyncio.timeout(patience_s):
            await _open(client, endpoint, patience_s)
        hello = _connect(greeting, endpoint, five=five)
        probing = five and endpoint.version == "auto"
        async with asyncio.timeout(patience_s * (PROBE_SHARE if probing else 1)):
            answer = await _greet(client, hello, five=five)
        _judge(answer, greeting, five=five)
        entered = True
    except TimeoutError:
        raise (OtherVersionError if hello and five else LinkError)(f"{cannot}: no answer") from None
    except (OSError, ValueError) as error:
        if client.reason is error:
            raise
        raise LinkError(f"{cannot}: {error}") from None
    except LinkError as error:
        raise type(error)(f"{cannot}: {error}") from None
    finally:
        if not entered:
            await client.leave(patience_s, goodbye=b"")

    async def leave(in_order: bool) -> None:
        await client.leave(patience_s, goodbye=_goodbye(client, greeting, in_order=in_order))

    return client, leave


async def _greet(client: Client, hello: bytes, *, five: bool) -> Connack:
    """The answer to CONNECT; who hangs up instead may not know what to answer to one of MQTT 5."""
    try:
        return await client.greet(hello)
    except LinkError as error:
        kind = OtherVersionError if five and client.reason is None else LinkError
        raise kind(str(error)) from None


def _judge(answer: Connack, greeting: Greeting, *, five: bool) -> None:
    """Raise for an answer that is no welcome."""
    if five and answer.code == OTHER_VERSION:
        raise OtherVersionError(reason(answer.code, answer.words))
    if answer.code:
        why = mqtt.REFUSALS.get(answer.code, f"refused with code {answer.code}")
        raise LinkError(reason(answer.code, answer.words) if five else why)
    if five and answer.resumed and greeting.clean_session and not greeting.resume:
        raise LinkError("it continues a session though we began a new one")  # 3.2.2-2


def _connect(greeting: Greeting, endpoint: Endpoint, *, five: bool) -> bytes:
    """CONNECT. Raises ValueError for what cannot be written."""
    if not five:
        return mqtt.encode_connect(
            greeting.client_id,
            keepalive_s=greeting.keepalive_s,
            clean_session=greeting.clean_session,
            will=greeting.will,
            username=endpoint.username,
            password=endpoint.password,
        )
    return mqtt5.encode_connect(
        greeting.client_id,
        keepalive_s=greeting.keepalive_s,
        clean_session=greeting.clean_session and not greeting.resume,
        will=greeting.will,
        username=endpoint.username,
        password=endpoint.password,
        session_s=greeting.will_delay_s if greeting.clean_session else mqtt5.FOR_EVER,
    )


async def _open(client: Client, endpoint: Endpoint, patience_s: float) -> None:
    """The socket, and TLS where it is asked for."""
    if endpoint.unix:
        await asyncio.get_running_loop().create_unix_connection(lambda: client, endpoint.host)
        return
    trouble = OSError("its name has no address")
    for address in await addresses(endpoint.host):
        try:
            return await _open_at(client, endpoint, address, patience_s)
        except ssl.SSLError:
            raise  # somebody is there, and not the one we look for
        except OSError as error:
            trouble = error
    raise trouble


async def _open_at(client: Client, endpoint: Endpoint, address: str, patience_s: float) -> None:
    loop = asyncio.get_running_loop()
    if endpoint.tls is None:
        await loop.create_connection(lambda: client, address, endpoint.port)
    else:
        await loop.create_connection(
            lambda: client,
            address,
            endpoint.port,
            ssl=endpoint.tls,
            server_hostname=endpoint.host,
            ssl_handshake_timeout=patience_s,
            ssl_shutdown_timeout=patience_s,
        )
