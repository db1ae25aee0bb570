"""A gatekeeper beside a sidecar: an application asks about gaze, and hears what released slots tell."""

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from eyestream.errors import CalibrationError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Link, connect
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources import registry
from eyestream.sdk.subscriber import Chunk, subscribe
from eyestream.wire.topics import answer_topic, ask_topic
from eyestream_lab.gatekeeper.desk import MOST_A_SECOND, MOST_STANDING, Desk
from eyestream_lab.gatekeeper.serving import _told, answer_questions
from eyestream_lab.parts import part_of
from eyestream_lab.testing.clocks import until
from tests.rigs.fast_gaze import SPEED
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.sidecar import at_work
from tests.rigs.tile_stream import DEVICE, planned

FIELD = [-36.0, 36.0, -28.0, 28.0]
TILES = {"within": FIELD, "across": 4, "upright": 2}
SLOTS = 6


async def ask(link: Link, **told: Any) -> None:
    await link.publish(ask_topic(DEVICE), msgspec.msgpack.encode(told), qos=0)


async def test_answers_are_those_of_the_released_slots(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "HOST_SPEED", SPEED)
    plan = planned(tmp_path, mosquitto.url)
    create_ledger(plan.settings.sidecar.ledger, created=0)
    heard: list[Any] = []
    chunks: list[Chunk] = []
    endpoint = Endpoint.of(BrokerSettings(mosquitto.url))

    def take(message: Any) -> None:
        heard.append(msgspec.msgpack.decode(message.payload))

    async def collect(source: Any) -> None:
        async for chunk in source:
            chunks.append(chunk)

    keeper = answer_questions(mosquitto.url, DEVICE, calibration=calibrations.load("everyday-tile"))
    async with contextlib.AsyncExitStack() as stack:
        made = stack.enter_context(assemble(plan, lambda: 20_000))
        link = await stack.enter_async_context(connect(endpoint, client_id=None, deliver=take))
        await link.subscribe(answer_topic(DEVICE), 0)
        source = await stack.enter_async_context(subscribe(mosquitto.url, DEVICE, stream="gaze"))
        tasks = [asyncio.create_task(keeper), asyncio.create_task(collect(source))]
        async with asyncio.timeout(60):
            while not heard:  # until the gatekeeper listens
                await ask(link, id="there", question={"ask": "fixations", "within": FIELD, "last_s": 60.0})
                await asyncio.sleep(0.1)
            dwell = {"ask": "dwell", "within": FIELD, "last_s": 60.0}
            await ask(
                link, id="tile", question={"ask": "next tile", "within": FIELD, "across": 4, "upright": 2}, each=True
            )
            await ask(link, id="dwell", question=dwell, each=True)
            await ask(link, id="raw", question={"ask": "raw gaze"})
            await stack.enter_async_context(at_work(made.sidecar))
            await until(lambda: sum(reply["id"] == "dwell" for reply in heard) > SLOTS and len(chunks) >= SLOTS)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert {"id": "raw", "refused": "type"} in heard
    dwelt = [reply["answer"] for reply in heard if reply["id"] == "dwell"][: SLOTS + 1]
    seen = [(chunk.session, float(chunk.values[3, 0]) < 0.5) for chunk in chunks[:SLOTS]]
    so_far = [sum(one for other, one in seen[: k + 1] if other == session) for k, (session, _) in enumerate(seen)]
    np.testing.assert_allclose(dwelt, [0.0, *so_far], atol=1e-6)  # a session may end where the machine pauses
    tiles = [reply for reply in heard if reply["id"] == "tile" and reply.get("answer") is not None]
    assert len(tiles) >= SLOTS - 1
    assert all(0 <= reply["answer"][0] < 4 and 0 <= reply["answer"][1] < 2 for reply in tiles)
    assert [reply["end_s"] for reply in tiles][:3] == sorted(reply["end_s"] for reply in tiles)[:3]


def test_gaze_of_another_kind_is_answered_about_too() -> None:
    """By its entry: a kind without a word and a model of the next slot has everything but the next tile."""
    names, columns = ("gaze_x", "gaze_y", "tested", "spent"), np.zeros((4, 50), np.float32)
    chunk = Chunk(1, 0, names, np.arange(50) / 100, columns, 360.5, 0.0, "")
    desk, asked = Desk(), {"ask": "dwell", "within": FIELD, "last_s": 60.0}
    desk.ask(msgspec.msgpack.encode({"id": "a", "question": asked, "each": True}), 0.0)
    [reply] = _told(desk, 0.5, part_of("kaleido").expecting, chunk)
    assert msgspec.msgpack.decode(reply)["answer"] == 0.5


ODD = (0.0, -1.0, 0.5, 8.0, 1e9, 3e38, np.inf, -np.inf, np.nan)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-9, 3.3, 700.0, 1e308])
@pytest.mark.parametrize("at", [None, 1.7e308, -1.7e308])
def test_a_chunk_of_anybody_ends_no_gatekeeper(epsilon: float, at: float | None) -> None:
    """Who may publish chunks and descriptions chooses names, values, times and epsilon."""
    names = ("word", "gaze_x", "gaze_y", "lost"), ("gaze_x", "gaze_y"), ("word", "other"), ("gaze_x",) * 3
    calibration = calibrations.load("everyday-tile")
    model, desk = part_of("tile").get("expecting", type), Desk()
    assert model is not None
    expecting = model(calibration)
    field = {"within": FIELD, "last_s": 1e308}
    for name, asked in (("fixations", field), ("dwell", field), ("saccades", field), ("next tile", TILES)):
        desk.ask(msgspec.msgpack.encode({"id": name, "question": {"ask": name} | asked, "each": True}), 0.0)
    told = 0
    for session, (kind, value) in enumerate(itertools.product(names, ODD)):
        for index in range(2):
            values = np.full((len(kind), 3), value, np.float32)
            chunk = Chunk(session, index, kind, np.array([0.0, 1e15, 1e15]), values, epsilon, 0.0, "", at)
            told += len(list(_told(desk, 1.0, expecting, chunk)))
    assert told == 2 * 2 * 4 * len(ODD)


async def test_a_calibration_of_rows_is_refused(mosquitto: Mosquitto) -> None:
    with pytest.raises(CalibrationError, match="expected a calibration of gaze, not one of klt"):
        await answer_questions(mosquitto.url, DEVICE, calibration=calibrations.load("everyday-klt-64"))


async def test_hostile_questions_through_a_broker_meet_limits(
    mosquitto: Mosquitto,
) -> None:
    """What is unreadable, huge, deep, too many or retained; the next good one is answered."""
    heard: list[Any] = []
    endpoint, late = Endpoint.of(BrokerSettings(mosquitto.url)), {"last_s": 60.0}
    field = {"within": FIELD} | late

    def refusals(why: str) -> int:
        return sum(reply.get("refused") == why for reply in heard)

    async with (
        connect(
            endpoint, client_id=None, deliver=lambda one: heard.append(msgspec.msgpack.decode(one.payload))
        ) as link,
        asyncio.TaskGroup() as group,
    ):
        kept = msgspec.msgpack.encode({"id": "kept", "question": {"ask": "dwell"} | field})
        await link.publish(ask_topic(DEVICE), kept, qos=1, retain=True)
        await link.subscribe(answer_topic(DEVICE), 0)
        calibration = calibrations.load("everyday-tile")
        keeper = group.create_task(answer_questions(mosquitto.url, DEVICE, calibration=calibration))
        async with asyncio.timeout(60):
            while not heard:  # until the gatekeeper listens
                await ask(link, id="there", question={"ask": "dwell"} | field)
                await asyncio.sleep(0.1)
        assert all(reply["id"] == "there" for reply in heard)  # what was retained is not asked now
        for payload, why in (
            (b"", "not_msgpack"),
            (b"\x91" * 700, "type"),
            (b"\xc1" * 100_000, "oversize"),
            (msgspec.msgpack.encode({"id": "x" * 65, "question": {}}), "id"),
            (
                msgspec.msgpack.encode({"id": "x", "question": {"ask": "dwell", "within": [1, 0, 0, 1], "last_s": 1}}),
                "type",
            ),
            (msgspec.msgpack.encode({"id": "x", "question": {"ask": "raw gaze"}}), "type"),
            (msgspec.msgpack.encode({"id": "x", "stop": True}), "unknown"),
        ):
            before = refusals(why)
            await link.publish(ask_topic(DEVICE), payload, qos=0)
            await until(lambda why=why, before=before: refusals(why) > before)
        for number in range(MOST_STANDING + 1):
            await ask(link, id=str(number), question={"ask": "dwell"} | field, each=True)
            await asyncio.sleep(1.5 / MOST_A_SECOND)
        await until(lambda: refusals("standing") == 1)
        for _ in range(20 * MOST_A_SECOND):
            await link.publish(ask_topic(DEVICE), b"\xc0", qos=0)
        await until(lambda: refusals("rate") > 0)
        await asyncio.sleep(2.1)  # the seconds of the flood are over
        assert len(heard) < 10 * MOST_A_SECOND
        await ask(link, id="after", question={"ask": "dwell"} | field)
        await until(lambda: {"id": "after", "answer": 0.0} in heard)
        keeper.cancel()
