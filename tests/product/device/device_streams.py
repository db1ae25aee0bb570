"""What the tests of a device share: settings, rows whose values say which row they are, chunks that can be compared."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from eyestream.core.chunking.chunks import DueChunk
from eyestream.core.chunking.device import Device
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.wire.raw import RawRows

SESSION = 5


def settings(**changes: Any) -> DeviceSettings:
    """4 rows a chunk, 2 rows a second, 3 features."""
    fine = {"id": "d1", "stream": "features", "schema": 1, "names": ("a", "b", "c"), "rate_hz": 2.0, "n": 4}
    return DeviceSettings(**{**fine, "grace_s": 0.5, "idle_s": 30.0, "jump_chunks": 3, **changes})


def message(
    seq: int,
    m: int = 1,
    session: int = SESSION,
    *,
    end: bool = False,
    features: int = 3,
    mark: float = 0.0,
    wearer: int = 0,
) -> RawRows:
    """Rows `seq` to `seq + m - 1`; feature f of row i holds i + mark + 1000 f."""
    rows = np.arange(m)[:, None] + seq % 2**20 + mark + 1000.0 * np.arange(features)[None, :]
    return RawRows(session, seq, rows.astype(np.float32), end, wearer=wearer)


def columns(chunk: DueChunk) -> list[float | None]:
    """The first feature: which rows the chunk holds; None for a missing one."""
    return [None if np.isnan(value) else float(value) for value in chunk.values[0]]


def seen(chunks: Iterable[DueChunk]) -> list[tuple[Any, ...]]:
    """Everything that a chunk says, to be compared."""
    return [
        (
            c.span,
            c.t0,
            c.ends_session,
            c.values.shape,
            c.values.tobytes(),
        )
        for c in chunks
    ]


def balanced(device: Device) -> bool:
    """The conservation law of the counters."""
    c = device.counters
    return c.rows == c.accepted + c.duplicate + c.late + c.refused + c.stale_session + c.jump + c.wearer
