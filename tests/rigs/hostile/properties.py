"""Properties of MQTT 5 that somebody may put on a message: those in `properties.jsonl`, each where it can stand.

A line of the file has a `name` and one of three: the bytes of a `text`, which is tried as every text that a message may
have; those of a `value`, which is tried of every property; or `parts`, pieces of all properties together, each
repeated so often. Add a line to try another one. `cut` says what becomes of the message: of a text, whether it is cut
``everywhere``, only where it is the `topic` of answers, or ``nowhere``; null, or nothing, where it may be either.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.rigs.strangers import packet

__all__ = ["KNOWN", "Case", "cases", "field", "message"]

_FILE = Path(__file__).with_suffix(".jsonl")
_EVERY = (0x01, 0x02, 0x03, 0x08, 0x09, 0x0B, 0x23, 0x26)
_TOPIC = "response topic"


class Case(NamedTuple):
    """Properties of one message, and whether it is cut; None: it may be or not."""

    name: str
    properties: bytes
    cut: bool | None


def field(data: bytes) -> bytes:
    """Bytes after their number, as texts and binary data are written."""
    return len(data).to_bytes(2) + data


def cases() -> Iterator[Case]:
    """All of them."""
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        known = json.loads(line)
        name, cut = known["name"], known.get("cut")
        if "text" in known:
            text = field(bytes.fromhex(known["text"]))
            ways = {"content type": b"\x03" + text, _TOPIC: b"\x08" + text}
            ways |= {"user property": b"\x26" + text + field(b"v"), "its value": b"\x26" + field(b"k") + text}
            for way, written in ways.items():
                yield Case(
                    f"{way}: {name}",
                    written,
                    None if cut is None else cut == "everywhere" or (cut, way) == ("topic", _TOPIC),
                )
        elif "value" in known:
            for number in _EVERY:
                yield Case(f"property 0x{number:02x}: {name}", bytes([number]) + bytes.fromhex(known["value"]), None)
        else:
            yield Case(name, b"".join(bytes.fromhex(piece) * count for piece, count in known["parts"]), cut)


KNOWN = (
    "content type: U+FEFF",
    "user property: U+FEFF",
    f"{_TOPIC}: #",
    f"{_TOPIC}: a/+/b",
    f"{_TOPIC}: nothing",
)
"""What mosquitto 2.0.11 passes on, and other clients end their link over."""


def message(
    topic: bytes, properties: bytes, payload: bytes, *, number: int = 0, retain: bool = False, length: bytes = b""
) -> bytes:
    """PUBLISH of MQTT 5: at QoS 1 where it has a packet id; `length` of the properties is the right one by default."""
    size = length or packet(0, properties)[1 : len(packet(0, properties)) - len(properties)]
    body = field(topic) + (number.to_bytes(2) if number else b"") + size + properties + payload
    return packet(0x30 | 2 * bool(number) | retain, body)
