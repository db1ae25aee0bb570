"""A whole sidecar under test: its settings without a file, opened on a ledger of its own, at work between its brokers.

What tests and tools know of a sidecar's inside, beyond its face, stands here and in `tests.rigs.load`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from eyestream.core.charge import Ceilings
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.noise import Noise
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
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.sidecar import Sidecar

__all__ = [
    "NO_BROKER",
    "at_work",
    "ceilings_of",
    "client_ids",
    "links_made",
    "opened",
    "parts_of",
    "raw_stands",
    "running",
    "settings_for",
]

NO_BROKER = "mqtt://127.0.0.1:1"
"""Where nobody listens."""


def settings_for(
    url: str,
    folder: Path,
    *,
    calibration: str = "everyday-cfpa-32",
    names: tuple[str, ...] | None = None,
    devices: tuple[str, ...] = ("hmd-1",),
    window_epsilon: float = 1e6,
    raw_url: str | None = None,
    limits: LimitSettings | None = None,
    version: Literal["auto", "5", "3.1.1"] = "auto",
    **stream: Any,
) -> Settings:
    """A configuration without a file, and its ledger, which is made when there is none.

    Parameters
    ----------
    url
        Of the private broker, and of the raw one where there is no `raw_url`.
    folder
        Where the ledger is.
    calibration
        Name of a shipped one.
    names
        Of the features; those of the calibration by default.
    devices
        Pseudonyms.
    window_epsilon
        Ceiling of two chunks; the others do not bind.
    version
        Of MQTT, on both links.
    stream
        Fields of `StreamSettings`.
    """
    known = calibrations.load(calibration)
    given: dict[str, Any] = {"schema": 1, "rate_hz": known.rate_hz, "window_s": 30.0, "names": names or known.names}
    given |= {"name": "features", "privacy": PrivacySettings(calibration=calibration, epsilon=4.8)}
    given |= {"idle_s": 60.0, "grace_s": 1.0, "release": "on_row", "jump_chunks": 16} | stream
    settings = Settings(
        sidecar=SidecarSettings(name="sidecar", ledger=folder / "ledger"),
        private=BrokerSettings(url, version=version),
        raw=None if raw_url is None else BrokerSettings(raw_url, version=version),
        stream=(StreamSettings(**given),),
        budget=BudgetSettings(window_chunks=2, window_epsilon=window_epsilon, session_epsilon=1e6, day_epsilon=1e6),
        device=tuple(DeviceEntry(device) for device in devices),
        limits=limits or LimitSettings(),
    )
    if not settings.sidecar.ledger.exists():
        create_ledger(settings.sidecar.ledger, created=0)
    return settings


def ceilings_of(settings: Settings) -> Ceilings:
    """What the ledger holds a device to."""
    budget = settings.budget
    return Ceilings.of(budget.window_chunks, budget.window_epsilon, budget.session_epsilon, budget.day_epsilon)


@contextlib.contextmanager
def opened(
    settings: Settings,
    *,
    noise: Noise | None = None,
    mechanism: Mechanism | None = None,
    today: Callable[[], int] = lambda: 20_000,
) -> Iterator[Sidecar]:
    """A sidecar with its ledger open, not at work.

    `mechanism` takes the place of the one that the settings ask for, which draws from `noise`, the real one by default.
    """
    if mechanism is None:
        privacy = settings.stream[0].privacy
        mechanism = build(calibrations.load(privacy.calibration), privacy.epsilon, noise=noise)
    with Ledger(settings.sidecar.ledger, ceilings=ceilings_of(settings)) as ledger:
        plan = resolved(settings, mechanisms={settings.stream[0].name: mechanism})
        yield Sidecar(
            plan, ledger, today=today, ledger_id=ledger.header.ledger_id, former_ledgers=ledger.former_ledgers
        )


@contextlib.asynccontextmanager
async def running(settings: Settings, noise: Noise | None = None) -> AsyncIterator[Sidecar]:
    """A sidecar at work beside the body, stopped in order after it."""
    with opened(settings, noise=noise) as sidecar:
        async with at_work(sidecar):
            yield sidecar


@contextlib.asynccontextmanager
async def at_work(sidecar: Sidecar) -> AsyncIterator[None]:
    """Beside the body the sidecar works; it is stopped in order after it."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(sidecar.run(stop), name="sidecar")
        try:
            yield
        finally:
            stop.set()


def parts_of(sidecar: Sidecar) -> tuple[Mechanism, Ceilings]:
    """What it releases with, and what its ledger holds every device to."""
    return next(iter(sidecar._plan.mechanisms.values())), sidecar.pipeline._ledger._ceilings  # type: ignore[attr-defined]


def client_ids(sidecar: Sidecar) -> tuple[str, str]:
    """By which ids the private broker and the raw one know its links."""
    private, raw = sidecar._private._client_id, sidecar._raw._client_id if sidecar._raw is not None else ""
    assert private is not None
    assert raw is not None
    return private, raw


def raw_stands(sidecar: Sidecar) -> bool:
    """Whether its link to the raw broker is up and subscribed."""
    return sidecar.raw_stands


def links_made(sidecar: Sidecar) -> tuple[int, int]:
    """How often the link to the private broker has stood since the start, and that to the raw one."""
    return sidecar.links["private"], sidecar.links["raw"]
