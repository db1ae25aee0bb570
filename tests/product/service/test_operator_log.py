"""What the log of a sidecar says by itself: what people wait for, each minute, and rows that can hardly be true."""

import asyncio
import contextlib
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.cli.log import JsonLines
from eyestream.core.release.doubt import DOUBTS, RowDoubts
from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings, Settings
from eyestream.rim.files import calibrations
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.mqtt.transport import Backoff
from eyestream.rim.plan import resolved
from eyestream.rim.refusals import REMEDIES
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sidecar.operator_log import OperatorLog
from eyestream.rim.sidecar.pipeline import RowArrival
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sidecar.source_runner import SourceRunner
from eyestream.rim.sources import lsl
from eyestream.rim.sources.gaze import DeliverGaze, GazeFeeder, Place
from eyestream.sdk.publisher import Publisher
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows, rows_hash
from eyestream_lab.simulation.people import load_statistics, simulate
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import as_said
from tests.rigs.sidecar import NO_BROKER, at_work, opened, settings_for

CALIBRATION = "everyday-klt-anchored-64"
KEY = StreamKey("hmd-1", "features")
KNOWN = calibrations.load(CALIBRATION)
Rows = NDArray[np.float64]


def people(seconds: float, count: int = 1) -> list[Rows]:
    return [rows.astype(np.float64) for rows in simulate(load_statistics(), count, seconds, seed=7)]


def in_radians(rows: Rows) -> Rows:
    """Of the features that are angles, and of squares of them."""
    powers = {"deg": 1, "deg^2": 2, "deg^4": 4}
    return rows * np.radians(1.0) ** np.array([powers.get(unit, 0) for unit in KNOWN.units])


class Life:
    """A sidecar without brokers, rows that come on time, and what its log and the private broker would have."""

    def __init__(self, sidecar: Sidecar, talk: OperatorLog, shown: list[str]) -> None:
        self._sidecar, self._talk, self.shown = sidecar, talk, shown

    async def send(self, rows: Rows, device: str = "hmd-1", *, rate_hz: float = 2.0, session: int = 1) -> float:
        """Rows one by one; gives the time after the last."""
        pipeline, now = self._sidecar.pipeline, 0.0
        for number, row in enumerate(rows):
            now = number / rate_hz
            arrival = RowArrival(StreamKey(device, "features"), RawRows(session, number, row[None, :]), now)
            await pipeline.run_turn([arrival], now)
            self._talk.look(now)
        return now

    async def wait(self, begin: float, seconds: float) -> None:
        """Nothing comes for so long."""
        for now in np.arange(begin, begin + seconds, 1.0):
            await self._sidecar.pipeline.run_turn([], float(now))
            self._talk.look(float(now))
        await asyncio.sleep(0)  # a status is said in the next turn

    @property
    def told_outside(self) -> dict[str, bytes]:
        """All that stands retained on the private broker."""
        sender = self._sidecar._sender
        standing = {**sender._retained._standing, **sender._after_chunks._standing}
        return {topic: as_said(topic, payload) for topic, payload in standing.items() if not topic.endswith("/owner")}


async def lived(
    folder: Path, rows: Rows, caplog: pytest.LogCaptureFixture, *, devices: tuple[str, ...] = ("hmd-1",), **how: Any
) -> tuple[list[dict[str, Any]], Life]:
    """The log of a life as JSON, and the life."""
    folder.mkdir()  # noqa: ASYNC240
    settings, shown = settings_for(NO_BROKER, folder, calibration=CALIBRATION, devices=devices), []
    caplog.set_level(logging.INFO, "eyestream")
    caplog.clear()
    with opened(settings) as sidecar:
        life = Life(sidecar, OperatorLog(resolved(settings), sidecar.pipeline, sidecar.left, shown.append), shown)
        for device in devices:
            end = await life.send(rows, device, **how)
        await life.wait(end, 62.0)
        outside = life.told_outside
    assert outside
    return [json.loads(JsonLines().format(record)) for record in caplog.records], life


def gaze(samples: int, value: float) -> GazeColumns:
    return GazeColumns(np.arange(samples) / samples, np.full((samples, 2), value))


class Refusing:
    """A source that takes nothing of what comes."""

    def __init__(self) -> None:
        self.refused = Counter(shape=5, schema=2)

    async def run(self, deliver: DeliverGaze) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (120, "about 120 samples a second"),
        (90, "about 120 samples a second"),
        (43, "about 40 samples a second, and its profile says 120"),
    ],
)
@pytest.mark.parametrize("value", [0.5, np.nan], ids=["seen", "lost"])
async def test_gaze_is_a_line_before_its_first_row(
    samples: int, told: str, value: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once for each session, whether or not the eye is seen; what was refused is in the minute's line."""
    settings = settings_for(NO_BROKER, tmp_path, calibration=CALIBRATION)
    feeder = GazeFeeder(Refusing(), load_profile("mqtt").at_rate(120.0))
    caplog.set_level(logging.INFO, "eyestream")
    with opened(settings) as sidecar:
        talk = OperatorLog(resolved(settings), sidecar.pipeline, sidecar.left, feeders={KEY: feeder})
        for now in range(62):
            if 10 <= now < 20:
                feeder.take(gaze(samples, value))
                feeder._work()
            talk.look(float(now))
    lines = [record.getMessage() for record in caplog.records if record.name == "eyestream.talk"]
    assert lines[1] == f"hmd-1/features: gaze comes, {told}"
    assert lines[2].startswith("last minute: 0 rows, 0 chunks, 7 rejected")
    assert len(lines) == 3


def events(said: list[dict[str, Any]]) -> list[str]:
    return [one["event"] for one in said if "event" in one]


async def test_each_thing_that_people_wait_for_is_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    said, life = await lived(tmp_path / "a", people(130.0)[0], caplog)
    assert events(said) == [
        "waiting",
        "first_row",
        "minute",
        "first_chunk",
        "minute",
        "absent",
        "minute",
        "session_over",
    ]
    lines = [one["message"] for one in said if "event" in one]
    assert lines[0] == "waiting for the first row of hmd-1/features; a row describes 30 s of gaze"
    assert lines[1] == "hmd-1/features: first row; first chunk in 96 s"
    assert lines[2].startswith("last minute: 121 rows, 0 chunks, 0 rejected; ")
    assert lines[2].endswith(" of releases left of this day")
    assert lines[3] == "hmd-1/features: first chunk of this session"
    assert lines[4].startswith("last minute: 120 rows, 1 chunk, ")
    assert said[1]["first_chunk_s"] == 96.0
    assert said[2]["rows"] == 121
    assert said[2]["left_s"] > 0
    counted = [line for line in life.shown if line]
    assert counted[0] == "first chunk of hmd-1/features in 96 s"
    assert counted[-1] == "first chunk of hmd-1/features in 1 s"
    assert life.shown[-1] == ""


async def test_no_line_depends_on_a_value_or_on_a_lost_eye(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A doubt is the one exception; all other lines, and when they come, are those of any other rows."""
    rows = people(130.0)[0]
    others = {"lost": np.full_like(rows, np.nan), "zeros": np.zeros_like(rows), "other": people(130.0, 2)[1]}
    plain, _ = await lived(tmp_path / "plain", rows, caplog)
    for name, other in others.items():
        said, _ = await lived(tmp_path / name, other, caplog)
        assert said_without_doubts(said) == said_without_doubts(plain), name


def said_without_doubts(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: one[key] for key in one if key != "time"} for one in said if one.get("event") not in ("doubt", "absent")
    ]


async def outside_of(folder: Path, rows: Rows, caplog: pytest.LogCaptureFixture) -> dict[str, bytes]:
    return (await lived(folder, rows, caplog))[1].told_outside


async def test_applications_are_told_nothing_of_a_doubt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is retained on the private broker is the same of rows that are nonsense, of a lost eye and of real ones."""
    rows = people(130.0)[0]
    plain = await outside_of(tmp_path / "plain", rows, caplog)
    assert any(topic.endswith("/status") for topic in plain)
    assert any(topic.endswith("/budget") for topic in plain)
    nonsense = await outside_of(tmp_path / "zeros", np.zeros_like(rows), caplog)
    assert nonsense == plain
    assert await outside_of(tmp_path / "lost", np.full_like(rows, np.nan), caplog) == plain

    def leak(self: OperatorLog, key: StreamKey, values: Rows) -> None:
        self._pipeline._served[key].stream.condition = "mechanism"

    look = OperatorLog._look_at_rows
    monkeypatch.setattr(
        OperatorLog,
        "_look_at_rows",
        lambda self, key, values: (leak if not np.nan_to_num(values).any() else look)(self, key, values),
    )
    assert await outside_of(tmp_path / "planted", np.zeros_like(rows), caplog) != plain


@pytest.mark.parametrize(
    ("nonsense", "word"),
    [
        (np.zeros_like, "same"),
        (lambda rows: np.random.default_rng(1).uniform(0.0, 1.0, rows.shape), "order"),
        (lambda rows: np.random.default_rng(1).normal(10.0, 1.0, rows.shape), "order"),
        (lambda rows: rows[:, ::-1], "order"),
        (in_radians, "unit"),
        (lambda rows: rows * np.where(np.array(KNOWN.units) == "deg", 30.0, 1.0), "unit"),
    ],
    ids=["zeros", "noise", "large noise", "swapped", "radians", "pixels"],
)
async def test_nonsense_is_noticed_before_the_first_chunk_is_out(
    nonsense: Any, word: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said, _ = await lived(tmp_path / "a", nonsense(people(130.0)[0]), caplog)
    doubts = [one for one in said if one.get("event") == "doubt"]
    assert [one["reason"] for one in doubts] == [word]
    assert DOUBTS[word] in doubts[0]["message"]
    assert doubts[0]["message"].startswith("hmd-1/features: implausible rows; chunks are still released and charged")


@pytest.mark.parametrize("rate_hz", [0.9, 20.0])
async def test_another_rate_is_noticed(rate_hz: float, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    said, _ = await lived(tmp_path / "a", people(800.0)[0][: round(130 * rate_hz)], caplog, rate_hz=rate_hz)
    assert "rate" in [one.get("reason") for one in said]


def test_people_are_not_taken_for_nonsense() -> None:
    """40 simulated people of 10 minutes. It takes two chunks in a row: one in 720 is doubtful here, with this seed."""
    doubts = RowDoubts(KNOWN)
    found = [[doubts.of(rows[a : a + 64].T) for a in range(0, 1152, 64)] for rows in people(600.0, 40)]
    assert sum(word is not None for words in found for word in words) <= 1
    assert doubts.of(np.full((52, 64), np.nan)) is None


def test_ranges_of_changes_raise_no_doubt_about_raw_rows() -> None:
    """Those of asked features lie around 0, wherever the levels are."""
    doubts = RowDoubts(calibrations.load("everyday-asked-64"))
    found = {doubts.of(rows[a : a + 64].T) for rows in people(600.0, 40) for a in range(0, 1152, 64)}
    assert found == {None}
    assert doubts.of(np.zeros((52, 64))) == "same"


async def test_a_tracker_that_never_came_is_named_and_one_that_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once each, within ten seconds; a tracker that sends many rows at once is silent for longer."""
    settings = settings_for(NO_BROKER, tmp_path, calibration=CALIBRATION, devices=("hmd-1", "hmd-2", "hmd-3"))
    caplog.set_level(logging.INFO, "eyestream")
    with opened(settings) as sidecar:
        talk = OperatorLog(
            resolved(settings), sidecar.pipeline, sidecar.left, is_read=lambda key: key.device != "hmd-3"
        )
        named: dict[str, float] = {}
        for now in range(60):
            if now < 20 and not now % 2:
                row = RawRows(1, now // 2, np.zeros((1, 52)))
                await sidecar.pipeline.run_turn([RowArrival(KEY, row, float(now))], float(now))
            talk.look(float(now))
            for record in caplog.records:
                if (told := getattr(record, "fields", {})).get("event") == "absent":
                    named.setdefault(f"{told['device']} {told['reason']}", now)
    assert named == {"hmd-2 silent": 8, "hmd-1 stopped": 24}
    assert caplog.text.count("its tracker is not heard") == 2


async def test_rows_that_come_twice_are_those_of_two_senders(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Four times within eight seconds; what a lost link repeats once is no second sender."""
    rows = people(20.0)[0]
    settings = settings_for(NO_BROKER, tmp_path, calibration=CALIBRATION)
    with opened(settings) as sidecar:
        talk = OperatorLog(resolved(settings), sidecar.pipeline, sidecar.left)
        for number, row in enumerate(rows):
            arrival = RowArrival(KEY, RawRows(1, number, row[None, :]), number / 2.0)
            await sidecar.pipeline.run_turn([arrival] * (2 if number == 3 or number > 20 else 1), number / 2.0)
            talk.look(number / 2.0)
            assert ("(two)" in caplog.text) == (number >= 24)


async def test_many_streams_are_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    devices = tuple(f"hmd-{number}" for number in range(12))
    settings = settings_for(NO_BROKER, tmp_path, calibration=CALIBRATION, devices=devices)
    caplog.set_level(logging.INFO, "eyestream")
    with opened(settings) as sidecar:
        talk = OperatorLog(resolved(settings), sidecar.pipeline, sidecar.left)
        row = people(1.0)[0][:1]
        arrivals = [RowArrival(StreamKey(device, "features"), RawRows(1, 0, row), 0.0) for device in devices]
        await sidecar.pipeline.run_turn(arrivals, 0.0)
        talk.look(0.0)
    lines = [record.getMessage() for record in caplog.records if "first row;" in record.getMessage()]
    assert lines == ["hmd-0/features, hmd-1/features, hmd-2/features and 9 more: first row; first chunk in 96 s"]


@contextlib.asynccontextmanager
async def assembled(settings: Settings) -> AsyncIterator[Sidecar]:
    with assemble(resolved(settings), lambda: 20_000) as made:
        async with at_work(made.sidecar):
            yield made.sidecar


@pytest.mark.parametrize(
    "changed",
    [
        {"names": KNOWN.names[::-1]},
        {"rate": 20.0},
        {"units": ("rad",) * 52},
    ],
    ids=["order", "rate", "units"],
)
async def test_rows_that_are_said_to_be_others_are_refused(
    changed: dict[str, Any], mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {"names": KNOWN.names, "rate": 2.0} | changed
    async with assembled(settings_for(mosquitto.url, tmp_path, calibration=CALIBRATION)) as sidecar:
        await until(lambda: sidecar.raw_stands)
        async with Publisher(mosquitto.url, "hmd-1", **given) as publisher:
            await publisher.send(people(10.0)[0])
            await until(lambda: sidecar.pipeline.counters.rejected["rows"] == 1)
        assert sidecar.pipeline.counters.taken == 0
    assert f"hmd-1/features: its tracker is refused (rows): {REMEDIES['rows']}" in caplog.text


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("units", [(), KNOWN.units], ids=["no units", "units"])
async def test_rows_that_are_said_to_be_ours_are_taken(
    version: Any, units: tuple[str, ...], mosquitto: Mosquitto, tmp_path: Path
) -> None:
    """So are those of a tracker that says nothing: MQTT 3.1.1 has no word for it."""
    settings = settings_for(mosquitto.url, tmp_path, calibration=CALIBRATION, version=version)
    async with assembled(settings) as sidecar:
        await until(lambda: sidecar.raw_stands)
        async with Publisher(mosquitto.url, "hmd-1", KNOWN.names, 2.0, units=units) as publisher:
            await publisher.send(people(10.0)[0])
            await until(lambda: sidecar.pipeline.counters.taken == 1)


class Flaky:
    """A source that is away in several ways, then there."""

    def __init__(self) -> None:
        self._ways = ["is gone", "is gone", "its unit is rad", "is gone"]

    async def run(self, deliver: Callable[[RawRows], None]) -> None:
        if self._ways:
            raise LinkError(self._ways.pop(0))
        deliver(RawRows(1, 0, np.zeros((1, 52))))


async def test_a_source_that_comes_back_as_another_is_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def at_once(self: Backoff) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(Backoff, "wait", at_once)
    caplog.set_level(logging.INFO, "eyestream")
    await SourceRunner({KEY: Flaky()}, lambda key, rows: None, lambda: None).run()
    assert [record.getMessage() for record in caplog.records] == [
        "source of hmd-1/features: is gone; trying again until it is back",
        "source of hmd-1/features: its unit is rad; trying again until it is back",
        "source of hmd-1/features: is back",
        "source of hmd-1/features: has come to its end",
    ]


def outlet(uid: str, host: str, source: str) -> Any:
    """What liblsl's record of an outlet answers."""
    return SimpleNamespace(uid=lambda: uid, hostname=lambda: host, source_id=lambda: source)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (("u1", "host", "s"), 0),
        (("u2", "host", "s"), 0),
        (("u2", "host", ""), 1),
        (("u2", "host", "t"), 1),
        (("u2", "elsewhere", "s"), 1),
    ],
    ids=["the same", "started again", "nobody can tell", "another source", "another host"],
)
def test_an_outlet_that_took_the_place_of_another_is_told_of(
    other: tuple[str, str, str], told: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lsl, "pylsl_module", lambda: None)
    place = Place("hmd-1", BrokerSettings(NO_BROKER))
    source = lsl.LslSource(lsl.LslOptions("eye"), load_profile("degrees").at_rate(120.0), place)
    source._note_twin(outlet("u1", "host", "s"))
    source._note_twin(outlet(*other))
    assert caplog.text.count("outlet 'eye' is another one than before") == told


def test_the_hash_is_the_one_that_the_protocol_describes() -> None:
    """`printf 'a\\nb\\n\\ndeg\\nmm\\n\\n2' | sha256sum`; a rate that was measured is rounded."""
    expected = "e307843b"
    assert rows_hash(("a", "b"), ("deg", "mm"), 2.0)[:8] == expected
    assert rows_hash(("a", "b"), ("deg", "mm"), 2.0001)[:8] == expected
    different = [(("b", "a"), ("deg", "mm"), 2.0), (("a", "b"), (), 2.0), (("a", "b"), ("deg", "mm"), 2.1)]
    assert all(rows_hash(*other)[:8] != expected for other in different)
