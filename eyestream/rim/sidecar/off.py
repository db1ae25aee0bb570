"""Off means off: the wearer's no, which holds from the instant at which it is heard and outlives any crash.

A *mark* is a file beside the ledger. While it is there and does not say `resumed`, nothing is taken, reserved or
released. `Off` holds to this order, so that an answer is never more than what a crash right after it leaves:

====== ====================================================================================================
step   what is done
====== ====================================================================================================
pause  1. in the same turn of the loop: all that is not released is lost, and nothing is taken from here on
       2. the mark is durable
       3. what was being asked of the ledger has been answered, for nothing
       4. the indicator is off
       5. the answer
resume 1. `resumed` is durable in the mark
       2. the indicator is on
       3. unless somebody has asked for a pause meanwhile: rows are taken again, and gaze that is seen from here on
       4. the answer
start  1. the ledger is held, and then the mark is looked for
       2. without a mark, or where it says `resumed`: the indicator is on, and then rows are taken
====== ====================================================================================================

Rows that a tracker made may describe gaze of the pause. They are passed over for as long, after a resume and, where the
mark says `resumed`, after each start: the life before may have ended a moment after it wrote that.

A step that fails leaves it off. After a crash between the first two steps of a pause, which nobody was answered, the
next start is not paused.

**What has left cannot be taken back.** A chunk that was handed to the connection before step 1 may still be on its
way. All else that was released and has not left is dropped: chunks that wait for their moment or for the link, and
those that a new link would repeat. What was reserved stays spent, as after a crash.
"""

import asyncio
import logging
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import put

_LOG = logging.getLogger("eyestream.sidecar")

_RESUMED = b"resumed\n"


def mark_beside(ledger: Path) -> Path:
    """The mark of the ledger's sidecar."""
    return ledger.with_name(f"{ledger.name}.paused")


def pause_of(ledger: Path) -> Literal["paused", "resumed"] | None:
    """What the mark says, None: there is none. Anything else at its place is a pause. Raises LedgerError: not known."""
    mark = mark_beside(ledger)
    try:
        is_file = stat.S_ISREG(mark.lstat().st_mode)
        return "resumed" if is_file and mark.read_bytes() == _RESUMED else "paused"
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(f"{mark}: cannot be read: {error.strerror}") from None


def is_paused(ledger: Path) -> bool:
    """Whether nothing may be released. Raises LedgerError where that cannot be known."""
    return pause_of(ledger) == "paused"


def remember_pause(ledger: Path) -> None:
    """Set the mark, durably. Raises LedgerError."""
    put(mark_beside(ledger), b"paused\n")


def forget_pause(ledger: Path) -> None:
    """Let the mark, if there is one, say that the pause is over, durably. Raises LedgerError: it may say so, or not."""
    if pause_of(ledger) is not None:
        put(mark_beside(ledger), _RESUMED)


class Off:
    """The switch of a sidecar.

    Parameters
    ----------
    ledger
        The ledger beside which the mark stands; None: nothing is remembered.
    halt
        Step 1 of a pause, at once. Called again while it is off, it does nothing more.
    come_round
        Returns when what was being asked of the ledger has been answered.
    go
        Rows are taken again.
    """

    def __init__(
        self,
        ledger: Path | None,
        *,
        halt: Callable[[], None],
        come_round: Callable[[], Awaitable[None]],
        go: Callable[[], None],
    ) -> None:
        self._ledger, self._halt, self._come_round, self._go = ledger, halt, come_round, go
        self._turn = asyncio.Lock()
        self._pausing = 0
        self.show: Callable[[bool], Awaitable[bool]] = _show_nobody
        """Shows the wearer whether releases may flow; gives whether that is shown."""

    async def begin(self, *, paused: bool) -> None:
        """Before the first row is taken: show what holds. Where that fails, it is off until `resume`."""
        async with self._turn:
            if not await self.show(not paused) and not paused:
                self._halt()

    async def end(self) -> None:
        """After the last release."""
        async with self._turn:
            await self.show(False)

    async def pause(self) -> None:
        """Off, from this instant on. Raises LedgerError: it is off, and the next start may not be."""
        self._pausing += 1
        try:
            self._halt()
            async with self._turn:
                if self._ledger is not None:
                    await asyncio.to_thread(remember_pause, self._ledger)
                await self._come_round()
                await self.show(False)
        finally:
            self._pausing -= 1
        _LOG.warning("paused: nothing is released until `eyestream resume`")

    async def resume(self) -> bool:
        """On again; False: it stays off, because the indicator fails or a pause was asked for. Raises LedgerError."""
        async with self._turn:
            if self._pausing:
                return False
            if self._ledger is not None:
                await asyncio.to_thread(forget_pause, self._ledger)
            if not await self.show(True):
                self._halt()
                return False
            if self._pausing:  # it waits for its turn, and sets the mark again
                return False
            self._go()
        _LOG.warning("resumed: releases go on")
        return True


async def _show_nobody(on: bool) -> bool:
    return True
