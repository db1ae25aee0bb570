"""What carries a publisher's messages: one link after the other, one message at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from eyestream.rim.mqtt.messages import NO_PROPERTIES
from eyestream.rim.mqtt.transport import Link, Properties, RefusedError
from eyestream.wire.topics import QOS

__all__ = ["Carrier"]

_LOG = logging.getLogger("eyestream.link")


@dataclass(eq=False, slots=True)
class _Pending:
    topic: str
    payload: bytes
    more: Properties
    taken: "asyncio.Future[bool]"


class Carrier:
    """Publishes while a link stands; what is handed over while none does is not taken."""

    def __init__(self) -> None:
        self._pending: asyncio.Queue[_Pending] = asyncio.Queue(1)
        self._refused = self.stands = False

    async def hand_over(self, topic: str, payload: bytes, more: Properties = NO_PROPERTIES) -> bool:
        """Whether the broker has taken it."""
        if not self.stands:
            return False
        entry = _Pending(topic, payload, more, asyncio.get_running_loop().create_future())
        await self._pending.put(entry)
        return await entry.taken

    async def serve(self, link: Link, first: Callable[[Link], Awaitable[None]]) -> None:
        """Publish one entry after the other for as long as the link stands, after `first`, for which entries wait."""
        self.stands = True
        entry: _Pending | None = None
        try:
            await first(link)
            while True:
                entry = await self._pending.get()
                try:
                    await link.publish(entry.topic, entry.payload, qos=QOS, more=entry.more)
                except RefusedError as refusal:
                    self._note(refusal)
                    _answer(entry, taken=False)
                else:
                    _answer(entry, taken=True)
        finally:
            self.stands = False
            _answer(entry, taken=False)
            while not self._pending.empty():
                _answer(self._pending.get_nowait(), taken=False)

    def _note(self, refusal: RefusedError) -> None:
        """Say once what the broker has against our rows."""
        if not self._refused:
            _LOG.warning("raw: %s", refusal)
        self._refused = True


def _answer(entry: _Pending | None, *, taken: bool) -> None:
    if entry is not None and not entry.taken.done():
        entry.taken.set_result(taken)
