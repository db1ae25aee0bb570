"""The thin face of MQTT: connect, subscribe, publish, be handed messages, learn that the link is lost.

The client is our own (`eyestream.rim.mqtt.client`); another one would stand here, and nowhere else. Messages go
straight to the caller's function, in the event loop, so that the caller's own bounded buffer is the only one. Nagle's
algorithm is off: asyncio turns it off on every TCP socket.
"""

import asyncio
import contextlib
import random
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NoReturn

from eyestream.errors import LinkError
from eyestream.rim.mqtt.client import Client
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.lookup import addresses
from eyestream.wire.mqtt import REFUSALS, Message, Will, encode_connect
from eyestream.wire.topics import refuse_shared

__all__ = ["Backoff", "Link", "Message", "Will", "connect"]

CONNECT_SECONDS = 3.0
"""Wait for the socket, CONNACK, SUBACK, the end of a goodbye: a silent peer costs no more than this each time."""

KEEPALIVE_SECONDS = 20
"""A link that is silent for so long is lost; a question after half of it makes a broker speak that is there."""

SUBSCRIBE_BYTES = 8192
"""Topic filters in one packet, at most: far below the least packet that the brokers of `config/mosquitto` take."""


class Link:
    """An open connection. Made by `connect`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def subscribe(self, topic_filter: str, qos: int) -> None:
        """Subscribe to one topic filter. Raises as `subscribe_all`."""
        await self.subscribe_all([topic_filter], qos)

    async def subscribe_all(self, topic_filters: Sequence[str], qos: int) -> None:
        """Subscribe to topic filters in their order, many with one packet: a round trip for a hundred and more.

        Raises
        ------
        ConfigError
            A shared subscription (``$share/...``): the broker gives each of those who hold it a part of the messages.
        LinkError
            The broker refuses a filter, or does not answer; a filter cannot be written.
        """
        for topic_filter in topic_filters:
            refuse_shared(topic_filter)
        for group in _groups(topic_filters):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    granted = await self._client.subscribe(group, qos)
            except TimeoutError:
                raise LinkError("cannot subscribe: no answer") from None
            for topic_filter, is_granted in zip(group, granted, strict=True):
                if not is_granted:
                    raise LinkError(f"the broker refuses the subscription to {topic_filter}")

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        """Publish; returns when the broker has acknowledged (QoS 1) or the bytes are with the socket (QoS 0).

        It waits for as long as the link stands: run it beside `lost`, as `connect` asks.

        Raises
        ------
        LinkError
            The link is lost, or the topic is none to publish to.
        """
        if qos == 0:
            with _refusing():
                await self._client.publish_at_most_once(topic, payload, retain)
            return
        acknowledged = asyncio.get_running_loop().create_future()
        self.send(topic, payload, partial(_settle, acknowledged), retain=retain)
        await acknowledged

    async def state(self, statements: Iterable[tuple[str, bytes]]) -> None:
        """Publish payloads, retained, at their topics, all at once; returns when the broker has acknowledged all.

        Raises
        ------
        LinkError
            As `publish`.
        """
        answers: list[asyncio.Future[None]] = []
        for topic, payload in statements:
            answers.append(asyncio.get_running_loop().create_future())
            self.send(topic, payload, partial(_settle, answers[-1]), retain=True)
        for acknowledged in answers:
            await acknowledged

    def send(self, topic: str, payload: bytes, acknowledged: Callable[[], None], *, retain: bool = False) -> None:
        """Publish at QoS 1 at once; `acknowledged` is called when the broker has it, and never if the link is lost.

        The caller bounds how many are under way.

        Raises
        ------
        LinkError
            As `publish`.
        """
        with _refusing():
            self._client.publish(topic, payload, retain, acknowledged)

    async def lost(self) -> NoReturn:
        """Wait until the link is lost.

        Raises
        ------
        LinkError
            Always, unless what takes the messages has failed: then what it raised.
        """
        await asyncio.shield(self._client.ended)
        raise AssertionError


@contextlib.asynccontextmanager
async def connect(
    endpoint: Endpoint,
    *,
    client_id: str | None,
    deliver: Callable[[Message], None],
    clean_session: bool = True,
    will: Will | None = None,
) -> AsyncIterator[Link]:
    """Connect once, with a new client. While the body runs, a lost link cancels it and becomes `LinkError`.

    Parameters
    ----------
    endpoint
        Where to, and how to log in.
    client_id
        Fixed for a persistent session, None for one of the broker's choice.
    deliver
        Called in the event loop with each message as it arrives; must not block.
    clean_session
        False: the broker keeps subscriptions and QoS 1 messages while we are away.
    will
        Last will, retained, QoS 1: said when the link is lost, and when the body ends with an error or is cancelled.

    Raises
    ------
    LinkError
        No connection, refused, or lost while the body ran.
    """
    client = Client(deliver, KEEPALIVE_SECONDS)
    in_order = False
    try:
        await _enter(client, endpoint, client_id, clean_session, will)
        async with _until_lost(client):
            yield Link(client)
        in_order = True
    finally:  # who falls over has not taken back what stands in the will
        await client.leave(CONNECT_SECONDS, goodbye=in_order or will is None)


async def _enter(
    client: Client, endpoint: Endpoint, client_id: str | None, clean_session: bool, will: Will | None
) -> None:
    """Connect and be greeted; what `deliver` raises meanwhile comes out as it is."""
    cannot = f"cannot connect to the broker at {endpoint}"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await _open(client, endpoint)
        hello = encode_connect(
            client_id,
            keepalive_s=KEEPALIVE_SECONDS,
            clean_session=clean_session,
            will=will,
            username=endpoint.username,
            password=endpoint.password,
        )
    except TimeoutError:
        raise LinkError(f"{cannot}: no answer") from None
    except (OSError, ValueError) as error:
        raise LinkError(f"{cannot}: {error}") from None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            code = await client.greet(hello)
    except TimeoutError:
        raise LinkError(f"{cannot}: no answer") from None
    except LinkError as error:
        raise LinkError(f"{cannot}: {error}") from None
    if code:
        why = REFUSALS.get(code, f"refused with code {code}")
        raise LinkError(f"{cannot}: {why}")


async def _open(client: Client, endpoint: Endpoint) -> None:
    """The socket, and TLS where it is asked for."""
    if endpoint.unix:
        await asyncio.get_running_loop().create_unix_connection(lambda: client, endpoint.host)
        return
    trouble = OSError("its name has no address")
    for address in await addresses(endpoint.host):
        try:
            return await _open_at(client, endpoint, address)
        except ssl.SSLError:
            raise  # somebody is there, and not the one we look for
        except OSError as error:
            trouble = error
    raise trouble


async def _open_at(client: Client, endpoint: Endpoint, address: str) -> None:
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
            ssl_handshake_timeout=CONNECT_SECONDS,
            ssl_shutdown_timeout=CONNECT_SECONDS,
        )


def _groups(topic_filters: Iterable[str]) -> Iterator[list[str]]:
    """The filters in their order, in groups that a packet of `SUBSCRIBE_BYTES` has room for."""
    group: list[str] = []
    room = SUBSCRIBE_BYTES
    for topic_filter in topic_filters:
        size = len(topic_filter.encode(errors="replace")) + 3  # its length before it, the QoS behind it (3.8.3)
        if group and size > room:
            yield group
            group, room = [], SUBSCRIBE_BYTES
        group.append(topic_filter)
        room -= size
    if group:
        yield group


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """What cannot be published is a fault of the link, like a link that is lost."""
    try:
        yield
    except ValueError as error:
        raise LinkError(f"cannot publish: {error}") from None


def _settle(acknowledged: "asyncio.Future[None]") -> None:
    if not acknowledged.done():
        acknowledged.set_result(None)


@contextlib.asynccontextmanager
async def _until_lost(client: Client) -> AsyncIterator[None]:
    """Cancel the body when the link is lost, and raise that as one error instead of a group."""
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(Link(client).lost(), name="link watch")
            yield
            watch.cancel()
    except ExceptionGroup as errors:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # before Python 3.13 a group prefers its errors
            raise asyncio.CancelledError from None
        known = [error for error in (client.reason, *errors.exceptions) if error is not None]
        ours = [error for error in known if not isinstance(error, LinkError)]
        raise (ours or known)[0] from None


class Backoff:
    """Waits between attempts: 0.1 s doubling to 2 s, each shortened by up to half at random.

    Two seconds at most and the connect timeout of three keep a reconnect within 5 s of the broker being back.
    """

    _FIRST, _LAST = 0.1, 2.0

    def __init__(self) -> None:
        self._next = self._FIRST

    def reset(self) -> None:
        """The link stood for a while: begin anew."""
        self._next = self._FIRST

    async def wait(self) -> None:
        """Sleep before the next attempt."""
        pause = self._next * random.uniform(0.5, 1.0)  # spreads clients out; no secret
        self._next = min(2 * self._next, self._LAST)
        await asyncio.sleep(pause)
