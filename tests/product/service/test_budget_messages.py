"""What is left of a budget, as applications are told: right, behind each chunk, and of nothing but counters."""

import asyncio
import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from eyestream.cli.ledger_words import budget_words
from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.release.stream import Condition
from eyestream.core.remaining import left_of, without
from eyestream.core.reservation import Request
from eyestream.ops.metrics import health
from eyestream.rim.config import Settings
from eyestream.rim.mqtt.transport import Message, RefusedError
from eyestream.rim.plan import Plan, resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sidecar.boards import BudgetBoard, Odometers
from eyestream.rim.sidecar.sender import Outbox, Sender
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import Chunks, subscribe
from eyestream.streams import StreamKey
from eyestream.wire.status import Budget, Status, decode_budget, encode_budget, encode_status
from eyestream.wire.topics import budget_topic, status_topic
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.memory_ledger import MemoryLedger
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.rig import EPSILON, Rig
from tests.rigs.sidecar import NO_BROKER, at_work, settings_for
from tests.rigs.spy import spying

KEY = StreamKey("d0", "features")
DAY = 20_000
MIDNIGHT = (DAY + 1) * 86_400


def limited(mosquitto: Mosquitto, folder: Path, devices: tuple[str, ...] = ("hmd-1",), **budget: float) -> Settings:
    settings = settings_for(mosquitto.url, folder, devices=devices)
    return msgspec.structs.replace(settings, budget=msgspec.structs.replace(settings.budget, **budget))


async def test_it_is_told_behind_each_chunk_until_nothing_is_left(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """An application with three lines sees the end; a new session and a lower ceiling are told, too."""
    settings = limited(mosquitto, tmp_path, session_epsilon=14.4, day_epsilon=24.0)
    rows = rows_of_a_stranger(160, 52)
    with assemble(resolved(settings), lambda: DAY) as made:
        async with (
            spying(mosquitto.url) as spy,
            at_work(made.sidecar),
            subscribe(mosquitto.url, "hmd-1") as chunks,
        ):
            await until(lambda: health(made.sidecar) == "ok" and chunks.budget is not None)
            assert not chunks.exhausted
            async with Publisher(mosquitto.url, "hmd-1", settings.stream[0].names, 2.0) as publisher:
                await publisher.send(rows)
            async with asyncio.timeout(PATIENCE_S):
                taken = [chunk.index async for chunk in chunks.until_exhausted()]
                await until(lambda: chunks.budget == Budget(0, "session"))
            assert taken == [0, 1, 2]
            assert (chunks.exhausted, chunks.refused, chunks.foreign) == (True, 0, 0)
            async with Publisher(mosquitto.url, "hmd-1", settings.stream[0].names, 2.0) as publisher:
                await publisher.send(rows[:32])
            async with asyncio.timeout(PATIENCE_S):
                assert (await anext(chunks)).index == 0
                await until(lambda: chunks.budget == Budget(1, "day", MIDNIGHT))
                lower = msgspec.structs.replace(settings.budget, day_epsilon=19.2)
                await made.reload(msgspec.structs.replace(settings, budget=lower))
                await until(lambda: chunks.budget == Budget(0, "day", MIDNIGHT))
    told = [tuple(message.values())[1:3] for message in spy.leaf("budget")]
    whole = [(3, "session"), (2, "session"), (1, "session"), (0, "session"), (1, "day"), (0, "day")]
    assert [figure for figure in whole if figure in told] == told, "of a burst, behind its last chunk"
    assert {(3, "session"), (0, "session"), (1, "day"), (0, "day")} <= set(told)
    order = [topic.rpartition("/")[2] for topic, _, _ in spy.messages]
    assert order.index("private") < len(order) - 1 - order[::-1].index("budget")


async def test_it_depends_on_no_value(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """One looks, one blinks all the time, one has a tracker that says nonsense: the same bytes for all three."""
    devices = ("hmd-1", "hmd-2", "hmd-3")
    settings = limited(mosquitto, tmp_path, devices, session_epsilon=48.0)
    looks = rows_of_a_stranger(128, 52)
    gone, wild = np.full_like(looks, np.nan), looks.copy()
    wild[::3], wild[1::3], wild[2::3] = np.inf, -1e30, np.nan
    with assemble(resolved(settings), lambda: DAY) as made:
        async with spying(mosquitto.url) as spy, at_work(made.sidecar):
            await until(lambda: health(made.sidecar) == "ok")
            for device, rows in zip(devices, (looks, gone, wild), strict=True):
                async with Publisher(mosquitto.url, device, settings.stream[0].names, 2.0) as publisher:
                    for start in range(0, 128, 32):
                        await publisher.send(rows[start : start + 32])
                        await until(lambda device=device, start=start: len(spy.chunks(device)) == start // 32 + 1)
                        await until(
                            lambda device=device, start=start: len(spy.leaf("budget", device)) == start // 32 + 2
                        )
    for device in devices:
        order = [topic.rpartition("/")[2] for topic, _, _ in spy.messages if f"/{device}/" in topic]
        told = [leaf for leaf in order if leaf in ("private", "budget")]
        assert told == ["budget", *["private", "budget"] * 4], "behind its chunk, and at no other moment"
    said = [[payload for topic, payload, _ in spy.messages if topic == budget_topic(device)] for device in devices]
    assert len(said[0]) == 5
    assert len(set(said[0])) == 5
    assert said[0] == said[1] == said[2]


async def test_a_chunk_counts_when_it_leaves_and_not_when_its_first_row_comes(tmp_path: Path) -> None:
    """Else one who sees the budget behind chunk 0 would learn whether rows of chunk 1 had come by then."""
    ceilings = Ceilings.of(session=10 * EPSILON)

    async def told(rows: int) -> tuple[list[int], list[int]]:
        """What is left behind each chunk, as it is told and as the ledger has it, when so many rows came."""
        found: list[int] = []
        ledger: list[int] = []
        with Rig(tmp_path / str(rows), ceilings=ceilings, release="on_clock") as rig:

            def look(topic: str, payload: bytes) -> None:
                for figures, odometer in ((found, rig.pipeline.spent("d0")), (ledger, rig.ledger.odometer("d0"))):
                    figures.append(left_of(odometer, ceilings, rig.charge, 0)[0].chunks)

            rig._on_publish = look
            for number, row in enumerate(rows_of_a_stranger(rows, 3)):
                await rig.take(rig.sent(row[None], number))
                await rig.wait(0.5)
            await rig.wait(1.0)
        return found, ledger

    one, more = await told(4), await told(5)
    assert one[0][:1] == more[0][:1] == [9]
    assert one[1][:1] != more[1][:1], "control: the ledger itself knows of the rows that have come"


def test_what_is_left_looks_at_the_streams_own_ceilings_too() -> None:
    charge = Charge.of("0.25")
    ceilings = Ceilings.of(session=2.0, day=3.0, lifetime=3.0)
    own = Ceilings.of(session=5.0, day=1.0)
    both = replace(ceilings, streams={"features": own})
    ledger = MemoryLedger(both)
    ledger.reserve([Request(KEY, 1, 0, 3, 4, charge), Request(StreamKey("d0", "pupil"), 1, 0, 3, 4, charge)], DAY)
    spent = ledger.odometer("d0")
    lefts = [(left.scope, left.chunks, left.resumes_at) for left in left_of(spent, ceilings, charge, DAY)]
    assert lefts == [("session", 6, None), ("lifetime", 10, None), ("day", 10, MIDNIGHT)], (
        "what lasts longer goes first"
    )
    beneath = [(left.scope, left.chunks) for left in left_of(spent, both, charge, DAY, stream="features")]
    assert beneath == [("day", 3), ("session", 6), ("lifetime", 10)]
    assert left_of(spent, ceilings, charge, DAY - 5)[2].resumes_at == MIDNIGHT, "a clock that was set back"
    assert spent is not None
    before = without(spent, {"features": (charge.epsilon, 0)})
    assert (before.epsilon, before.session_epsilon, before.day_epsilon) == (charge.epsilon,) * 3
    assert (before.streams["features"].epsilon, before.streams["pupil"].epsilon) == (0, charge.epsilon)
    assert without(spent, {"features": (10 * charge.epsilon, 0)}).epsilon == 0


async def test_of_many_devices_it_is_said_in_turns_and_a_change_ends_a_session(tmp_path: Path) -> None:
    """A thousand chunks at once hold the loop up for a few devices at a time; each device is said once."""
    devices = tuple(f"d{number}" for number in range(200))
    settings = settings_for(NO_BROKER, tmp_path, devices=devices)
    said: list[tuple[str, Budget]] = []
    condition: dict[StreamKey, Condition] = {StreamKey("d7", "features"): "change"}
    board = BudgetBoard(
        resolved(settings),
        condition=lambda key: condition.get(key, "ready"),
        spent=lambda device: None,
        today=lambda: DAY,
        odometers=Odometers(bytes(16), lambda device: ()),
        say=lambda topic, payload: topic.endswith("budget") and said.append((topic, decode_budget(payload))),
    )
    assert [topic for topic, _ in said] == [budget_topic(device) for device in devices]
    assert dict(said)[budget_topic("d7")] == Budget(0, "session")
    assert dict(said)[budget_topic("d8")] == Budget(208_333, "day", MIDNIGHT)
    said.clear()
    board.note_changes()
    await asyncio.sleep(0)
    assert [topic for topic, _ in said] == [budget_topic("d7")]
    said.clear()
    for device in (*devices, *devices):
        board.note(device)
    turns = []
    while len(said) < 200:
        turns.append(len(said))
        await asyncio.sleep(0)
    assert len(turns) == 4
    assert [topic for topic, _ in said] == [budget_topic(device) for device in devices]


class OneLink:
    """A broker that is about to answer: what was said, in order, and how to let it answer."""

    resumed = False

    def __init__(self) -> None:
        self.said: list[str] = []
        self.answer = asyncio.Event()

    async def state(self, statements: list[tuple[str, bytes]]) -> dict[str, str]:
        self.said += [topic for topic, _ in statements]
        await self.answer.wait()
        return {}

    def send(self, topic: str, payload: bytes, acknowledged: Callable[[], None], *more: object, **said: object) -> None:
        self.said.append(topic)
        self.acknowledge = acknowledged


async def test_no_chunk_waits_for_it() -> None:
    """What is retained goes before chunks; this does not, though the broker has not answered."""
    sender, link = Sender(Outbox(8, 60.0)), OneLink()
    sender.retain_after_chunks("budget", b"1")
    serving = asyncio.create_task(sender.serve(link))  # type: ignore[arg-type]
    await until(lambda: link.said == ["budget"])
    sender.post("chunk", b"")
    assert link.said == ["budget", "chunk"]
    serving.cancel()


async def test_it_overtakes_no_chunk_that_waits() -> None:
    """So who has heard that nothing is left has all chunks."""
    sender, link = Sender(Outbox(8, 60.0)), OneLink()
    serving = asyncio.create_task(sender.serve(link))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    for chunk in ("chunk 0", "chunk 1"):  # a new link has one under way
        sender.post(chunk, b"")
    sender.retain_after_chunks("budget", b"1")
    for _ in range(5):
        await asyncio.sleep(0)
    assert link.said == ["chunk 0"]
    link.acknowledge()
    await until(lambda: link.said == ["chunk 0", "chunk 1", "budget"])
    serving.cancel()


async def test_an_application_without_the_right_to_it_gets_all_else() -> None:
    chunks = Chunks("hmd-1", 4)

    class OldRights:
        async def subscribe_all(self, topics: tuple[str, ...], qos: int) -> None:
            assert budget_topic("hmd-1") not in topics

        async def subscribe(self, topic: str, qos: int) -> None:
            raise RefusedError(f"the broker refuses the subscription to {topic}")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await chunks._serve(OldRights())  # type: ignore[arg-type]
    assert chunks._subscribed.is_set()
    assert chunks.budget is None


async def test_who_waits_for_news_misses_none() -> None:
    chunks, seen = Chunks("hmd-1", 4), []

    def say(topic: Callable[[str], str], payload: bytes) -> None:
        chunks._deliver(Message(topic("hmd-1"), payload, True))

    async def look() -> None:
        while True:
            seen.append((chunks.status, chunks.budget))
            await chunks.changed()

    looking = asyncio.create_task(look())
    await asyncio.sleep(0)
    for payload, topic in (
        (encode_budget(Budget(0, "day", 5)), budget_topic),
        (b"nonsense", budget_topic),
        (encode_status(Status("exhausted", "window")), status_topic),
        (encode_status(Status("exhausted", "day")), status_topic),
    ):
        say(topic, payload)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert seen[-1] == (Status("exhausted", "day"), Budget(0, "day", 5))
    assert len(seen) >= 4
    assert chunks.refused == 1
    async with asyncio.timeout(PATIENCE_S):
        assert [chunk async for chunk in chunks.until_exhausted()] == []
    say(status_topic, encode_status(Status("exhausted", "window")))
    assert not chunks.exhausted, "a window lets the next chunks out"
    looking.cancel()


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (Budget(96, "session"), "96 chunks, 51 min of this session; more with the tracker's next session"),
        (Budget(0, "session"), "nothing of this session; more with the tracker's next session"),
        (Budget(1, "day", 1_795_305_600), "1 chunk, 32 s of this day; more at 2026-11-22 00:00 UTC"),
        (Budget(0, "day", 900), "more than was said last: a day is over since"),
        (Budget(0, "lifetime"), "nothing for ever; then never"),
        (Budget(2**64 - 1, "day", 2**64 - 1), "18446744073709551615 chunks, 11574074 days of this day; then never"),
    ],
)
def test_in_words(left: Budget, words: str) -> None:
    assert budget_words(left, 32.0, 1_795_300_000.0) == words


async def test_the_commands_show_it(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = limited(mosquitto, tmp_path, session_epsilon=19.2)
    out, err = io.StringIO(), io.StringIO()
    with assemble(resolved(settings), lambda: DAY) as made:
        async with at_work(made.sidecar), subscribe(mosquitto.url, "hmd-1") as chunks:
            await until(lambda: health(made.sidecar) == "ok" and chunks.budget is not None)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                words = ["listen", "--device", "hmd-1", "--broker", mosquitto.url, "--chunks", "5"]
                listening = asyncio.create_task(asyncio.to_thread(main, words))
                await until(
                    lambda: "left: 4 chunks, 1 min" in err.getvalue() or "left: 4 chunks, 64 s" in err.getvalue()
                )
                async with Publisher(mosquitto.url, "hmd-1", settings.stream[0].names, 2.0) as publisher:
                    await publisher.send(rows_of_a_stranger(160, 52))
                await until(lambda: "exhausted: nothing more" in err.getvalue())
                said = err.getvalue()
                await asyncio.to_thread(main, ["devices", "--broker", mosquitto.url, "--seconds", "1"])
                await asyncio.to_thread(main, ["devices", "--broker", mosquitto.url, "--seconds", "1", "--json"])
                async with Publisher(mosquitto.url, "hmd-1", settings.stream[0].names, 2.0) as publisher:
                    await publisher.send(rows_of_a_stranger(32, 52))
                await listening
    assert [line for line in said.splitlines() if line.startswith("left")][-1].startswith(
        "left: nothing of this session"
    )
    lines = out.getvalue().splitlines()
    [line] = [line for line in lines if line.startswith("hmd-1")]
    assert "exhausted, session" in line
    assert "left: nothing of this session; more with the tracker's next session" in line
    [told] = [json.loads(line) for line in lines if '"hmd-1"' in line]
    assert told["left"] == {"chunks": 0, "ceiling": "session", "resumes_at": None}


async def test_a_reload_leaves_the_loop_free(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is claimed with other ceilings takes its time: here until the loop has gone round a hundred times."""
    import threading

    settings = limited(mosquitto, tmp_path)
    lower = msgspec.structs.replace(settings, budget=msgspec.structs.replace(settings.budget, day_epsilon=9.6))
    goes_on, lowered = threading.Event(), Plan.lowered

    def slow(plan: Plan, settings: Settings) -> Plan:
        assert goes_on.wait(10), "the loop stands still"
        return lowered(plan, settings)

    monkeypatch.setattr(Plan, "lowered", slow)
    with assemble(resolved(settings), lambda: DAY) as made:
        reloading = asyncio.create_task(made.reload(lower))
        for _ in range(100):
            await asyncio.sleep(0)
        assert made.plan.ceilings.day == Ceilings.of(day=1e6).day, "nothing is taken over before it can be told"
        goes_on.set()
        await reloading
        assert made.plan.ceilings.day == Ceilings.of(day=9.6).day
