"""A device belongs to one sidecar, seen on a broker of two."""

import asyncio
import contextlib
import gc
import logging
import random
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from eyestream.errors import ConfigError
from eyestream.ops.check_private import owner_finding
from eyestream.rim.config import BrokerSettings, Settings
from eyestream.rim.ledger.identity import client_id, ledger_name, presence_key, presence_proof
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Backoff, Link, Message, connect
from eyestream.rim.refusals import AGAIN_S
from eyestream.rim.sidecar import ownership
from eyestream.rim.sidecar import sidecar as sidecar_module
from eyestream.rim.sidecar.ownership import Ownership, UnseenError
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.sdk.publisher import Publisher
from eyestream.wire.status import Owner, Status, encode_owner, encode_status
from eyestream.wire.topics import owner_topic, sidecar_status_topic
from eyestream_lab.testing.clocks import PATIENCE_S, simulated, until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import ceilings_of, opened, running, settings_for
from tests.rigs.spy import spying
from tests.rigs.storms import NAMES

FOREIGN = "f" * 32


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """For two ledgers."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    return tmp_path / "first", tmp_path / "second"


def named(name: str, url: str, folder: Path, *devices: str) -> Settings:
    settings = settings_for(url, folder, devices=devices or ("hmd-1",))
    return msgspec.structs.replace(settings, sidecar=msgspec.structs.replace(settings.sidecar, name=name))


def copied(url: str, folders: tuple[Path, Path]) -> Settings:
    """Of a sidecar "a" in the first folder, whose whole folder is copied into the second one."""
    settings = named("a", url, folders[0])
    with opened(settings):
        pass
    shutil.copytree(*folders, dirs_exist_ok=True)
    return settings


async def stands(sidecar: Sidecar) -> None:
    await until(lambda: sidecar.raw_stands and sidecar.private_stands)


async def refusal(settings: Settings) -> str:
    """Why it does not start."""
    with opened(settings) as sidecar, pytest.raises(ConfigError) as caught:
        async with asyncio.timeout(PATIENCE_S):
            await sidecar.run(asyncio.Event())
    return str(caught.value)


async def test_who_states_a_device_of_another_does_not_start(mosquitto: Mosquitto, folders: tuple[Path, Path]) -> None:
    first, second = folders
    rival = named("b", mosquitto.url, second, "hmd-2", "hmd-1")
    async with running(named("a", mosquitto.url, first)) as sidecar, spying(mosquitto.url) as spy:
        await stands(sidecar)
        why = await refusal(rival)
        assert "[[device]] hmd-1: the sidecar a states it" in why
        assert "budget --export" in why
        finding = await owner_finding(Endpoint.of(rival.private), rival)
        assert finding.fault is not None
        assert "hmd-1" in finding.fault
        async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
            assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
            await until(lambda: spy.chunks() == [0])
        assert sidecar.links["private"] == 1  # nobody took its place to find that out
    assert "sidecar a states" in await refusal(rival)  # it is stopped, and its ledger has what was spent
    assert read_ledger(rival.sidecar.ledger).odometers == {}


async def test_two_of_one_name(
    mosquitto: Mosquitto, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits whether the other one is dead and not yet said to be; it is not."""
    monkeypatch.setattr(sidecar_module, "WILL_DELAY_SECONDS", 0)
    monkeypatch.setattr(sidecar_module, "GOODBYE_SECONDS", 1.0)
    first, second = folders
    rival = named("a", mosquitto.url, second, "hmd-2")
    async with running(named("a", mosquitto.url, first)) as sidecar:
        await stands(sidecar)
        assert "another sidecar with another ledger is at work as a" in await refusal(rival)
        assert sidecar.links["private"] == 1
    async with running(rival) as sidecar:  # the other one has stopped, and its devices are others
        await stands(sidecar)
        await asyncio.sleep(0.2)
        assert sidecar.pipeline.disputed == frozenset()


async def test_a_device_that_was_moved_is_the_new_one_s_though_the_old_words_stand(
    mosquitto: Mosquitto, folders: tuple[Path, Path]
) -> None:
    first, second = folders
    old, new = named("a", mosquitto.url, first), named("b", mosquitto.url, second)
    async with running(old) as sidecar, Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
        await stands(sidecar)
        assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
        await until(lambda: sidecar.pipeline.counters.released == 1)
    assert "sidecar a states" in await refusal(new)
    name = ledger_name(read_ledger(new.sidecar.ledger).header.ledger_id)
    with OperatedLedger(old.sidecar.ledger, ceilings=ceilings_of(old)) as ledger:
        export = ledger.export_device("hmd-1", name)
    with OperatedLedger(new.sidecar.ledger, ceilings=ceilings_of(new)) as ledger:
        ledger.import_device(export)
    finding = await owner_finding(Endpoint.of(new.private), new)
    assert finding.passed, finding
    async with running(new) as sidecar, Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
        await stands(sidecar)
        assert await publisher.send(rows_of_a_stranger(32, len(NAMES)))
        await until(lambda: sidecar.pipeline.counters.released == 1)
    assert read_ledger(new.sidecar.ledger).odometers["hmd-1"].released == 2


async def test_a_copy_of_a_ledger_at_work_is_another_s_and_one_that_has_stopped_is_an_earlier_self(
    mosquitto: Mosquitto, folders: tuple[Path, Path]
) -> None:
    """A sidecar's folder is copied, and given another name: each ledger would know of half of what is spent."""
    settings, second = copied(mosquitto.url, folders), folders[1]
    copy = named("b", mosquitto.url, second)
    async with running(settings) as sidecar:
        await stands(sidecar)
        assert "a is at work already, with a copy of this ledger" in await refusal(copy)
        finding = await owner_finding(Endpoint.of(copy.private), copy)
        assert finding.fault is not None
        assert "copy of this ledger" in finding.fault
    async with running(named("renamed", mosquitto.url, folders[0])) as sidecar:
        await stands(sidecar)
        assert sidecar.pipeline.disputed == frozenset()


async def test_a_copy_of_a_whole_folder_does_not_start_beside_the_first(
    mosquitto: Mosquitto, folders: tuple[Path, Path]
) -> None:
    """Name, ledger and client id are the same; the first one is asked, and keeps its link."""
    settings, second = copied(mosquitto.url, folders), folders[1]
    async with running(settings) as sidecar:
        await stands(sidecar)
        assert "a is at work already, with a copy of this ledger" in await refusal(named("a", mosquitto.url, second))
        assert sidecar.links["private"] == 1
        assert sidecar.pipeline.disputed == frozenset()


async def test_of_two_copies_that_began_together_one_ends(mosquitto: Mosquitto, folders: tuple[Path, Path]) -> None:
    """Nothing that is stated says that there could be another one: whose link the other one takes asks, and ends."""
    settings, second = copied(mosquitto.url, folders), folders[1]
    stop, ends = asyncio.Event(), []

    async def serve(sidecar: Sidecar) -> None:
        try:
            await sidecar.run(stop)
        except ConfigError as error:
            ends.append(str(error))

    for name in ("a", "b"):  # also under another name
        with opened(settings) as one, opened(named(name, mosquitto.url, second)) as other:
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                for sidecar in (one, other):
                    group.create_task(serve(sidecar))
                await until(lambda: len(ends) > 0, 50.0)
                await until(lambda: one.private_stands != other.private_stands)
                stop.set()
        assert len(ends) == 1
        assert "with a copy of this ledger" in ends.pop()
        stop.clear()
        async with connect(Endpoint.of(settings.private), client_id=None, deliver=print) as link:
            await link.publish(owner_topic("a"), b"", qos=1, retain=True)


async def test_after_a_crash_the_same_sidecar_starts_though_it_is_said_to_be_at_work(
    mosquitto: Mosquitto, folders: tuple[Path, Path]
) -> None:
    """The broker has died with it and has kept its words: nobody answers."""
    settings = named("a", mosquitto.url, folders[0])
    async with running(settings) as sidecar:
        await stands(sidecar)
        status, owner = sidecar_status_topic("a"), sidecar._owners.statement
    async with connect(Endpoint.of(settings.private), client_id=None, deliver=print) as link:
        await link.publish(*owner, qos=1, retain=True)
        await link.publish(status, encode_status(Status("online", "ready")), qos=1, retain=True)
    async with running(settings) as sidecar:
        await stands(sidecar)
        assert sidecar.pipeline.disputed == frozenset()


async def test_whoever_sends_a_sidecar_its_own_words_and_old_proofs_again_does_not_lock_it_out(
    mosquitto: Mosquitto, folders: tuple[Path, Path]
) -> None:
    """A stranger answers each question with all that was ever said there, and so ends nobody."""
    settings = named("a", mosquitto.url, folders[0])
    ledger = ledger_name(read_ledger(settings.sidecar.ledger).header.ledger_id)
    heard: dict[tuple[str, bytes], None] = {}
    questions: set[str] = set()
    answering: list[asyncio.Task[None]] = []

    async def answer(question: str) -> None:
        for topic, payload in list(heard):
            await link.publish(topic, payload, qos=1)
            await link.publish(question, payload, qos=1)

    def hear(message: Message) -> None:
        if message.payload:
            heard[message.topic, message.payload] = None
        elif "/look-" in message.topic and message.topic not in questions:
            questions.add(message.topic)
            answering.append(asyncio.create_task(answer(message.topic)))

    async with connect(Endpoint.of(settings.private), client_id=None, deliver=hear) as link:
        await link.subscribe_all(["eyestream/v1/+/sidecar/owner"], 1)
        for _ in range(3):
            async with running(settings) as sidecar:
                await stands(sidecar)
                await link.publish(owner_topic(f"look-{ledger}-{'0' * 26}"), b"", qos=1)  # so he collects proofs
                await until(lambda: any(topic.endswith(f"{'0' * 26}/sidecar/owner") for topic, _ in heard))
                await until(lambda: all(task.done() for task in answering))
                assert sidecar.links["private"] == 1
                assert sidecar.pipeline.disputed == frozenset()
            online = encode_status(Status("online", "ready"))
            await link.publish(sidecar_status_topic("a"), online, qos=1, retain=True)  # so the next one waits
    assert len(questions) >= 3
    assert sum(len(payload) for _, payload in heard) > 0


async def test_a_sidecar_knows_its_own_words(mosquitto: Mosquitto, folders: tuple[Path, Path]) -> None:
    settings = named("a", mosquitto.url, folders[0])
    for _ in range(2):
        async with running(settings) as sidecar:
            await stands(sidecar)
            finding = await owner_finding(Endpoint.of(settings.private), settings)
            assert finding.passed, finding
        with Ledger(settings.sidecar.ledger, ceilings=ceilings_of(settings)) as ledger:
            ledger._writer.rewrite()  # it is the same ledger still
    async with running(named("renamed", mosquitto.url, folders[0])) as sidecar:  # the same ledger
        await stands(sidecar)


async def test_what_is_stated_by_another_later_is_withheld_until_it_is_not(
    mosquitto: Mosquitto, folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    settings = named("a", mosquitto.url, folders[0], "hmd-1", "hmd-2")
    word = encode_owner(Owner(FOREIGN, ("hmd-1",)))

    def states(device: str) -> list[tuple[str, str]]:
        return spy.states(device)

    async with (
        spying(mosquitto.url) as spy,
        running(settings) as sidecar,
        connect(Endpoint.of(BrokerSettings(mosquitto.url)), client_id=None, deliver=print) as link,
    ):
        await stands(sidecar)
        await until(lambda: states("hmd-1")[-1:] == [("online", "ready")])
        await link.publish(owner_topic("b"), word, qos=1, retain=True)
        await until(lambda: states("hmd-1")[-1:] == [("degraded", "owner")])
        assert states("hmd-2")[-1] == ("online", "ready")
        async with (
            Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as one,
            Publisher(mosquitto.url, "hmd-2", NAMES, 2.0) as two,
        ):
            for publisher in (one, two):
                assert await publisher.send(rows_of_a_stranger(64, len(NAMES)))
            await until(lambda: spy.chunks("hmd-2") == [0, 1])
            await until(lambda: sidecar.pipeline.counters.withheld["owner"] == 2)
            assert read_ledger(settings.sidecar.ledger).odometers.keys() == {"hmd-2"}
            await link.publish(owner_topic("b"), b"", qos=1, retain=True)
            await until(lambda: states("hmd-1")[-1:] == [("online", "ready")])
            assert await one.send(rows_of_a_stranger(64, len(NAMES)))
            await until(lambda: len(spy.chunks("hmd-1")) == 2)
    assert "the sidecar b states it" in caplog.text


async def test_a_broker_that_is_away_at_first_is_looked_at_when_it_is_there(
    mosquitto: Mosquitto, folders: tuple[Path, Path]
) -> None:
    async with connect(Endpoint.of(BrokerSettings(mosquitto.url)), client_id=None, deliver=print) as link:
        await link.publish(owner_topic("b"), encode_owner(Owner(FOREIGN, ("hmd-1",))), qos=1, retain=True)
        settings = named("a", mosquitto.url, folders[0])
    (folders[0] / "broker").mkdir()
    late = Mosquitto(folders[0] / "broker", "persistence true", f"persistence_location {folders[0]}/broker/")
    late.start()
    try:
        async with connect(Endpoint.of(BrokerSettings(late.url)), client_id=None, deliver=print) as link:
            await link.publish(owner_topic("b"), encode_owner(Owner(FOREIGN, ("hmd-1",))), qos=1, retain=True)
        late.stop()
        settings = named("a", late.url, folders[0])
        asking = asyncio.create_task(refusal(settings))
        await asyncio.sleep(0.5)
        assert not asking.done()
        late.start()
        assert "the sidecar b states it" in await asking
    finally:
        late.stop()


@pytest.mark.parametrize("grant", ["", "topic write eyestream/v1/+/sidecar/owner\n"])
async def test_who_may_not_look_does_not_start_and_says_what_it_needs(
    mosquitto: Mosquitto,
    folders: tuple[Path, Path],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    grant: str,
) -> None:
    """Refused, or granted and silent; when the rights are there, it starts by itself."""
    monkeypatch.setattr(ownership, "QUIET_SECONDS", 0.3)
    monkeypatch.setattr(Backoff, "pause", lambda self: 0.1)
    caplog.set_level(logging.WARNING, "eyestream")
    acl = folders[0] / "acl"
    rights = f"topic readwrite eyestream/v1/+/features/+\ntopic write eyestream/v1/+/sidecar/status\n{grant}"
    acl.write_text(rights)
    (folders[1] / "broker").mkdir()
    broker = Mosquitto(folders[1] / "broker", f"acl_file {acl}")
    broker.start()
    try:
        settings = named("a", broker.url, folders[0])
        async with running(settings) as sidecar:
            await until(lambda: "cannot see whether another sidecar states the same devices" in caplog.text)
            await asyncio.sleep(0.5)
            assert sidecar.links == {"raw": 0, "private": 0}
            finding = await owner_finding(Endpoint.of(settings.private), settings)
            acl.write_text(rights + "topic readwrite eyestream/v1/+/sidecar/owner\n")
            broker.signal(signal.SIGHUP)
            await stands(sidecar)
    finally:
        broker.stop()
    assert len([line for line in caplog.messages if "private.acl" in line]) == 1
    assert finding.fault == "the sidecar cannot see what others state"


async def test_words_that_are_many_are_heard_to_their_end_before_a_sidecar_starts(
    mosquitto: Mosquitto, folders: tuple[Path, Path]
) -> None:
    """On a broker with mosquitto's own queue of 1,000 messages, and with the rival's word among 3,000 others."""
    (folders[1] / "broker").mkdir()
    broker = Mosquitto(folders[1] / "broker", "max_queued_messages 1000")
    broker.start()
    try:
        settings = named("a", broker.url, folders[0])
        invented = encode_owner(Owner(FOREIGN, ("hmd-9",)))
        async with connect(Endpoint.of(settings.private), client_id=None, deliver=print) as link:
            for start in range(0, 3000, 500):
                await link.state((owner_topic(f"x{number}"), invented) for number in range(start, start + 500))
        owners = ownership_of("a", "hmd-1")
        async with connect(Endpoint.of(settings.private), client_id=None, deliver=owners.deliver) as link:
            await owners.look(link)
        assert owners._heard >= 3000
    finally:
        broker.stop()


class Slow(Link):
    """A link over which the question comes back after `pauses` words of strangers, or never."""

    def __init__(self, owners: Ownership, pauses: int | None) -> None:
        self._owners, self._pauses = owners, pauses

    async def subscribe_all(self, topic_filters: Sequence[str], qos: int) -> None:
        """Grant it."""

    async def publish(self, topic: str, payload: bytes, **more: Any) -> None:
        """Give it back, late."""
        self._task = asyncio.create_task(self._deliver(topic))

    async def _deliver(self, question: str) -> None:
        for number in range(100_000 if self._pauses is None else self._pauses):
            await asyncio.sleep(ownership.QUIET_SECONDS * 0.9)
            heard(self._owners, owner_topic(f"x{number}"), encode_owner(Owner(FOREIGN, ("hmd-9",))))
        heard(self._owners, question, b"")


def test_a_slow_broker_is_waited_for_while_words_come_and_a_silent_one_is_no_answer() -> None:
    async def look(pauses: int | None) -> float:
        owners = ownership_of("a", "hmd-1")
        await owners.look(Slow(owners, pauses))
        return asyncio.get_running_loop().time()

    assert simulated(look(10)) > 8 * ownership.QUIET_SECONDS
    for endless in (None, 1000):
        with pytest.raises(UnseenError, match="does not come back in time"):
            simulated(look(endless))

    async def silent() -> None:
        owners = ownership_of("a", "hmd-1")
        link = Slow(owners, 0)
        link._deliver = lambda question: asyncio.sleep(0)  # type: ignore[method-assign]
        await owners.look(link)

    with pytest.raises(UnseenError, match="does not come back in time"):
        simulated(silent())


def ownership_of(name: str, *devices: str, changed: Callable[[], None] = lambda: None) -> Ownership:
    return Ownership(name, b"l" * 16, devices, changed)


def heard(owners: Ownership, topic: str, payload: bytes) -> None:
    owners.deliver(Message(topic, payload, True))


def test_what_is_no_word_of_a_sidecar_changes_nothing() -> None:
    changes: list[None] = []
    owners = ownership_of("a", "hmd-1", changed=lambda: changes.append(None))
    word = encode_owner(Owner(FOREIGN, ("hmd-1",)))
    for payload in (b"x", word[:-1], word + b"\0", b"\x80", encode_owner(Owner(FOREIGN, ("hmd-10",)))):
        heard(owners, owner_topic("b"), payload)
    for topic in (
        "t",
        "eyestream/v1/b/features/owner",
        "eyestream/v2/b/sidecar/owner",
        "eyestream/v1/b c/sidecar/owner",
    ):
        heard(owners, topic, word)
    heard(owners, sidecar_status_topic("a"), b"no status")
    assert (owners.disputed, owners.fault, changes) == (frozenset(), None, [])


async def test_a_flood_of_words_does_not_hide_a_rival_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be remembered stays disputed; what names no device of ours is not remembered at all."""
    monkeypatch.setattr(ownership, "MOST_STATED", 100)
    owners = ownership_of("a", "hmd-1", "hmd-2")
    for number in range(300):
        heard(owners, owner_topic(f"a{number}"), encode_owner(Owner(FOREIGN, ("hmd-9",))))
        heard(owners, owner_topic(f"b{number}"), encode_owner(Owner(FOREIGN, ("hmd-1",))))
    assert (len(owners._words), sum(map(len, owners._rivals.values()))) == (100, 101)
    heard(owners, owner_topic("true-rival"), encode_owner(Owner(FOREIGN, ("hmd-2",))))
    assert owners.disputed == {"hmd-1", "hmd-2"}
    for number in range(300):
        heard(owners, owner_topic(f"b{number}"), b"")
    assert owners.disputed == {"hmd-1", "hmd-2"}
    assert "one of very many" in str(owners.fault)


async def test_a_device_is_disputed_while_some_word_of_another_ledger_states_it() -> None:
    """As a plain recount of the last words says, whatever they are."""
    chance = random.Random(1)
    devices = [f"hmd-{number}" for number in range(6)]
    owners, words = ownership_of("a", *devices[:4]), dict[str, tuple[str, ...]]()
    for _ in range(3000):
        sidecar = chance.choice(["b", "c", "d"])
        stated = tuple(chance.sample(devices, chance.randrange(5)))
        words[sidecar] = stated
        heard(owners, owner_topic(sidecar), encode_owner(Owner(FOREIGN, stated)) if stated else b"")
        assert owners.disputed == set(devices[:4]) & {device for said in words.values() for device in said}
        assert (owners.fault is None) == (not owners.disputed)
    assert owners._remembered == sum(map(len, owners._words.values()))


@pytest.mark.parametrize("own", [1, 4000])
async def test_what_a_word_costs_does_not_grow_with_the_words_before_it_nor_with_our_devices(own: int) -> None:
    """In calls of Python, which are counted: load does not change them."""
    owners = ownership_of("a", *(f"hmd-{number}" for number in range(own)))
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    costs = []
    gc.disable()  # what is called at a collection would count as the word's
    try:
        for number in range(2000):
            payload = encode_owner(Owner(FOREIGN, (f"hmd-{number}",)))
            message = Message(owner_topic(f"x{number}"), payload, True)
            calls = 0
            sys.setprofile(count)
            owners.deliver(message)
            sys.setprofile(None)
            costs.append(calls)
    finally:
        gc.enable()
    assert len(owners.disputed) == min(own, 2000)
    assert max(costs[1:]) < 60


def test_words_that_come_and_go_are_said_at_once_then_seldom_and_how_it_is_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A rival that comes while it is quiet is in the log when the time is over."""
    ours, word = owner_topic("a"), encode_owner(Owner(FOREIGN, ("hmd-1",)))

    async def words() -> None:
        owners = ownership_of("a", "hmd-1")
        heard(owners, owner_topic("b"), word)
        assert [line.partition(":")[0] for line in caplog.messages] == ["[[device]] hmd-1"]
        heard(owners, owner_topic("b"), b"")
        assert caplog.messages[1:] == ["nobody else states a device of ours or is at work under our name any more"]
        for number in range(250):
            topic = ours if number % 2 else owner_topic(f"x{number}")
            heard(owners, topic, word)
            heard(owners, topic, b"")
        heard(owners, owner_topic("rival"), word)
        assert len(caplog.messages) == 2
        await asyncio.sleep(AGAIN_S - 1.0)
        assert len(caplog.messages) == 2
        await asyncio.sleep(1.1)
        (line,) = caplog.messages[2:]
        assert line.startswith("[[device]] hmd-1: the sidecar rival states it")
        assert line.endswith("nothing of what is disputed is released (501 changes since it was last said)")
        heard(owners, owner_topic("rival"), b"")
        assert len(caplog.messages) == 4
        for _ in range(2):
            heard(owners, owner_topic("rival"), word)
            heard(owners, owner_topic("rival"), b"")
        await asyncio.sleep(AGAIN_S)
        (line,) = caplog.messages[4:]
        assert line.endswith("under our name any more (4 changes since it was last said)")
        await asyncio.sleep(10 * AGAIN_S)
        assert len(caplog.messages) == 5

    simulated(words())


def test_an_answer_proves_nothing_but_that_its_question_was_heard_by_who_has_the_ledger() -> None:
    ours, other = presence_key(b"l" * 16), presence_key(b"m" * 16)
    nonce = "0" * 26
    proof = presence_proof(ours, nonce, "a")
    assert proof != presence_proof(ours, "1" * 26, "a")
    assert proof != presence_proof(ours, nonce, "b")
    assert proof != presence_proof(other, nonce, "a")
    told = {
        ledger_name(b"l" * 16),
        client_id(b"l" * 16, f"a {nonce}"),
        client_id(b"l" * 16, "private"),
        ours.hex()[:32],
    }
    assert proof not in told
    for wrong in ("", "0" * 25, "0" * 27, "g" * 26, "0" * 25 + "A"):
        owners = ownership_of("a", "hmd-1")
        said: list[str] = []
        owners._link = cast("Link", SimpleNamespace(send=lambda topic, *_: said.append(topic)))  # noqa: B023
        heard(owners, owner_topic(f"look-{ledger_name(b'l' * 16)}-{nonce}"), b"")
        assert len(said) == 1
        with contextlib.suppress(ConfigError):
            heard(owners, owner_topic(f"look-{ledger_name(b'l' * 16)}-{wrong}"), b"")
        assert len(said) == 1, "nobody has us hash what is no question"


def test_who_asks_without_end_gets_bounded_answers() -> None:
    owners, settled = ownership_of("a", "hmd-1"), []
    owners._link = cast("Link", SimpleNamespace(send=lambda topic, payload, done, refused: settled.append(done)))
    for number in range(1000):
        heard(owners, owner_topic(f"look-{ledger_name(b'l' * 16)}-{number:026x}"), b"")
    assert len(settled) == ownership.MOST_ANSWERS
    settled[0]()
    heard(owners, owner_topic(f"look-{ledger_name(b'l' * 16)}-{'f' * 26}"), b"")
    assert len(settled) == ownership.MOST_ANSWERS + 1
