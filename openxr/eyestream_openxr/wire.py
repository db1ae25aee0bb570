"""What crosses between the layer, the sidecar and the bridge: `layer/wire.h` in Python. Times are CLOCK_MONOTONIC."""

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import PayloadError

VERSION = 1
MOST_SAMPLES = 32

SAMPLE = np.dtype([("t_ns", "<i8"), ("x_deg", "<f4"), ("y_deg", "<f4")])
"""One sample: when the eye was seen, and where it looked against the head, to the right and up; NaN: not seen."""

_SAMPLES = struct.Struct("<IHH")
_SAMPLES_MAGIC, _PAGE_MAGIC = 0x47585945, 0x50585945
_PAGE = struct.Struct("<IIIIqqqffII")
PAGE_BYTES = _PAGE.size


def packed(table: NDArray[np.void]) -> bytes:
    """A message of samples (m,) of type `SAMPLE`, as the layer sends it."""
    return _SAMPLES.pack(_SAMPLES_MAGIC, VERSION, len(table)) + table.astype(SAMPLE).tobytes()


def samples(message: bytes) -> NDArray[np.void]:
    """Read the samples (m,) of a message, 1 <= m <= `MOST_SAMPLES`.

    Raises
    ------
    PayloadError
        It is no message of this version, or has another length than it says.
    """
    if len(message) < _SAMPLES.size:
        raise PayloadError(f"{len(message)} bytes: shorter than the {_SAMPLES.size} of a header")
    magic, version, count = _SAMPLES.unpack_from(message)
    if magic != _SAMPLES_MAGIC or version != VERSION:
        raise PayloadError(f"magic {magic:#x}, version {version}: not {_SAMPLES_MAGIC:#x}, version {VERSION}")
    if not 1 <= count <= MOST_SAMPLES or len(message) != _SAMPLES.size + count * SAMPLE.itemsize:
        raise PayloadError(
            f"{count} samples in {len(message)} bytes: 1 to {MOST_SAMPLES}, {SAMPLE.itemsize} bytes each"
        )
    return np.frombuffer(message, SAMPLE, offset=_SAMPLES.size)


class Page(NamedTuple):
    """What the bridge's page says.

    Attributes
    ----------
    beat_ns : when the bridge was last alive; 0: it has ended.
    until_ns : until when the gaze may be shown; 0: there is none.
    gaze_ns : the middle of its slot.
    x_deg, y_deg : the released gaze.
    """

    beat_ns: int
    until_ns: int = 0
    gaze_ns: int = 0
    x_deg: float = 0.0
    y_deg: float = 0.0

    def packed(self, turn: int) -> bytes:
        """The page under a turn: odd while it is written, even when it can be read."""
        shown = int(self.until_ns > 0)
        return _PAGE.pack(_PAGE_MAGIC, VERSION, turn, shown, *self, turn, 0)


def read_page(said: bytes) -> Page | None:
    """Read a page; None: it is no page of this version, or is being written."""
    if len(said) < PAGE_BYTES:
        return None
    magic, version, turn, shown, *fields, again, _ = _PAGE.unpack_from(said)
    if (magic, version, turn % 2, again) != (_PAGE_MAGIC, VERSION, 0, turn):
        return None
    page = Page(*fields)
    return page if shown else page._replace(until_ns=0)
