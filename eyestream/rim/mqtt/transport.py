"""The thin face of MQTT: connect, subscribe, publish, be handed messages, learn that the link is lost.

The client is paho-mqtt on asyncio (`eyestream.rim.mqtt.client`); nothing above this module knows that. Messages go
straight to the caller's function, in the event loop, so that the caller's own bounded buffer is the only one. Nagle's
algorithm is off: asyncio turns it off on every TCP socket.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from eyestream.errors import LinkError
from eyestream.rim.mqtt import opening
from eyestream.rim.mqtt.carrier import Outgoing
from eyestream.rim.mqtt.client import Client, groups
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.greeting import Greeting
from eyestream.rim.mqtt.messages import NO_PROPERTIES, Message, Properties, Will
from eyestream.wire.topics import refuse_shared

if TYPE_CHECKING:
    from eyestream.rim.mqtt.portions import DeliverPortion

__all__ = ["Backoff", "Link", "Message", "Properties", "RefusedError", "Will", "connect"]

_LOG = logging.getLogger("eyestream.link")

CONNECT_SECONDS = 3.0
"""Wait for the socket, CONNACK, SUBACK, the end of a goodbye: a silent peer costs no more than this each time."""

KEEPALIVE_SECONDS = 20
"""A link that is silent for so long is lost; a question after half of it makes a broker speak that is there."""


class RefusedError(LinkError):
    """The broker does not take a message, or does not grant a filter; the link stands."""


class Link:
    """An open connection. Made by `connect`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def version(self) -> str:
        """The version of MQTT that is spoken, in words."""
        return self._client.version

    @property
    def resumed(self) -> bool:
        """Whether the broker continues the session of the link before: what was under way still is."""
        return self._client.resumed

    async def subscribe(self, topic_filter: str, qos: int) -> None:
        """Subscribe to one topic filter. Raises as `subscribe_all`."""
        await self.subscribe_all([topic_filter], qos)

    async def subscribe_all(self, topic_filters: Sequence[str], qos: int) -> None:
        """Subscribe to topic filters in their order, many with one packet: a round trip for a hundred and more.

        Raises
        ------
        ConfigError
            A shared subscription (``$share/...``): the broker gives each of those who hold it a part of the messages.
        RefusedError
            The broker refuses a filter.
        LinkError
            It does not answer; a filter cannot be written.
        """
        for topic_filter in topic_filters:
            refuse_shared(topic_filter)
        for group in groups(topic_filters, self._client.limits.packet_bytes):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    refusals = await self._client.subscribe(group, qos)
            except TimeoutError:
                raise LinkError("cannot subscribe: no answer") from None
            for topic_filter, why in zip(group, refusals, strict=True):
                if why is not None:
                    raise RefusedError(f"the broker refuses the subscription to {topic_filter}: {why}")

    def read_by_the_clock(self, deliver: "DeliverPortion") -> None:
        """From here on hand messages on in portions, at moments of the clock (`eyestream.rim.mqtt.portions`).

        Only for a link whose session ends with it. Raises LinkError when the link is lost.
        """
        self._client.read_by_the_clock(deliver)

    async def publish(
        self, topic: str, payload: bytes, *, qos: int, retain: bool = False, more: Properties = NO_PROPERTIES
    ) -> None:
        """Publish; returns when the broker has acknowledged (QoS 1) or the bytes are with the socket (QoS 0).

        It waits for as long as the link stands: run it beside `lost`, as `connect` asks.

        Raises
        ------
        RefusedError
            The broker does not take it, and says so (MQTT 5, QoS 1).
        LinkError
            The link is lost, or the topic is none to publish to.
        """
        if qos == 0:
            try:
                await self._client.publish_at_most_once(topic, payload, retain, more)
            except ValueError as error:
                raise _refused(error) from None
            return
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.send(topic, payload, partial(_settle, answer, None), partial(_settle, answer), retain=retain, more=more)
        if (why := await answer) is not None:
            raise RefusedError(f"the broker refuses what is published at {topic}: {why}")

    async def state(self, statements: Iterable[tuple[str, bytes]]) -> dict[str, str]:
        """Publish payloads, retained, at their topics, all at once; returns when the broker has answered to all.

        Returns
        -------
        dict[str, str]
            Topics of what it refuses, and why.

        Raises
        ------
        LinkError
            As `publish`.
        """
        answers: list[tuple[str, asyncio.Future[str | None]]] = []
        for topic, payload in statements:
            answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            answers.append((topic, answer))
            self.send(topic, payload, partial(_settle, answer, None), partial(_settle, answer), retain=True)
        return {topic: why for topic, answer in answers if (why := await answer) is not None}

    def send(
        self,
        topic: str,
        payload: bytes,
        acknowledged: Callable[[], None],
        refused: Callable[[str], None] | None = None,
        *,
        retain: bool = False,
        more: Properties = NO_PROPERTIES,
    ) -> None:
        """Publish at QoS 1 at once; `acknowledged` is called when the broker has it, and never if the link is lost.

        `refused` is called with the reason when the broker does not take it; None: that is a line in the log. The
        caller bounds how many are under way.

        Raises
        ------
        LinkError
            As `publish`.
        """
        refused = refused or partial(_LOG.warning, "the broker refuses what is published at %s: %s", topic)
        try:
            self._client.publish(topic, payload, retain, acknowledged=acknowledged, refused=refused, more=more)
        except ValueError as error:
            raise _refused(error) from None

    async def lost(self) -> NoReturn:
        """Wait until the link is lost.

        Raises
        ------
        LinkError
            Always, unless what takes the messages has failed: then what it raised.
        """
        await _lost(self._client)


async def _lost(client: Client) -> NoReturn:
    await asyncio.shield(client.ended)  # shielded: who stops waiting cancels his own wait, and not everybody's future
    raise AssertionError


@contextlib.asynccontextmanager
async def connect(
    endpoint: Endpoint,
    *,
    client_id: str | None,
    deliver: Callable[[Message], None],
    clean_session: bool = True,
    will: Will | None = None,
    outgoing: Outgoing | None = None,
    resume: bool = False,
) -> AsyncIterator[Link]:
    """Connect once, with a new client. While the body runs, a lost link cancels it and becomes `LinkError`.

    Parameters
    ----------
    endpoint
        Where to, how to log in, and which versions of MQTT.
    client_id
        Fixed for a persistent session, None for one of the broker's choice.
    deliver
        Called in the event loop with each message as it arrives; must not block.
    clean_session
        False: the broker keeps subscriptions and QoS 1 messages while we are away.
    will
        Last will, retained, QoS 1: said when the link is lost, and when the body ends with an error or is cancelled.
    outgoing, resume
        What an earlier link with the same client id left unacknowledged, and whether the broker is asked to continue
        that link's session, which it has while a will is delayed (MQTT 5).

    Raises
    ------
    LinkError
        No connection, refused, or lost while the body ran.
    """
    greeting = Greeting(client_id, KEEPALIVE_SECONDS, clean_session, will, outgoing or Outgoing(), resume)
    client = await opening.enter(endpoint, greeting, deliver, CONNECT_SECONDS)
    in_order = False
    try:
        async with _until_lost(client):
            yield Link(client)
        in_order = True
    finally:  # who falls over has not taken back what stands in the will
        await client.leave(CONNECT_SECONDS, in_order=in_order)


def _refused(error: ValueError) -> LinkError:
    """The error for a message that cannot be published: a fault of the link, like a link that is lost."""
    return LinkError(f"cannot publish: {error}")


def _settle(answer: "asyncio.Future[str | None]", refusal: str | None) -> None:
    if not answer.done():
        answer.set_result(refusal)


@contextlib.asynccontextmanager
async def _until_lost(client: Client) -> AsyncIterator[None]:
    """Cancel the body when the link is lost, and raise why.

    A TaskGroup would be shorter. Where a body ends while its link is lost, those before Python 3.13 leave the task
    marked as cancelled, and then `asyncio.timeout` of Python 3.11.2 raises CancelledError in the place of
    TimeoutError.
    """
    task = asyncio.current_task()
    assert task is not None
    # `cancelling` counts the cancels that nobody took back. A cancel by somebody else must win over ours, so ours is
    # taken back with `uncancel`, and what is left above `before` is another's.
    before, over, cut = task.cancelling(), False, False

    def cancel(_: object) -> None:
        nonlocal cut
        if not over:  # it may be scheduled already when the body ends
            cut = True
            task.cancel()

    client.ended.add_done_callback(cancel)
    try:
        yield
        over = True
        if cut:  # the body kept the cancel to itself
            task.uncancel()
            await _lost(client)
    except asyncio.CancelledError:
        if cut and task.uncancel() <= before:
            await _lost(client)
        raise
    except Exception as error:
        if cut:
            task.uncancel()
        if isinstance(error, LinkError) and task.cancelling() > before:
            raise asyncio.CancelledError from None
        known = [error] if client.reason is None else [client.reason, error]
        raise next((one for one in known if not isinstance(one, LinkError)), known[0]) from None
    finally:
        over = True
        client.ended.remove_done_callback(cancel)


class Backoff:
    """Waits between attempts: 0.1 s doubling to 2 s, each shortened by up to half at random.

    Two seconds at most and the connect timeout of three keep a reconnect within 5 s of the broker being back.

    Parameters
    ----------
    longest
        Seconds, in the place of 2.
    """

    _FIRST = 0.1

    def __init__(self, longest: float = 2.0) -> None:
        self._next, self._longest = self._FIRST, longest

    def reset(self) -> None:
        """The link stood for a while: begin again."""
        self._next = self._FIRST

    def pause(self) -> float:
        """Seconds before the next attempt."""
        pause = self._next * random.uniform(0.5, 1.0)  # spreads clients out; no secret
        self._next = min(2 * self._next, self._longest)
        return pause

    async def wait(self) -> None:
        """Sleep before the next attempt."""
        await asyncio.sleep(self.pause())
