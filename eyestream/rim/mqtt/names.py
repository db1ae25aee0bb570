"""Texts that MQTT has no room for, refused before they are sent: the library sends some of them.

Source: MQTT Version 5.0, OASIS Standard, 7 March 2019, sections 1.5.4 and 4.7; 3.1.1 says the same.
"""

from functools import lru_cache

__all__ = ["check_text", "topic_bytes"]

MAX_TEXT_BYTES = 65_535


def check_text(words: str) -> int:
    """How many bytes a text has. Raises ValueError for one with a NUL, with a surrogate, or too long."""
    size = len(words.encode())
    if "\0" in words:
        raise ValueError("MQTT has no text with a NUL character")
    if size > MAX_TEXT_BYTES:
        raise ValueError("longer than a field may be")
    return size


@lru_cache(maxsize=256)  # the same few again and again
def topic_bytes(name: str) -> int:
    """How many bytes a topic to publish to has. Raises ValueError for one that is none."""
    if not name or "+" in name or "#" in name:
        raise ValueError("a topic to publish to is not empty and has no wildcard")
    return check_text(name)
