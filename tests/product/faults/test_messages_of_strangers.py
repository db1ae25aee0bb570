"""What one login publishes ends nobody's link, through mosquitto: with the access lists that we ship, and with none.

Every command and every part of the library that listens is at work, and then begins again beside what was retained.
Packet by packet, without a broker: tests/product/service/test_messages_of_strangers.py.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from eyestream.monitor.watch import Watch
from eyestream.ops.check_brokers import broker_findings, others_of
from eyestream.ops.check_private import owner_finding
from eyestream.rim.config import BrokerSettings, Settings
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Link, Message, connect
from eyestream.rim.plan import resolved
from eyestream.rim.refusals import AGAIN_S
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sources.gaze import Place
from eyestream.rim.sources.mqtt import MqttOptions, MqttSource
from eyestream.sdk.chunks import Chunks
from eyestream.sdk.discovery import Found, discover, discovering
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.raw import encode_raw
from eyestream.wire.topics import answer_topic, ask_topic
from eyestream_lab.gatekeeper.serving import answer_questions
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.product.faults.deployment import Deployment
from tests.rigs.hostile.properties import KNOWN, Case, cases
from tests.rigs.hostile.thrower import Thrower
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import NAMES

DEVICE = "hmd-1"
EVERY = tuple(cases())
FEW = tuple(case for case in EVERY if case.name in KNOWN)
FIELD = [-36.0, 36.0, -28.0, 28.0]
QUESTION = {"id": "q", "question": {"ask": "fixations", "within": FIELD, "last_s": 60.0}}

LIVE = {
    "tracker": ("features/raw", "gaze/raw"),
    "application": ("gaze/ask",),
    "sidecar": (
        *("features/private", "features/meta", "features/status", "features/budget"),
        *("gaze/private", "gaze/meta", "gaze/status", "sidecar/status", "sidecar/owner"),
    ),
    "gatekeeper": ("gaze/answer",),
}
"""By login: the topics of a device, or of a sidecar, that the shipped access lists let it publish to."""


@dataclass(frozen=True)
class Brokers:
    """The brokers, and how each login gets in."""

    raw: str
    private: str
    deployment: Deployment | None

    def login(self, role: str, side: str) -> BrokerSettings:
        url = self.raw if side == "raw" else self.private
        return BrokerSettings(url) if self.deployment is None else self.deployment.login(role, url)

    def thrower(self, role: str) -> Thrower:
        return Thrower(Endpoint.of(self.login(role, "raw" if role == "tracker" else "private")))


@pytest.fixture(params=["shipped", "open"])
def brokers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, mosquitto: Mosquitto
) -> Iterator[Brokers]:
    if request.param == "open":
        yield Brokers(mosquitto.url, mosquitto.url, None)
        return
    made = Deployment(tmp_path_factory.mktemp("d"))
    made.start()
    yield Brokers(made.raw.url, made.private.url, made)
    made.stop()


def settings_of(brokers: Brokers, folder: Path) -> Settings:
    made = settings_for(brokers.private, folder)
    sides = {side: brokers.login("sidecar", side) for side in ("raw", "private")}
    return msgspec.structs.replace(made, **sides)


@dataclass
class Listeners:
    """All that listens, at work."""

    sidecar: Sidecar
    publisher: Publisher
    chunks: Chunks
    seen: Mapping[tuple[str, str], Found]
    watch: Watch
    gaze: MqttSource
    tasks: tuple["asyncio.Task[None]", ...]
    answers: list[Message]
    ask: Link

    async def check_that_they_work(self) -> None:
        """A chunk comes through, a question is answered, no link was lost and nothing has ended."""
        answered, chunk = len(self.answers), asyncio.ensure_future(anext(self.chunks))
        assert await self.publisher.send(rows_of_a_stranger(32, len(NAMES)))
        await asyncio.wait_for(chunk, PATIENCE_S)
        await self.ask.publish(ask_topic(DEVICE), msgspec.msgpack.encode(QUESTION), qos=1)
        await until(lambda: any(b"refused" not in found.payload for found in self.answers[answered:]))
        assert self.sidecar.links == {"raw": 1, "private": 1}
        assert not any(task.done() for task in self.tasks)


@contextlib.asynccontextmanager
async def at_work(brokers: Brokers, settings: Settings) -> AsyncIterator[Listeners]:
    """Each with the login that it has on the shipped lists."""
    application, gatekeeper = (brokers.login(role, "private") for role in ("application", "gatekeeper"))
    tracker, ready, answers = brokers.login("tracker", "raw"), asyncio.Event(), list[Message]()
    watch = Watch(application)
    gaze = MqttSource(
        MqttOptions(), load_profile("mqtt").at_rate(200.0), Place(DEVICE, brokers.login("sidecar", "raw"))
    )
    listening = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        sidecar = await stack.enter_async_context(running(settings))
        await until(lambda: sidecar.raw_stands and sidecar.private_stands)
        publisher = await stack.enter_async_context(Publisher(tracker, DEVICE, NAMES, 2.0, hold=True))
        chunks = await stack.enter_async_context(subscribe(application, DEVICE))
        seen = await stack.enter_async_context(discovering(application, wait_s=PATIENCE_S))
        endpoint = Endpoint.of(application)
        ask = await stack.enter_async_context(connect(endpoint, client_id=None, deliver=answers.append))
        await ask.subscribe(answer_topic(DEVICE), 0)
        tasks = tuple(
            asyncio.create_task(work)
            for work in (
                watch.run(PATIENCE_S, ready),
                gaze.run(lambda records: listening.set()),
                answer_questions(gatekeeper, DEVICE, calibration=calibrations.load("everyday-tile")),
            )
        )
        await asyncio.wait_for(ready.wait(), PATIENCE_S)
        await asyncio.wait_for(listening.wait(), PATIENCE_S)
        while not any(b"answer" in found.payload for found in answers):  # what strangers left there is none
            await ask.publish(ask_topic(DEVICE), msgspec.msgpack.encode(QUESTION), qos=1)
            await asyncio.sleep(0.1)
        listeners = Listeners(sidecar, publisher, chunks, seen, watch, gaze, tasks, answers, ask)
        try:
            await listeners.check_that_they_work()
            yield listeners
            await listeners.check_that_they_work()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def throw_at(brokers: Brokers, thrown: tuple[Case, ...], *, retain: bool) -> int:
    """Each case at each topic, with each login that may; how many the brokers took.

    What is retained is so under names of its own too, which who begins later hears all.
    """
    taken = 0
    rows = encode_raw(1, 0, rows_of_a_stranger(32, len(NAMES)), 1)
    for role, topics in LIVE.items():
        thrower = brokers.thrower(role)
        for number, case in enumerate(thrown):
            for topic in topics:
                payload = rows if topic == "features/raw" and case.cut else b"\xc1"
                own = "sidecar" if topic.startswith("sidecar") else DEVICE
                for name in (own, f"x{number}") if retain else (own,):
                    taken += await thrower.throw(
                        f"eyestream/v1/{name}/{topic}", case.properties, payload, retain=retain and role != "tracker"
                    )
        for topic in topics:
            for case in thrown if thrown is FEW else ():
                await thrower.die(f"eyestream/v1/{DEVICE}/{topic}", case.properties, b"\xc1", retain=retain)
        thrower.leave()
    return taken


async def begin_again(brokers: Brokers, settings: Settings, thrown: tuple[Case, ...]) -> None:
    """Beside what is retained: what looks once, then all that listens, with each retained question."""
    plan = resolved(settings)
    application = brokers.login("application", "private")
    found = await discover(application, seconds=1.0)
    assert sum(one.unreadable for one in found) >= len(KNOWN)
    sidecar = Endpoint.of(brokers.login("sidecar", "private"))
    assert (await owner_finding(sidecar, settings)).passed
    thrower = brokers.thrower("application")
    if thrown is not FEW:
        for finding in await broker_findings(settings, plan, others_of(settings, None, None)):
            assert "the sidecar gets in" not in finding.what or finding.passed
    for case in FEW:
        assert await thrower.throw(ask_topic(DEVICE), case.properties, b"\xc1", retain=True)
        async with at_work(brokers, settings):
            pass
    thrower.leave()


def no_link_was_lost(caplog: pytest.LogCaptureFixture) -> None:
    assert [line for line in caplog.messages if "trying again" in line or "MQTT as we know it" in line] == []


@pytest.mark.parametrize("thrown", [FEW, pytest.param(EVERY, marks=pytest.mark.long)], ids=["few", "every"])
async def test_nobody_notices(
    brokers: Brokers, thrown: tuple[Case, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "eyestream")
    settings = settings_of(brokers, tmp_path)
    async with at_work(brokers, settings) as listeners:
        for retain in (False, True):
            assert await throw_at(brokers, thrown, retain=retain) >= len(KNOWN) * 12
        counters = listeners.sidecar.pipeline.counters
        assert counters.rejected["oversize"] >= len(KNOWN)
        assert listeners.sidecar.cut["raw"] >= len(KNOWN)
        assert listeners.sidecar.cut["private"] >= len(KNOWN)
        assert listeners.gaze.refused["oversize"] >= len(KNOWN)
        assert listeners.chunks.refusals["oversize"] >= len(KNOWN)
        assert listeners.seen[DEVICE, "features"].unreadable >= len(KNOWN)
        no_link_was_lost(caplog)
    await begin_again(brokers, settings, thrown)
    no_link_was_lost(caplog)
    said, links = (
        [one.created for one in caplog.records if words in one.getMessage()]
        for words in ("a message of others is left out", ": connected to ")
    )
    assert 3 <= len(said) <= len(links) * (1 + (said[-1] - said[0]) // AGAIN_S)  # one a link, and again after a while
