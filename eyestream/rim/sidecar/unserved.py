"""Raw streams that arrive at a broker and that no sidecar's configuration names: a mistyped device sends for ever.

A second link listens at all raw topics, for a moment each time. It looks at topics alone, and its findings go into the
log of the tracker's side, and to whoever runs a check.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from eyestream.errors import ConfigError, LinkError, PayloadError
from eyestream.rim.config import Settings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream.streams import StreamKey
from eyestream.wire.topics import GAZE_STREAM, every_topic, parse_topic

if TYPE_CHECKING:
    from eyestream.rim.plan import Plan

_LOG = logging.getLogger("eyestream.tracker")

LISTEN_S = 1.5
_FIRST_S = 4.0
_AGAIN_S = 60.0
_MOST = 8
"""Streams that are named: anybody may invent more."""


def crosses_a_broker(settings: Settings) -> bool:
    """Whether any raw rows or gaze come from the raw broker."""
    return settings.rows_cross_a_broker or any(source.kind == "mqtt" for source in settings.source)


def served_streams(plan: "Plan") -> frozenset[StreamKey]:
    """Streams that the sidecar reads at the raw broker: of rows, and of gaze."""
    settings = plan.settings
    sources = {StreamKey(source.device, stream) for source in settings.source for stream in source.served}
    gaze = {StreamKey(source.device, GAZE_STREAM) for source in settings.source if source.kind == "mqtt"}
    return frozenset(set(plan.served) - sources | gaze)


async def heard_streams(endpoint: Endpoint, seconds: float) -> Mapping[StreamKey, int]:
    """Streams of which live raw messages arrive, with their number; raises LinkError where nobody may listen."""
    heard: dict[StreamKey, int] = {}

    def hear(message: Message) -> None:
        with contextlib.suppress(PayloadError):
            topic = parse_topic(message.topic)
            key = StreamKey(topic.device, topic.stream)
            if not message.retain and (key in heard or len(heard) < 1024):
                heard[key] = heard.get(key, 0) + 1

    async with connect(endpoint, client_id=None, deliver=hear) as link:
        await link.subscribe(every_topic("raw"), 0)
        await asyncio.sleep(seconds)
    return heard


def unserved_words(heard: Mapping[StreamKey, int], served: frozenset[StreamKey]) -> dict[StreamKey, str]:
    """Why nobody takes the streams that were heard and are not served, with what their senders may have meant."""
    found: dict[StreamKey, str] = {}
    for key in sorted(set(heard) - served)[:_MOST]:
        likely = get_close_matches(str(key), map(str, served), n=1, cutoff=0.0)
        meant = f"; did you mean {likely[0]}" if likely else ""
        found[key] = f"its messages arrive and are dropped, because the configuration does not name it{meant}"
    return found


async def watch(plan: "Plan") -> None:
    """Name each such stream once: soon after the start, and later within a minute or so."""
    if not crosses_a_broker(plan.settings):
        return
    endpoint, served = Endpoint.of(plan.settings.raw_broker), served_streams(plan)
    named: set[StreamKey] = set()
    await asyncio.sleep(_FIRST_S)
    while True:
        with contextlib.suppress(LinkError, ConfigError):  # the sidecar's own link says so
            for key, words in unserved_words(await heard_streams(endpoint, LISTEN_S), served).items():
                if key not in named and len(named) < _MOST:
                    named.add(key)
                    told = {"event": "unserved", "device": key.device, "stream": key.stream}
                    remedy = "Correct the tracker's device or stream, or add it to the configuration"
                    _LOG.warning("%s: %s. %s", key, words, remedy, extra={"fields": told})
        await asyncio.sleep(_AGAIN_S)
