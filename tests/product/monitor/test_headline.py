"""The first line of the page: of two facts the worse one, and never another device's."""

import asyncio
import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from eyestream.monitor.headline import HeadlineFacts, headline
from eyestream.monitor.watch import Watch
from eyestream.rim.config import BrokerSettings
from eyestream.sdk.discovery import Found
from eyestream.wire.release import encode_meta
from eyestream.wire.status import STATUS_REASONS, Status, encode_status
from tests.rigs.spoken import described_as

FINE = HeadlineFacts(True, "there", Status("online", "ready"), described=True, silent=False)

WORST_FIRST: list[tuple[str, dict[str, Any]]] = [
    ("the broker is away", {"connected": False}),
    ("the sidecar is away", {"sidecar": "away"}),
    ("the sidecar is lost", {"status": Status("offline", "lost")}),
    ("the sidecar has stopped", {"status": Status("offline", "stopped")}),
    ("its ledger went back", {"went_back": True}),
    ("another sidecar serves", {"status": Status("degraded", "owner")}),
    ("a fault of the sidecar", {"status": Status("degraded", "internal")}),
    ("the ledger cannot be used", {"status": Status("degraded", "ledger")}),
    ("the calibration does not fit", {"status": Status("degraded", "calibration")}),
    ("no connection to the tracker", {"status": Status("degraded", "raw_link")}),
    ("the whole budget is spent", {"status": Status("exhausted", "lifetime")}),
    ("the day's budget is spent", {"status": Status("exhausted", "day")}),
    ("the session's budget is spent", {"status": Status("exhausted", "session")}),
    ("paused", {"status": Status("exhausted", "window")}),
    ("no word from the sidecar", {"status": None}),
    ("the stream is not described", {"described": False}),
    ("a sidecar of this broker is away", {"sidecar": "unsure"}),
    ("online, but chunks are overdue: the log of the sidecar names the cause", {"silent": True}),
]


def test_without_a_bad_fact_chunks_come_once_one_has_come() -> None:
    assert headline(FINE).words == "online: private chunks come"
    waiting = headline(replace(FINE, came=False))
    assert waiting.words == "online: no private chunk yet; if none comes, the log of the sidecar names the cause"
    assert not headline(FINE).bad
    assert not waiting.bad


@pytest.mark.parametrize(("words", "fact"), WORST_FIRST)
def test_each_fact_is_said(words: str, fact: dict[str, Any]) -> None:
    line = headline(replace(FINE, **fact))
    assert line.words.startswith(words)
    assert line.bad


def pairs() -> list[Any]:
    """Two facts that can hold together, the worse one first."""
    found = itertools.combinations(WORST_FIRST, 2)
    return [
        pytest.param(worse, other, id=f"{worse[0]}, {other[0]}")
        for worse, other in found
        if not worse[1].keys() & other[1].keys()
    ]


@pytest.mark.parametrize(("worse", "other"), pairs())
def test_of_two_facts_the_worse_one_is_said(worse: tuple[str, Any], other: tuple[str, Any]) -> None:
    assert headline(replace(FINE, **(other[1] | worse[1]))).words.startswith(worse[0])


def test_every_reason_has_its_words() -> None:
    for reason in STATUS_REASONS - {"ready"}:
        assert headline(replace(FINE, status=Status("offline", reason))).words != "nothing is released"  # type: ignore[arg-type]
    assert headline(replace(FINE, status=Status("degraded", "ready"))).bad


class InventedWatch:
    """A watch without a broker, whose streams and sidecars we invent."""

    def __init__(self) -> None:
        self.watch = Watch(BrokerSettings("mqtt://127.0.0.1:1"))

    def sidecar(self, name: str, state: str, reason: str, *, kept: bool = False) -> None:
        found = Found(name, "sidecar")
        found.note("status", encode_status(Status(state, reason)), kept=kept)  # type: ignore[arg-type]
        self.watch._note(found)

    def stream(self, device: str) -> Any:
        found = Found(device, "features")
        found.note("meta", encode_meta(described_as(("a",), ("1",))))
        self.watch._note(found)
        one = self.watch._followed[f"{device}/features"]
        one.chunks = type("", (), {})()
        vars(one.chunks).update(connected=True, status=Status("online", "ready"), budget=None, refusals={}, dropped=0)
        one.chunks.refusals = one.unshown.copy()
        one.chunks.meta, one.chunk_at = found.meta, 0.0
        self.watch._describe(one, one.chunks)
        return one

    def line(self, one: Any) -> str:
        return str(json.loads(one.state(self.watch._sidecar_of(one)))["headline"][0])


def test_no_stream_is_ready_while_its_sidecar_is_away() -> None:
    world = InventedWatch()
    one = world.stream("hmd-1")
    world.sidecar("s1", "online", "ready")
    assert world.line(one) == "online: private chunks come"
    world.sidecar("s1", "offline", "lost")
    assert world.line(one) == "the sidecar is away: nothing is released"
    world.sidecar("s1", "online", "ready")
    assert world.line(one) == "online: private chunks come"


async def test_of_several_sidecars_the_next_chunk_tells_whose_is_away() -> None:
    """Applications are not told which one serves which device."""
    world = InventedWatch()
    mine, other = world.stream("hmd-1"), world.stream("hmd-2")
    world.sidecar("s1", "online", "ready")
    world.sidecar("s2", "online", "ready")
    world.sidecar("s2", "offline", "lost")
    for one in (mine, other):
        assert world.line(one).startswith("a sidecar of this broker is away, perhaps this stream's")
    mine.chunk_at = asyncio.get_running_loop().time()  # the clock of time.monotonic
    assert world.line(mine) == "online: private chunks come"
    assert world.line(other).startswith("a sidecar of this broker is away")


def test_what_another_device_says_is_never_shown() -> None:
    world = InventedWatch()
    mine, other = world.stream("hmd-1"), world.stream("hmd-2")
    before = mine.state(world.watch._sidecar_of(mine))
    other.chunks.status, other.silent, other.missing = Status("degraded", "ledger"), True, 9
    other.chunks.connected = False
    assert mine.state(world.watch._sidecar_of(mine)) == before
    assert "hmd-2" not in before
