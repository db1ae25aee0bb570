"""``kind = "mqtt"``: gaze that a tracker publishes at ``eyestream/v1/<device>/gaze/raw`` of the raw broker."""

import asyncio
import logging
from collections import Counter
from typing import Annotated

import msgspec

from eyestream.errors import PayloadError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream.rim.refusals import GAZE_REMEDIES, Refusals
from eyestream.rim.sources.asked import NOTHING
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place, columns_of, widths
from eyestream.streams import StreamKey
from eyestream.wire.gaze import decode_gaze
from eyestream.wire.topics import GAZE_STREAM, RAW_QOS, gaze_topic

__all__ = ["MQTT", "MqttSource"]


_LOG = logging.getLogger("eyestream.source")


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``schema``: the number that the tracker puts into every message."""

    schema: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] = 1


class MqttSource:
    """Messages of one topic; what is none of ours is counted by its reason.

    Attributes
    ----------
    refused : messages by the reason for which they were refused.
    """

    def __init__(self, options: Options, profile: Profile, place: Place) -> None:
        self._schema, self._profile, self._widths = options.schema, profile, widths(profile)
        self._endpoint, self._topic = Endpoint.of(place.broker), gaze_topic(place.device)
        self.refused: Counter[str] = Counter()
        self._refusals, self._key = Refusals(GAZE_REMEDIES), StreamKey(place.device, GAZE_STREAM)

    async def run(self, deliver: DeliverGaze) -> None:
        """One link, for as long as it stands."""

        def take(message: Message) -> None:
            records = self._records(message)
            if records is not None:
                deliver(records)

        async with connect(self._endpoint, client_id=None, deliver=take, clean_session=True, will=None) as link:
            await link.subscribe_all([self._topic], RAW_QOS)
            fields = {"event": "source_found", "device": self._key.device}
            _LOG.info("source of %s: listens at %s", self._key.device, self._topic, extra={"fields": fields})
            deliver(NOTHING)
            await asyncio.Event().wait()

    def _records(self, message: Message) -> GazeColumns | None:
        if message.retain:  # nothing retained is live
            self._refuse("retained")
            return None
        try:
            t, values = decode_gaze(message.payload, self._widths, self._schema)
        except PayloadError as error:
            self._refuse(error.reason)
            return None
        return columns_of(self._profile, t, values)

    def _refuse(self, reason: str) -> None:
        self.refused[reason] += 1
        self._refusals.note(self._key, reason, asyncio.get_running_loop().time())


MQTT = GazeKind("mqtt", Options, "mqtt", MqttSource)
