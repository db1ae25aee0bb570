"""A whole sidecar under test: its settings without a file, opened on a ledger of its own, at work between its brokers.

`flooding` has one without a broker: messages go in where the raw link delivers them, and chunks come out to a link of
ours. What tests and tools know of a sidecar's inside, beyond its face, stands here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
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
from eyestream.rim.mqtt.messages import NO_PROPERTIES, Properties
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw, rows_per_message
from tests.rigs.payloads import rows_of_a_stranger

__all__ = [
    "FEATURES",
    "MOST_ROWS",
    "NO_BROKER",
    "Flood",
    "N",
    "PrivateLink",
    "at_work",
    "ceilings_of",
    "client_ids",
    "flooding",
    "hand_over",
    "links_made",
    "opened",
    "parts_of",
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
            plan,
            ledger,
            today=today,
            ledger_id=ledger.header.ledger_id,
            former_ledgers=ledger.former_ledgers,
            beside=settings.sidecar.ledger,
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


def links_made(sidecar: Sidecar) -> tuple[int, int]:
    """How often the link to the private broker has stood since the start, and that to the raw one."""
    return sidecar.links["private"], sidecar.links["raw"]


SCHEMA, N = 1, 32
CALIBRATION = calibrations.load("everyday-cfpa-32")
FEATURES = len(CALIBRATION.names)
MOST_ROWS = rows_per_message(FEATURES)


class PrivateLink:
    """A broker that acknowledges at once, or, while it is blocked, never; or, without `acknowledges`, no chunk at all.

    `on_send` is told each chunk that is handed over, `on_chunk` each that is acknowledged.
    """

    def __init__(self, *, acknowledges: bool = True) -> None:
        self._acknowledges = acknowledges
        self._free = asyncio.Event()
        self._free.set()
        self._unacknowledged: list[tuple[str, bytes, Callable[[], None]]] = []
        self._statements: list[Callable[[], None]] = []
        self.chunks = 0
        self.statements = 0
        self.oldest_s = 0.0
        """The longest that a delivered chunk had waited when it was handed over."""
        self.on_chunk: Callable[[str, bytes], None] = lambda topic, payload: None
        self.on_send: Callable[[str, bytes], None] = lambda topic, payload: None

    def block(self, blocked: bool) -> None:
        """Stop acknowledging, or go on."""
        if blocked:
            self._free.clear()
        else:
            self._free.set()
            asyncio.get_running_loop().call_soon(self._acknowledge)

    resumed = False

    async def state(self, statements: Sequence[tuple[str, bytes]]) -> dict[str, str]:
        """As the link's: returns with the acknowledgements."""
        await self._free.wait()
        await asyncio.sleep(0)
        self.statements += len(statements)
        return {}

    def send(
        self,
        topic: str,
        payload: bytes,
        acknowledged: Callable[[], None],
        refused: Callable[[str], None],
        *,
        retain: bool = False,
        more: Properties = NO_PROPERTIES,
    ) -> None:
        """As the link's: a chunk or a statement, acknowledged later."""
        if retain:
            self._statements.append(acknowledged)
        else:
            self.on_send(topic, payload)
            self._unacknowledged.append((topic, payload, acknowledged))
        asyncio.get_running_loop().call_soon(self._acknowledge)

    def _acknowledge(self) -> None:
        while self._free.is_set() and self._statements:
            self.statements += 1
            self._statements.pop(0)()
        while self._acknowledges and self._free.is_set() and self._unacknowledged:
            topic, payload, acknowledged = self._unacknowledged.pop(0)
            self.chunks += 1
            self.on_chunk(topic, payload)
            acknowledged()


class Flood:
    """The sidecar under load and those who send to it."""

    def __init__(self, sidecar: Sidecar, link: PrivateLink, devices: int) -> None:
        self.sidecar, self.link = sidecar, link
        self.devices = [f"d{i}" for i in range(devices)]
        self.seq = dict.fromkeys(self.devices, 0)
        self.session = dict.fromkeys(self.devices, 1)
        self._rows = rows_of_a_stranger(MOST_ROWS, FEATURES)

    def send(self, payload: bytes, device: str = "d0", *, retain: bool = False) -> None:
        """A message arrives."""
        self.sidecar.worker.receive(Message(f"eyestream/v1/{device}/features/raw", payload, retain))

    def rows(self, m: int, device: str = "d0", *, end: bool = False) -> bytes:
        """The next `m` rows of a device."""
        payload = encode_raw(self.session[device], self.seq[device], self._rows[:m], SCHEMA, end=end)
        self.seq[device] += m
        return payload

    def next_session(self, device: str = "d0") -> None:
        """The tracker begins anew."""
        self.session[device] += 1
        self.seq[device] = 0

    async def room(self, most: int) -> None:
        """Wait until no more than `most` messages wait: the fastest sender that loses nothing."""
        await asyncio.sleep(0)
        while self.sidecar.worker.held > most:  # noqa: ASYNC110  there is no event for it
            await asyncio.sleep(0.001)

    async def quiet(self) -> None:
        """Wait until nothing is under way inside; what waits for the broker may go on waiting."""
        still = 0
        while still < 3:
            await asyncio.sleep(0.01)
            counters = self.sidecar.pipeline.counters
            busy = self.sidecar.worker.held or counters.due != self.settled
            still = 0 if busy else still + 1

    def lose_messages(self) -> None:
        """Let what waits to be read vanish uncounted: a fault."""
        inbox = self.sidecar.worker._inbox
        while inbox:
            inbox.pop()

    def lose_chunk(self) -> None:
        """Let the last released chunk vanish uncounted: a fault."""
        self.sidecar.outbox._waiting.pop()

    @property
    def settled(self) -> int:
        """Chunks whose fate is known."""
        counters = self.sidecar.pipeline.counters
        return counters.released + counters.withheld.total() + counters.dropped.total()

    def check(self, *, quiet: bool) -> None:
        """The law of conservation; chunks between due and settled only while a write to the ledger is under way."""
        sidecar = self.sidecar
        counters, outbox = sidecar.pipeline.counters, sidecar.outbox
        messages = counters.rejected.total() + sidecar.worker.dropped + counters.taken + sidecar.worker.held
        messages += sidecar.worker.paused
        assert sidecar.worker.received == messages, "messages"
        for device in self.devices:
            c = sidecar.pipeline.rows(StreamKey(device, "features"))
            assert c.rows == c.accepted + c.duplicate + c.late + c.refused + c.stale_session + c.jump + c.wearer, "rows"
        assert counters.due == self.settled if quiet else counters.due >= self.settled, "chunks"
        held = outbox.delivered + outbox.expired + outbox.overflow + outbox.refused + outbox.paused + len(outbox)
        assert counters.released == held, "released chunks"


@contextlib.asynccontextmanager
async def flooding(
    folder: Path, *, devices: int = 1, limits: LimitSettings | None = None, **stream: Any
) -> AsyncIterator[Flood]:
    """A sidecar at work, with a private link that stands."""
    limits = limits or LimitSettings(raw_messages=256, released_chunks=256, deadline_s=1.0)
    names = tuple(f"d{i}" for i in range(devices))
    settings = settings_for(NO_BROKER, folder, devices=names, limits=limits, **stream)
    link = PrivateLink()
    with opened(settings) as sidecar:
        _note_age(sidecar, link)
        work = asyncio.create_task(sidecar.worker.run(), name="devices")
        private = asyncio.create_task(hand_over(sidecar, link), name="private link")
        try:
            yield Flood(sidecar, link, devices)
        finally:
            sidecar.worker.stop()
            await work
            private.cancel()
            await asyncio.gather(private, return_exceptions=True)


async def hand_over(sidecar: Sidecar, link: PrivateLink) -> None:
    """Let the sidecar publish through `link`, for as long as that stands."""
    await sidecar._sender.serve(link)  # type: ignore[arg-type]


def _note_age(sidecar: Sidecar, link: PrivateLink) -> None:
    """Let the link note how long each chunk had waited when it was handed over."""
    outbox, clock = sidecar.outbox, asyncio.get_running_loop().time
    first = outbox.first

    def noted(now: float) -> Any:
        entry = first(now)
        if entry is not None:
            link.oldest_s = max(link.oldest_s, clock() - (entry.deadline - outbox._lifetime_s))
        return entry

    outbox.first = noted  # type: ignore[method-assign]
