"""Who wears each device, as the runtime says it on the control socket.

``wearer HANDLE`` names who wears the sidecar's device from now on, ``wearer HANDLE DEVICE`` that device's, ``wearer -``
that nobody is named any more. The answer is ``worn``. The order is such that a crash leaves the one before or the next:

1. in the same turn of the loop: the sessions of the device end, all of them that is not released is lost, and nothing
   more of the device is taken
2. who wears it is durable, in a file beside the ledger, as a number that does not tell the handle
3. what was being asked of the ledger has been answered, for nothing
4. rows are taken again, under the new number; the answer

A step that fails leaves the device between two wearers: nothing of it is released until the runtime has named one. The
one who wears the device already is no switch.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import put

_LOG = logging.getLogger("eyestream.sidecar")

NOBODY = "-"
"""In the place of a handle: nobody is named."""

_HANDLE = re.compile(r"[A-Za-z0-9._:-]{1,64}")


def worn_beside(ledger: Path) -> Path:
    """The file that says who wears the devices of the ledger's sidecar."""
    return ledger.with_name(f"{ledger.name}.worn")


def is_handle(text: str) -> bool:
    """Whether a runtime may name somebody so: up to 64 letters, digits and ``._:-``, and neither ``0`` nor ``-``."""
    return _HANDLE.fullmatch(text) is not None and text not in ("0", NOBODY)


class Wearing:
    """Who wears the devices of one sidecar.

    Parameters
    ----------
    ledger
        The ledger beside which it is remembered; None: it is not.
    devices
        All of the sidecar's.
    number
        The number of a handle, for a device.
    switch
        Step 1, for a device; what it returns belongs to `wear`.
    come_round
        Returns when what was being asked of the ledger has been answered.
    wear
        Step 4: the device, what `switch` returned, and the number.
    """

    def __init__(
        self,
        ledger: Path | None,
        devices: Collection[str],
        *,
        number: Callable[[str, str], int],
        switch: Callable[[str], int],
        come_round: Callable[[], Awaitable[None]],
        wear: Callable[[str, int, int], None],
    ) -> None:
        self._path = None if ledger is None else worn_beside(ledger)
        self._devices, self._number = devices, number
        self._switch, self._come_round, self._wear = switch, come_round, wear
        self._turn = asyncio.Lock()
        self._worn: dict[str, int] = {}
        self._wanted: dict[str, int] = {}

    def remembered(self) -> dict[str, int]:
        """Who wore the devices as the last life ended, by number. Raises LedgerError where that cannot be known."""
        if self._path is not None:
            self._worn = _read(self._path)
        self._wanted = dict(self._worn)
        return {device: wearer for device, wearer in self._worn.items() if device in self._devices}

    async def answer(self, rest: str) -> str:
        """Take the rest of a line after ``wearer``; returns the answer. Raises LedgerError: it was not remembered."""
        handle, _, named = rest.partition(" ")
        device = named or next(iter(self._devices))
        if not (is_handle(handle) or handle == NOBODY):
            _LOG.warning("control: a handle of a wearer was refused")
            return "no: expected a handle of 1 to 64 letters, digits and ._:- that is not 0, or - for nobody"
        if device not in self._devices or (not named and len(self._devices) > 1):
            _LOG.warning("control: a wearer of a device that is not known was refused")
            return "no: expected wearer HANDLE DEVICE, with a device of this sidecar"
        await self.put_on(device, 0 if handle == NOBODY else self._number(device, handle))
        return "worn"

    async def put_on(self, device: str, wearer: int) -> None:
        """Let `wearer`, a number or 0, wear `device`. Raises LedgerError: nobody does."""
        if self._wanted.get(device, 0) == wearer:
            async with self._turn:  # a switch to this one may be under way
                if self._worn.get(device, 0) == wearer:
                    return
        self._wanted[device] = wearer
        switch = self._switch(device)
        async with self._turn:
            worn = {**self._worn, device: wearer}
            if self._path is not None:
                await asyncio.to_thread(_write, self._path, worn)
            self._worn = worn
            await self._come_round()
            self._wear(device, switch, wearer)
        _LOG.info("%s: another wearer, and another session", device)


def _write(path: Path, worn: dict[str, int]) -> None:
    put(path, "".join(f"{device} {wearer}\n" for device, wearer in worn.items()).encode())


def _read(path: Path) -> dict[str, int]:
    try:
        *lines, rest = path.read_text(encoding="utf-8").split("\n")
        worn = {device: int(number) for device, number in (line.split(" ") for line in lines)}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        rest, worn = "not numbers", {}
    if rest or not all(0 <= wearer < 2**32 for wearer in worn.values()):  # one that is cut off would be another one
        raise LedgerError(f"{path}: is damaged; remove it, and let the runtime name who wears the devices")
    return worn
