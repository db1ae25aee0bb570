"""A worker that is gone right after one of its effects, as by SIGKILL from outside at that moment.

    python -m tests.rigs.dying POINT CALLS shard --config FILE --partition N

`POINTS` are the effects in their order. The process ends when its effect was carried out `CALLS` times.
"""

import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from eyestream.cli.main import main
from eyestream.core.release.stream import StreamRelease
from eyestream.rim.ledger.ledger import Ledger
from eyestream_fleet.nats.log import NatsLog
from eyestream_fleet.outbox import DurableOutbox
from eyestream_fleet.worker import ShardWorker

__all__ = ["POINTS"]

POINTS: dict[str, tuple[type, str]] = {
    "reserve": (Ledger, "reserve"),
    "compute": (StreamRelease, "answer"),
    "outbox": (DurableOutbox, "append"),
    "second-place": (ShardWorker, "_remember"),
    "publish": (NatsLog, "publish"),
    "mark": (DurableOutbox, "acknowledge"),
}


def _counted(effect: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """The same effect, after which the process is gone at the last call; one that was given nothing does not count."""
    left = [calls]

    def count(given: tuple[Any, ...]) -> None:
        left[0] -= all(given)
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    @functools.wraps(effect)
    async def awaited(self: object, *given: object) -> object:
        done = await effect(self, *given)
        count(given)
        return done

    @functools.wraps(effect)
    def called(self: object, *given: object) -> object:
        done = effect(self, *given)
        count(given)
        return done

    return awaited if inspect.iscoroutinefunction(effect) else called


if __name__ == "__main__":
    point, calls, *command = sys.argv[1:]
    kind, name = POINTS[point]
    setattr(kind, name, _counted(getattr(kind, name), int(calls)))
    main(command)
