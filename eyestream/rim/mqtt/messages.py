"""What a link carries, as values: messages, their properties, the last will, what a broker takes. And questions over
MQTT 5: a request says where its answer goes and how to know it (section 4.10).

Texts that MQTT has no room for are refused here, before they are sent: the library sends some of them. Source: MQTT
Version 5.0, OASIS Standard, 7 March 2019, sections 1.5.4 and 4.7; 3.1.1 says the same.
"""

import asyncio
import math
import secrets
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import NamedTuple

from eyestream.errors import LinkError
from eyestream.wire.envelope import MAX_RELEASE_BYTES

__all__ = [
    "NO_PROPERTIES",
    "TOO_LARGE",
    "Limits",
    "Message",
    "Properties",
    "Requests",
    "Will",
    "answer_to",
    "check_text",
    "topic_bytes",
]

TOO_LARGE = bytes(MAX_RELEASE_BYTES + 1)
"""The payload of a message that is cut: it was too large, or its properties or its topic could not be read.

It is longer than any of ours. So every reader refuses it for its size, and counts it as ``oversize``."""


class Properties(NamedTuple):
    """What MQTT 5 says of a message beside topic and payload; 3.1.1 has no word for any of it.

    `expiry_s` seconds from now the broker forgets it. `response_topic` and `correlation` make it a request, or with
    `correlation` alone the answer to one. `user` are pairs of texts.
    """

    expiry_s: int | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    user: tuple[tuple[str, str], ...] = ()


NO_PROPERTIES = Properties()


class Message(NamedTuple):
    """One received message. `packet_id` is 0 at QoS 0; else the client acknowledges it after it was delivered.

    One that is cut has `TOO_LARGE` for its payload and no properties. `topic` is empty where it could not be read.
    """

    topic: str
    payload: bytes
    retain: bool
    packet_id: int = 0
    more: Properties = NO_PROPERTIES


class Limits(NamedTuple):
    """What a broker takes: messages at QoS 1 under way, bytes of a packet, QoS 1, retained messages; its keep-alive."""

    receive_maximum: int = 65_535
    packet_bytes: int = 268_435_460
    qos_1: bool = True
    retain: bool = True
    keepalive_s: int | None = None


class Will(NamedTuple):
    """What the broker publishes, retained, at QoS 1, when the link is lost without a goodbye.

    `delay_s` later in MQTT 5, unless we are back by then; at once in 3.1.1.
    """

    topic: str
    payload: bytes
    delay_s: int = 0


MAX_TEXT_BYTES = 65_535


def check_text(words: str) -> int:
    """How many bytes a text has. Raises ValueError for one with a NUL, with a surrogate, or too long."""
    size = len(words.encode())
    if "\0" in words:
        raise ValueError("MQTT has no text with a NUL character")
    if size > MAX_TEXT_BYTES:
        raise ValueError("longer than a field may be")
    return size


@lru_cache(maxsize=256)  # the same few again and again
def topic_bytes(name: str) -> int:
    """How many bytes a topic to publish to has. Raises ValueError for one that is none.

    >>> topic_bytes("eyestream/v1/ä")
    15
    """
    if not name or "+" in name or "#" in name:
        raise ValueError("a topic to publish to is not empty and has no wildcard")
    return check_text(name)


MOST = 64
"""Requests of one link that may wait for their answers."""

_CORRELATION_BYTES = 16


class Requests:
    """Requests of one link that wait for their answers.

    Parameters
    ----------
    deliver
        Takes every message that is no answer to one of them.
    """

    def __init__(self, deliver: Callable[[Message], None]) -> None:
        self._deliver = deliver
        self._waiting: dict[bytes, tuple[str, asyncio.Future[Message]]] = {}
        self.heard: set[str] = set()
        """Topics of answers that are subscribed to."""

    def deliver(self, message: Message) -> None:
        """Hand a message to who waits for it, or on. An answer at another topic than was asked for is none."""
        if self._waiting and (correlation := message.more.correlation) is not None:
            topic, answer = self._waiting.get(correlation, ("", None))
            if answer is not None and topic == message.topic:
                if not answer.done():
                    answer.set_result(message)
                return
        self._deliver(message)

    async def ask(self, publish: Callable[[Properties], Awaitable[None]], respond_at: str, wait_s: float) -> Message:
        """Publish a request and wait for its answer at `respond_at`. Raises LinkError when none comes in time."""
        if len(self._waiting) >= MOST:
            raise LinkError(f"{MOST} requests wait for their answers already")
        correlation = secrets.token_bytes(_CORRELATION_BYTES)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[correlation] = (respond_at, answer)
        more = Properties(expiry_s=max(1, math.ceil(wait_s)), response_topic=respond_at, correlation=correlation)
        try:
            async with asyncio.timeout(wait_s):
                await publish(more)
                return await answer
        except TimeoutError:
            raise LinkError(f"no answer to the request within {wait_s:g} s") from None
        finally:
            del self._waiting[correlation]


def answer_to(request: Message) -> tuple[str, Properties]:
    """Topic and properties of an answer: it is over when the request is. Raises LinkError for what is no request."""
    topic, expiry_s = request.more.response_topic, request.more.expiry_s
    if topic is None:
        raise LinkError("the message is no request: it does not say where its answer goes")
    if expiry_s == 0:
        raise LinkError("the request is over")
    return topic, Properties(expiry_s=expiry_s, correlation=request.more.correlation)
