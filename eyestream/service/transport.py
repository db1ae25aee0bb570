"""The thin face of an MQTT client: connect, subscribe, publish, be handed messages, learn that the link is lost.

aiomqtt stands behind it, and nothing else in eyestream imports aiomqtt. A leaner client replaces it here. Each attempt
takes a new client (a cancelled connect poisons aiomqtt's), Nagle's algorithm is off, and messages go straight to the
caller's function, so that the caller's own bounded buffer is the only one: aiomqtt's discards the newest message
after acknowledging it.
"""

import asyncio
import contextlib
import logging
import math
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import aiomqtt

from eyestream.errors import LinkError
from eyestream.service.endpoint import Endpoint

__all__ = ["Backoff", "Link", "Message", "Will", "connect"]

CONNECT_SECONDS = 3.0
"""Wait for CONNACK, SUBACK or the end of a DISCONNECT: a peer that accepts and says nothing costs no more than this."""

KEEPALIVE_SECONDS = 20
"""Silence after which we ask whether the broker is there; a half-open link is noticed within one and a half of it."""

_LOOK_SECONDS = 0.25
"""How often we look whether a ping is answered; paho, which looks once a second, would wait for a whole keep-alive."""

_MQTT = logging.getLogger("eyestream.mqtt")
_MQTT.addHandler(logging.NullHandler())
_MQTT.propagate = False  # paho's lines name topics and packet sizes; ours say what matters


@dataclass(frozen=True, slots=True)
class Message:
    """One received PUBLISH."""

    topic: str
    payload: bytes
    retain: bool


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker publishes, retained, when the link is lost without a goodbye."""

    topic: str
    payload: bytes


class _Inlet:
    """What aiomqtt takes for its queue of messages; hands each one on at once and never has one to give."""

    def __init__(self, deliver: Callable[[Message], None]) -> None:
        self._deliver = deliver

    def put_nowait(self, message: aiomqtt.Message) -> None:
        payload = message.payload if isinstance(message.payload, bytes) else bytes(message.payload)
        self._deliver(Message(str(message.topic), payload, message.retain))

    async def get(self) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError


class Link:
    """An open connection. Made by `connect`."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self._client = client

    async def subscribe(self, topic: str, qos: int) -> None:
        """Subscribe to a topic filter.

        Raises
        ------
        LinkError
            The broker refused the filter, or did not answer.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):  # aiomqtt's way loses a cancel before Python 3.12
                granted = await self._client.subscribe(topic, qos, timeout=math.inf)
        except (aiomqtt.MqttError, TimeoutError) as error:
            raise LinkError(f"cannot subscribe: {error or 'no answer'}") from None
        if any(getattr(code, "is_failure", False) for code in granted):
            raise LinkError(f"the broker refuses the subscription to {topic}")

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        """Publish; returns when the broker has acknowledged (QoS 1) or the bytes are with the socket (QoS 0).

        It waits for as long as the link stands: run it beside `lost`, as `connect` asks.
        """
        try:
            await self._client.publish(topic, payload, qos=qos, retain=retain, timeout=math.inf)
        except (aiomqtt.MqttError, ValueError) as error:
            raise LinkError(f"cannot publish: {error}") from None

    async def lost(self) -> NoReturn:
        """Wait until the link is lost.

        Raises
        ------
        LinkError
            Always; that is how it ends.
        """
        unanswered = asyncio.create_task(self._unanswered(), name="ping watch")
        try:
            async for _ in self._client.messages:
                raise AssertionError
        except aiomqtt.MqttError:
            pass
        finally:
            unanswered.cancel()
        raise LinkError("the link to the broker is lost")

    async def _unanswered(self) -> None:
        """Break the link when a ping is not answered in time."""
        patience = KEEPALIVE_SECONDS / 2 - 1 - 2 * _LOOK_SECONDS
        while not 0 < self._client._client._ping_t < time.monotonic() - patience:  # noqa: ASYNC110  paho has no event
            await asyncio.sleep(_LOOK_SECONDS)
        if not self._client._disconnected.done():
            self._client._disconnected.set_exception(aiomqtt.MqttError("no answer to a ping"))


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
        Last will, retained, QoS 1.

    Raises
    ------
    LinkError
        No connection, refused, or lost while the body ran.
    """
    client = aiomqtt.Client(
        endpoint.host,
        endpoint.port or 1883,  # paho insists on one, also where there is none
        identifier=client_id,
        username=endpoint.username,
        password=endpoint.password,
        clean_session=clean_session,
        will=None if will is None else aiomqtt.Will(will.topic, will.payload, qos=1, retain=True),
        keepalive=KEEPALIVE_SECONDS,
        timeout=CONNECT_SECONDS,
        tls_context=endpoint.tls,
        transport="unix" if endpoint.unix else "tcp",
        socket_options=() if endpoint.unix else ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),),
        queue_type=cast(Any, lambda maxsize: _Inlet(deliver)),
        logger=_MQTT,
    )
    client._client.connect_timeout = CONNECT_SECONDS  # also of each answer in a TLS handshake; paho's is 5 s
    await _enter(client, endpoint)
    try:
        async with _until_lost(Link(client)) as link:
            yield link
    finally:
        try:
            with contextlib.suppress(aiomqtt.MqttError):
                await client.__aexit__(None, None, None)
        finally:
            client._client._sock_close()  # of a half-open link aiomqtt leaves the socket behind


_leaving: set["asyncio.Task[None]"] = set()
"""Attempts whose caller has gone: they end by themselves within the timeouts, and hang up."""


async def _enter(client: aiomqtt.Client, endpoint: Endpoint) -> None:
    """Connect; a cancelled caller leaves at once and the attempt, which a thread makes, is tidied up behind it."""
    abandoned = asyncio.Event()
    _heed_hanging_up(client)

    async def attempt() -> None:
        try:
            await client.__aenter__()
        except BaseException:
            client._client.disconnect()  # aiomqtt leaves socket and reader behind when CONNACK does not come
            raise
        if abandoned.is_set():
            await client.__aexit__(None, None, None)

    task = asyncio.create_task(attempt(), name="connect")
    try:
        await asyncio.shield(task)
    except (aiomqtt.MqttError, OSError, ValueError) as error:
        raise LinkError(f"cannot connect to the broker at {endpoint}: {error}") from None
    except asyncio.CancelledError:
        abandoned.set()
        _leaving.add(task)
        task.add_done_callback(_left)
        raise


def _heed_hanging_up(client: aiomqtt.Client) -> None:
    """Let a peer that closes before its CONNACK end the attempt; aiomqtt would wait for the whole timeout."""
    lost = client._client.on_disconnect

    def on_disconnect(*details: Any) -> None:
        if client._connected.done():
            cast(Any, lost)(*details)
        else:
            client._connected.set_exception(aiomqtt.MqttError("it hung up before it answered"))
            client._connected.exception()  # looked at: nobody does when the attempt has failed already

    client._client.on_disconnect = on_disconnect


def _left(task: "asyncio.Task[None]") -> None:
    _leaving.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report it


@contextlib.asynccontextmanager
async def _until_lost(link: Link) -> AsyncIterator[Link]:
    """Cancel the body when `link` is lost, and raise that as one error instead of a group."""
    try:
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(link.lost(), name="link watch")
            yield link
            watch.cancel()
    except ExceptionGroup as errors:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # before Python 3.13 a group prefers its errors
            raise asyncio.CancelledError from None
        ours = [error for error in errors.exceptions if not isinstance(error, LinkError)]
        raise (ours or errors.exceptions)[0] from None


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
