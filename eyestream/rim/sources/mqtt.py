"""``kind = "mqtt"``: gaze that a tracker publishes at ``eyestream/v1/<device>/gaze/raw`` of the raw broker.

The link is read by the clock: `eyestream.rim.mqtt.portions` says when a sample arrives, and why that depends on this
sample alone.
"""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.errors import PayloadError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream.rim.refusals import GAZE_REMEDIES, Refusals
from eyestream.rim.sources.asked import NOTHING
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place, UndecodedGaze, columns_of, widths
from eyestream.streams import StreamKey
from eyestream.wire.gaze import decode_gaze
from eyestream.wire.topics import GAZE_STREAM, RAW_QOS, gaze_topic

_LOG = logging.getLogger("eyestream.source")

_Decoded = tuple[NDArray[np.float64], NDArray[np.float32]]
"""Times and values of one message."""


class MqttOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``schema``: the number that the tracker puts into every message."""

    schema: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] = 1


class MqttSource:
    """Messages of one topic; what is none of ours is counted by its reason.

    Attributes
    ----------
    refused : messages by the reason for which they were refused.
    """

    def __init__(self, options: MqttOptions, profile: Profile, place: Place) -> None:
        self._schema, self._profile, self._widths = options.schema, profile, widths(profile)
        self._endpoint, self._topic = Endpoint.of(place.broker), gaze_topic(place.device)
        self.refused: Counter[str] = Counter()
        self._refusals, self._key = Refusals(GAZE_REMEDIES), StreamKey(place.device, GAZE_STREAM)

    async def run(self, deliver: DeliverGaze) -> None:
        """One link, for as long as it stands."""

        def take(records: GazeColumns | UndecodedGaze) -> None:
            for part in records.decoded() if isinstance(records, UndecodedGaze) else (records,):
                deliver(part)

        await self.run_undecoded(take)

    async def run_undecoded(self, deliver: Callable[[GazeColumns | UndecodedGaze], None]) -> None:
        """One link, as `run`; what comes is decoded by who takes it."""

        def take(messages: list[Message], came: float) -> None:
            size_bytes = sum(len(message.payload) for message in messages)
            deliver(UndecodedGaze(size_bytes, came, lambda: [*self.records_of(messages, came)]))

        def take_one(message: Message) -> None:
            take([message], asyncio.get_running_loop().time())

        async with connect(self._endpoint, client_id=None, deliver=take_one, clean_session=True, will=None) as link:
            await link.subscribe_all([self._topic], RAW_QOS)
            link.read_by_the_clock(take)
            fields = {"event": "source_found", "device": self._key.device}
            _LOG.info("source of %s: listens at %s", self._key.device, self._topic, extra={"fields": fields})
            deliver(NOTHING)
            await asyncio.Event().wait()

    def records_of(self, messages: Iterable[Message], came: float) -> Iterator[GazeColumns]:
        """Samples of messages that arrived at `came`; those of one width, one after the other, are decoded together."""
        for _, group in itertools.groupby(self._decoded(messages), key=lambda one: one[1].shape[1]):
            times, tables = zip(*group, strict=True)
            yield columns_of(self._profile, np.concatenate(times), np.concatenate(tables), came)

    def _decoded(self, messages: Iterable[Message]) -> Iterator[_Decoded]:
        """Samples of the messages that are ours, in their order; the others are counted."""
        for message in messages:
            if message.topic != self._topic:  # amqtt gives a new subscriber what it has retained elsewhere, too
                continue
            if message.retain:  # nothing retained is live
                self._refuse("retained")
                continue
            try:
                yield decode_gaze(message.payload, self._widths, self._schema)
            except PayloadError as error:
                self._refuse(error.reason)

    def _refuse(self, reason: str) -> None:
        self.refused[reason] += 1
        self._refusals.note(self._key, reason, asyncio.get_running_loop().time())


MQTT = GazeKind("mqtt", MqttOptions, "mqtt", MqttSource)
