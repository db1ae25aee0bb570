"""What a sender says and in which order, counted in round trips to a broker that is far away."""

import asyncio
from collections.abc import Callable, Sequence

from eyestream.rim.sidecar.sender import Outbox, Sender
from eyestream_lab.testing.clocks import PATIENCE_S, until


class FarLink:
    """Acknowledges statements a round trip at a time, and chunks when it is told to."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.round_trips = 0
        self.acknowledge: Callable[[], None] | None = None
        self.in_between: Callable[[], None] = lambda: None

    resumed = False

    async def state(self, statements: Sequence[tuple[str, bytes]]) -> dict[str, str]:
        self.said += [topic + payload.decode() for topic, payload in statements]
        self.round_trips += 1
        self.in_between()
        await asyncio.sleep(0)
        return {}

    def send(self, topic: str, payload: bytes, acknowledged: Callable[[], None], *more: object, **said: object) -> None:
        self.said.append(topic + payload.decode())
        self.acknowledge = acknowledged


def sender_of(devices: int) -> Sender:
    sender = Sender(Outbox(8, 60.0))
    for device in range(devices):
        sender.retain(f"s{device}=", b"1")
    return sender


async def test_statements_of_many_devices_hold_chunks_up_for_few_round_trips() -> None:
    """They go before the chunks on every new link, and chunks do not wait for ever."""
    sender, link = sender_of(1000), FarLink()
    sender.post("chunk", b"")
    serving = asyncio.create_task(sender.serve(link))  # type: ignore[arg-type]
    await until(lambda: "chunk" in link.said)
    assert link.said == [*(f"s{device}=1" for device in range(1000)), "chunk"]
    assert link.round_trips <= 20
    serving.cancel()


async def test_a_goodbye_of_many_devices_takes_few_round_trips_and_is_the_last_word() -> None:
    sender, link = sender_of(1), FarLink()
    sender.post("chunk", b"")
    serving = asyncio.create_task(sender.serve(link))  # type: ignore[arg-type]
    sender.leave((f"bye{device}", b"") for device in range(1000))
    await until(lambda: link.acknowledge is not None)
    assert not any(word.startswith("bye") for word in link.said)  # not before the chunk is delivered
    link.acknowledge()
    async with asyncio.timeout(PATIENCE_S):
        await serving
    assert link.said == ["s0=1", "chunk", *(f"bye{device}" for device in range(1000))]
    assert link.round_trips <= 21


async def test_what_changes_while_it_is_said_is_said_again_before_the_next_chunk() -> None:
    sender, link = sender_of(2), FarLink()

    def change() -> None:
        link.in_between = lambda: None
        sender.retain("s1=", b"2")
        sender.post("chunk", b"")

    link.in_between = change
    serving = asyncio.create_task(sender.serve(link))  # type: ignore[arg-type]
    await until(lambda: "chunk" in link.said)
    assert link.said == ["s0=1", "s1=1", "s1=2", "chunk"]
    serving.cancel()
