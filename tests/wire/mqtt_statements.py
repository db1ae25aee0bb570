"""Statements of MQTT 3.1.1 that a client can violate, in our own words, and the test that shows each.

Numbers are those of the standard (MQTT Version 3.1.1, OASIS Standard, 29 October 2014, appendix B). `python -m
tests.wire.mqtt_statements > docs/mqtt-conformance.md` writes the page; a test compares the two.
"""

from typing import NamedTuple

from tests.wire.statements_page import rendered

__all__ = ["REFUSED", "SCOPE", "SHOWN", "TAKEN", "page"]

CONNACK = b"\x20\x02\x00\x00"


class Refused(NamedTuple):
    """What a broker may not send; who takes it violates `number`."""

    number: str
    what: str
    data: bytes
    greeted: bool = True

    @property
    def stream(self) -> bytes:
        """All that the broker says."""
        return CONNACK + self.data if self.greeted else self.data


REFUSED = [
    Refused("3.2.0-1", "a message before CONNACK", b"\x30\x04\x00\x01tx" + CONNACK, False),
    Refused("3.2.0-1", "SUBACK before CONNACK", b"\x90\x03\x00\x01\x00" + CONNACK, False),
    Refused("3.2.0-1", "PINGRESP before CONNACK", b"\xd0\x00" + CONNACK, False),
    Refused("4.8.0-1", "a second CONNACK", CONNACK),
    Refused("4.8.0-1", "a second CONNACK in the segment of the first", CONNACK + CONNACK, False),
    Refused("2.2.2-2", "CONNACK with a flag in its first byte", b"\x21\x02\x00\x00", False),
    Refused("2.2.2-2", "PUBACK with a flag in its first byte", b"\x42\x02\x00\x01"),
    Refused("2.2.2-2", "SUBACK with a flag in its first byte", b"\x92\x03\x00\x01\x00"),
    Refused("2.2.2-2", "PINGRESP with a flag in its first byte", b"\xd1\x00"),
    Refused("4.8.0-1", "CONNACK with a reserved acknowledge flag", b"\x20\x02\x02\x00", False),
    Refused("4.8.0-1", "CONNACK without its code", b"\x20\x01\x00", False),
    Refused("4.8.0-1", "CONNACK with a byte too many", b"\x20\x03\x00\x00\x00", False),
    Refused("4.8.0-1", "packet type 0", b"\x00\x00"),
    Refused("4.8.0-1", "packet type 15", b"\xf0\x00"),
    Refused("4.8.0-1", "CONNECT, which only a client says", b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x14\x00\x00"),
    Refused("4.8.0-1", "SUBSCRIBE, which only a client says", b"\x82\x06\x00\x01\x00\x01t\x00"),
    Refused("4.8.0-1", "PINGREQ, which only a client says", b"\xc0\x00"),
    Refused("4.8.0-1", "DISCONNECT, which only a client says", b"\xe0\x00"),
    Refused("4.8.0-1", "UNSUBACK: we never unsubscribe", b"\xb0\x02\x00\x01"),
    Refused("4.8.0-1", "PUBREC: we never publish at QoS 2", b"\x50\x02\x00\x01"),
    Refused("4.8.0-1", "PUBREL: nothing comes at QoS 2", b"\x62\x02\x00\x01"),
    Refused("4.8.0-1", "PUBCOMP: we never publish at QoS 2", b"\x70\x02\x00\x01"),
    Refused("4.8.0-1", "a length of five bytes (2.2.3)", b"\x30\xff\xff\xff\xff\x01"),
    Refused("4.8.0-1", "PUBACK without half of its packet id", b"\x40\x01\x00"),
    Refused("4.8.0-1", "PUBACK with a byte too many", b"\x40\x03\x00\x01\x00"),
    Refused("4.8.0-1", "PINGRESP with a body", b"\xd0\x01\x00"),
    Refused("4.8.0-1", "a message without a topic's length", b"\x30\x01\x00"),
    Refused("4.8.0-1", "a message shorter than its topic", b"\x30\x02\x00\x01"),
    Refused("4.8.0-1", "a message at QoS 1 that ends before its packet id", b"\x32\x04\x00\x01t\x01"),
    Refused("2.3.1-1", "a message at QoS 1 with packet id 0", b"\x32\x05\x00\x01t\x00\x00"),
    Refused("2.3.1-6", "PUBACK with packet id 0, which no message has", b"\x40\x02\x00\x00"),
    Refused("2.3.1-7", "SUBACK with packet id 0, which no subscription has", b"\x90\x03\x00\x00\x00"),
    Refused("3.3.1-2", "a message at QoS 0 that is sent again", b"\x38\x04\x00\x01tx"),
    Refused("3.3.1-4", "a message at QoS 3", b"\x36\x05\x00\x01t\x00\x01"),
    Refused("3.8.4-6", "a message at QoS 2: more than was granted", b"\x34\x05\x00\x01t\x00\x01"),
    Refused("1.5.3-1", "a topic that is no UTF-8", b"\x30\x04\x00\x02\xff\xfe"),
    Refused("1.5.3-1", "a topic with a surrogate", b"\x30\x05\x00\x03\xed\xa0\x80"),
    Refused("1.5.3-1", "a topic with an overlong form", b"\x30\x04\x00\x02\xc1\xb4"),
    Refused("1.5.3-2", "a topic with U+0000", b"\x30\x05\x00\x03a\x00b"),
    Refused("3.3.2-2", "a topic with '+'", b"\x30\x05\x00\x03a/+"),
    Refused("4.7.1-1", "a topic with '#'", b"\x30\x05\x00\x03a/#"),
    Refused("4.7.3-1", "an empty topic at QoS 0", b"\x30\x03\x00\x00x"),
    Refused("4.7.3-1", "an empty topic at QoS 1", b"\x32\x05\x00\x00\x00\x01x"),
    Refused("3.9.3-2", "SUBACK with a reserved code", b"\x90\x03\x00\x01\x03"),
    Refused("3.8.4-5", "SUBACK that answers nothing", b"\x90\x02\x00\x01"),
]
"""A broker's bytes that must end the link; `greeted`: CONNACK went before them."""

TAKEN = [
    (b"\x30\x04\x00\x01tx", "a message"),
    (b"\x3a\x06\x00\x01t\x00\x01x", "a message at QoS 1 that is sent again"),
    (b"\x31\x03\x00\x01t", "a retained message without payload"),
    (b"\x30\x06\x00\x04\xef\xbb\xbft", "a topic that begins with U+FEFF"),
    (b"\x30\x03\x00\x01/", "a topic of a separator alone"),
    (b"\x30\x83\x00\x00\x01t", "a length in more bytes than it needs, which 3.1.1 does not forbid"),
    (b"\x40\x02\xff\xff", "PUBACK of nothing that is under way: it may answer what was given up"),
    (b"\x90\x03\xff\xff\x02", "SUBACK of nothing that is under way"),
    (b"\xd0\x00", "PINGRESP that nobody asked for"),
]
"""What comes close and must be taken: a client that refused everything would pass the list above."""

_BROKEN = "test_a_broker_that_breaks_a_rule_loses_the_link"
_WRITTEN = "test_what_is_against_a_rule_is_not_written"
_CLEAN = "test_a_broker_is_asked_to_keep_nothing"
_SAID = "test_what_we_say_keeps_every_rule_in_every_order"
_ACKNOWLEDGED = "test_only_what_is_acknowledged_counts_and_each_once"
_DELIVERED = "test_each_message_at_qos_1_is_acknowledged_after_it_was_delivered"

SHOWN = [
    ("1.5.3-1", "Text is UTF-8 without surrogates, or the link is closed.", f"{_BROKEN}, {_WRITTEN}"),
    ("1.5.3-2", "Text has no U+0000, or the link is closed.", f"{_BROKEN}, {_WRITTEN}"),
    ("1.5.3-3", "U+FEFF is a character like others and is kept.", "test_a_byte_order_mark_is_kept"),
    ("2.2.2-1", "Reserved flags have the value that the standard lists.", _SAID),
    ("2.2.2-2", "Wrong flags: the link is closed.", _BROKEN),
    ("2.3.1-1", "SUBSCRIBE and PUBLISH at QoS 1 have a packet id that is not 0.", f"{_BROKEN}, {_SAID}"),
    ("2.3.1-2", "A new packet takes an id that is not in use.", f"{_SAID}, test_ids_in_use_are_not_taken_again"),
    ("2.3.1-5", "PUBLISH at QoS 0 has no packet id.", _SAID),
    ("2.3.1-6", "PUBACK has the id of the message that it acknowledges.", f"{_BROKEN}, {_SAID}"),
    ("2.3.1-7", "SUBACK has the id of its SUBSCRIBE.", _BROKEN),
    ("3.1.0-1", "CONNECT is the first packet of a client.", _SAID),
    ("3.1.0-2", "It is sent once.", _SAID),
    ("3.1.2-1", "The protocol's name is `MQTT`.", _SAID),
    ("3.1.2-2", "Its level is 4.", _SAID),
    ("3.1.2-3", "The reserved connect flag is 0.", _SAID),
    ("3.1.2-9", "A will has its flag, its topic and its message.", _SAID),
    ("3.1.2-11", "Without a will: no QoS, no retain flag, no fields of it.", _SAID),
    ("3.1.2-14", "The QoS of a will is not 3.", _SAID),
    ("3.1.2-22", "Without a user name there is no password.", f"{_WRITTEN}, {_SAID}"),
    ("3.1.2-23", "Not longer than the keep-alive without a packet.", "test_a_quiet_client_keeps_its_word_to_be_heard"),
    ("3.1.3-1", "Client id, will, user name, password: in this order.", _SAID),
    ("3.1.3-7", "Without a client id the session is a clean one.", f"{_WRITTEN}, {_SAID}"),
    ("3.2.0-1", "CONNACK is the first packet of a server.", _BROKEN),
    ("3.3.1-1", "DUP is 1 on what is delivered again: nothing is, in a session of ours.", f"{_SAID}, {_CLEAN}"),
    ("3.3.1-2", "DUP is 0 at QoS 0.", f"{_BROKEN}, {_SAID}"),
    ("3.3.1-4", "QoS 3 closes the link.", _BROKEN),
    ("3.3.2-1", "PUBLISH begins with its topic.", _SAID),
    ("3.3.2-2", "A topic has no wildcard.", f"{_BROKEN}, {_WRITTEN}"),
    ("3.3.4-1", "A message at QoS 1 is acknowledged, one at QoS 0 is not.", _SAID),
    ("3.8.1-1", "The flags of SUBSCRIBE are 2.", _SAID),
    ("3.8.3-1", "A topic filter is UTF-8.", _WRITTEN),
    ("3.8.3-3", "SUBSCRIBE has one topic filter at least.", _WRITTEN),
    ("3.8.3-4", "The QoS that is asked for is 0, 1 or 2; the rest of its byte is 0.", _SAID),
    ("3.8.4-5", "SUBACK has a code for each topic filter.", f"{_BROKEN}, test_an_answer_for_each_topic_filter"),
    ("3.8.4-6", "Nothing comes at a higher QoS than was granted: we ask for 1 at most.", _BROKEN),
    ("3.9.3-2", "The codes of SUBACK are 0, 1, 2 and 0x80.", _BROKEN),
    ("3.14.1-1", "DISCONNECT has no flags.", _SAID),
    ("3.14.4-1", "After DISCONNECT the client closes the connection.", _SAID),
    ("3.14.4-2", "After DISCONNECT it sends nothing.", _SAID),
    ("4.3.2-1", "At QoS 1: an unused id, DUP 0, unacknowledged until PUBACK.", f"{_SAID}, {_ACKNOWLEDGED}"),
    ("4.3.2-2", "PUBACK when the message is taken over, with its id.", f"{_SAID}, {_DELIVERED}"),
    ("4.5.0-2", "Each message is acknowledged as its QoS says, wanted or not.", _SAID),
    ("4.6.0-2", "PUBACKs go out in the order of the messages.", _SAID),
    ("4.7.1-1", "Wildcards stand in filters, not in topics.", f"{_BROKEN}, {_WRITTEN}"),
    ("4.7.1-2", "`#` is the last level of a filter, and the whole of it.", _WRITTEN),
    ("4.7.1-3", "`+` is the whole of a level.", _WRITTEN),
    ("4.7.3-1", "Topics and filters are not empty.", f"{_BROKEN}, {_WRITTEN}"),
    ("4.7.3-3", "Topics and filters are at most 65,535 bytes.", _WRITTEN),
    ("4.8.0-1", "Who sees a violation closes the connection.", _BROKEN),
]
"""Number, statement, and the tests that show it."""

SCOPE = [
    ("2.3.1-3, 4.4.0-1, 4.6.0-1", "Packets of a kept session are sent again: the session of what publishes is clean."),
    ("2.2.2-1 for PUBREL, 4.3.3-1, 4.3.3-2", "QoS 2 is neither asked for nor used."),
    ("3.10.1-1, 3.10.3-1, 3.10.3-2", "UNSUBSCRIBE is not sent."),
    ("3.2.2-1", "Session Present of a clean session, a server's fault, is not looked at: nothing hangs on it."),
    ("6.0.0-1 to 6.0.0-4", "WebSocket is not spoken."),
]
"""What cannot be violated, because it is not done."""


_ABOUT = (
    "Written by `python -m tests.wire.mqtt_statements`; a test compares the two. Numbers are those of appendix B of",
    "the standard (OASIS, 29 October 2014), the words are ours. Most of the tests are in",
    "`tests/wire/test_mqtt_conformance.py`. Both directions are also compared with another implementation, packet by",
    "packet, in `tests/wire/test_mqtt_differential.py`.",
)


def page() -> str:
    """The page of the documentation."""
    return rendered(
        "# MQTT 3.1.1: what a client can violate, and the test that shows that ours does not",
        about=_ABOUT,
        shown=SHOWN,
        refusal="Each ends the link, whole or byte by byte, and nothing of it is delivered.",
        refused=("MQTT- | what | bytes", ((case.number, case.what, f"`{case.stream.hex(' ')}`") for case in REFUSED)),
        taken=TAKEN,
        scope=SCOPE,
    )


if __name__ == "__main__":
    print(page(), end="")
