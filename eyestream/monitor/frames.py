"""Frames for the page, as JSON: nothing but what an application has received, and what it counts itself."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from eyestream.errors import PayloadError
from eyestream.monitor.headline import HeadlineFacts, headline
from eyestream.sdk.chunk import Chunk
from eyestream.wire.release import Meta
from eyestream.wire.status import Budget

MOST_FEATURES = 1024
"""Features of a stream that are shown at most: each is a button and a picture."""

MOST_FRAME_BYTES = 2 * 1024 * 1024
"""Bytes of one frame at most; a chunk of 52 features and 64 rows has 30,000."""

LAST_MOMENT = 253_402_300_799
"""The last second of the year 9999, in seconds since 1970: the calendar of a browser has few more."""

_DIGITS = 5
"""Significant digits of a value on the page."""


@dataclass(frozen=True, slots=True)
class State:
    """How a stream is, besides its chunks.

    Attributes
    ----------
    facts : what its headline is made of.
    budget : what is left.
    refusals : messages that could not be read, by reason.
    missing : chunks of a session that did not come.
    dropped : chunks that came faster than the page took them.
    """

    facts: HeadlineFacts
    budget: Budget | None
    refusals: Mapping[str, int]
    missing: int
    dropped: int


def described(place: str, meta: Meta) -> str:
    """Frame that describes a stream. Raises PayloadError for one that cannot be shown."""
    if len(meta.names) > MOST_FEATURES:
        raise PayloadError("oversize")
    text = {name: getattr(meta, name) for name in ("names", "units", "rate_hz", "n", "mechanism", "epsilon", "delta")}
    return _frame("stream", place, **text, noise_sd=_rounded(meta.noise_sd.tolist()), guarantee=meta.guarantee)


def chunk_frame(place: str, chunk: Chunk, came: float) -> str:
    """A chunk that came at `came`, in seconds since 1970; the session as text, because JavaScript rounds it.

    Raises PayloadError for one that cannot be shown.
    """
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
        oldest_gaze_s=None if chunk.oldest_gaze_s is None else round(chunk.oldest_gaze_s, 3),
        error_s=round(chunk.when_error_s, 4),
    )


def state_frame(place: str, state: State, meta: Meta | None) -> str:
    """How a stream is; what is left in seconds where its chunks have a length."""
    left = None
    if state.budget is not None and meta is not None:
        resumes = None if state.budget.resumes_at is msgspec.UNSET else min(state.budget.resumes_at, LAST_MOMENT)
        seconds = state.budget.chunks * meta.n / meta.rate_hz
        left = {"chunks": state.budget.chunks, "seconds": seconds, "ceiling": state.budget.ceiling, "resumes": resumes}
    line, status = headline(state.facts), state.facts.status
    return _frame(
        "state",
        place,
        headline=[line.words, line.bad],
        connected=state.facts.connected,
        status=None if status is None else [status.state, status.reason],
        left=left,
        refusals=dict(sorted(state.refusals.items())),
        missing=state.missing,
        dropped=state.dropped,
    )


def _frame(kind: str, place: str, **more: object) -> str:
    try:
        frame = json.dumps({"kind": kind, "id": place, **more}, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a number that JSON has no word for
        raise PayloadError("range") from None
    if len(frame) > MOST_FRAME_BYTES:
        raise PayloadError("oversize")
    return frame


def _rounded(values: list[float]) -> list[float | None]:
    """Numbers to some digits; what is no number is missing.

    >>> _rounded([1.23456789, float("nan")])
    [1.2346, None]
    """
    return [float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None for value in values]
