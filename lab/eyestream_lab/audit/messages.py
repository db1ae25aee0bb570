"""Messages between the audit and its child process: a JSON head with its length, then arrays as bytes.

The child runs code that is audited, so nothing that comes from it is unpickled.
"""

import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LENGTH = struct.Struct("<I")
_TYPES = {"<f8": 8, "<i8": 8}
_MOST_HEAD = 1 << 24


def encode(head: dict[str, Any], *arrays: NDArray[Any]) -> bytes:
    """One message."""
    shapes = [[array.dtype.str, list(array.shape)] for array in arrays]
    assert all(kind in _TYPES for kind, _ in shapes)
    text = json.dumps({"head": head, "arrays": shapes}).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *(np.ascontiguousarray(array).tobytes() for array in arrays)])


def read(exactly: Callable[[int], bytes]) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """The next message of a stream of which `exactly` reads so many bytes.

    Raises
    ------
    ValueError
        What came is not a message.
    """
    (size,) = _LENGTH.unpack(exactly(_LENGTH.size))
    if size > _MOST_HEAD:
        raise ValueError(f"a head of {size} bytes")
    message = json.loads(exactly(size))
    arrays = []
    for kind, shape in message["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(exactly(_TYPES[kind] * count), dtype=kind).reshape(shape))
    return message["head"], arrays
