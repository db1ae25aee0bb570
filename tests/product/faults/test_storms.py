"""A sidecar in bad weather, over a real broker: back within five seconds, nothing spent or said twice."""

import asyncio
import contextlib
import math
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiomqtt
import pytest

from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings, LimitSettings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt import reconnecting as keeper
from eyestream.rim.mqtt import transport
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from eyestream.rim.sidecar import ownership
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream_lab.testing.clocks import until
from tests.rigs.clients import speaking
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.proxy import TOXICS, Fault, FaultProxy
from tests.rigs.sidecar import client_ids, links_made, running, settings_for
from tests.rigs.storms import NAMES, ear, lawful, recovery, settled, stands, traffic, watching

RECOVERY_SECONDS = 5.0


@pytest.fixture(params=["5", pytest.param("3.1.1", marks=pytest.mark.slow)])
def each_version(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every version that a configuration may ask for; the older one in the long form."""
    with speaking(request.param):
        yield


@contextlib.asynccontextmanager
async def private_broker(folder: Path) -> AsyncIterator[Mosquitto]:
    """A broker that keeps the sessions of its applications across restarts."""
    broker = Mosquitto(folder, "persistence true", f"persistence_location {folder}/")
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.usefixtures("each_version")
async def test_restarts_under_traffic(
    mosquitto: Mosquitto, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, kill: bool
) -> None:
    """The raw broker dies by SIGKILL, or the private one is restarted in order; both under traffic."""
    async with private_broker(tmp_path_factory.mktemp("private")) as private:
        settings = settings_for(private.url, tmp_path, raw_url=mosquitto.url)
        victim = mosquitto if kill else private
        longest = 0.0
        async with ear(private.url) as heard:
            async with running(settings) as sidecar, watching(sidecar) as watch:
                await until(lambda: sidecar.raw_stands and sidecar.private_stands)
                async with traffic(mosquitto.url) as load:
                    for outage_s in (0.0, 0.05, 0.3):
                        before = sidecar.pipeline.counters.released
                        await until(lambda before=before: sidecar.pipeline.counters.released > before + 3)
                        victim.stop(kill=kill)
                        await asyncio.sleep(outage_s)
                        victim.start()
                        await asyncio.sleep(0.05)  # until the loss is noticed
                        longest = max(longest, await recovery(lambda: stands(sidecar, load.publisher) and heard.stands))
                await until(lambda: len(sidecar.outbox) == 0)
            released = sidecar.pipeline.counters.released
            await until(lambda: len(heard.payloads) == released)
    assert longest < RECOVERY_SECONDS
    assert (heard.conflicts, heard.disorder, watch.broken) == (0, 0, 0)
    assert settled(sidecar) == sidecar.pipeline.counters.due
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == released
    assert watch.samples > 5
    assert (load.publisher.lost > 0) == kill


@pytest.mark.usefixtures("each_version")
async def test_sessions_taken_over_under_traffic(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    async with ear(mosquitto.url) as heard:
        async with running(settings) as sidecar, watching(sidecar) as watch, traffic(mosquitto.url) as load:
            private, raw = client_ids(sidecar)
            for identifier in (private, raw, private):
                await until(lambda: stands(sidecar, load.publisher))
                links = sum(links_made(sidecar))
                async with aiomqtt.Client("127.0.0.1", mosquitto.port, identifier=identifier):
                    await until(lambda links=links: sum(links_made(sidecar)) > links)
            before = sidecar.pipeline.counters.released
            await until(lambda: sidecar.pipeline.counters.released > before + 3)
        await until(lambda: len(heard.payloads) == sidecar.pipeline.counters.released)
    assert (heard.conflicts, heard.disorder, watch.broken) == (0, 0, 0)
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == sidecar.pipeline.counters.released


@pytest.mark.long
async def test_a_thousand_waiting_chunks_cut_at_fifty_points(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each link of the private side is reset in the middle of what it sends; what was cut is sent again, the same."""
    monkeypatch.setattr(keeper, "STEADY_SECONDS", 0.0)  # every outage begins with the shortest wait
    monkeypatch.setattr(ownership, "ANSWER_SECONDS", 0.05)  # and nobody else has this ledger
    chunks = 1000
    async with FaultProxy(mosquitto.port) as proxy, ear(mosquitto.url) as heard:
        settings = settings_for(
            proxy.url,
            tmp_path,
            raw_url=mosquitto.url,
            limits=LimitSettings(raw_messages=10_000, released_chunks=chunks),
        )
        async with running(settings) as sidecar:
            await until(lambda: sidecar.raw_stands and sidecar.private_stands)
            await proxy.down()
            async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
                for _ in range(chunks // 4):
                    assert await publisher.send(rows_of_a_stranger(128, len(NAMES)))
            await until(lambda: len(sidecar.outbox) == chunks, 30)
            total = chunks * 6900
            proxy.fault = Fault(limit_bytes=total // 55)  # not a multiple of a message: another place each time
            await proxy.up()
            await until(lambda: len(sidecar.outbox) == 0, 60)
            cuts = links_made(sidecar)[0] - 1
            assert lawful(sidecar)
        await until(lambda: len(heard.payloads) == chunks)
    assert cuts >= 50
    assert (heard.conflicts, heard.disorder) == (0, 0)
    assert sidecar.outbox.delivered == chunks


@pytest.mark.long
async def test_a_far_broker_gets_many_chunks_a_round_trip_in_order(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """A round trip of 0.2 s and 160 chunks: one at a time they would take half a minute."""
    chunks = 160
    async with FaultProxy(mosquitto.port) as proxy, ear(mosquitto.url) as heard:
        settings = settings_for(proxy.url, tmp_path, raw_url=mosquitto.url)
        async with running(settings) as sidecar:
            await until(lambda: sidecar.raw_stands and sidecar.private_stands)
            proxy.fault = Fault(latency_s=0.1)
            async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
                for _ in range(chunks // 4):
                    assert await publisher.send(rows_of_a_stranger(128, len(NAMES)))
                await until(lambda: sidecar.outbox.delivered == chunks, 16)
            proxy.fault = Fault()
        await until(lambda: len(heard.order) >= chunks)
    assert heard.order == sorted(set(heard.order))
    assert len(heard.order) == chunks


@pytest.mark.long
async def test_half_open_links_are_noticed_in_time_and_quiet_ones_kept(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "KEEPALIVE_SECONDS", 4)
    loop = asyncio.get_running_loop()

    async def half_open() -> float:
        async with FaultProxy(mosquitto.port) as proxy:
            began = math.inf
            with contextlib.suppress(LinkError):
                async with connect(Endpoint.of(BrokerSettings(proxy.url)), client_id=None, deliver=print) as link:
                    await link.publish("t", b"", qos=1)
                    proxy.fault = Fault(stalled=True)
                    began = loop.time()
                    await link.publish("t", b"", qos=1)
                    pytest.fail("nobody can have acknowledged this")
            client = link._client
            assert client._transport is not None
            assert client._transport.get_extra_info("socket").fileno() == -1
            return loop.time() - began

    async def quiet() -> int:
        async with FaultProxy(mosquitto.port) as proxy:
            proxy.fault = Fault(latency_s=0.1)
            async with connect(Endpoint.of(BrokerSettings(proxy.url)), client_id=None, deliver=print):
                await asyncio.sleep(6.5)
            return proxy.connections

    took, connections = await asyncio.gather(half_open(), quiet())
    assert 2.0 < took <= 1.5 * 4
    assert connections == 1


MILD = {"slow close", "reset"}
"""Faults that may pass before anything is stale. Through all others fifty chunks a second do not fit."""


@pytest.mark.parametrize("name", TOXICS)
@pytest.mark.usefixtures("each_version")
async def test_every_fault_of_the_private_link(mosquitto: Mosquitto, tmp_path: Path, name: str) -> None:
    """Memory is bounded, stale chunks are dropped and counted, and soon after the fault fresh ones flow."""
    limits = LimitSettings(released_chunks=16, deadline_s=0.3)
    async with FaultProxy(mosquitto.port) as proxy, ear(mosquitto.url) as heard:
        settings = settings_for(proxy.url, tmp_path, raw_url=mosquitto.url, limits=limits)
        async with running(settings) as sidecar, watching(sidecar) as watch, traffic(mosquitto.url) as load:
            await until(lambda: sidecar.outbox.delivered > 3)
            proxy.fault = TOXICS[name]
            if name in {"limited data", "hangs up", "reset", "slow close"}:
                proxy.reset()
            if name == "down":
                await proxy.down()
            await asyncio.sleep(0.8)
            if name not in MILD:
                await until(lambda: sidecar.outbox.expired + sidecar.outbox.overflow > 0, 30)
            if name == "down":
                await proxy.up()
            proxy.fault = Fault()
            if name in {"limited data", "bandwidth"}:
                proxy.reset()
            before = sidecar.outbox.delivered
            took = await recovery(lambda: stands(sidecar, load.publisher) and sidecar.outbox.delivered > before + 3)
        await until(lambda: heard.order != [] and len(heard.payloads) >= sidecar.outbox.delivered)
    assert took < RECOVERY_SECONDS
    assert watch.broken == 0
    assert watch.most_waiting <= limits.released_chunks
    assert watch.growth_mib < 40
    assert (heard.conflicts, heard.disorder) == (0, 0)
    assert settled(sidecar) == sidecar.pipeline.counters.due
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == sidecar.pipeline.counters.released


@pytest.mark.parametrize("name", ["latency", "slicer", "limited data"])
@pytest.mark.usefixtures("each_version")
async def test_faults_of_the_raw_link_cost_rows_not_chunks(mosquitto: Mosquitto, tmp_path: Path, name: str) -> None:
    """Tracker and sidecar both reach the raw broker through the fault: what is lost is imputed, no chunk is missing."""
    async with FaultProxy(mosquitto.port) as proxy, ear(mosquitto.url) as heard:
        settings = settings_for(mosquitto.url, tmp_path, raw_url=proxy.url)
        async with running(settings) as sidecar, watching(sidecar) as watch, traffic(proxy.url) as load:
            await until(lambda: sidecar.outbox.delivered > 3)
            proxy.fault = TOXICS[name]
            if name == "limited data":
                proxy.reset()
            await asyncio.sleep(0.6)
            proxy.fault = Fault()
            proxy.reset()
            took = await recovery(lambda: stands(sidecar, load.publisher))
            before = sidecar.outbox.delivered
            await until(lambda: sidecar.outbox.delivered > before + 3)
        await until(lambda: len(heard.payloads) == sidecar.pipeline.counters.released)
    assert took < RECOVERY_SECONDS
    assert (heard.conflicts, heard.disorder, watch.broken) == (0, 0, 0)
    for session in {session for session, _ in heard.order}:
        chunks = [chunk for owner, chunk in heard.payloads if owner == session]
        assert sorted(chunks) == list(range(len(chunks)))


@pytest.mark.usefixtures("each_version")
async def test_a_slow_application_holds_nobody_up(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """Behind 2 KB/s it gets a few chunks, in order; the sidecar and the other applications notice nothing."""
    settings = settings_for(mosquitto.url, tmp_path)
    async with FaultProxy(mosquitto.port) as proxy, ear(mosquitto.url) as heard:
        async with running(settings) as sidecar, watching(sidecar) as watch:
            await until(lambda: sidecar.private_stands and sidecar.raw_stands)
            async with subscribe(proxy.url, "hmd-1") as slow, traffic(mosquitto.url):
                proxy.fault = Fault(bytes_per_second=2000)
                await until(lambda: len(heard.payloads) > 100)
                assert len(sidecar.outbox) <= 3
                assert len(slow._arrived) < 20
        assert sidecar.outbox.expired + sidecar.outbox.overflow == 0
    assert (heard.conflicts, heard.disorder, watch.broken) == (0, 0, 0)


async def test_a_peer_that_hangs_up_costs_no_waiting(mosquitto: Mosquitto) -> None:
    async with FaultProxy(mosquitto.port) as proxy:
        proxy.fault = Fault(hangs_up=True)
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(LinkError, match="hung up"):
            async with connect(Endpoint.of(BrokerSettings(proxy.url)), client_id=None, deliver=print):
                pass
        assert loop.time() - began < 1.0


async def test_no_descriptor_is_left_behind(mosquitto: Mosquitto) -> None:
    """Fifty links that end in every way leave the number of open files as it was."""

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async with FaultProxy(mosquitto.port) as proxy:
        endpoint = Endpoint.of(BrokerSettings(proxy.url))
        async with connect(endpoint, client_id=None, deliver=print):
            pass
        await asyncio.sleep(0.1)
        before = descriptors()
        for turn in range(50):
            proxy.fault = Fault(hangs_up=turn % 3 == 0)
            with contextlib.suppress(LinkError):
                async with connect(endpoint, client_id=None, deliver=print) as link:
                    if turn % 3 == 1:
                        proxy.reset()
                        await link.publish("t", bytes(random.randrange(10_000)), qos=1)
        await until(lambda: descriptors() <= before)
        assert proxy.connections == 1 + 50 + 2 * 17  # who hangs up on MQTT 5 is asked again in 3.1.1, then for TLS
