"""Sources in the sidecar's own process at work, again and again; and whether they stand."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from eyestream.errors import LinkError
from eyestream.rim.mqtt.reconnecting import STEADY_SECONDS
from eyestream.rim.mqtt.transport import Backoff
from eyestream.rim.sources.source import Feeder, Source
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows

_LOG = logging.getLogger("eyestream.source")

Item = TypeVar("Item")


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
    paused
        Whether gaze is dropped as it comes, so that no feeder hears of it.
    """

    def __init__(
        self,
        sources: Mapping[StreamKey, Source | Feeder],
        deliver: Callable[[StreamKey, RawRows], None],
        changed: Callable[[], None],
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._sources, self._deliver, self._changed, self._paused = sources, deliver, changed, paused
        self._away: set[StreamKey] = set()
        self._ended: set[StreamKey] = set()
        self.unheard = 0
        """Messages of trackers that a pause dropped; those that were read together count once."""

    def stands(self, key: StreamKey) -> bool:
        """Whether the source of a stream is there; a stream without one has nothing that could be away."""
        return key not in self._away

    def is_read(self, key: StreamKey) -> bool:
        """Whether something can come of a stream: its source stands, and has not come to its end."""
        return key not in self._away and key not in self._ended

    @property
    def feeders(self) -> dict[StreamKey, Feeder]:
        """The feeders that make rows of gaze, by stream: for the log of the tracker's side, and for nobody else."""
        return {key: source for key, source in self._sources.items() if isinstance(source, Feeder)}

    def cut(self, device: str | None = None) -> None:
        """Let the feeders of a device, None: of all, begin another session with gaze from now on."""
        for key, feeder in self.feeders.items():
            if device in (None, key.device):
                feeder.cut()

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
            if self._paused():
                self.unheard += 1
                return
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
                self._ended.update(keys)
                _LOG.info("source of %s: has come to its end", streams)
                return

    def _note(self, keys: Sequence[StreamKey], *, away: bool) -> None:
        if away != (keys[0] in self._away):
            (self._away.update if away else self._away.difference_update)(keys)
            self._changed()
