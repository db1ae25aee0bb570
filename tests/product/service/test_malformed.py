"""What a broker may not send: the link is lost, a message is cut, or the packet is ignored, and nothing else happens.

The codec is the library's, and more lenient than the standard in places. Each row violates a statement of MQTT 3.1.1 or
5; what our client lets pass is named, so that a new version of the library which lets more pass is seen. What somebody
else may have written costs no link: such a message is cut.
"""

import asyncio

import pytest

from eyestream.errors import LinkError
from eyestream.rim.mqtt.messages import NO_PROPERTIES, TOO_LARGE, Message
from tests.rigs.clients import WELCOME, at_a_pipe

THREE, FIVE = WELCOME[False], WELCOME[True]


def _connack(properties: bytes, code: int = 0, flags: int = 0) -> bytes:
    return bytes([0x20, 3 + len(properties), flags, code, len(properties)]) + properties


def _message(properties: bytes, topic: bytes = b"t") -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + bytes([len(properties)]) + properties + b"x"
    return bytes([0x30, len(body)]) + body


MALFORMED_3 = [
    ("a message before CONNACK", b"\x30\x04\x00\x01tx" + THREE),
    ("SUBACK before CONNACK", b"\x90\x03\x00\x01\x00" + THREE),
    ("PINGRESP before CONNACK", b"\xd0\x00" + THREE),
    ("a second CONNACK", THREE + THREE),
    ("a second CONNACK in the segment of the first", THREE + THREE),
    ("CONNACK with a flag in its first byte", b"\x21\x02\x00\x00"),
    ("PUBACK with a flag in its first byte", THREE + b"\x42\x02\x00\x01"),
    ("SUBACK with a flag in its first byte", THREE + b"\x92\x03\x00\x01\x00"),
    ("PINGRESP with a flag in its first byte", THREE + b"\xd1\x00"),
    ("CONNACK with a reserved acknowledge flag", b"\x20\x02\x02\x00"),
    ("CONNACK without its code", b"\x20\x01\x00"),
    ("CONNACK with a byte too many", b"\x20\x03\x00\x00\x00"),
    ("packet type 0", THREE + b"\x00\x00"),
    ("packet type 15", THREE + b"\xf0\x00"),
    ("CONNECT, which only a client says", THREE + b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x14\x00\x00"),
    ("SUBSCRIBE, which only a client says", THREE + b"\x82\x06\x00\x01\x00\x01t\x00"),
    ("PINGREQ, which only a client says", THREE + b"\xc0\x00"),
    ("DISCONNECT, which only a client says", THREE + b"\xe0\x00"),
    ("UNSUBACK: we never unsubscribe", THREE + b"\xb0\x02\x00\x01"),
    ("PUBREC: we never publish at QoS 2", THREE + b"\x50\x02\x00\x01"),
    ("PUBREL: nothing comes at QoS 2", THREE + b"\x62\x02\x00\x01"),
    ("PUBCOMP: we never publish at QoS 2", THREE + b"\x70\x02\x00\x01"),
    ("a length of five bytes (2.2.3)", THREE + b"\x30\xff\xff\xff\xff\x01"),
    ("PUBACK without half of its packet id", THREE + b"\x40\x01\x00"),
    ("PUBACK with a byte too many", THREE + b"\x40\x03\x00\x01\x00"),
    ("PINGRESP with a body", THREE + b"\xd0\x01\x00"),
    ("a message without a topic's length", THREE + b"\x30\x01\x00"),
    ("a message shorter than its topic", THREE + b"\x30\x02\x00\x01"),
    ("a message at QoS 1 that ends before its packet id", THREE + b"\x32\x04\x00\x01t\x01"),
    ("a message at QoS 1 with packet id 0", THREE + b"\x32\x05\x00\x01t\x00\x00"),
    ("PUBACK with packet id 0, which no message has", THREE + b"\x40\x02\x00\x00"),
    ("SUBACK with packet id 0, which no subscription has", THREE + b"\x90\x03\x00\x00\x00"),
    ("a message at QoS 0 that is sent again", THREE + b"\x38\x04\x00\x01tx"),
    ("a message at QoS 3", THREE + b"\x36\x05\x00\x01t\x00\x01"),
    ("a message at QoS 2: more than was granted", THREE + b"\x34\x05\x00\x01t\x00\x01"),
    ("a topic that is no UTF-8", THREE + b"\x30\x04\x00\x02\xff\xfe"),
    ("a topic with a surrogate", THREE + b"\x30\x05\x00\x03\xed\xa0\x80"),
    ("a topic with an overlong form", THREE + b"\x30\x04\x00\x02\xc1\xb4"),
    ("a topic with U+0000", THREE + b"\x30\x05\x00\x03a\x00b"),
    ("a topic with '+'", THREE + b"\x30\x05\x00\x03a/+"),
    ("a topic with '#'", THREE + b"\x30\x05\x00\x03a/#"),
    ("an empty topic at QoS 0", THREE + b"\x30\x03\x00\x00x"),
    ("an empty topic at QoS 1", THREE + b"\x32\x05\x00\x00\x00\x01x"),
    ("SUBACK with a reserved code", THREE + b"\x90\x03\x00\x01\x03"),
    ("SUBACK that answers nothing", THREE + b"\x90\x02\x00\x01"),
]

MALFORMED_5 = [
    ("a message before CONNACK", _message(b"") + FIVE),
    ("PINGRESP before CONNACK", b"\xd0\x00" + FIVE),
    ("a second CONNACK", FIVE + FIVE),
    ("CONNACK with a reserved acknowledge flag", _connack(b"", flags=2)),
    ("CONNACK with a session and a refusal", _connack(b"", 0x87, 1)),
    ("CONNACK with a reason code of PUBACK", _connack(b"", 0x10)),
    ("CONNACK with a reason code that there is not", _connack(b"", 0xFF)),
    ("CONNACK with something behind its properties", b"\x20\x04\x00\x00\x00\x00"),
    ("CONNACK whose properties are longer than it", b"\x20\x03\x00\x00\x09"),
    ("CONNACK with response information", _connack(b"\x1a\x00\x01a")),
    ("CONNACK with an authentication method", _connack(b"\x15\x00\x01a")),
    ("CONNACK with authentication data", _connack(b"\x16\x00\x01a")),
    ("CONNACK with a property of PUBLISH", _connack(b"\x02\x00\x00\x00\x01")),
    ("CONNACK with a property that there is not", _connack(b"\x7f\x00")),
    ("receive maximum 0", _connack(b"\x21\x00\x00")),
    ("receive maximum twice", _connack(b"\x21\x00\x01\x21\x00\x01")),
    ("receive maximum cut off", _connack(b"\x21\x00")),
    ("maximum packet size 0", _connack(b"\x27\x00\x00\x00\x00")),
    ("maximum packet size twice", _connack(2 * b"\x27\x00\x00\x10\x00")),
    ("maximum QoS 2", _connack(b"\x24\x02")),
    ("retain available 2", _connack(b"\x25\x02")),
    ("a reason string twice", _connack(2 * b"\x1f\x00\x01a", 0x87)),
    ("a server's keep-alive twice", _connack(2 * b"\x13\x00\x0a")),
    ("a reason string that is no UTF-8", _connack(b"\x1f\x00\x01\xff", 0x87)),
    ("a user property without its value", _connack(b"\x26\x00\x01a")),
    ("a user property with U+0000", FIVE + _message(b"\x26\x00\x01a\x00\x01\x00")),
    ("a length of properties with a byte too many", FIVE + b"\x30\x06\x00\x01t\x80\x00x"),
    ("a length of properties of five bytes", FIVE + b"\x30\x08\x00\x01t\x80\x80\x80\x80\x01"),
    ("PUBACK with a flag in its first byte", FIVE + b"\x42\x02\x00\x01"),
    ("SUBACK with a flag in its first byte", FIVE + b"\x92\x04\x00\x01\x00\x00"),
    ("PINGRESP with a flag in its first byte", FIVE + b"\xd1\x00"),
    ("a message at QoS 1 with packet id 0", FIVE + b"\x32\x06\x00\x01t\x00\x00\x00"),
    ("PUBACK with packet id 0, which no message has", FIVE + b"\x40\x02\x00\x00"),
    ("SUBACK with packet id 0, which no subscription has", FIVE + b"\x90\x04\x00\x00\x00\x00"),
    ("a message without the length of its properties", FIVE + b"\x30\x03\x00\x01t"),
    ("a message shorter than its properties", FIVE + b"\x30\x05\x00\x01t\x09\x01"),
    ("SUBACK without the length of its properties", FIVE + b"\x90\x02\x00\x01"),
    ("a message with a topic alias", FIVE + _message(b"\x23\x00\x01")),
    ("a message with topic alias 0", FIVE + _message(b"\x23\x00\x00")),
    ("a topic alias in the place of a topic", FIVE + _message(b"\x23\x00\x01", b"")),
    ("a response topic with a wildcard", FIVE + _message(b"\x08\x00\x03a/+")),
    ("an empty response topic", FIVE + _message(b"\x08\x00\x00")),
    ("the number of a subscription that has none", FIVE + _message(b"\x0b\x01")),
    ("an expiry twice", FIVE + _message(2 * b"\x02\x00\x00\x00\x01")),
    ("an expiry cut off", FIVE + _message(b"\x02\x00\x00")),
    ("correlation data twice", FIVE + _message(2 * b"\x09\x00\x01a")),
    ("correlation data cut off", FIVE + _message(b"\x09\x00\x05a")),
    ("payload format 2", FIVE + _message(b"\x01\x02")),
    ("a message with a property of CONNACK", FIVE + _message(b"\x21\x00\x01")),
    ("a message with a delay of a will", FIVE + _message(b"\x18\x00\x00\x00\x01")),
    ("a message at QoS 0 that is sent again", FIVE + b"\x38\x05\x00\x01t\x00x"),
    ("a message at QoS 3", FIVE + b"\x36\x06\x00\x01t\x00\x01\x00"),
    ("a message at QoS 2: more than was asked for", FIVE + b"\x34\x06\x00\x01t\x00\x01\x00"),
    ("a topic that is no UTF-8", FIVE + _message(b"", b"\xff\xfe")),
    ("a topic with a surrogate", FIVE + _message(b"", b"\xed\xa0\x80")),
    ("a topic with U+0000", FIVE + _message(b"", b"a\x00b")),
    ("a topic with '+'", FIVE + _message(b"", b"a/+")),
    ("a topic with '#'", FIVE + _message(b"", b"a/#")),
    ("an empty topic without an alias", FIVE + _message(b"", b"")),
    ("a message shorter than its topic", FIVE + b"\x30\x02\x00\x05"),
    ("PUBACK with a reason code of SUBACK", FIVE + b"\x40\x03\x00\x01\x01"),
    ("PUBACK with a reason code that there is not", FIVE + b"\x40\x03\x00\x01\x8f"),
    ("PUBACK with something behind its properties", FIVE + b"\x40\x05\x00\x01\x00\x00\x00"),
    ("PUBACK with an expiry", FIVE + b"\x40\x09\x00\x01\x00\x05\x02\x00\x00\x00\x01"),
    ("PUBACK without half of its packet id", FIVE + b"\x40\x01\x00"),
    ("SUBACK with a reserved code", FIVE + b"\x90\x04\x00\x01\x00\x03"),
    ("SUBACK that answers nothing", FIVE + b"\x90\x03\x00\x01\x00"),
    ("DISCONNECT with a reason code of PUBACK", FIVE + b"\xe0\x01\x10"),
    ("DISCONNECT with a session's expiry", FIVE + b"\xe0\x07\x00\x05\x11\x00\x00\x00\x01"),
    ("AUTH, though we asked for none", FIVE + b"\xf0\x00"),
    ("packet type 0", FIVE + b"\x00\x00"),
    ("SUBSCRIBE, which only a client says", FIVE + b"\x82\x07\x00\x01\x00\x00\x01t\x00"),
    ("PINGREQ, which only a client says", FIVE + b"\xc0\x00"),
    ("UNSUBACK: we never unsubscribe", FIVE + b"\xb0\x04\x00\x01\x00\x00"),
    ("PUBREC: we never publish at QoS 2", FIVE + b"\x50\x02\x00\x01"),
    ("PUBREL: nothing comes at QoS 2", FIVE + b"\x62\x02\x00\x01"),
    ("a length of five bytes", FIVE + b"\x30\xff\xff\xff\xff\x01"),
    ("PINGRESP with a body", FIVE + b"\xd0\x01\x00"),
]

IGNORED = {
    "PUBACK with packet id 0, which no message has",
    "PUBACK with something behind its properties",
    "SUBACK with packet id 0, which no subscription has",
    "SUBACK that answers nothing",
    "CONNACK with something behind its properties",
    "CONNACK with a reserved acknowledge flag",
    "CONNACK with response information",
    "CONNACK with an authentication method",
    "CONNACK with authentication data",
    "maximum QoS 2",
    "retain available 2",
}
"""What is wrong is passed over, and the link stands."""

TAKEN = {
    "a message with a topic alias",
    "the number of a subscription that has none",
    "a length of properties with a byte too many",
}
"""So it is here, in a message that is whole all the same."""

CUT = {
    "a topic that is no UTF-8",
    "a topic with a surrogate",
    "a topic with an overlong form",
    "a topic with U+0000",
    "a topic with '+'",
    "a topic with '#'",
    "an empty topic at QoS 0",
    "an empty topic at QoS 1",
    "an empty topic without an alias",
    "a topic alias in the place of a topic",
    "a user property with U+0000",
    "a length of properties of five bytes",
    "a message without the length of its properties",
    "a message shorter than its properties",
    "a message with topic alias 0",
    "a response topic with a wildcard",
    "an empty response topic",
    "an expiry twice",
    "an expiry cut off",
    "correlation data twice",
    "correlation data cut off",
    "payload format 2",
    "a message with a property of CONNACK",
    "a message with a delay of a will",
}
"""A message whose topic or properties are wrong, which whoever published it wrote."""


@pytest.mark.parametrize("piecewise", [False, True])
@pytest.mark.parametrize(
    ("five", "what", "stream"),
    [(False, *row) for row in MALFORMED_3] + [(True, *row) for row in MALFORMED_5],
    ids=lambda part: part if isinstance(part, str) else "",
)
async def test_the_link_is_lost_or_the_message_cut_or_the_packet_ignored(
    five: bool, what: str, stream: bytes, piecewise: bool
) -> None:
    delivered: list[Message] = []
    said = bytearray()
    client, pipe, greeting = at_a_pipe(delivered.append, said.extend, five=five)
    await asyncio.sleep(0)
    hello = bytes(said)
    for piece in [stream[at : at + 1] for at in range(len(stream))] if piecewise else [stream]:
        if not pipe.closed:
            client.data_received(piece)
    lost = pipe.closed
    client.connection_lost(None)
    [outcome] = await asyncio.gather(greeting, return_exceptions=True)
    with pytest.raises(LinkError):
        await client.ended
    assert lost == (what not in IGNORED | TAKEN | CUT)
    assert [message.payload for message in delivered] == [b"x"] * (what in TAKEN) + [TOO_LARGE] * (what in CUT)
    assert all(message.more == NO_PROPERTIES for message in delivered)
    assert bytes(said) == hello + b"\x40\x02\x00\x01" * (what == "an empty topic at QoS 1")
    assert outcome is None or isinstance(outcome, LinkError)


@pytest.mark.parametrize(
    ("five", "data"),
    [
        (False, b"\x30\x04\x00\x01tx"),
        (False, b"\x3a\x06\x00\x01t\x00\x01x"),
        (False, b"\x30\x83\x00\x00\x01t"),
        (False, b"\x30\x06\x00\x04\xef\xbb\xbft"),
        (True, _message(b"\x02\x00\x00\x00\x00")),
        (True, _message(b"\x26\x00\x01a\x00\x01b" * 9)),
        (True, _message(b"\x01\x01\x03\x00\x01c\x08\x00\x01r\x09\x00\x00")),
        (True, b"\x3a\x07\x00\x01t\x00\x01\x00x"),
    ],
)
async def test_control_what_comes_close_is_a_message(five: bool, data: bytes) -> None:
    delivered: list[Message] = []
    client, pipe, greeting = at_a_pipe(delivered.append, lambda said: None, five=five)
    await asyncio.sleep(0)
    client.data_received(WELCOME[five] + data)
    await greeting
    assert not pipe.closed
    assert len(delivered) == 1
    client.connection_lost(None)
