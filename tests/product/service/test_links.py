"""What a sidecar says on its links to brokers with chosen faults, packet by packet."""

import asyncio
import logging
from pathlib import Path

import msgpack
import pytest

from eyestream.errors import ConfigError, LinkError
from eyestream.rim.config import BrokerSettings, LimitSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Will, connect
from eyestream.rim.sidecar import sidecar as sidecar_module
from eyestream.wire.topics import raw_topic
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.scripted import ScriptedBroker
from tests.rigs.sidecar import client_ids, running, settings_for

OWN = "eyestream/v1/sidecar/sidecar/status"


def reason(broker: ScriptedBroker) -> str:
    """Why the sidecar is in the state that a late application would read."""
    return str(msgpack.unpackb(broker.retained[OWN])["reason"]) if OWN in broker.retained else ""


@pytest.mark.long
@pytest.mark.parametrize("again_s", [(1.5,), ()])
async def test_a_will_that_comes_after_the_new_status_does_not_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again_s: tuple[float, ...]
) -> None:
    """A broker of many threads: the session is taken over, the new status is taken, then the old will is published."""
    monkeypatch.setattr(sidecar_module, "AGAIN_SECONDS", again_s)
    async with ScriptedBroker(will_delay_s=1.8) as broker, running(settings_for(broker.url, tmp_path)) as sidecar:
        await until(lambda: reason(broker) == "ready")
        await asyncio.sleep(0.4)  # the words of the first link are all said
        broker.drop(client_ids(sidecar)[0])
        await until(lambda: sidecar._private.links == 2 and sidecar.private_stands)
        await until(lambda: reason(broker) == "lost")
        if again_s:
            await until(lambda: reason(broker) == "ready", 2)
        else:  # control: the will stands, and nothing would ever be said against it
            await asyncio.sleep(1)
            assert reason(broker) == "lost"
    assert reason(broker) == "stopped"


def test_the_own_status_is_said_again_soon_and_once_more() -> None:
    first, last = sidecar_module.AGAIN_SECONDS
    assert first <= 2 < last <= 30


async def test_a_broker_is_asked_to_keep_nothing(tmp_path: Path) -> None:
    """Neither link subscribes to what it would miss: what was released waits in the outbox, raw rows are never kept."""
    async with ScriptedBroker() as broker, running(settings_for(broker.url, tmp_path)) as sidecar:
        await until(lambda: reason(broker) == "ready")
        broker.drop(client_ids(sidecar)[0])
        await until(lambda: len(broker.greetings) == 5)
    assert {(greeting.client_id, greeting.clean_session) for greeting in broker.greetings} == {
        ("", True),  # looks whose the devices are
        *((own, True) for own in client_ids(sidecar)),
    }


async def test_many_devices_are_subscribed_with_few_packets(tmp_path: Path) -> None:
    """A round trip for each packet: a thousand of them are 50 s to a broker that is 50 ms away."""
    devices = tuple(f"hmd-{number}" for number in range(1000))
    async with ScriptedBroker() as broker, running(settings_for(broker.url, tmp_path, devices=devices)) as sidecar:
        await until(lambda: sidecar.raw_stands)
    rows = [packet for packet in broker.subscriptions if packet[0].endswith("/raw")]
    assert [name for packet in rows for name in packet] == [raw_topic(device) for device in devices]
    assert len(rows) <= 8


async def test_a_subscription_of_any_length_keeps_to_the_packet_that_a_broker_takes() -> None:
    filters = [f"{'x' * (997 * number % 3000)}/{number}" for number in range(200)] + ["y" * 20_000, "z"]
    async with ScriptedBroker() as broker:
        endpoint = Endpoint.of(BrokerSettings(broker.url))
        async with connect(endpoint, client_id=None, deliver=print) as link:
            await link.subscribe_all(filters, 0)
    assert [name for packet in broker.subscriptions for name in packet] == filters
    sizes = [sum(len(name) + 3 for name in packet) for packet in broker.subscriptions if len(packet) > 1]
    assert max(sizes) <= 8192
    assert len(broker.subscriptions) < 60


async def test_the_filter_that_is_refused_is_named(mosquitto: Mosquitto) -> None:
    """Not the first of its packet, but the one that the broker's answer means."""
    async with connect(Endpoint.of(BrokerSettings(mosquitto.url)), client_id=None, deliver=print) as link:

        async def answer(filters: list[str], qos: int) -> list[str | None]:
            return ["no" if name == "t/7" else None for name in filters]

        link._client.subscribe = answer  # type: ignore[assignment, method-assign]
        with pytest.raises(LinkError, match=r"refuses the subscription to t/7: no$"):
            await link.subscribe_all([f"t/{number}" for number in range(9)], 0)


@pytest.mark.parametrize("topic_filter", ["$share/sidecars/eyestream/v1/hmd-1/features/raw", "$share", "$queue/t"])
async def test_a_shared_subscription_is_refused_with_the_reason(topic_filter: str) -> None:
    async with ScriptedBroker() as broker:
        async with connect(Endpoint.of(BrokerSettings(broker.url)), client_id=None, deliver=print) as link:
            with pytest.raises(ConfigError, match="no ledger would know what was spent"):
                await link.subscribe_all(["t", topic_filter], 0)
        assert broker.subscriptions == []


@pytest.mark.parametrize("ending", ["in order", "an error", "cancelled"])
async def test_who_falls_over_says_no_goodbye_so_that_the_will_is_said(ending: str) -> None:
    will = Will(OWN, b"gone")
    async with ScriptedBroker() as broker:
        stands = asyncio.Event()

        async def work() -> None:
            settings = Endpoint.of(BrokerSettings(broker.url))
            async with connect(settings, client_id="me", deliver=print, will=will):
                stands.set()
                if ending == "an error":
                    raise ZeroDivisionError
                if ending == "cancelled":
                    await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await stands.wait()
        if ending == "cancelled":
            task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE_S)
        await until(lambda: bool(broker.goodbyes or broker.said))
        assert broker.goodbyes == (["me"] if ending == "in order" else [])
        assert broker.said == ([] if ending == "in order" else [(OWN, b"gone")])
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.long
@pytest.mark.parametrize(("largest", "what"), [(8000, "a chunk"), (1000, "the description")])
async def test_a_message_that_the_broker_never_takes_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, largest: int, what: str
) -> None:
    """Not at the first lost link, and once: the size says what it is."""
    caplog.set_level(logging.WARNING, "eyestream.link")

    def named() -> list[str]:
        return [record.getMessage() for record in caplog.records if "the same message of" in record.getMessage()]

    async with ScriptedBroker() as raw, ScriptedBroker(largest=largest) as private:
        settings = settings_for(private.url, tmp_path, raw_url=raw.url, limits=LimitSettings(deadline_s=60))
        async with running(settings) as sidecar:
            if what == "a chunk":
                await until(lambda: sidecar.private_stands)
                sidecar._sender.post("eyestream/v1/hmd-1/features/private", bytes(9000))
            await until(lambda: sidecar._private.links == 2)
            assert named() == []
            await until(lambda: sidecar._private.links == 5)
            [line] = named()
    statements = sidecar._sender._retained._standing.values()
    size = 9000 if what == "a chunk" else max(map(len, statements))
    assert f"the same message of {size} bytes" in line
    assert "max_packet_size" in line
    assert size > largest


@pytest.mark.long
async def test_links_that_are_lost_over_nothing_name_no_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedBroker() as broker, running(settings_for(broker.url, tmp_path)) as sidecar:
        for links in range(1, 6):
            await until(lambda links=links: sidecar._private.links == links and reason(broker) == "ready")
            await asyncio.sleep(0.05)
            broker.drop(client_ids(sidecar)[0])
    assert "the same message" not in caplog.text
