"""aiomqtt in the place of our own client: the same links, on a library that many know. An extra.

What it does not do, and ours does: tell what a broker refuses at QoS 1, keep to the broker's packet size, delay the
last will, continue a session, bound what a message costs while it comes in.
"""

import asyncio
import logging
import math
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from eyestream.errors import LinkError
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.greeting import Greeting, OtherVersionError
from eyestream.rim.mqtt.lookup import addresses
from eyestream.wire import mqtt, mqtt5
from eyestream.wire.mqtt5_reasons import OTHER_VERSION
from eyestream.wire.mqtt_frames import filter_name, text, topic_name
from eyestream.wire.mqtt_packets import MAX_PAYLOAD_KEPT, NO_PROPERTIES, Limits, Message, Properties, Suback

__all__ = ["ForeignClient", "attempt"]

Said: Any = PahoProperties  # it has no types

_LOG = logging.getLogger("eyestream.aiomqtt")
_LOG.setLevel(logging.CRITICAL + 1)  # its lines name topics


async def attempt(
    endpoint: Endpoint, greeting: Greeting, deliver: Callable[[Message], None], patience_s: float, *, five: bool
) -> tuple["ForeignClient", Callable[[bool], Awaitable[None]]]:
    """One connection in one version.

    Raises
    ------
    OtherVersionError
        The broker may speak 3.1.1.
    LinkError
        No connection, or refused.
    """
    cannot = f"cannot connect to the broker at {endpoint}"
    client = ForeignClient(deliver, greeting, five=five)
    try:
        async with asyncio.timeout(patience_s):
            host = endpoint.host
            if endpoint.tls is None and not endpoint.unix:
                host = (await addresses(endpoint.host))[0]
            await client.open(endpoint, host, patience_s)
    except TimeoutError:
        raise (OtherVersionError if five else LinkError)(f"{cannot}: no answer") from None
    except aiomqtt.MqttError as error:
        if client.reason is not None:
            raise client.reason from None
        code = getattr(getattr(error, "rc", None), "value", None)
        if five and code in {None, 1, OTHER_VERSION}:
            raise OtherVersionError(f"{cannot}: {error}") from None
        raise LinkError(f"{cannot}: {error}") from None
    except (OSError, ValueError) as error:
        raise LinkError(f"{cannot}: {error}") from None
    return client, client.leave


def _straight(take: Callable[[Any], None]) -> "type[asyncio.Queue[Any]]":
    """A queue that hands on what is put into it, and holds nothing: no second buffer beside the caller's."""

    class Straight(asyncio.Queue[Any]):
        def put_nowait(self, item: Any) -> None:
            take(item)

    return Straight


class ForeignClient:
    """A connection of aiomqtt with the face of our own client.

    Parameters
    ----------
    deliver
        As for `eyestream.rim.mqtt.client.Client`.
    greeting
        What we say of ourselves.
    five
        Whether to speak MQTT 5.
    """

    limits = Limits()
    resumed = False

    def __init__(self, deliver: Callable[[Message], None], greeting: Greeting, *, five: bool) -> None:
        self._deliver, self._greeting, self._five = deliver, greeting, five
        self._client: aiomqtt.Client | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self.reason: Exception | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def version(self) -> str:
        """The version of MQTT, in words."""
        return mqtt5.NAME if self._five else mqtt.NAME

    async def open(self, endpoint: Endpoint, host: str, patience_s: float) -> None:
        """Connect to `host` and be greeted. Raises what aiomqtt raises."""
        greeting = self._greeting
        text(greeting.client_id or "")  # what cannot be written is refused here
        will = greeting.will
        options: dict[str, Any] = {"clean_session": greeting.clean_session}
        if self._five:
            options = {"clean_start": greeting.clean_session}
            if not greeting.clean_session:
                options["properties"] = Said(PacketTypes.CONNECT)
                options["properties"].SessionExpiryInterval = mqtt5.FOR_EVER
        self._client = aiomqtt.Client(
            host,
            endpoint.port or 1,
            username=endpoint.username,
            password=endpoint.password,
            identifier=greeting.client_id or "",
            queue_type=_straight(self._take),
            protocol=aiomqtt.ProtocolVersion.V5 if self._five else aiomqtt.ProtocolVersion.V311,
            will=None if will is None else aiomqtt.Will(will.topic, will.payload, qos=1, retain=True),
            transport="unix" if endpoint.unix else "tcp",
            timeout=patience_s,
            keepalive=greeting.keepalive_s,
            tls_context=endpoint.tls,
            socket_options=() if endpoint.unix else ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),),
            logger=_LOG,
            **options,
        )
        self._client.pending_calls_threshold = 1 << 16
        await self._client.__aenter__()
        self._watch = asyncio.create_task(self._listen(), name="aiomqtt")

    def _take(self, message: aiomqtt.Message) -> None:
        more = NO_PROPERTIES
        said: Any = message.properties
        if said is not None and not said.isEmpty():
            more = Properties(
                getattr(said, "MessageExpiryInterval", None),
                getattr(said, "ResponseTopic", None),
                getattr(said, "CorrelationData", None),
                tuple((name, value) for name, value in getattr(said, "UserProperty", ())),
            )
        payload = bytes(message.payload or b"")[:MAX_PAYLOAD_KEPT]
        try:
            self._deliver(Message(str(message.topic), payload, message.retain, message.mid if message.qos else 0, more))
        except Exception as error:  # one of ours: it ends the link, and comes out where the link is held
            self.reason = error
            self._end(error)
            raise

    async def _listen(self) -> None:
        """Nothing comes here but the end of the connection."""
        assert self._client is not None
        try:
            async for _ in self._client.messages:
                raise AssertionError
        except aiomqtt.MqttError as error:
            cause = error.__cause__ or error
            self._end(self.reason or LinkError(f"the link to the broker is lost: {cause}"))

    def _end(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
            self.ended.exception()  # looked at: where nobody waits for it, nobody has to know

    def _said(self, more: Properties) -> Any:
        """Properties in the words of paho; None for none, or where there are no words for them."""
        if not self._five or more == NO_PROPERTIES:
            return None
        mqtt5.encode_publish("t", b"", packet_id=0, retain=False, more=more)  # what cannot be written is refused here
        said = Said(PacketTypes.PUBLISH)
        if more.expiry_s is not None:
            said.MessageExpiryInterval = more.expiry_s
        if more.response_topic is not None:
            said.ResponseTopic = more.response_topic
        if more.correlation is not None:
            said.CorrelationData = more.correlation
        if more.user:
            said.UserProperty = list(more.user)
        return said

    def _open_client(self) -> aiomqtt.Client:
        if self._client is None or self.ended.done():
            raise LinkError("the link to the broker is lost")
        return self._client

    async def subscribe(self, topic_filters: Sequence[str], qos: int) -> Suback:
        """Subscribe, with one packet. Raises as our own client."""
        try:
            for name in topic_filters:
                filter_name(name)
        except ValueError as error:
            raise LinkError(f"cannot subscribe: {error}") from None
        try:
            answer = await self._open_client().subscribe([(name, qos) for name in topic_filters], timeout=math.inf)
        except aiomqtt.MqttError as error:
            raise self.reason or LinkError(f"the link to the broker is lost: {error}") from None
        codes = tuple(code if isinstance(code, int) else int(code.value) for code in answer)
        if len(codes) != len(topic_filters):
            raise LinkError("the broker does not answer for each topic filter")
        return Suback(1, tuple(code < 3 for code in codes), codes if self._five else ())

    def publish(
        self,
        topic: str,
        payload: bytes,
        retain: bool,
        *,
        acknowledged: Callable[[], None],
        refused: Callable[[str], None],
        more: Properties = NO_PROPERTIES,
    ) -> None:
        """Publish at QoS 1; `refused` is never called: aiomqtt takes every answer for a yes."""
        client, said = self._open_client(), self._said(more)
        topic_name(topic)

        async def call() -> None:
            try:
                await client.publish(topic, payload, 1, retain, said, timeout=math.inf)
            except aiomqtt.MqttError:
                return  # the link is lost, which `ended` tells
            acknowledged()

        task = asyncio.create_task(call(), name="aiomqtt publish")
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def publish_at_most_once(
        self, topic: str, payload: bytes, retain: bool, more: Properties = NO_PROPERTIES
    ) -> None:
        """Publish at QoS 0."""
        topic_name(topic)
        try:
            await self._open_client().publish(topic, payload, 0, retain, self._said(more))
        except aiomqtt.MqttError as error:
            raise LinkError(f"the link to the broker is lost: {error}") from None

    async def leave(self, in_order: bool) -> None:
        """Close the connection; who falls over says the last will, because aiomqtt always takes it back."""
        will = self._greeting.will
        for task in (*self._calls, *([] if self._watch is None else [self._watch])):
            task.cancel()
        if self._client is None:
            return
        lost = self.ended.done()
        self._end(LinkError("the link to the broker is lost"))
        try:
            if not (in_order or lost or will is None):
                await self._client.publish(will.topic, will.payload, 0, retain=True)
            await self._client.__aexit__(None, None, None)
        except aiomqtt.MqttError:
            return  # it was lost already
