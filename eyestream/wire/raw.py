"""`raw`: rows of a tracker."""

import hashlib
from functools import cache
from typing import Annotated

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from eyestream.wire.envelope import (
    FLOAT32,
    FLOAT64,
    MAX_PAYLOAD_BYTES,
    MAX_U64,
    U64,
    Envelope,
    Shape,
    documented,
    from_bin,
    open_envelope,
    refuse,
    to_bin,
)

MAX_ROWS = 4096
"""Most rows in one `raw` message."""

MAX_WEARER = 2**32 - 1
"""The largest handle of a wearer."""

ROWS = "rows"
"""Name of the user property of MQTT 5 that a `raw` message may carry: the hash of what its rows are."""

_OVERHEAD_BYTES = 128  # keys and numbers of the message, at their widest


class RawRows(msgspec.Struct, frozen=True, eq=False):
    """Some consecutive rows of a tracker's session.

    Attributes
    ----------
    session
        u64, strictly increasing over the sessions of a device.
    seq
        u64, number of the first row. The tracker numbers sampling instants: a row that was never sent has one too.
    rows
        (m, F), m >= 0, read-only; a value that is not finite is a missing one.
    end
        Whether the session ends after these rows.
    t
        (m,) seconds of the tracker's clock at each row, finite; None where the tracker does not tell them.
    wearer
        u32, a handle of who wears the device, the same through a session; 0: not known.
    due
        When the clock of this process made them, on its event loop's clock; None: somebody else sent them.
    """

    session: int
    seq: int
    rows: NDArray[np.floating]
    end: bool = False
    t: NDArray[np.float64] | None = None
    wearer: int = 0
    due: float | None = None


class _Raw(Envelope, frozen=True):
    schema: U64
    session: U64
    seq: U64
    shape: Shape
    values: bytes
    end: bool | UnsetType = UNSET
    t: bytes | UnsetType = UNSET
    wearer: Annotated[int, documented(minimum=0, maximum=MAX_WEARER)] | UnsetType = UNSET


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Raw)


@cache
def rows_hash(names: tuple[str, ...], units: tuple[str, ...], rate_hz: float) -> str:
    """Hash of what rows are: 32 hexadecimal digits, the beginning of a SHA-256.

    It is that of a text in UTF-8: a line for each name, an empty line, a line for each unit (none where the tracker
    does not tell units), an empty line, and the rate as C's ``%.3g`` writes it, for a rate that
    was measured is not exact. A newline stands between lines, and none after the last one.
    """
    text = "\n".join((*names, "", *units, "", f"{rate_hz:.3g}"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def rows_per_message(features: int) -> int:
    """Most rows of `features` values that one message without times can carry; 0 where not even one fits."""
    return min(MAX_ROWS, (MAX_PAYLOAD_BYTES - _OVERHEAD_BYTES) // (features * FLOAT32.itemsize))


def encode_raw(
    session: int,
    seq: int,
    rows: NDArray[np.floating],
    schema: int,
    end: bool = False,
    *,
    t: NDArray[np.float64] | None = None,
    wearer: int = 0,
) -> bytes:
    """Bytes of some consecutive rows.

    Parameters
    ----------
    session, seq, wearer
        As in `RawRows`.
    rows
        (m, F), at most `rows_per_message(F)` of them; rounded to float32, where what is too large becomes infinite,
        which means missing.
    schema
        The number that tracker and sidecar agreed on for names, units and order of the features.
    end
        Whether the session ends here; m may be 0 then.
    t
        (m,) seconds of the tracker's clock at each row; None: not told.

    Raises
    ------
    PayloadError
        ``shape``, ``length``, ``range`` or ``oversize``.
    """
    shape, values = to_bin(rows)
    _check_numbering(session, seq, shape[0], wearer)
    times: bytes | UnsetType = UNSET
    if t is not None:
        times = np.asarray(t, FLOAT64).tobytes()
        _times(times, shape[0])
    message = _Raw(int(schema), int(session), int(seq), shape, values, end or UNSET, times, int(wearer) or UNSET)
    payload = _encoder.encode(message)
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise refuse("oversize")
    return payload


def decode_raw(payload: bytes | bytearray | memoryview, features: int, schema: int) -> RawRows:
    """Rows out of a `raw` payload; the values are not looked at.

    Parameters
    ----------
    payload
        At most `MAX_PAYLOAD_BYTES`; what is longer is refused before anything is decoded.
    features
        F of the configured stream.
    schema
        The configured schema number.

    Raises
    ------
    PayloadError
        With one of `REASONS`. Non-finite values are no reason: they are missing ones.
    """
    message = open_envelope(payload, _decoder)
    if message.schema != schema:
        raise refuse("schema")
    rows = from_bin(message.shape, message.values)
    if rows.shape[1] != features:
        raise refuse("shape")
    wearer = 0 if isinstance(message.wearer, UnsetType) else message.wearer
    _check_numbering(message.session, message.seq, rows.shape[0], wearer)
    t = None if isinstance(message.t, UnsetType) else _times(message.t, len(rows))
    return RawRows(message.session, message.seq, rows, message.end is True, t, wearer)


def _times(data: bytes, m: int) -> NDArray[np.float64]:
    """(m,) the times in `data`, each finite."""
    if len(data) != m * FLOAT64.itemsize:
        raise refuse("length")
    t = np.frombuffer(data, FLOAT64)
    if not np.isfinite(t).all():
        raise refuse("range")
    return t


def _check_numbering(session: int, seq: int, m: int, wearer: int) -> None:
    """Row numbers never wrap: also the one that follows the last row fits."""
    if m > MAX_ROWS:
        raise refuse("shape")
    if not (0 <= session <= MAX_U64 and 0 <= seq <= MAX_U64 - m and 0 <= wearer <= MAX_WEARER):
        raise refuse("range")
