"""The face of a source: it runs for as long as the sidecar does, and hands rows over as they come.

A source serves one stream of one device in the sidecar's own process, so that raw rows cross no broker. It numbers rows
as a tracker does: one number is one sampling instant, whether or not the eye was seen; a lost eye is a row of NaN.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from eyestream.streams import StreamSpec
from eyestream.wire.raw import RawRows

Deliver = Callable[[RawRows], None]
"""Takes rows, at once: what waits for the sidecar is bounded, and the oldest goes first."""


class Source(Protocol):
    """Rows of one stream of one device."""

    async def run(self, deliver: Deliver) -> None:
        """Deliver rows until there are no more, or until it is cancelled.

        Raises
        ------
        LinkError
            What it reads from is away: it is run again, after a while, for ever.
        """
        ...


class Feeder(ABC):
    """Makes rows of what it is given: the link to a tracker, and the rows by the clock, run beside each other.

    Attributes
    ----------
    doubt : why what came in the last minute can hardly be what it should be, a word for the log; None: it can.
    heard : samples that came, a lost eye's too.
    untimed : samples whose time cannot be true.
    """

    doubt: str | None = None
    heard: int = 0
    untimed: int = 0

    @property
    @abstractmethod
    def expected_hz(self) -> float:
        """Samples a second, as the operator has set them."""

    @property
    @abstractmethod
    def refused(self) -> int:
        """Messages that could not be used; 0 where the link does not count them."""

    @abstractmethod
    async def run(self, deliver: Callable[[Any], None]) -> None:
        """Deliver what the tracker says, to be handed to `take`; ends and raises as `Source.run`."""

    @property
    def link(self) -> object:
        """Feeders with the same link share it: one of them is run, and all take what it delivers."""
        return self

    @abstractmethod
    def end(self) -> None:
        """The link, which another feeder may have run, has come to its end."""

    @abstractmethod
    def take(self, records: Any) -> None:
        """Take what the tracker said; bounded, of too much the oldest goes first."""

    @abstractmethod
    def cut(self) -> None:
        """Begin another session with gaze that was seen from now on: no row has gaze of before and of after."""

    @abstractmethod
    async def rows(self, deliver: Deliver) -> None:
        """Deliver rows until it is cancelled."""


@dataclass(frozen=True)
class SourceKind:
    """One kind of source, as the registry knows it.

    Attributes
    ----------
    name
        In ``[[source]] kind``.
    options
        What may stand in its table beside ``kind``, ``device`` and ``stream``: a frozen struct that forbids unknown
        keys.
    make
        Builds it from its options and the stream that it serves; raises ConfigError for what it cannot use.
    """

    name: str
    options: type[msgspec.Struct]
    make: Callable[[Any, StreamSpec], Source]
