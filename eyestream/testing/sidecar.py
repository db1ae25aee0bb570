"""A sidecar under test, and an independent reader of everything on the broker."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiomqtt
import msgpack
import numpy as np

from eyestream.privacy.charge import Ceilings
from eyestream.privacy.mechanisms import build
from eyestream.privacy.noise import SecureNoise
from eyestream.rim.config import (
    BrokerSettings,
    BudgetSettings,
    DeviceEntry,
    LimitSettings,
    PrivacySettings,
    Settings,
    SidecarSettings,
    StreamSettings,
)
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.sidecar.sidecar import Sidecar


def settings_for(
    url: str,
    folder: Path,
    *,
    calibration: str = "everyday-cfpa-32",
    devices: tuple[str, ...] = ("hmd-1",),
    window_epsilon: float = 1e6,
    raw_url: str | None = None,
    limits: LimitSettings | None = None,
    idle_s: float = 60.0,
    **stream: Any,
) -> Settings:
    """A configuration without a file; its ledger is made when there is none."""
    known = calibrations.load(calibration)
    given = {"grace_s": 1.0, "release": "on_row", "jump_chunks": 16} | stream
    settings = Settings(
        sidecar=SidecarSettings(name="sidecar", ledger=folder / "ledger"),
        private=BrokerSettings(url),
        raw=None if raw_url is None else BrokerSettings(raw_url),
        stream=StreamSettings(
            schema=1, rate_hz=known.rate_hz, window_s=30.0, names=known.names, idle_s=idle_s, **given
        ),
        privacy=PrivacySettings(calibration=calibration, epsilon=4.8),
        budget=BudgetSettings(window_chunks=2, window_epsilon=window_epsilon, session_epsilon=1e6, day_epsilon=1e6),
        device=tuple(DeviceEntry(device) for device in devices),
        limits=limits or LimitSettings(),
    )
    if not settings.sidecar.ledger.exists():
        create_ledger(settings.sidecar.ledger, created=0)
    return settings


@contextlib.asynccontextmanager
async def running(settings: Settings, noise: Any = None) -> AsyncIterator[Sidecar]:
    """A sidecar at work beside the body, stopped in order after it."""
    source = SecureNoise() if noise is None else noise
    mechanism = build(calibrations.load(settings.privacy.calibration), settings.privacy.epsilon, noise=source)
    budget = settings.budget
    ceilings = Ceilings.of(budget.window_chunks, budget.window_epsilon, budget.session_epsilon, budget.day_epsilon)
    with Ledger(settings.sidecar.ledger, ceilings=ceilings) as ledger:
        sidecar = Sidecar(settings, mechanism, ledger, today=lambda: 20_000)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(sidecar.run(stop), name="sidecar")
            try:
                yield sidecar
            finally:
                stop.set()


class Spy:
    """Reads every topic with another client and another decoder than ours."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes, bool]] = []

    def leaf(self, leaf: str, device: str = "hmd-1") -> list[dict[str, Any]]:
        """Decoded messages of one topic, in order."""
        topic = f"eyestream/v1/{device}/features/{leaf}"
        return [msgpack.unpackb(payload) for at, payload, _ in self.messages if at == topic]

    def chunks(self, device: str = "hmd-1") -> list[int]:
        """Indices of the private chunks, in order of arrival."""
        return [chunk["chunk"] for chunk in self.leaf("private", device)]

    def states(self, device: str = "hmd-1") -> list[tuple[str, str]]:
        """States and reasons that were said, in order."""
        return [(status["state"], status["reason"]) for status in self.leaf("status", device)]

    def raw(self) -> bytes:
        """All payloads of the raw topics."""
        return b"\n".join(payload for topic, payload, _ in self.messages if topic.endswith("/raw"))

    def outside_raw(self) -> bytes:
        """All that was published outside of the raw topics, topics included."""
        return b"\n".join(
            topic.encode() + b"\n" + payload for topic, payload, _ in self.messages if not topic.endswith("/raw")
        )


@contextlib.asynccontextmanager
async def spying(url: str, *topics: str) -> AsyncIterator[Spy]:
    """A spy on the broker at `url`."""
    spy = Spy()
    host, _, port = url.removeprefix("mqtt://").partition(":")

    async def read(client: aiomqtt.Client) -> None:
        async for message in client.messages:
            spy.messages.append((str(message.topic), bytes(message.payload), message.retain))

    async with aiomqtt.Client(host, int(port)) as client:
        for topic in topics or ("#",):
            await client.subscribe(topic, 1)
        task = asyncio.create_task(read(client))
        yield spy
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def rows_of_a_stranger(count: int, features: int, seed: int = 1) -> np.ndarray:
    """(count, F) float32 rows whose every value is a full-precision number of its own."""
    return np.random.default_rng(seed).normal(20.0, 5.0, (count, features)).astype(np.float32)
