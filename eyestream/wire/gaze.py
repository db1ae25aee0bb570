"""`raw` of the stream ``gaze``: samples of a tracker, each with its time."""

from collections.abc import Container

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.wire.envelope import (
    FLOAT64,
    MAX_PAYLOAD_BYTES,
    U64,
    Envelope,
    Shape,
    from_bin,
    open_envelope,
    refuse,
    to_bin,
)
from eyestream.wire.raw import MAX_ROWS


class _GazeMessage(Envelope, frozen=True):
    schema: U64
    shape: Shape
    values: bytes
    t: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_GazeMessage)


def encode_gaze(t: NDArray[np.float64], values: NDArray[np.floating], schema: int) -> bytes:
    """Bytes of some samples.

    Parameters
    ----------
    t
        (m,) seconds of the tracker's clock.
    values
        (m, C): x, y and what else tracker and sidecar agreed on; rounded to float32.
    schema
        The number for which columns these are, in which units.

    Raises
    ------
    PayloadError
        ``shape``, ``length`` or ``oversize``.
    """
    shape, data = to_bin(values)
    if shape[0] > MAX_ROWS:
        raise refuse("shape")
    times = np.asarray(t, FLOAT64)
    if times.shape != shape[:1]:
        raise refuse("length")
    payload = _encoder.encode(_GazeMessage(int(schema), shape, data, times.tobytes()))
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise refuse("oversize")
    return payload


def decode_gaze(
    payload: bytes | bytearray | memoryview, columns: Container[int], schema: int
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Times (m,) and values (m, C) of samples; neither is looked at: a time that is not finite is that of a sample
    which cannot be placed, and the front end drops it.

    Parameters
    ----------
    payload
        At most `MAX_PAYLOAD_BYTES`; what is longer is refused before anything is decoded.
    columns
        Which C may be.
    schema
        The configured schema number.

    Raises
    ------
    PayloadError
        With one of `REASONS`.
    """
    message = open_envelope(payload, _decoder)
    if message.schema != schema:
        raise refuse("schema")
    values = from_bin(message.shape, message.values)
    if values.shape[1] not in columns or len(values) > MAX_ROWS:
        raise refuse("shape")
    if len(message.t) != len(values) * FLOAT64.itemsize:
        raise refuse("length")
    return np.frombuffer(message.t, FLOAT64), values
