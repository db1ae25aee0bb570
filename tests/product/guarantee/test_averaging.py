"""An attacker has one chunk sent again and again: there is one noisy output of it, and one charge."""

import asyncio
from pathlib import Path

import pytest

from eyestream.core.charge import Charge
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt import transport
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw
from eyestream_lab.testing.clocks import until
from tests.product.guarantee.evil_broker import EvilBroker
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import ear

ROWS = rows_of_a_stranger(32, 52)
TOPIC = "eyestream/v1/hmd-1/features/raw"
SPLITS = (32, 16, 8, 5)


def payloads() -> list[bytes]:
    """The rows of one chunk, cut in several ways; with other values too, under the same numbers."""
    found = [encode_raw(1, row, ROWS[row : row + step], 1) for step in SPLITS for row in range(0, 32, step)]
    return [*found, *(encode_raw(1, row, ROWS[row : row + 16] + 1, 1) for row in (0, 16))]


async def attack(mosquitto: Mosquitto, folder: Path, *, times: int, rounds: int, lives: int) -> tuple[int, int, int]:
    """How many messages were sent, private payloads heard, and different ones among them."""
    sent = 0
    async with ear(mosquitto.url) as heard:
        for life in range(lives):
            async with EvilBroker(TOPIC, payloads(), times=times, rounds=rounds, seed=life) as broker:
                settings = settings_for(mosquitto.url, folder, raw_url=f"mqtt://127.0.0.1:{broker.port}")
                async with running(settings) as sidecar:
                    async with asyncio.timeout(300):
                        await broker.done.wait()
                    await until(lambda: sidecar.worker.held == 0 and len(sidecar.outbox) == 0)
                    await asyncio.sleep(0.1)
                    rows = sidecar.pipeline.rows(StreamKey("hmd-1", "features"))
                    refused = rows.duplicate + rows.late + rows.refused + rows.stale_session
                    assert rows.rows == rows.accepted + refused
                    assert rows.accepted == (0 if life else 32)
                    assert sidecar.links["raw"] == rounds
                sent += broker.sent
        await asyncio.sleep(0.1)
    different = {payload for seen in heard.payloads.values() for payload in seen}
    [odometer] = read_ledger(folder / "ledger").odometers.values()
    assert (odometer.released, odometer.epsilon) == (1, Charge.of(4.8).epsilon)
    return sent, len(heard.order), len(different)


async def test_a_chunk_redelivered_before_it_is_acknowledged_and_over_restarts(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport.Backoff, "pause", lambda self: 0.01)
    sent, heard, different = await attack(mosquitto, tmp_path, times=4, rounds=5, lives=3)
    assert sent == 4 * 5 * 3 * len(payloads())
    assert (heard, different) == (1, 1)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_ten_thousand_times(mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport.Backoff, "pause", lambda self: 0.01)
    sent, heard, different = await attack(mosquitto, tmp_path, times=100, rounds=10, lives=10)
    print(f"{sent} messages, the chunk {sent // len(payloads())} times over in each of {len(SPLITS)} splits")
    assert sent == 100 * 10 * 10 * len(payloads())
    assert (heard, different) == (1, 1)


async def test_control_fresh_noise_for_each_redelivery_is_seen(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the marks of rows that are gone, every restart releases the chunk anew."""
    monkeypatch.setattr(transport.Backoff, "pause", lambda self: 0.01)
    seen = set()
    for life in range(2):
        (tmp_path / str(life)).mkdir()
        async with ear(mosquitto.url) as heard, EvilBroker(TOPIC, payloads(), times=1, rounds=1, seed=1) as broker:
            settings = settings_for(mosquitto.url, tmp_path / str(life), raw_url=f"mqtt://127.0.0.1:{broker.port}")
            async with running(settings):
                await until(lambda heard=heard: len(heard.order) == 1)
        seen |= {payload for each in heard.payloads.values() for payload in each}
    assert len(seen) == 2
