"""Topic filters, many with one packet: a round trip for a hundred and more."""

from collections.abc import Iterable, Iterator

__all__ = ["groups"]

SUBSCRIBE_BYTES = 8192
"""Topic filters in one packet, at most: far below the least packet that the brokers of a deployment take."""

_AROUND = 16
"""Bytes of SUBSCRIBE around its filters, or more."""


def groups(topic_filters: Iterable[str], packet_bytes: int) -> Iterator[list[str]]:
    """The filters in their order, in groups that one packet has room for where a broker takes `packet_bytes`."""
    most = min(SUBSCRIBE_BYTES, packet_bytes - _AROUND)
    group: list[str] = []
    room = most
    for topic_filter in topic_filters:
        size = len(topic_filter.encode(errors="replace")) + 3  # its length before it, the QoS behind it (3.8.3)
        if group and size > room:
            yield group
            group, room = [], most
        group.append(topic_filter)
        room -= size
    if group:
        yield group
