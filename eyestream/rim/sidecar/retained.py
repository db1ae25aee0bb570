"""What a sidecar says of itself and its streams: one retained message a topic, said again on every new link."""

from itertools import islice

__all__ = ["RetainedMessages"]


class RetainedMessages:
    """Topics with the payload that should stand there, and which of them the broker does not have yet."""

    def __init__(self) -> None:
        self._standing: dict[str, bytes] = {}
        self._unsaid: dict[str, bytes] = {}

    def say(self, topic: str, payload: bytes) -> None:
        """Let `payload` stand at `topic`; what stands there already is not said twice."""
        if self._standing.get(topic) != payload:
            self._standing[topic] = self._unsaid[topic] = payload

    def repeat(self) -> None:
        """A new link: say everything again."""
        self._unsaid = dict(self._standing)

    def again(self, topic: str) -> None:
        """Say what stands at `topic` once more, if anything does."""
        if topic in self._standing:
            self._unsaid[topic] = self._standing[topic]

    def __len__(self) -> int:
        """How many the broker does not have."""
        return len(self._unsaid)

    def first(self, count: int) -> list[tuple[str, bytes]]:
        """RetainedMessages that the broker does not have, `count` at most; each stays unsaid until `said`."""
        return list(islice(self._unsaid.items(), count))

    def said(self, topic: str, payload: bytes) -> None:
        """The broker has it, unless something else was said of the topic meanwhile."""
        if self._unsaid.get(topic) == payload:
            del self._unsaid[topic]
