"""Released bytes wait in order, bounded, and not for ever; retained messages stand until the broker has them."""

from eyestream.rim.sidecar.sender import UNDER_WAY, Outbox, OutboxEntry, RetainedMessages


def outbox_of(*payloads: bytes, length: int = 3) -> Outbox:
    outbox = Outbox(length, lifetime_s=10.0)
    for at, payload in enumerate(payloads):
        outbox.put("t", payload, float(at))
    return outbox


def taken(outbox: Outbox, now: float = 5.0) -> list[bytes]:
    payloads = []
    while entry := outbox.first(now):
        payloads.append(entry.payload)
        outbox.acknowledge(entry, now)
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
    outbox.acknowledge(under_way, 3.0)
    assert (outbox.overflow, outbox.delivered, len(outbox)) == (1, 0, 3)


def send(outbox: Outbox, now: float = 1.0) -> list[OutboxEntry]:
    entries = []
    while outbox.has_room(now) and (entry := outbox.first(now)) is not None:
        outbox.sent(entry, now)
        entries.append(entry)
    return entries


def opened(length: int, count: int) -> tuple[Outbox, list[OutboxEntry]]:
    """An outbox whose link has kept up; its first entries are under way."""
    outbox = Outbox(length, lifetime_s=8.0)
    for _ in range(2 * UNDER_WAY):
        outbox.put("t", b"before", 0.0)
        for entry in send(outbox, 0.0):
            outbox.acknowledge(entry, 0.9)
    outbox.delivered = 0
    for number in range(count):
        outbox.put("t", b"%d" % number, 0.0)
    return outbox, send(outbox)


def payloads_of(entries: list[OutboxEntry]) -> list[int]:
    return [int(entry.payload) for entry in entries]


def test_so_many_are_under_way_and_no_more() -> None:
    outbox, entries = opened(40, 40)
    assert payloads_of(entries) == list(range(UNDER_WAY))
    outbox.acknowledge(entries[0], 1.5)
    outbox.acknowledge(entries[0], 1.5)  # twice is once
    assert payloads_of(send(outbox, 1.5)) == [UNDER_WAY]
    assert (outbox.delivered, len(outbox)) == (1, 39)


def test_a_link_is_tried_with_one_and_gets_more_as_it_keeps_up() -> None:
    outbox = outbox_of(*(b"%d" % i for i in range(40)), length=40)
    sizes = []
    for turn in range(4):
        entries = send(outbox, turn / 10)
        sizes.append(len(entries))
        for entry in entries:
            outbox.acknowledge(entry, turn / 10)
    assert sizes == [1, 2, 4, 8]


def test_a_link_that_is_late_gets_one_at_a_time_and_one_that_is_overdue_none() -> None:
    outbox, entries = opened(40, 20)
    outbox.acknowledge(entries[0], 1.5)
    assert not outbox.has_room(2.0)  # the oldest of them was sent a second ago, an eighth of its lifetime
    for entry in entries[1:]:
        outbox.acknowledge(entry, 2.0)
    assert payloads_of(send(outbox, 2.0)) == [UNDER_WAY]


def test_what_was_under_way_is_sent_again_before_all_others_and_in_order() -> None:
    outbox, entries = opened(8, 8)
    assert len(entries) == 4  # a small outbox keeps room for those that wait
    outbox.acknowledge(entries[1], 1.0)
    outbox.recall()
    outbox.acknowledge(entries[0], 1.0)  # the old link had the last word
    assert len(send(outbox)) == 1  # it is a new link
    outbox.recall()
    assert [int(payload) for payload in taken(outbox, 1.0)] == [2, 3, 4, 5, 6, 7]
    assert outbox.delivered == 8


def test_what_is_under_way_is_neither_dropped_nor_expired_until_it_is_recalled() -> None:
    outbox, entries = opened(4, 4)
    assert payloads_of(entries) == [0, 1]
    outbox.put("t", b"4", 4.0)
    assert (outbox.overflow, len(outbox)) == (1, 4)  # number 2
    assert outbox.first(100.0) is None
    assert (outbox.expired, len(outbox)) == (2, 2)
    outbox.recall()
    assert outbox.first(100.0) is None
    assert (outbox.expired, len(outbox)) == (4, 0)


def test_an_outbox_of_one() -> None:
    outbox, entries = opened(1, 1)
    assert payloads_of(entries) == [0]
    outbox.put("t", b"1", 1.0)
    assert (outbox.overflow, len(outbox), outbox.has_room(1.0)) == (1, 1, False)


def test_a_statement_is_said_once_and_again_on_a_new_link() -> None:
    messages = RetainedMessages()
    messages.retain("a", b"1")
    messages.retain("b", b"1")
    assert messages.first(9) == [("a", b"1"), ("b", b"1")]
    assert messages.first(1) == [("a", b"1")]
    messages.retain("a", b"2")
    messages.acknowledged("a", b"1")  # overtaken: what stands now is not sent yet
    assert messages.first(1) == [("a", b"2")]
    messages.acknowledged("a", b"2")
    messages.acknowledged("b", b"1")
    messages.retain("a", b"2")
    assert (len(messages), messages.first(1)) == (0, [])
    messages.resend_all()
    assert dict(messages.first(9)) == {"a": b"2", "b": b"1"}
