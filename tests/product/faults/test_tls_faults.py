"""The faults of a link, under TLS with client certificates: back within five seconds, nothing spent or said twice."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from eyestream.rim.config import BrokerSettings, LimitSettings, Settings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt import transport
from eyestream_lab.embedded import free_port
from eyestream_lab.testing.clocks import until
from tests.rigs.certificates import Authority
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.proxy import Fault, FaultProxy
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import ear, recovery, settled, stands, traffic, watching

RECOVERY_SECONDS = 5.0
FAULTS = {
    "latency": Fault(latency_s=0.1, jitter_s=0.06),
    "bandwidth": Fault(bytes_per_second=2000),
    "one byte at a time": Fault(slice_bytes=1),
    "reset": Fault(),
    "cut in the middle": Fault(limit_bytes=7000),
    "half open": Fault(stalled=True),
    "slow close": Fault(close_s=0.5),
    "hangs up": Fault(hangs_up=True),
}


@contextlib.asynccontextmanager
async def broker(folder: Path) -> AsyncIterator[tuple[Mosquitto, FaultProxy, Settings]]:
    """A broker with an open listener and one that asks for certificates, behind a proxy; and a sidecar's settings."""
    authority, port = Authority(folder), free_port()
    own, client = authority.issue("broker", host="localhost"), authority.issue("sidecar")
    made = Mosquitto(
        folder,
        *(f"listener {port} 127.0.0.1", "tls_version tlsv1.2", f"cafile {authority.pem}", f"certfile {own.pem}"),
        *(f"keyfile {own.key}", "require_certificate true", "use_identity_as_username true"),
    )
    made.start()
    try:
        async with FaultProxy(port) as proxy:
            login = BrokerSettings(
                f"mqtts://localhost:{proxy.port}", ca_file=authority.pem, cert_file=client.pem, key_file=client.key
            )
            limits = LimitSettings(released_chunks=16, deadline_s=0.3)
            plain = settings_for(made.url, folder, limits=limits)
            yield made, proxy, msgspec.structs.replace(plain, private=login, raw=login)
    finally:
        made.stop()


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
async def test_every_fault_under_tls(mosquitto: Mosquitto, tmp_path: Path, name: str) -> None:
    async with broker(tmp_path) as (made, proxy, settings), ear(made.url) as heard:
        async with running(settings) as sidecar, watching(sidecar) as watch, traffic(made.url) as load:
            await until(lambda: sidecar.outbox.delivered > 3)
            proxy.fault = FAULTS[name]
            if name not in {"latency", "half open"}:
                proxy.reset()  # so that the handshake, too, has to bear it
            await asyncio.sleep(0.8)
            proxy.fault = Fault()
            if name not in {"latency", "half open"}:
                proxy.reset()
            before = sidecar.outbox.delivered
            took = await recovery(lambda: stands(sidecar, load.publisher) and sidecar.outbox.delivered > before + 3)
            assert load.publisher.lost == 0, "the tracker's own link is another"
        await until(lambda: len(heard.payloads) >= sidecar.outbox.delivered)
    assert took < RECOVERY_SECONDS
    assert (heard.conflicts, heard.disorder, watch.broken) == (0, 0, 0)
    assert watch.most_waiting <= 16
    assert settled(sidecar) == sidecar.pipeline.counters.due
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == sidecar.pipeline.counters.released


@pytest.mark.long
async def test_a_half_open_link_under_tls_is_noticed_and_replaced(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one and a half of the keep-alive, while the fault lasts; a handshake that gets no answer ends too."""
    monkeypatch.setattr(transport, "KEEPALIVE_SECONDS", 2)
    async with broker(tmp_path) as (made, proxy, settings), running(settings) as sidecar, traffic(made.url):
        await until(lambda: sidecar.outbox.delivered > 3)
        proxy.fault = Fault(stalled=True)
        noticed = await recovery(lambda: not sidecar.raw_stands and not sidecar.private_stands)
        assert noticed <= 1.5 * 2
        connections = proxy.connections
        await until(lambda: proxy.connections > connections + 2)
        proxy.fault = Fault()
        before = sidecar.outbox.delivered
        assert await recovery(lambda: sidecar.outbox.delivered > before + 3) < RECOVERY_SECONDS
