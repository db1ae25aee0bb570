"""Released bytes wait in order, bounded, and not for ever; statements stand until the broker has them."""

from eyestream.service.outbox import Outbox
from eyestream.service.statements import Statements


def outbox_of(*payloads: bytes, length: int = 3) -> Outbox:
    outbox = Outbox(length, lifetime_s=10.0)
    for at, payload in enumerate(payloads):
        outbox.put("t", payload, float(at))
    return outbox


def taken(outbox: Outbox, now: float = 5.0) -> list[bytes]:
    payloads = []
    while parcel := outbox.first(now):
        payloads.append(parcel.payload)
        outbox.acknowledge(parcel)
    return payloads


def test_of_a_full_outbox_the_oldest_is_dropped() -> None:
    outbox = outbox_of(b"0", b"1", b"2", b"3", b"4")
    assert outbox.overflow == 2
    assert taken(outbox) == [b"2", b"3", b"4"]
    assert outbox.delivered == 3


def test_a_parcel_stays_until_it_is_acknowledged() -> None:
    outbox = outbox_of(b"0", b"1")
    assert outbox.first(1.0) is outbox.first(2.0)
    assert len(outbox) == 2


def test_what_waited_too_long_is_dropped_and_what_did_not_is_not() -> None:
    outbox = outbox_of(b"0", b"1", b"2")
    assert taken(outbox, now=11.0) == [b"2"]
    assert (outbox.expired, outbox.delivered) == (2, 1)


def test_a_parcel_that_was_dropped_under_way_counts_once() -> None:
    outbox = outbox_of(b"0", b"1", b"2")
    under_way = outbox.first(2.0)
    assert under_way is not None
    outbox.put("t", b"3", 3.0)
    outbox.acknowledge(under_way)
    assert (outbox.overflow, outbox.delivered, len(outbox)) == (1, 0, 3)


def test_a_statement_is_said_once_and_again_on_a_new_link() -> None:
    statements = Statements()
    statements.say("a", b"1")
    statements.say("b", b"1")
    assert statements.first() == ("a", b"1")
    statements.say("a", b"2")
    statements.said("a", b"1")  # overtaken: what stands now is not said yet
    assert statements.first() == ("a", b"2")
    statements.said("a", b"2")
    statements.said("b", b"1")
    statements.say("a", b"2")
    assert statements.first() is None
    statements.repeat()
    assert dict([statements.first()]) == {"a": b"2"}  # type: ignore[list-item]
