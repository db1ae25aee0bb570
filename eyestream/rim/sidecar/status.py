"""How the sidecar and its streams are, as `status` messages."""

from collections.abc import Callable, Iterable

from eyestream.release.stream import Condition
from eyestream.streams.key import StreamKey
from eyestream.wire.messages import Status, encode_status
from eyestream.wire.topics import sidecar_status_topic, status_topic

__all__ = ["LAST_WILL", "StatusBoard"]

_READY = Status("online", "ready")
_RAW_LINK = Status("degraded", "raw_link")
_LEDGER = Status("degraded", "ledger")
_STOPPED = Status("offline", "stopped")

LAST_WILL = encode_status(Status("offline", "lost"))
"""What the broker says of a sidecar that is gone without a goodbye."""

_OF_CONDITION: dict[Condition, Status] = {
    "ready": _READY,
    "mechanism": Status("degraded", "internal"),
    "window": Status("exhausted", "window"),
    "session": Status("exhausted", "session"),
    "day": Status("exhausted", "day"),
    "lifetime": Status("exhausted", "lifetime"),
    "owner": Status("degraded", "owner"),
    "change": Status("exhausted", "session"),  # another chunk length or window: from the next session on
    "wearer": Status("exhausted", "session"),  # which ceiling it was would tell more about who wears the device
}


class StatusBoard:
    """Says how each stream is, and of the sidecar the worst that is no matter of a budget.

    Parameters
    ----------
    sidecar
        Its name.
    keys
        Of the streams.
    say
        Lets a payload stand at a topic; saying the same again costs nothing.
    """

    def __init__(self, sidecar: str, keys: Iterable[StreamKey], say: Callable[[str, bytes], None]) -> None:
        self.own_topic = sidecar_status_topic(sidecar)
        self._topics = {key: status_topic(*key) for key in keys}
        self._say = say

    def update(
        self, *, stands: Callable[[StreamKey], bool], ledger: bool, condition: Callable[[StreamKey], Condition]
    ) -> None:
        """Say it anew: whether that stands which each stream comes from, whether the ledger works, each condition."""
        worst = _READY if ledger else _LEDGER
        for key, topic in self._topics.items():
            link = _READY if stands(key) else _RAW_LINK
            if worst.state == "online":
                worst = link
            status = _OF_CONDITION[condition(key)] if ledger else _LEDGER
            if status.state == "degraded":  # a fault of the chunks weighs more than one of the link
                worst = status
            self._say(topic, encode_status(link if status.state == "online" else status))
        self._say(self.own_topic, encode_status(worst))

    def goodbye(self) -> list[tuple[str, bytes]]:
        """What shall stand when the sidecar has stopped, topic by topic; its own last."""
        return [(topic, encode_status(_STOPPED)) for topic in (*self._topics.values(), self.own_topic)]
