"""Role: a sidecar that notes when its last row passes each stage. ``python -m benchmarks.staged FILE run --config C``.

The product has no hooks for this: its functions are wrapped here, before it starts. At the end FILE holds a JSON list
of one record a chunk, {stage: monotonic nanoseconds}, the pauses of the garbage collector as [generation, start,
nanoseconds] and the turns of the loop that took longer than 5 ms as [start, nanoseconds].
"""

import atexit
import gc
import json
import selectors
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eyestream.cli import run as _run  # noqa: F401  so that all of it is there to be wrapped
from eyestream.cli.main import main
from eyestream.core.mechanism import Session
from eyestream.rim.mqtt.carrier import Carrier
from eyestream.rim.sidecar import pipeline, sender, sidecar

STAGES = ("readable", "delivered", "decoded", "due", "released", "encoded", "posted", "written")
SLOW_NS = 5_000_000
_HOLDS_A_CHUNK = 8_000


class Notes:
    """When the message under way passed what; a chunk's record is complete when its bytes are with the socket."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.chunks: list[dict[str, int]] = []
        self.pauses: list[tuple[int, int, int]] = []
        self.slow: list[tuple[int, int]] = []
        self.woke = self._pause = 0

    def note(self, stage: str) -> None:
        self.now[stage] = time.monotonic_ns()

    def written(self, size: int) -> None:
        if size > _HOLDS_A_CHUNK and "posted" in self.now:
            self.note("written")
            self.chunks.append(self.now)
            self.now = {}

    def delivered(self) -> None:
        if "encoded" not in self.now:  # else a chunk is under way
            self.now = {"readable": self.woke}
            self.note("delivered")

    def collected(self, phase: str, info: dict[str, int]) -> None:
        moment = time.monotonic_ns()
        if phase == "start":
            self._pause = moment
        else:
            self.pauses.append((info["generation"], self._pause, moment - self._pause))

    def before(self, owner: Any, name: str, call: Callable[..., None]) -> None:
        """Call `call` before the method `name` of `owner`."""
        real = getattr(owner, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            call(*arguments)
            return real(*arguments, **named)

        setattr(owner, name, wrapped)

    def after(self, owner: Any, name: str, call: Callable[..., None]) -> None:
        """Call `call` after the method `name` of `owner`."""
        real = getattr(owner, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            result = real(*arguments, **named)
            call(*arguments)
            return result

        setattr(owner, name, wrapped)

    def around_select(self) -> None:
        """Note when the loop wakes, and how long the turn was that ends with the next look at the sockets."""
        real = selectors.EpollSelector.select

        def select(this: selectors.EpollSelector, timeout: float | None = None) -> Any:
            moment = time.monotonic_ns()
            if self.woke and moment - self.woke > SLOW_NS:
                self.slow.append((self.woke, moment - self.woke))
            events = real(this, timeout)
            self.woke = time.monotonic_ns()
            return events

        selectors.EpollSelector.select = select  # type: ignore[method-assign, assignment]


def wrap(notes: Notes) -> None:
    """Put the notes into the product."""
    notes.around_select()
    notes.before(sidecar.Sidecar, "_receive", lambda *_: notes.delivered())
    notes.after(pipeline, "decode_raw", lambda *_: notes.note("decoded"))
    notes.before(Session, "release", lambda *_: notes.note("due"))
    notes.after(Session, "release", lambda *_: notes.note("released"))
    notes.after(pipeline, "encode_private", lambda *_: notes.note("encoded"))
    notes.before(sender.Outbox, "put", lambda *_: notes.note("posted"))
    notes.after(Carrier, "send", lambda this, data: notes.written(len(data)))
    gc.callbacks.append(notes.collected)


if __name__ == "__main__":
    notes = Notes()
    wrap(notes)
    atexit.register(
        lambda: Path(sys.argv[1]).write_text(
            json.dumps({"chunks": notes.chunks, "pauses": notes.pauses, "slow": notes.slow})
        )
    )
    main(sys.argv[2:])
