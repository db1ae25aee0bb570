"""The retained messages of a sidecar: one a topic, sent again on every new link."""

from itertools import islice

__all__ = ["RetainedMessages"]


class RetainedMessages:
    """Topics with the payload that should stand there, and which of them the broker does not have yet."""

    def __init__(self) -> None:
        self._standing: dict[str, bytes] = {}
        self._pending: dict[str, bytes] = {}

    def retain(self, topic: str, payload: bytes) -> None:
        """Let `payload` stand at `topic`; what stands there already is not sent twice."""
        if self._standing.get(topic) != payload:
            self._standing[topic] = self._pending[topic] = payload

    def resend_all(self) -> None:
        """A new link: everything is sent again."""
        self._pending = dict(self._standing)

    def resend(self, topic: str) -> None:
        """Send what stands at `topic` once more, if anything does."""
        if topic in self._standing:
            self._pending[topic] = self._standing[topic]

    def __len__(self) -> int:
        """How many the broker does not have."""
        return len(self._pending)

    def first(self, count: int) -> list[tuple[str, bytes]]:
        """Topics and payloads that the broker does not have, `count` at most; each stays until it is `acknowledged`."""
        return list(islice(self._pending.items(), count))

    def acknowledged(self, topic: str, payload: bytes) -> None:
        """The broker has it, unless another payload stands at the topic by now."""
        if self._pending.get(topic) == payload:
            del self._pending[topic]
