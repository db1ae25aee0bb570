"""Released gaze to the page that the layer shows: an application like any other, which sees nothing raw."""

import asyncio
import contextlib
import mmap
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings
from eyestream.sdk.chunk import Chunk
from eyestream.sdk.subscriber import subscribe
from eyestream_openxr.place import PAGE
from eyestream_openxr.wire import PAGE_BYTES, Page

HOLD_S = 1.8
"""How long a tile is shown when no other one follows. One comes each second, so the sidecar is gone by then."""

BEAT_S = 0.25
SLOT_S = 1.0
LIKELY_LOST = 0.5
_TURN = slice(8, 12)


class PageFile:
    """The page, written so that a reader never takes half of one.

    Raises
    ------
    ConfigError
        It cannot be made, or is no file of ours.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            file = os.open(path, flags, 0o644)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be made: {error.strerror}") from None
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise ConfigError(f"{path}: expected a file of user {os.geteuid()}")
            os.fchmod(file, 0o644)
            os.ftruncate(file, mmap.PAGESIZE)
            self._map = mmap.mmap(file, mmap.PAGESIZE)
        finally:
            os.close(file)
        self._turn = int.from_bytes(self._map[_TURN], "little") & ~1

    def write(self, page: Page) -> None:
        """Write the page under the next turn."""
        self._turn = (self._turn + 2) & 0xFFFFFFFF
        said = page.packed(self._turn)
        self._map[_TURN] = (self._turn - 1 & 0xFFFFFFFF).to_bytes(4, "little")
        self._map[12:PAGE_BYTES] = said[12:]
        self._map[:8] = said[:8]
        self._map[_TURN] = said[_TURN]

    def close(self) -> None:
        """Say that the bridge has ended, and let go."""
        self.write(Page(0))
        self._map.close()


def page_of(chunk: Chunk, now_ns: int, hold_s: float = HOLD_S) -> Page:
    """What to show of the last slot of a chunk, from `now_ns` of the monotonic clock on; of a lost eye nothing.

    Raises
    ------
    ConfigError
        The stream is not of gaze, or its tracker's clock is not this machine's.
    """
    if chunk.at is None:
        raise ConfigError("the tracker of this stream does not tell its time: a page needs that of its slots")
    x_deg, y_deg = (float(value) for value in chunk.gaze[-1])
    middle_ns = int(1e9 * (float(chunk.times[-1]) - SLOT_S / 2))
    if not 0 <= now_ns - middle_ns < 60_000_000_000:
        raise ConfigError(
            "the slots of this stream are not of this machine's monotonic clock: its source is no kind = 'openxr' here"
        )
    if chunk.feature("lost")[-1] > LIKELY_LOST:
        return Page(now_ns)
    return Page(now_ns, now_ns + int(1e9 * hold_s), middle_ns, x_deg, y_deg)


@contextmanager
def _opened(path: Path) -> Iterator[PageFile]:
    with contextlib.closing(PageFile(path)) as file:
        yield file


async def bridging(broker: BrokerSettings, device: str, stream: str, folder: Path, *, wait_s: float = 5.0) -> None:
    """Show the released gaze of a device, until it is cancelled.

    Raises
    ------
    ConfigError
        The page cannot be made, or the stream is no gaze of this machine.
    LinkError
        The broker cannot be reached within `wait_s`.
    """
    async with subscribe(broker, device, stream=stream, wait_s=wait_s) as chunks:
        with _opened(folder / PAGE) as file:
            latest = Page(0)

            async def beat() -> None:
                while True:
                    file.write(latest._replace(beat_ns=time.monotonic_ns()))
                    await asyncio.sleep(BEAT_S)

            beating = asyncio.create_task(beat(), name="beat of the page")
            try:
                async for chunk in chunks:
                    latest = page_of(chunk, time.monotonic_ns())
                    file.write(latest)
            finally:
                beating.cancel()
