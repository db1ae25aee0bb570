"""RTSP 1.0 (RFC 2326) as far as a client needs it that plays one stream: requests, heads of answers, descriptions."""

import re
from typing import NamedTuple
from urllib.parse import urljoin

from eyestream.errors import LinkError

_STATUS = re.compile(rb"(?:RTSP|HTTP)/1\.[01] (\d{3})\b")
_CLOCK = re.compile(r"(\d{1,3}) [^/\s]{1,64}/(\d{1,9})\b")
_MOST_BODY = 1 << 20


class RtspAnswer(NamedTuple):
    """The head of an answer: its code, its fields in lower case, and the bytes of the body that follows."""

    code: int
    fields: dict[str, str]
    length: int | None


class Description(NamedTuple):
    """A track to play: the address to set it up at, its payload type and the counts a second of its clock."""

    address: str
    kind: int
    rate_hz: int


def request(method: str, address: str, number: int, **fields: str) -> bytes:
    """The bytes of a request; names of fields with _ for -."""
    lines = [f"{method} {address} RTSP/1.0", f"CSeq: {number}", "User-Agent: eyestream"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def read_head(head: bytes) -> RtspAnswer:
    """The head of an answer of RTSP or HTTP, up to and with its empty line.

    Raises
    ------
    LinkError
        It is none.
    """
    status = _STATUS.match(head)
    if status is None:
        raise LinkError("an answer that is neither HTTP nor RTSP")
    fields = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip().lower()] = value.strip()
    told = fields.get("content-length")
    if told is not None and not (told.isdecimal() and int(told) <= _MOST_BODY):
        raise LinkError("an answer whose length makes no sense")
    return RtspAnswer(int(status[1]), fields, None if told is None else int(told))


def read_description(text: str, address: str) -> Description:
    """The first stream of video or application data in a description (RFC 4566).

    A stream of video may have an address of its own; one of application data is set up at the session's, as Pupil
    Labs' own client does.

    Raises
    ------
    LinkError
        There is none, or it does not tell its clock.
    """
    media, control, clock = "", None, None
    for line in text.splitlines():
        key, _, value = line.strip().partition("=")
        if key == "m":
            if media:
                break
            media = value.split(" ")[0] if value.split(" ")[0] in {"video", "application"} else ""
        elif key == "a" and media and value.startswith("rtpmap:"):
            clock = _CLOCK.match(value.removeprefix("rtpmap:").strip())
        elif key == "a" and media == "video" and value.startswith("control:"):
            control = value.removeprefix("control:").strip()
    if clock is None or int(clock[2]) == 0:
        raise LinkError("a description without a stream whose clock is told")
    if control and control != "*":
        address = control if control.startswith("rtsp://") else urljoin(address.rstrip("/") + "/", control)
    return Description(address, int(clock[1]), int(clock[2]))
