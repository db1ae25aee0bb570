"""Envelope of every payload: a size, a msgpack map, the version in front, known keys, each once.

Everything here runs on bytes of a stranger. The answer is a typed message or a `PayloadError` with one word of
`REASONS`; nothing of the payload enters the error or its chain of causes.

What msgspec lets pass and this module does not: a key that occurs twice (the last would win) is found by comparing the
number of entries that the map declares with the number of keys that the message has, which costs next to nothing. A
canonical form is *not* asked for: integers may be written wide and keys after ``v`` in any order, as some encoders do.
"""

from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.errors import PayloadError

VERSION = 1
MAX_PAYLOAD_BYTES = 65_536
"""Cap on `raw`, `status` and `budget`, checked before a byte is decoded (msgpack can grow 73 times in memory)."""
MAX_RELEASE_BYTES = 4 * 1024 * 1024
"""Cap on `private` and `meta`, which a subscriber decodes."""
MOST_NESTED = 100
"""Containers in each other, the map of the message among them; no message of ours has more than three."""
MOST_WALKED = 2_000
"""Values that are looked at for the depth of a payload that is no message of ours: a stranger must not hold us up."""
MAX_U64 = 2**64 - 1


def documented(**keywords: Any) -> msgspec.Meta:
    """Keywords of JSON Schema for a field, for those who write a reader; nothing is refused by them.

    What is refused is in the decoders: msgspec's own limits would all be refused as ``type``.
    """
    return msgspec.Meta(extra_json_schema=keywords)


U64 = Annotated[int, documented(minimum=0, maximum=MAX_U64)]

REASONS = frozenset(
    {
        "oversize",  # more bytes than the cap of its kind
        "not_msgpack",  # empty, cut short, followed by more bytes, a reserved byte, text that is not UTF-8
        "not_a_map",  # something else than a map
        "version",  # the first key is not `v`, or its value is not the integer 1
        "nesting",  # more than MOST_NESTED containers in each other, or too many values to tell
        "duplicate_key",  # a key occurs twice
        "missing_key",
        "unknown_key",
        "type",  # a key or a value has another type than the format says
        "schema",  # another schema number than the one configured
        "shape",  # not two dimensions, another number of features, too many rows
        "length",  # the bytes of an array are not those of its shape
        "range",  # a number outside what the format allows
        "topic",  # an address that is none of ours
    }
)
"""Every reason for which a payload or its topic is refused; counted by name, so the words are part of the interface."""

_VERSION_KEY = b"\xa1v"
# The integer 1 in each of the ways that msgpack can write it: some encoders keep the width of the variable.
_VERSION_ONE = tuple(
    _VERSION_KEY + code + VERSION.to_bytes(width, "big")
    for code, width in [
        (b"", 1),
        *((bytes([0xCC + i]), 2**i) for i in range(4)),
        *((bytes([0xD0 + i]), 2**i) for i in range(4)),
    ]
)
_BROKEN = (ValueError, OverflowError, RecursionError)
_FIELDS = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])

# Codes of msgpack, by https://github.com/msgpack/msgpack/blob/master/spec.md: of those with a size of their own, its
# width and what follows beside it; of the others, the bytes that follow.
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
_FOLLOW = dict(zip(range(0xCA, 0xD9), (4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 3, 5, 9, 17), strict=True))
_SCALARS = bytes({*range(256)} - {*range(0x80, 0xA0), *range(0xDC, 0xE0)})


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="v", tag=VERSION):
    """Base of the typed maps: `v` is written first, unknown keys are refused; an UNSET field is left out."""


M = TypeVar("M", bound=Envelope)


def refuse(reason: str) -> PayloadError:
    """The error for one of the `REASONS`; to be raised by the caller.

    Raises
    ------
    KeyError
        The word is not in the list: a fault of ours.
    """
    if reason not in REASONS:
        raise KeyError(reason)
    return PayloadError(reason)


def open_envelope(
    payload: bytes | bytearray | memoryview, decoder: msgspec.msgpack.Decoder[M], limit: int = MAX_PAYLOAD_BYTES
) -> M:
    """The typed map in `payload`.

    The order of the questions is fixed: size, map, version, depth, structure, keys, types. So a payload of a later
    version is told ``version`` whatever else it holds.

    Parameters
    ----------
    payload
        What came off the wire.
    decoder
        A kind of `Envelope`; its field types are enforced without conversion between text, numbers and truth values
        (an integer is taken where a float is expected).
    limit
        Most bytes that are looked at.

    Raises
    ------
    PayloadError
        With the first question that failed.
    """
    size = payload.nbytes if isinstance(payload, memoryview) else len(payload)
    if size > limit:
        raise refuse("oversize")
    data = bytes(payload)
    entries, offset = _map_header(data)
    if not entries:
        raise refuse("missing_key")
    if not data.startswith(_VERSION_ONE, offset):
        raise refuse("version")
    try:
        message = decoder.decode(data)  # as deep as its types: it stops before what is none of them
    except msgspec.ValidationError:
        reason = "nesting" if _is_deep(data) else _complaint(data, entries, decoder.type)
    except _BROKEN:
        reason = "nesting" if _is_deep(data) else "not_msgpack"
    else:
        if entries == _entries(message):
            return message
        reason = "duplicate_key"
    raise refuse(reason)  # outside the handler: the library's words, which quote values, do not hang on


def _map_header(data: bytes) -> tuple[int, int]:
    """Declared number of entries and the offset of the first one."""
    if not data or data[0] == 0xC1:
        raise refuse("not_msgpack")
    if data[0] & 0xF0 == 0x80:
        return data[0] & 0x0F, 1
    if data[0] not in (0xDE, 0xDF):
        raise refuse("not_a_map")
    offset = 3 if data[0] == 0xDE else 5
    if len(data) < offset:
        raise refuse("not_msgpack")
    return int.from_bytes(data[1:offset], "big"), offset


def _is_deep(data: bytes) -> bool:
    """Whether more than `MOST_NESTED` containers stand in each other, before the first byte that is none of msgpack.

    msgspec calls itself for each level. How many of them fit depends on the interpreter and on the thread's stack (128
    KiB with musl), and where they do not fit the process dies. So levels are counted without a call. That takes a
    quarter of a microsecond for each value, and would stop the loop for 16 ms. So what goes on after `MOST_WALKED`
    values is taken for deep.
    """
    if len(data.translate(None, _SCALARS)) <= MOST_NESTED:
        return False
    at, left, around = 0, 1, list[int]()
    for _ in range(MOST_WALKED):
        if at >= len(data):
            return False
        code, at, left = data[at], at + 1, left - 1
        if code in _SIZED:
            width, beside = _SIZED[code]
            at += width + beside + int.from_bytes(data[at : at + width], "big")
        elif 0xA0 <= code < 0xC0:
            at += code & 0x1F
        elif 0x80 <= code < 0xA0 or 0xDC <= code < 0xE0:
            width = 0 if code < 0xA0 else 4 if code & 1 else 2
            count = int.from_bytes(data[at : at + width], "big") if width else code & 0x0F
            around.append(left)
            at, left = at + width, count * (2 if code < 0x90 or code >= 0xDE else 1)
            if len(around) > MOST_NESTED and at <= len(data):
                return True
        elif code == 0xC1:
            return False
        else:
            at += _FOLLOW.get(code, 0)
        while not left:
            if not around:
                return False
            left = around.pop()
    return at < len(data)


def _entries(message: Envelope) -> int:
    """Entries of the map that `message` was read from, if no key occurred twice: `v` and the fields that are set."""
    absent = 0
    for name in _optional(type(message)):
        absent += getattr(message, name) is msgspec.UNSET
    return 1 + len(message.__struct_fields__) - absent


@cache
def _optional(kind: type[Envelope]) -> tuple[str, ...]:
    defaults = kind.__struct_defaults__
    return kind.__struct_fields__[len(kind.__struct_fields__) - len(defaults) :]


def _complaint(data: bytes, entries: int, kind: Any) -> str:
    """Why a payload that is no message of `kind` is none; off the hot path, values are stepped over, not built."""
    try:
        keys = _FIELDS.decode(data).keys()
    except msgspec.ValidationError:
        return "type"
    except _BROKEN:
        return "not_msgpack"
    fields = {"v", *kind.__struct_fields__}
    if entries != len(keys):
        return "duplicate_key"
    if not fields - set(_optional(kind)) <= keys:
        return "missing_key"
    return "type" if keys <= fields else "unknown_key"


FLOAT32 = np.dtype("<f4")
FLOAT64 = np.dtype("<f8")
Shape = Annotated[tuple[int, ...], documented(minItems=2, maxItems=2)]
"""Rows and columns of an array."""


def to_bin(array: NDArray[np.floating]) -> tuple[tuple[int, int], bytes]:
    """Shape and bytes of a two-dimensional array; what float32 cannot hold becomes infinite.

    Raises
    ------
    PayloadError
        ``shape``: not two dimensions, or no columns.
    """
    if array.ndim != 2 or array.shape[1] < 1:
        raise refuse("shape")
    rows, columns = array.shape
    if array.dtype != FLOAT32:
        with np.errstate(all="ignore"):
            array = array.astype(FLOAT32)
    return (rows, columns), array.tobytes()


def from_bin(shape: tuple[int, ...], values: bytes) -> NDArray[np.float32]:
    """The array that a payload declares, a read-only view of `values`.

    Raises
    ------
    PayloadError
        ``shape``: not two dimensions, no columns, or more than any payload could fill; ``length``: other bytes than the
        shape needs.
    """
    if len(shape) != 2 or shape[0] < 0 or not 1 <= shape[1] <= MAX_RELEASE_BYTES:  # numpy cannot hold 0 rows of 2^64
        raise refuse("shape")
    if len(values) != shape[0] * shape[1] * FLOAT32.itemsize:
        raise refuse("length")
    return np.frombuffer(values, FLOAT32).reshape(shape)
