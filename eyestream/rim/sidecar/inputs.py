"""Where a sidecar's rows come from: the raw broker, and sources in its own process; and whether they stand."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from eyestream.errors import LinkError
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import STEADY_SECONDS, ReconnectingLink
from eyestream.rim.mqtt.transport import Backoff, Link, Message
from eyestream.rim.sources.source import Feeder, Source
from eyestream.streams import StreamKey
from eyestream.wire.messages import RawRows
from eyestream.wire.topics import RAW_QOS, raw_topic

__all__ = ["RawLink", "SourceRunner"]

_LOG = logging.getLogger("eyestream.source")

Item = TypeVar("Item")


class RawLink(ReconnectingLink):
    """The link to the raw broker, for the streams that no source of ours serves.

    Parameters
    ----------
    endpoint, client_id, deliver
        As for `ReconnectingLink`.
    keys
        The streams that come over it.
    changed
        Called when the link begins or ceases to stand.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        client_id: str,
        keys: Sequence[StreamKey],
        deliver: Callable[[Message], None],
        changed: Callable[[], None],
    ) -> None:
        super().__init__(endpoint, self._hear, what="raw broker", client_id=client_id, deliver=deliver)
        self._keys, self._changed = keys, changed
        self.stands = False

    async def _hear(self, link: Link) -> None:
        try:
            filters = [raw_topic(*key) for key in self._keys]
            await link.subscribe_all(filters, RAW_QOS)
            self.stands = True
            self._changed()
            await asyncio.Event().wait()  # messages go to `deliver`; a lost link, or the end, cancels this wait
        finally:
            self.stands = False
            self._changed()


class SourceRunner:
    """Runs every source, again and again when what it reads from is away.

    Parameters
    ----------
    sources
        By the stream that they serve.
    deliver
        Takes their rows.
    changed
        Called when one of them begins or ceases to stand.
    """

    def __init__(
        self,
        sources: Mapping[StreamKey, Source | Feeder],
        deliver: Callable[[StreamKey, RawRows], None],
        changed: Callable[[], None],
    ) -> None:
        self._sources, self._deliver, self._changed = sources, deliver, changed
        self._away: set[StreamKey] = set()

    def __bool__(self) -> bool:
        return bool(self._sources)

    def stands(self, key: StreamKey) -> bool:
        """Whether the source of a stream is there; a stream without one has nothing that could be away."""
        return key not in self._away

    @property
    def feeders(self) -> dict[StreamKey, Feeder]:
        """What makes rows of gaze, by stream: for the log of the tracker's side, and for nobody else."""
        return {key: source for key, source in self._sources.items() if isinstance(source, Feeder)}

    @property
    def refused(self) -> int:
        """Messages of trackers that could not be used; those of a link that several feeders share count once."""
        return sum({id(feeder.link): feeder.refused for feeder in self.feeders.values()}.values())

    async def run(self) -> None:
        """Run all until cancelled, or until each has come to its end."""
        linked: dict[int, list[tuple[StreamKey, Feeder]]] = {}
        async with asyncio.TaskGroup() as group:
            for key, source in self._sources.items():
                deliver = functools.partial(self._deliver, key)
                if isinstance(source, Feeder):
                    group.create_task(source.rows(deliver), name=f"rows of {key}")
                    linked.setdefault(id(source.link), []).append((key, source))
                else:
                    group.create_task(self._keep([key], source.run, deliver), name=f"source of {key}")
            for shared in linked.values():
                group.create_task(self._feed(shared), name=f"source of {shared[0][0]}")

    async def _feed(self, shared: Sequence[tuple[StreamKey, Feeder]]) -> None:
        """Run the link that some feeders share; each takes everything that comes of it."""
        keys, feeders = zip(*shared, strict=True)

        def take(item: Any) -> None:
            for feeder in feeders:
                feeder.take(item)

        await self._keep(keys, feeders[0].run, take)
        for feeder in feeders:
            feeder.end()

    async def _keep(
        self,
        keys: Sequence[StreamKey],
        run: Callable[[Callable[[Item], None]], Awaitable[None]],
        deliver: Callable[[Item], None],
    ) -> None:
        """Run a source, rows or gaze, for as long as it has any; what it delivers says that it is there."""
        backoff, loop = Backoff(), asyncio.get_running_loop()
        stood: float | None = None
        said: set[str] = set()  # of this outage: it may be away, and then back as something that is refused
        streams = ", ".join(map(str, keys))
        fields = {"streams": [str(key) for key in keys]}

        def note(item: Item) -> None:
            nonlocal stood
            stood = loop.time() if stood is None else stood
            if said:
                said.clear()
                _LOG.warning("source of %s: is back", streams, extra={"fields": {"event": "source_back"} | fields})
            self._note(keys, away=False)
            deliver(item)

        while True:
            try:
                await run(note)
            except LinkError as error:
                if str(error) not in said:
                    said.add(str(error))
                    more = {"event": "source_away", "reason": str(error)} | fields
                    _LOG.warning(
                        "source of %s: %s; trying again until it is back", streams, error, extra={"fields": more}
                    )
                self._note(keys, away=True)
                if stood is not None and loop.time() - stood > STEADY_SECONDS:
                    backoff.reset()
                stood = None
                await backoff.wait()
            else:
                _LOG.info("source of %s: has come to its end", streams)
                return

    def _note(self, keys: Sequence[StreamKey], *, away: bool) -> None:
        if away != (keys[0] in self._away):
            (self._away.update if away else self._away.difference_update)(keys)
            self._changed()
