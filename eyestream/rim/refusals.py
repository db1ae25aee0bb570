"""Warnings about a tracker that is refused: one for each stream and reason, again after a while.

The reasons are the words of a fixed list that the metrics count too: nothing here depends on a value.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from eyestream.streams import StreamKey

_LOG = logging.getLogger("eyestream.tracker")

AGAIN_S = 600.0
"""Seconds until the same is said again."""

_WIRE = "docs/protocol.md has the format, tests/golden/ payloads to compare with"

REMEDIES: dict[str, str] = {
    "stale_session": "its session number must be larger than that of the session before. A tracker that counted in "
    "nanoseconds and now counts in milliseconds stays below: let it count in nanoseconds since "
    "1970. If chunks still come, a second sender publishes at its topic: stop it",
    "mark": "rows that may have been released before a restart or a pause, or that describe the same gaze, are passed "
    "over; later rows of the session are taken again. If none is, begin a new session, with a larger session number",
    "rows": "the names, the units or the rate of its rows are not those of [[stream]]: compare the names and their "
    "order, and rate_hz. What the tracker says of its rows must be what the calibration was made for",
    "wearer": "its rows name another wearer than their session did at its beginning, or than the runtime: begin a "
    "session with each wearer",
    "switched": "somebody else put the device on: rows that may describe gaze of before are passed over. Later ones "
    "are taken",
    "paused": "the wearer resumes: rows that may describe gaze of the pause are passed over. Later ones are taken",
    "schema": "the schema number of its messages is another than [[stream]] schema: set one to the other",
    "shape": "its rows have another number of features than [[stream]] names: make the two lists the same",
    "length": "its array has another number of bytes than its shape says: float32, little-endian",
    "missing_key": "a key is missing. A message of rows has v, schema, session, seq, shape and values",
    "unknown_key": "a key is not of the format. Rows have v, schema, session, seq, shape and values, and may have "
    "t, end and wearer",
    "version": "the first key of a message must be v, with the integer 1",
    "retained": "it publishes with the retain flag; raw rows must not be kept: clear it",
    "oversize": "its messages are above 64 KiB: send fewer rows at once. Or their MQTT 5 properties are above 512 "
    "bytes, or cannot be read: leave them out",
}
"""Advice on a reason, where more can be said than where the format is described."""


GAZE_REMEDIES: dict[str, str] = {
    "schema": "the schema number of its messages is another than [source.options] schema: set one to the other",
    "shape": "its records have another number of columns than the profile of [source]",
    "retained": REMEDIES["retained"],
    "oversize": REMEDIES["oversize"].replace("rows", "samples"),
    "version": REMEDIES["version"],
    "missing_key": "a key is missing. A message of gaze has v, schema, shape, values and t",
    "unknown_key": "a key is not of the format. A message of gaze has v, schema, shape, values and t, and no others",
}
"""The same, of a tracker that sends gaze."""


ABSENT = {
    "silent": "nothing has come since the start. Start the tracker, and compare its device and stream with the "
    "configuration's",
    "stopped": "nothing has come for 5 s or longer. The tracker has stopped, or its link is lost: start it again",
}
"""Advice on a tracker that is not heard, by whether it ever was."""


@dataclass(slots=True)
class _Noted:
    at: float
    since: int = 0


class Refusals:
    """Says what was refused, at most once in `AGAIN_S` for each stream and reason.

    Parameters
    ----------
    remedies
        By reason; for one that is not in it, where the format is described.
    event, words
        What it is that is said, for machines and for people.
    """

    def __init__(
        self,
        remedies: Mapping[str, str] = REMEDIES,
        event: str = "refused",
        words: str = "its tracker is refused",
    ) -> None:
        self._remedies, self._event, self._words = remedies, event, words
        self._said: dict[tuple[StreamKey, str], _Noted] = {}

    def note(self, key: StreamKey, reason: str, now: float) -> None:
        """A message of the tracker of `key` was refused at `now`, on the loop's clock."""
        said = self._said.get((key, reason))
        if said is not None and now - said.at < AGAIN_S:
            said.since += 1
            return
        more = "" if said is None or not said.since else f", and {said.since} times since it was last said"
        self._said[key, reason] = _Noted(now)
        told = {"event": self._event, "device": key.device, "stream": key.stream, "reason": reason}
        remedy = self._remedies.get(reason, _WIRE)
        _LOG.warning("%s: %s (%s)%s: %s", key, self._words, reason, more, remedy, extra={"fields": told})
