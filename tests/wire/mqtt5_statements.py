"""Statements of MQTT 5 that a client can violate, in our own words, and the test that shows each.

Numbers are those of the standard (MQTT Version 5.0, OASIS Standard, 7 March 2019, appendix B). `python -m
tests.wire.mqtt5_statements > docs/mqtt5-conformance.md` writes the page; a test compares the two.
"""

from typing import NamedTuple

from tests.wire.statements_page import rendered

__all__ = ["CONNACK", "REFUSED", "SCOPE", "SHOWN", "TAKEN", "Refused5", "page"]

CONNACK = b"\x20\x03\x00\x00\x00"


class Refused5(NamedTuple):
    """What a broker may not send; who takes it violates `number`. `code`: how we say goodbye over it."""

    number: str
    what: str
    data: bytes
    code: int = 0x81
    greeted: bool = True

    @property
    def stream(self) -> bytes:
        """All that the broker says."""
        return CONNACK + self.data if self.greeted else self.data


def _connack(properties: bytes, code: int = 0, flags: int = 0) -> bytes:
    return bytes([0x20, 3 + len(properties), flags, code, len(properties)]) + properties


def _message(properties: bytes, topic: bytes = b"t", payload: bytes = b"x") -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + bytes([len(properties)]) + properties + payload
    return bytes([0x30, len(body)]) + body


REFUSED = [
    Refused5("3.2.0-1", "a message before CONNACK", _message(b"") + CONNACK, 0x82, False),
    Refused5("3.2.0-1", "PINGRESP before CONNACK", b"\xd0\x00" + CONNACK, 0x82, False),
    Refused5("3.2.0-2", "a second CONNACK", CONNACK, 0x82),
    Refused5("3.2.2-1", "CONNACK with a reserved acknowledge flag", _connack(b"", flags=2), 0x81, False),
    Refused5("3.2.2-6", "CONNACK with a session and a refusal", _connack(b"", 0x87, 1), 0x82, False),
    Refused5("3.2.2-8", "CONNACK with a reason code of PUBACK", _connack(b"", 0x10), 0x82, False),
    Refused5("3.2.2-8", "CONNACK with a reason code that there is not", _connack(b"", 0xFF), 0x82, False),
    Refused5("2.2.2-1", "CONNACK with something behind its properties", b"\x20\x04\x00\x00\x00\x00", 0x81, False),
    Refused5("2.2.2-1", "CONNACK whose properties are longer than it", b"\x20\x03\x00\x00\x09", 0x81, False),
    Refused5("3.1.2-28", "CONNACK with response information", _connack(b"\x1a\x00\x01a"), 0x82, False),
    Refused5("4.12.0-6", "CONNACK with an authentication method", _connack(b"\x15\x00\x01a"), 0x82, False),
    Refused5("4.12.0-6", "CONNACK with authentication data", _connack(b"\x16\x00\x01a"), 0x82, False),
    Refused5("4.13.1-1", "CONNACK with a property of PUBLISH", _connack(b"\x02\x00\x00\x00\x01"), 0x82, False),
    Refused5("4.13.1-1", "CONNACK with a property that there is not", _connack(b"\x7f\x00"), 0x82, False),
    Refused5("4.13.1-1", "receive maximum 0", _connack(b"\x21\x00\x00"), 0x82, False),
    Refused5("4.13.1-1", "receive maximum twice", _connack(b"\x21\x00\x01\x21\x00\x01"), 0x82, False),
    Refused5("4.13.1-1", "receive maximum cut off", _connack(b"\x21\x00"), 0x81, False),
    Refused5("4.13.1-1", "maximum packet size 0", _connack(b"\x27\x00\x00\x00\x00"), 0x82, False),
    Refused5("4.13.1-1", "maximum packet size twice", _connack(2 * b"\x27\x00\x00\x10\x00"), 0x82, False),
    Refused5("4.13.1-1", "maximum QoS 2", _connack(b"\x24\x02"), 0x82, False),
    Refused5("4.13.1-1", "retain available 2", _connack(b"\x25\x02"), 0x82, False),
    Refused5("4.13.1-1", "a reason string twice", _connack(2 * b"\x1f\x00\x01a", 0x87), 0x82, False),
    Refused5("4.13.1-1", "a server's keep-alive twice", _connack(2 * b"\x13\x00\x0a"), 0x82, False),
    Refused5("1.5.4-1", "a reason string that is no UTF-8", _connack(b"\x1f\x00\x01\xff", 0x87), 0x81, False),
    Refused5("1.5.7-1", "a user property without its value", _connack(b"\x26\x00\x01a"), 0x81, False),
    Refused5("1.5.7-1", "a user property with U+0000", _message(b"\x26\x00\x01a\x00\x01\x00")),
    Refused5("1.5.5-1", "a length of properties with a byte too many", b"\x30\x06\x00\x01t\x80\x00x"),
    Refused5("1.5.5-1", "a length of properties of five bytes", b"\x30\x08\x00\x01t\x80\x80\x80\x80\x01"),
    Refused5("2.1.3-1", "PUBACK with a flag in its first byte", b"\x42\x02\x00\x01"),
    Refused5("2.1.3-1", "SUBACK with a flag in its first byte", b"\x92\x04\x00\x01\x00\x00"),
    Refused5("2.1.3-1", "PINGRESP with a flag in its first byte", b"\xd1\x00"),
    Refused5("2.2.1-3", "a message at QoS 1 with packet id 0", b"\x32\x06\x00\x01t\x00\x00\x00", 0x82),
    Refused5("2.2.1-5", "PUBACK with packet id 0, which no message has", b"\x40\x02\x00\x00", 0x82),
    Refused5("2.2.1-6", "SUBACK with packet id 0, which no subscription has", b"\x90\x04\x00\x00\x00\x00", 0x82),
    Refused5("2.2.2-1", "a message without the length of its properties", b"\x30\x03\x00\x01t"),
    Refused5("2.2.2-1", "a message shorter than its properties", b"\x30\x05\x00\x01t\x09\x01"),
    Refused5("2.2.2-1", "SUBACK without the length of its properties", b"\x90\x02\x00\x01"),
    Refused5("3.1.2-27", "a message with a topic alias", _message(b"\x23\x00\x01"), 0x94),
    Refused5("3.3.2-8", "a message with topic alias 0", _message(b"\x23\x00\x00"), 0x94),
    Refused5("3.3.2-11", "a topic alias in the place of a topic", _message(b"\x23\x00\x01", b""), 0x82),
    Refused5("3.3.2-14", "a response topic with a wildcard", _message(b"\x08\x00\x03a/+"), 0x82),
    Refused5("3.3.2-14", "an empty response topic", _message(b"\x08\x00\x00"), 0x82),
    Refused5("3.3.4-6", "the number of a subscription that has none", _message(b"\x0b\x01"), 0x82),
    Refused5("4.13.1-1", "an expiry twice", _message(2 * b"\x02\x00\x00\x00\x01"), 0x82),
    Refused5("4.13.1-1", "an expiry cut off", _message(b"\x02\x00\x00")),
    Refused5("4.13.1-1", "correlation data twice", _message(2 * b"\x09\x00\x01a"), 0x82),
    Refused5("4.13.1-1", "correlation data cut off", _message(b"\x09\x00\x05a")),
    Refused5("4.13.1-1", "payload format 2", _message(b"\x01\x02"), 0x82),
    Refused5("4.13.1-1", "a message with a property of CONNACK", _message(b"\x21\x00\x01"), 0x82),
    Refused5("4.13.1-1", "a message with a delay of a will", _message(b"\x18\x00\x00\x00\x01"), 0x82),
    Refused5("3.3.1-2", "a message at QoS 0 that is sent again", b"\x38\x05\x00\x01t\x00x"),
    Refused5("3.3.1-4", "a message at QoS 3", b"\x36\x06\x00\x01t\x00\x01\x00"),
    Refused5("4.13.1-1", "a message at QoS 2: more than was asked for", b"\x34\x06\x00\x01t\x00\x01\x00"),
    Refused5("1.5.4-1", "a topic that is no UTF-8", _message(b"", b"\xff\xfe")),
    Refused5("1.5.4-1", "a topic with a surrogate", _message(b"", b"\xed\xa0\x80")),
    Refused5("1.5.4-2", "a topic with U+0000", _message(b"", b"a\x00b")),
    Refused5("3.3.2-2", "a topic with '+'", _message(b"", b"a/+")),
    Refused5("4.7.0-1", "a topic with '#'", _message(b"", b"a/#")),
    Refused5("4.7.3-1", "an empty topic without an alias", _message(b"", b""), 0x82),
    Refused5("3.3.2-1", "a message shorter than its topic", b"\x30\x02\x00\x05"),
    Refused5("3.4.2-1", "PUBACK with a reason code of SUBACK", b"\x40\x03\x00\x01\x01", 0x82),
    Refused5("3.4.2-1", "PUBACK with a reason code that there is not", b"\x40\x03\x00\x01\x8f", 0x82),
    Refused5("4.13.1-1", "PUBACK with something behind its properties", b"\x40\x05\x00\x01\x00\x00\x00"),
    Refused5("4.13.1-1", "PUBACK with an expiry", b"\x40\x09\x00\x01\x00\x05\x02\x00\x00\x00\x01", 0x82),
    Refused5("4.13.1-1", "PUBACK without half of its packet id", b"\x40\x01\x00"),
    Refused5("3.9.3-2", "SUBACK with a reserved code", b"\x90\x04\x00\x01\x00\x03", 0x82),
    Refused5("3.8.4-6", "SUBACK that answers nothing", b"\x90\x03\x00\x01\x00"),
    Refused5("3.14.2-1", "DISCONNECT with a reason code of PUBACK", b"\xe0\x01\x10", 0x82),
    Refused5("3.14.2-2", "DISCONNECT with a session's expiry", b"\xe0\x07\x00\x05\x11\x00\x00\x00\x01", 0x82),
    Refused5("4.12.0-6", "AUTH, though we asked for none", b"\xf0\x00", 0x82),
    Refused5("4.13.1-1", "packet type 0", b"\x00\x00", 0x82),
    Refused5("4.13.1-1", "SUBSCRIBE, which only a client says", b"\x82\x07\x00\x01\x00\x00\x01t\x00", 0x82),
    Refused5("4.13.1-1", "PINGREQ, which only a client says", b"\xc0\x00", 0x82),
    Refused5("4.13.1-1", "UNSUBACK: we never unsubscribe", b"\xb0\x04\x00\x01\x00\x00", 0x82),
    Refused5("4.13.1-1", "PUBREC: we never publish at QoS 2", b"\x50\x02\x00\x01", 0x82),
    Refused5("4.13.1-1", "PUBREL: nothing comes at QoS 2", b"\x62\x02\x00\x01", 0x82),
    Refused5("4.13.1-1", "a length of five bytes", b"\x30\xff\xff\xff\xff\x01"),
    Refused5("4.13.1-1", "PINGRESP with a body", b"\xd0\x01\x00"),
]
"""A broker's bytes that must end the link; `greeted`: CONNACK went before them."""

TAKEN = [
    (_message(b""), "a message"),
    (_message(b"\x02\x00\x00\x00\x00"), "a message whose time is over: an expiry of 0 is a number like others"),
    (_message(b"\x26\x00\x01a\x00\x01b" * 9), "user properties, which may come again"),
    (_message(b"\x01\x01\x03\x00\x01c\x08\x00\x01r\x09\x00\x00"), "format, content type, response topic, correlation"),
    (b"\x3a\x07\x00\x01t\x00\x01\x00x", "a message at QoS 1 that is sent again"),
    (b"\x30\x84\x00\x00\x01t\x00", "a frame's length in more bytes than it needs, which 2.1.4 does not forbid"),
    (b"\x40\x02\xff\xff", "PUBACK of nothing that is under way"),
    (b"\x40\x03\xff\xff\x10", "PUBACK: nobody subscribes to it"),
    (b"\x40\x08\xff\xff\x97\x04\x1f\x00\x01a", "PUBACK with a reason in words"),
    (b"\x40\x03\xff\xff\x95", "PUBACK: too large, which mosquitto says against 3.4.2-1"),
    (b"\x90\x04\xff\xff\x00\x87", "SUBACK of nothing that is under way"),
    (b"\xd0\x00", "PINGRESP that nobody asked for"),
]
"""What comes close and must be taken: a client that refused everything would pass the list above."""

_BROKEN = "test_a_broker_that_breaks_a_rule_of_5_loses_the_link_and_is_told_why"
_WRITTEN = "test_what_is_against_a_rule_of_5_is_not_written"
_SAID = "test_what_we_say_in_5_keeps_every_rule_in_every_order"
_AGAIN = "test_a_session_that_the_broker_continues_is_continued"
_LIMITS = "test_what_the_broker_does_not_take_is_not_sent"

SHOWN = [
    ("1.5.4-1", "Text is UTF-8 without surrogates.", f"{_BROKEN}, {_WRITTEN}"),
    ("1.5.4-2", "Text has no U+0000.", f"{_BROKEN}, {_WRITTEN}"),
    ("1.5.5-1", "A number of variable length takes as few bytes as it can.", f"{_BROKEN}, {_SAID}"),
    ("1.5.7-1", "A pair of texts is two of them.", f"{_BROKEN}, {_WRITTEN}"),
    ("2.1.3-1", "Reserved flags have the value that the standard lists.", f"{_BROKEN}, {_SAID}"),
    ("2.2.1-2", "PUBLISH at QoS 0 has no packet id.", _SAID),
    ("2.2.1-3", "A new packet takes an id that is not 0 and not in use.", f"{_BROKEN}, {_SAID}"),
    ("2.2.1-5", "PUBACK has the id of the message that it acknowledges.", f"{_BROKEN}, {_SAID}"),
    ("2.2.1-6", "SUBACK has the id of its SUBSCRIBE.", _BROKEN),
    ("2.2.2-1", "Without properties their length is there, and 0.", f"{_BROKEN}, {_SAID}"),
    ("3.1.0-1", "CONNECT is the first packet of a client.", _SAID),
    ("3.1.0-2", "It is sent once.", _SAID),
    ("3.1.2-1", "The protocol's name is `MQTT`; its version here is 5.", _SAID),
    ("3.1.2-3", "The reserved connect flag is 0.", _SAID),
    ("3.1.2-9", "A will has its flag, its properties, its topic and its message.", _SAID),
    ("3.1.2-11", "Without a will: no QoS of it.", _SAID),
    ("3.1.2-12", "The QoS of a will is not 3.", _SAID),
    ("3.1.2-13", "Without a will: no retain flag of it.", _SAID),
    ("3.1.2-27", "We allow no topic alias, and take none.", _BROKEN),
    ("3.1.2-28", "We ask for no response information, and take none.", _BROKEN),
    ("3.1.3-1", "Client id, will, user name, password: in this order.", _SAID),
    ("3.2.0-1", "CONNACK is the first packet of a server.", _BROKEN),
    ("3.2.0-2", "There is one CONNACK.", _BROKEN),
    ("3.2.2-1", "Its reserved flags are 0.", _BROKEN),
    ("3.2.2-2", "A broker that continues a session which we began anew loses us.", "test_a_session_out_of_nowhere"),
    ("3.2.2-5", "Where the broker has no session, ours is forgotten.", _AGAIN),
    ("3.2.2-6", "With a refusal there is no session.", _BROKEN),
    ("3.2.2-8", "The reason codes of CONNACK.", _BROKEN),
    ("3.2.2-11", "Nothing is published at a higher QoS than the broker takes.", _LIMITS),
    ("3.2.2-14", "Nothing retained is published where nothing is retained.", _LIMITS),
    ("3.2.2-15", "No packet is larger than the broker takes.", _LIMITS),
    ("3.2.2-18", "We use no topic alias.", _SAID),
    ("3.2.2-21", "The broker's keep-alive is kept.", "test_the_broker_s_keep_alive_is_kept"),
    ("3.3.1-1", "DUP is 1 on what is sent again.", _AGAIN),
    ("3.3.1-2", "DUP is 0 at QoS 0.", f"{_BROKEN}, {_SAID}"),
    ("3.3.1-4", "QoS 3 closes the link.", _BROKEN),
    ("3.3.2-1", "PUBLISH begins with its topic.", f"{_BROKEN}, {_SAID}"),
    ("3.3.2-2", "A topic has no wildcard.", f"{_BROKEN}, {_WRITTEN}"),
    ("3.3.2-8", "No topic alias is 0.", _BROKEN),
    ("3.3.2-11", "A broker uses no topic alias that we did not allow.", _BROKEN),
    ("3.3.2-14", "A response topic has no wildcard.", f"{_BROKEN}, {_WRITTEN}"),
    ("3.3.4-1", "A message at QoS 1 is acknowledged, one at QoS 0 is not.", _SAID),
    ("3.3.4-6", "PUBLISH has no number of a subscription; we give none.", f"{_BROKEN}, {_SAID}"),
    ("3.3.4-7", "Not more messages are under way than the broker takes.", f"{_LIMITS}, {_SAID}"),
    ("3.3.4-8", "What is no message does not wait for room.", _LIMITS),
    ("3.4.2-1", "The reason codes of PUBACK.", _BROKEN),
    ("3.8.1-1", "The flags of SUBSCRIBE are 2.", _SAID),
    ("3.8.3-1", "A topic filter is UTF-8.", _WRITTEN),
    ("3.8.3-2", "SUBSCRIBE has one topic filter at least.", _WRITTEN),
    ("3.8.3-5", "The reserved bits of a subscription's options are 0.", _SAID),
    ("3.8.4-6", "SUBACK has a code for each topic filter.", f"{_BROKEN}, test_an_answer_for_each_topic_filter"),
    ("3.9.3-2", "The reason codes of SUBACK.", _BROKEN),
    ("3.14.1-1", "DISCONNECT has no flags.", _SAID),
    ("3.14.2-1", "The reason codes of DISCONNECT.", f"{_BROKEN}, {_SAID}"),
    ("3.14.2-2", "A broker says nothing of the session's expiry in DISCONNECT.", _BROKEN),
    ("3.14.4-1", "After DISCONNECT the client sends nothing.", _SAID),
    ("3.14.4-2", "After DISCONNECT it closes the connection.", _SAID),
    ("4.3.2-1", "At QoS 1 a message has an unused id.", _SAID),
    ("4.3.2-2", "DUP is 0 the first time.", _SAID),
    ("4.3.2-3", "It is unacknowledged until PUBACK.", f"{_SAID}, {_AGAIN}"),
    ("4.3.2-4", "PUBACK when the message is taken over, with its id.", _SAID),
    ("4.4.0-1", "In a session that goes on, what was under way is sent again under its id.", _AGAIN),
    ("4.4.0-2", "What was acknowledged, with a refusal too, is not sent again.", f"{_AGAIN}, {_LIMITS}"),
    ("4.6.0-1", "It is sent again in its order.", _AGAIN),
    ("4.6.0-2", "PUBACKs go out in the order of the messages.", _SAID),
    ("4.7.0-1", "Wildcards stand in filters, not in topics.", f"{_BROKEN}, {_WRITTEN}"),
    ("4.7.1-1", "`#` is the last level of a filter, and the whole of it.", _WRITTEN),
    ("4.7.1-2", "`+` is the whole of a level.", _WRITTEN),
    ("4.7.3-1", "Topics and filters are not empty.", f"{_BROKEN}, {_WRITTEN}"),
    ("4.7.3-3", "Topics and filters are at most 65,535 bytes.", _WRITTEN),
    ("4.9.0-2", "Without room at the broker nothing goes out at QoS 1.", _LIMITS),
    ("4.9.0-3", "Acknowledgements and questions go out all the same.", _LIMITS),
    ("4.12.0-6", "We ask for no authentication of that kind, and take none.", _BROKEN),
    ("4.13.1-1", "Who sees a violation says why and closes the connection.", _BROKEN),
]
"""Number, statement, and the tests that show it."""

SCOPE = [
    ("3.1.2-24", "No maximum packet size is stated: what is too large is cut while it comes in, and counted."),
    ("3.2.2-4", "A session that is asked for is one that we know; a subscriber's has nothing on our side."),
    ("3.3.2-10, 3.2.2-17", "Topic aliases are not used in either direction."),
    ("3.8.3-4, 4.8.2-1, 4.8.2-2", "Shared subscriptions are refused before they are asked for."),
    ("4.3.3-1 to 4.3.3-13", "QoS 2 is neither asked for nor used."),
    ("3.10.1-1 to 3.10.3-2", "UNSUBSCRIBE is not sent."),
    ("4.12.0-1 to 4.12.1-2", "AUTH is not sent."),
    ("6.0.0-1 to 6.0.0-4", "WebSocket is not spoken."),
]
"""What cannot be violated, because it is not done."""


_ABOUT = (
    "Written by `python -m tests.wire.mqtt5_statements`; a test compares the two. Numbers are those of appendix B of",
    "the standard (OASIS, 7 March 2019), the words are ours. Most of the tests are in",
    "`tests/wire/test_mqtt5_conformance.py`. Both directions are also compared with another implementation, packet by",
    "packet, in `tests/wire/test_mqtt5_differential.py`. For 3.1.1: [mqtt-conformance.md](mqtt-conformance.md).",
)


def page() -> str:
    """The page of the documentation."""
    cases = ((case.number, case.what, f"`{case.stream.hex(' ')}`", f"0x{case.code:02x}") for case in REFUSED)
    return rendered(
        "# MQTT 5: what a client can violate, and the test that shows that ours does not",
        about=_ABOUT,
        shown=SHOWN,
        refusal="Each ends the link, whole or byte by byte; nothing of it is delivered; the broker is told the code.",
        refused=("MQTT- | what | bytes | code", cases),
        taken=TAKEN,
        scope=SCOPE,
    )


if __name__ == "__main__":
    print(page(), end="")
