"""Runs of a whole sidecar that differ only in whether the eye is seen, and all that an application reads of each."""

import asyncio
import contextlib
import itertools
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgpack
import msgspec

from eyestream.rim.config import SourceEntry
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.sidecar import at_work, settings_for
from tests.rigs.spy import Spy, spying

__all__ = ["DEVICE", "SPEED", "Make", "Read", "See", "both", "said"]

DEVICE = "hmd-1"
SPEED = 8.0
"""Seconds of gaze in one: of the front end and of the tracker's clock. The sources' own waits are not shortened."""

SEEN_S, LOST_S, CHUNKS = 2.0, 9.5, 5
"""The eye is lost for longer than a session outlives its tracker (60 s of gaze); the chunks end after its return."""

Read = tuple[str, dict[str, Any]]
"""Topic and content of a message, without what is private or random."""
See = Callable[[bool], Coroutine[Any, Any, None]]
"""Lets a fake tracker see the eye, or lose it."""
Make = Callable[[str, str], tuple[Any, See, SourceEntry]]
"""Makes a fake tracker of a name, beside the broker at a URL; how its eye is lost; and the source for it.

The tracker has a `clock`, and sends from `start` to `stop`.
"""


async def both(make: Make, folder: Path) -> tuple[list[Read], list[Read]]:
    """What applications read of a run in which the eye is always seen, and of one in which it is lost for a while."""
    places = folder / "seen", folder / "losing"
    for place in places:
        place.mkdir()
    seen, losing = places
    read = await asyncio.gather(_run(make, seen, loses=False), _run(make, losing, loses=True))
    return read[0], read[1]


async def _lose(see: See) -> None:
    await asyncio.sleep(SEEN_S)
    await see(False)
    await asyncio.sleep(LOST_S)
    await see(True)


async def _run(make: Make, folder: Path, *, loses: bool) -> list[Read]:
    async with _broker(folder) as broker, spying(broker.url, "eyestream/v1/#") as spy:
        tracker, see, entry = make(folder.name, broker.url)
        settings = msgspec.structs.replace(settings_for(broker.url, folder), source=(entry,))
        tracker.clock.speed = SPEED
        await tracker.start()
        try:
            with assemble(resolved(settings), lambda: 20_000) as made:
                async with at_work(made.sidecar), asyncio.TaskGroup() as group:
                    if loses:
                        group.create_task(_lose(see))
                    await until(lambda: len(spy.leaf("private")) >= CHUNKS, 60)
        finally:
            await tracker.stop()
    return said(spy)


@contextlib.asynccontextmanager
async def _broker(folder: Path) -> AsyncIterator[Mosquitto]:
    broker = Mosquitto(folder)
    await asyncio.to_thread(broker.start)
    try:
        yield broker
    finally:
        await asyncio.to_thread(broker.stop)


def said(spy: Spy) -> list[Read]:
    """All that was published until the last of so many chunks, in order, but values, random names and clocks' origins.

    A session is told by its number in the order of their beginnings; `at` by how far it is from the grid. The sidecar's
    own status, which is said again after a second and after ten, counts once.
    """
    sessions: dict[int, int] = {}
    origins: dict[int, float] = {}
    read: list[Read] = []
    topics = [topic for topic, _, _ in spy.messages]
    last = list(itertools.accumulate(topic.endswith("/private") for topic in topics)).index(CHUNKS)
    for published, payload, _ in spy.messages[: last + 1]:
        topic = re.sub(r"/look-[0-9a-f-]+/", "/look/", published)
        content: dict[str, Any] = msgpack.unpackb(payload) if payload else {}
        if topic.endswith("/raw"):  # no application may read it
            continue
        if topic.endswith("/private"):
            session = content.pop("session")
            content["session"] = sessions.setdefault(session, len(sessions))
            content["values"] = len(content["values"])
            origin = origins.setdefault(session, content["at"] - content["t0"])
            content["at"] -= origin + content["t0"]
        elif topic.endswith("/owner"):
            content.pop("ledger", None)
        elif topic.endswith("/odometer"):
            content = {"spent": content["reads"] - content["began"]}
        if not (topic.endswith("/sidecar/status") and (topic, content) in read):
            read.append((topic, content))
    return read
