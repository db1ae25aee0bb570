"""What the page is sent, as JSON: nothing but what an application has received, and what it counts itself."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from eyestream.rim.sdk.chunk import Chunk
from eyestream.wire.messages import Budget, Meta, Status

__all__ = ["State", "chunk_frame", "described", "sidecar_frame", "state_frame"]

_DIGITS = 5
"""Significant digits of a value on the page."""


@dataclass(frozen=True, slots=True)
class State:
    """How a stream is, besides its chunks.

    Attributes
    ----------
    connected : whether the link to the broker stands.
    status : the sidecar's last word.
    budget : what is left.
    refusals : messages that could not be read, by reason.
    missing : chunks of a session that did not come.
    dropped : chunks that came faster than the page took them.
    silent : whether chunks are overdue.
    """

    connected: bool
    status: Status | None
    budget: Budget | None
    refusals: Mapping[str, int]
    missing: int
    dropped: int
    silent: bool


def described(place: str, meta: Meta) -> str:
    """What a stream is."""
    text = {name: getattr(meta, name) for name in ("names", "units", "rate_hz", "n", "mechanism", "epsilon", "delta")}
    return _frame("stream", place, **text, noise_sd=_rounded(meta.noise_sd.tolist()), guarantee=meta.guarantee)


def chunk_frame(place: str, chunk: Chunk, came: float) -> str:
    """A chunk that came at `came`, in seconds since 1970; the session as text, because JavaScript rounds it."""
    return _frame(
        "chunk",
        place,
        session=str(chunk.session),
        index=chunk.index,
        came=came,
        t=[float(chunk.t[0]), float(chunk.t[1] - chunk.t[0]) if len(chunk.t) > 1 else 0.0],
        values=[_rounded(feature.tolist()) for feature in chunk.values],
        epsilon=chunk.epsilon,
        latency_s=round(chunk.latency_s, 4),
        age_s=round(chunk.age_s, 3),
        error_s=round(chunk.when_error_s, 4),
    )


def state_frame(place: str, state: State, meta: Meta | None) -> str:
    """How a stream is; what is left in seconds where its chunks have a length."""
    left = None
    if state.budget is not None and meta is not None:
        resumes = None if state.budget.resumes_at is msgspec.UNSET else state.budget.resumes_at
        seconds = state.budget.chunks * meta.n / meta.rate_hz
        left = {"chunks": state.budget.chunks, "seconds": seconds, "ceiling": state.budget.ceiling, "resumes": resumes}
    return _frame(
        "state",
        place,
        connected=state.connected,
        status=None if state.status is None else [state.status.state, state.status.reason],
        left=left,
        refusals=dict(sorted(state.refusals.items())),
        missing=state.missing,
        dropped=state.dropped,
        silent=state.silent,
    )


def sidecar_frame(name: str, status: Status | None) -> str:
    """How a sidecar itself is."""
    return _frame("sidecar", name, status=None if status is None else [status.state, status.reason])


def _frame(kind: str, place: str, **more: object) -> str:
    return json.dumps({"kind": kind, "id": place, **more}, separators=(",", ":"), allow_nan=False)


def _rounded(values: list[float]) -> list[float | None]:
    """Numbers to some digits; what is no number is missing."""
    return [float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None for value in values]
