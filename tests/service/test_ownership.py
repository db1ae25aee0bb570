"""A device belongs to one sidecar, seen on a broker of two."""

import asyncio
import logging
import shutil
from pathlib import Path

import msgspec
import pytest

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings, Settings
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Link, Message, connect
from eyestream.rim.ops.check_owners import owner_finding
from eyestream.rim.sdk.publisher import Publisher
from eyestream.rim.sidecar import ownership
from eyestream.rim.sidecar import sidecar as sidecar_module
from eyestream.rim.sidecar.ownership import Ownership
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.testing.clocks import until
from eyestream.wire.status import Owner, Status, encode_owner, encode_status
from eyestream.wire.topics import owner_topic, sidecar_status_topic
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import ceilings_of, opened, raw_stands, running, settings_for
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
    await until(lambda: raw_stands(sidecar) and sidecar.private_stands)


async def refusal(settings: Settings) -> str:
    """Why it does not start."""
    with opened(settings) as sidecar, pytest.raises(ConfigError) as caught:
        async with asyncio.timeout(20):
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
    with Ledger(old.sidecar.ledger, ceilings=ceilings_of(old)) as ledger:
        export = ledger.export_device("hmd-1")
    with Ledger(new.sidecar.ledger, ceilings=ceilings_of(new)) as ledger:
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
        assert "the sidecar a is at work with a copy of this ledger" in await refusal(copy)
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


async def test_of_two_copies_that_began_together_one_ends(
    mosquitto: Mosquitto, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither was there when the other one looked; then each takes the other's place at the broker."""
    settings, second = copied(mosquitto.url, folders), folders[1]
    stop, ends, find_copy = asyncio.Event(), [], Ownership.find_copy
    began = set()

    async def find(self: Ownership, link: Link) -> bool:
        if self in began:
            return await find_copy(self, link)
        began.add(self)
        return False

    monkeypatch.setattr(Ownership, "find_copy", find)

    async def serve(sidecar: Sidecar) -> None:
        try:
            await sidecar.run(stop)
        except ConfigError as error:
            ends.append(str(error))

    with opened(settings) as one, opened(named("a", mosquitto.url, second)) as other:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for sidecar in (one, other):
                group.create_task(serve(sidecar))
            await until(lambda: len(ends) > 0, 50.0)
            stop.set()
    assert len(ends) == 1
    assert "with a copy of this ledger" in ends[0]


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


@pytest.mark.long
@pytest.mark.parametrize("grant", ["", "topic write eyestream/v1/+/sidecar/owner\n"])
async def test_who_may_not_look_is_told_and_works(
    mosquitto: Mosquitto, folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture, grant: str
) -> None:
    caplog.set_level(logging.WARNING, "eyestream")
    acl = folders[0] / "acl"
    acl.write_text(f"topic readwrite eyestream/v1/+/features/+\ntopic write eyestream/v1/+/sidecar/status\n{grant}")
    (folders[1] / "broker").mkdir()
    broker = Mosquitto(folders[1] / "broker", f"acl_file {acl}")
    broker.start()
    try:
        settings = named("a", broker.url, folders[0])
        async with running(settings) as sidecar:
            await stands(sidecar)
        finding = await owner_finding(Endpoint.of(settings.private), settings)
    finally:
        broker.stop()
    assert len([line for line in caplog.messages if "nobody sees whether another sidecar" in line]) == 2  # and check
    assert finding.fault == "the sidecar cannot see what others state"


def heard(owners: Ownership, topic: str, payload: bytes) -> None:
    owners.deliver(Message(topic, payload, True))


def test_what_is_no_word_of_a_sidecar_changes_nothing() -> None:
    changes: list[None] = []
    owners = Ownership("a", "0" * 32, ["hmd-1"], lambda: changes.append(None))
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


def test_however_many_there_are_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "MOST_OTHERS", 100)
    owners = Ownership("a", "0" * 32, ["hmd-1"], lambda: None)
    word = encode_owner(Owner(FOREIGN, ("hmd-9",)))
    for number in range(300):
        heard(owners, owner_topic(f"b{number}"), word)
    assert len(owners._others) == 100
