"""Questions that an application may ask a gatekeeper, read from bytes that anybody may have sent."""

import math

import msgspec

from eyestream.errors import PayloadError

LARGEST_QUESTION = 512
"""Bytes."""

_WIDEST_DEG = 180.0
_MOST_TILES = 64


class Rectangle(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Degrees: from left to right, and from below upward."""

    left: float
    right: float
    bottom: float
    top: float

    def __post_init__(self) -> None:
        sides = (self.left, self.right, self.bottom, self.top)
        within = all(math.isfinite(side) and abs(side) <= _WIDEST_DEG for side in sides)
        if not (within and self.left < self.right and self.bottom < self.top):
            raise ValueError("a rectangle needs left < right and bottom < top, within 180 degrees")

    def holds(self, x_deg: float, y_deg: float) -> bool:
        """Whether a direction lies inside; the right and the upper side do not belong to it."""
        return self.left <= x_deg < self.right and self.bottom <= y_deg < self.top


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="ask"):
    """Attributes: `last_s`, of the last so many seconds."""


class FixationsWithin(_Question, frozen=True, tag="fixations"):
    """Which looks were inside, in the last so many seconds."""

    within: Rectangle
    last_s: float


class DwellTime(_Question, frozen=True, tag="dwell"):
    """For how long the eye was inside, in the last so many seconds."""

    within: Rectangle
    last_s: float


class Saccades(_Question, frozen=True, tag="saccades"):
    """How often the eye moved into it from outside, in the last so many seconds."""

    within: Rectangle
    last_s: float


class NextTile(_Question, frozen=True, tag="next tile"):
    """Which tile of a video to stream next: the video fills `within`, and has so many tiles."""

    within: Rectangle
    across: int
    upright: int

    def __post_init__(self) -> None:
        if not (1 <= self.across <= _MOST_TILES and 1 <= self.upright <= _MOST_TILES):
            raise ValueError("a video has 1 to 64 tiles across and upright")


Question = FixationsWithin | DwellTime | Saccades | NextTile
_DECODER = msgspec.msgpack.Decoder(Question, strict=False)


def question(payload: bytes) -> Question:
    """The question in a message.

    Raises
    ------
    PayloadError
        `oversize`, `not_msgpack`, or `type` when it is not one of the questions or has a value out of its range.
    """
    if len(payload) > LARGEST_QUESTION:
        raise PayloadError("oversize")
    try:
        asked: Question = _DECODER.decode(payload)
    except msgspec.ValidationError:
        raise PayloadError("type") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PayloadError("not_msgpack") from None
    return asked
