"""Questions over MQTT 5: a request says where its answer goes and how to know it (section 4.10)."""

import asyncio
import math
import secrets
from collections.abc import Awaitable, Callable

from eyestream.errors import LinkError
from eyestream.rim.mqtt.messages import Message, Properties

__all__ = ["Requests", "answer_to"]

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
