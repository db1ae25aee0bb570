"""A configuration of version 0.1.0 in the form of today: as a table, and as text with its comments.

0.1.0 knew one stream: ``[stream]`` and ``[privacy]``. Now there may be several: ``[[stream]]`` with a name each, and
``[stream.privacy]`` beneath. ``[budget]`` stays as it was, and holds for a device over all its streams.
"""

import re
from typing import Any

from eyestream.errors import ConfigError

__all__ = ["flat_words", "upgraded_table", "upgraded_text"]

_NAME = "features"
_HEADER = re.compile(r"^[ \t]*\[(\[?)[ \t]*([A-Za-z0-9_.-]+)[ \t]*\]?\]", re.MULTILINE)


def upgraded_table(table: dict[str, Any]) -> dict[str, Any]:
    """The table of a file in the form of today; the very same one when it is in that form already."""
    stream = table.get("stream")
    if not isinstance(stream, dict):
        return table
    rest = {key: value for key, value in table.items() if key not in {"stream", "privacy"}}
    return rest | {"stream": [{"name": _NAME} | stream | ({"privacy": table["privacy"]} if "privacy" in table else {})]}


def flat_words(line: str) -> str:
    """A line about the table of today, in the terms of a file of version 0.1.0."""
    line = re.sub(r"\[\[stream\]\] ('[^']*'|\(number 1\))", "[stream]", line)
    return re.sub(r"\[stream\.privacy\] ('[^']*'|\(number 1\))", "[privacy]", line)


def upgraded_text(text: str) -> str:
    """The text of a file of version 0.1.0 in the form of today; every other line, comments included, stays as it is.

    Raises
    ------
    ConfigError
        It has no ``[stream]`` and ``[privacy]`` of that version.
    """
    headers = {match[2]: match for match in _HEADER.finditer(text) if not match[1]}
    if "stream" not in headers or "privacy" not in headers:
        raise ConfigError("expected a configuration of version 0.1.0, with [stream] and [privacy]")
    stream, privacy = headers["stream"], headers["privacy"]
    if privacy.start() < stream.start():
        begin, end = _block(text, privacy)
        moved, text = text[begin:end], text[:begin] + text[end:]
        _, end = _block(text, next(m for m in _HEADER.finditer(text) if m[2] == "stream" and not m[1]))
        text = text[:end] + ("" if text[:end].endswith("\n") else "\n") + moved + text[end:]
    text = re.sub(r"^([ \t]*)\[[ \t]*privacy[ \t]*\]", r"\1[stream.privacy]", text, count=1, flags=re.MULTILINE)
    return re.sub(
        r"^([ \t]*)\[[ \t]*stream[ \t]*\](.*)$", rf'\1[[stream]]\2\nname = "{_NAME}"', text, count=1, flags=re.MULTILINE
    )


def _block(text: str, header: re.Match[str]) -> tuple[int, int]:
    """Where the table of `header` begins, with the comment lines above it, and where it ends."""
    lines = text[: header.start()].splitlines(keepends=True)
    begin = header.start()
    while lines and lines[-1].lstrip().startswith("#"):
        begin -= len(lines.pop())
    following = _HEADER.search(text, header.end())
    end = len(text) if following is None else following.start()
    if following is not None:
        above = text[header.end() : end].splitlines(keepends=True)
        while above and above[-1].lstrip().startswith("#"):
            end -= len(above.pop())
    return begin, end
