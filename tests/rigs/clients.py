"""A client of ours under test: in a version of MQTT that the test chooses, or at a pipe in the place of a socket."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.carrier import Outgoing
from eyestream.rim.mqtt.client import Client
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.greeting import Greeting
from eyestream.rim.mqtt.messages import Message

__all__ = ["WELCOME", "Pipe", "at_a_pipe", "speaking"]

WELCOME = {False: b"\x20\x02\0\0", True: b"\x20\x03\0\0\0"}
"""A broker's answer to CONNECT, in 3.1.1 and in MQTT 5."""


@contextlib.contextmanager
def speaking(version: Literal["auto", "5", "3.1.1"]) -> Iterator[None]:
    """While the body runs, links whose settings name no version are made in `version`."""
    real = Endpoint.of

    def of(settings: BrokerSettings) -> Endpoint:
        made = real(settings)
        return replace(made, version=version) if settings.version == "auto" else made

    Endpoint.of = of  # type: ignore[method-assign]
    try:
        yield
    finally:
        Endpoint.of = real  # type: ignore[method-assign]


class Pipe(asyncio.Transport):
    """What a client takes for its connection: `hear` is called with all that the client writes."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        super().__init__()
        self._hear = hear
        self.closed = self.paused = False

    def write(self, data: Any) -> None:
        """Hear."""
        assert not self.closed
        self._hear(bytes(data))

    def is_closing(self) -> bool:
        """Whether either side closed it."""
        return self.closed

    def close(self) -> None:
        """Write no more; the client is told by `Client.connection_lost`, which the test calls."""
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        """The client has more to read in its next turn."""
        self.paused = True

    def resume_reading(self) -> None:
        """It has read everything."""
        self.paused = False

    def get_write_buffer_size(self) -> int:
        """Everything was heard."""
        return 0


def at_a_pipe(
    deliver: Callable[[Message], None],
    hear: Callable[[bytes], None],
    *,
    five: bool,
    outgoing: Outgoing | None = None,
    resume: bool = False,
    **greeting: Any,
) -> tuple[Client, Pipe, asyncio.Task[None]]:
    """A client that greets the other end of a pipe: the client, the pipe, the greeting under way."""
    given = {"client_id": None, "keepalive_s": 60, "clean_session": True, "will": None, **greeting}
    client = Client(deliver, Greeting(outgoing=outgoing or Outgoing(), resume=resume, **given), five=five)
    pipe = Pipe(hear)
    client.connection_made(pipe)
    return client, pipe, asyncio.ensure_future(client.greet(None, None))
