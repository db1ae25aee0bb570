"""How a command that tidies up after itself ends at SIGTERM."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run_until_stopped"]

Result = TypeVar("Result")


def run_until_stopped(body: Coroutine[Any, Any, Result]) -> Result:
    """What `body` returns; SIGTERM cancels it, as Ctrl-C does, and exits with 143 when everything is tidied up.

    A handler that raised would break off the loop wherever it is: asyncio then cancels all tasks at once, the broker's
    in the middle of a connection too, and they complain.
    """

    async def cancellable() -> Result:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        signal.signal(signal.SIGTERM, lambda number, frame: loop.call_soon_threadsafe(task.cancel))
        return await body

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
