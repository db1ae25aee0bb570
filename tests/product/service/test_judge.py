"""The judge of what our client says: a control for each statement of MQTT 5 that it holds us to."""

import pytest

from tests.product.service.judge import Judge, ViolationError


def said(kind: int, body: bytes) -> bytes:
    """A packet of fewer than 128 bytes."""
    return bytes([kind, len(body)]) + body


HELLO = said(0x10, b"\x00\x04MQTT\x05\x02\x00\x14\x00\x00\x00")
VIOLATIONS = [
    ("3.1.0-1", b"\xc0\x00"),
    ("3.1.0-2", HELLO + HELLO),
    ("2.1.3-1", b"\x11" + HELLO[1:]),
    ("3.1.2-1", said(0x10, b"\x00\x04MQTT\x04\x02\x00\x14\x00\x00")),
    ("3.1.2-3", said(0x10, b"\x00\x04MQTT\x05\x03\x00\x14\x00\x00\x00")),
    ("3.1.2-9", said(0x10, b"\x00\x04MQTT\x05\x06\x00\x14\x00\x00\x00\x00\x00\x01w")),
    ("3.1.2-11", said(0x10, b"\x00\x04MQTT\x05\x0a\x00\x14\x00\x00\x00")),
    ("3.1.2-12", said(0x10, b"\x00\x04MQTT\x05\x1e\x00\x14\x00\x00\x00\x00\x00\x01w\x00\x00")),
    ("3.1.2-13", said(0x10, b"\x00\x04MQTT\x05\x22\x00\x14\x00\x00\x00")),
    ("3.1.3-1", said(0x10, b"\x00\x04MQTT\x05\x82\x00\x14\x00\x00\x00")),
    ("1.5.4-1", HELLO + said(0x30, b"\x00\x01\xff\x00")),
    ("1.5.4-2", HELLO + said(0x30, b"\x00\x01\x00\x00")),
    ("1.5.5-1", HELLO + said(0x30, b"\x00\x01t\x80\x00")),
    ("1.5.7-1", HELLO + said(0x30, b"\x00\x01t\x04\x26\x00\x01a")),
    ("2.2.2-1", HELLO + said(0x30, b"\x00\x01t")),
    ("2.2.2-1", HELLO + said(0x30, b"\x00\x01t\x05\x11\x00\x00\x00\x01")),
    ("2.2.2-1", HELLO + said(0x30, b"\x00\x01t\x0a" + b"\x02\x00\x00\x00\x01" * 2)),
    ("3.2.2-18", HELLO + said(0x30, b"\x00\x01t\x03\x23\x00\x01")),
    ("3.3.1-2", HELLO + said(0x38, b"\x00\x01t\x00")),
    ("3.3.1-4", HELLO + said(0x36, b"\x00\x01t\x00\x01\x00")),
    ("3.3.2-1", HELLO + said(0x30, b"\x00\x09t")),
    ("3.3.2-2", HELLO + said(0x30, b"\x00\x01#\x00")),
    ("3.3.2-14", HELLO + said(0x30, b"\x00\x01t\x04\x08\x00\x01#")),
    ("4.3.2-2", HELLO + said(0x3A, b"\x00\x01t\x00\x01\x00")),
    ("4.7.3-1", HELLO + said(0x30, b"\x00\x00\x00")),
    ("2.2.1-3", HELLO + said(0x32, b"\x00\x01t\x00\x00\x00")),
    ("2.2.1-3", HELLO + said(0x32, b"\x00\x01t\x00\x01\x00") * 2),
    ("2.2.1-5", HELLO + said(0x40, b"\x00\x01")),
    ("3.8.1-1", HELLO + said(0x80, b"\x00\x01\x00\x00\x01t\x00")),
    ("3.8.3-1", HELLO + said(0x82, b"\x00\x01\x00\x00\x09t\x00")),
    ("3.8.3-2", HELLO + said(0x82, b"\x00\x01\x00")),
    ("3.8.3-5", HELLO + said(0x82, b"\x00\x01\x00\x00\x01t\x40")),
    ("4.7.1-1", HELLO + said(0x82, b"\x00\x01\x00\x00\x03#/t\x00")),
    ("4.7.1-2", HELLO + said(0x82, b"\x00\x01\x00\x00\x02t+\x00")),
    ("3.14.1-1", HELLO + b"\xe1\x00"),
    ("3.14.2-1", HELLO + b"\xe0\x01\x8b"),
    ("3.14.4-1", HELLO + b"\xe0\x00\xc0\x00"),
    ("4.13.1-1", HELLO + b"\xd0\x00"),
]
"""What a client that violates a statement says."""


@pytest.mark.parametrize(("number", "data"), VIOLATIONS)
def test_the_judge_sees_every_violation(number: str, data: bytes) -> None:
    with pytest.raises(ViolationError) as caught:
        Judge().hear(data)
    assert caught.value.number == number


@pytest.mark.parametrize(
    ("number", "judge", "data"),
    [
        ("4.6.0-2", Judge(connected=True, owed=[1, 2]), said(0x40, b"\x00\x02")),
        ("3.4.2-1", Judge(connected=True, owed=[1]), said(0x40, b"\x00\x01\x01")),
        ("3.2.2-14", Judge(connected=True, retain=False), said(0x31, b"\x00\x01t\x00")),
        ("3.2.2-15", Judge(connected=True, packet_bytes=5), said(0x30, b"\x00\x01t\x00")),
        ("3.3.4-7", Judge(connected=True, receive_maximum=0), said(0x32, b"\x00\x01t\x00\x01\x00")),
        ("4.4.0-1", Judge(connected=True, resumed={2: b""}), said(0x32, b"\x00\x01t\x00\x01\x00")),
        (
            "4.6.0-1",
            Judge(connected=True, resumed={2: b"", 1: b"\x00\x01t\x00\x01\x00"}),
            said(0x3A, b"\x00\x01t\x00\x01\x00"),
        ),
        (
            "3.3.1-1",
            Judge(connected=True, resumed={1: b"\x00\x01t\x00\x01\x00"}),
            said(0x32, b"\x00\x01t\x00\x01\x00"),
        ),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_the_judge_knows_what_went_before(number: str, judge: Judge, data: bytes) -> None:
    with pytest.raises(ViolationError) as caught:
        judge.hear(data)
    assert caught.value.number == number
