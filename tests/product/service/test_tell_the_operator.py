"""What an operator is told: a tracker that is refused, a budget that is spent, what is left of it and who is served."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.remaining import left_of
from eyestream.ops.metrics import PLANNED, health, metrics
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from eyestream.rim.refusals import AGAIN_S, GAZE_REMEDIES, REMEDIES, Refusals
from eyestream.sdk.publisher import Publisher
from eyestream.streams import StreamKey
from eyestream.wire.envelope import REASONS
from eyestream.wire.raw import encode_raw
from eyestream.wire.topics import raw_topic
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import running, settings_for

KEY = StreamKey("hmd-1", "features")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_the_same_is_said_once_in_a_while_with_its_remedy(caplog: pytest.LogCaptureFixture) -> None:
    refusals, other = Refusals(), StreamKey("hmd-2", "features")
    for at in range(100):
        refusals.note(KEY, "schema", float(at))
    refusals.note(KEY, "shape", 5.0)
    refusals.note(other, "schema", 6.0)
    refusals.note(KEY, "schema", AGAIN_S + 1.0)
    said = warnings(caplog)
    assert len(said) == 4
    assert all("its tracker is refused" in line for line in said)
    assert "hmd-1" in said[0]
    assert "(schema): the schema number" in said[0]
    assert "99 times since" in said[3]
    assert REMEDIES.keys() | GAZE_REMEDIES.keys() <= REASONS | {
        "stale_session",
        "mark",
        "rows",
        "wearer",
        "switched",
        "paused",
        "retained",
        "oversize",
    }


async def test_a_tracker_with_a_smaller_session_number_is_told_of(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nanoseconds first, milliseconds after; rows of another width; rubbish. No value is in any line."""
    settings = settings_for(mosquitto.url, tmp_path)
    names = settings.stream[0].names
    rows = rows_of_a_stranger(40, len(names))
    async with running(settings) as sidecar:
        await until(lambda: health(sidecar) == "ok")
        async with connect(Endpoint.of(settings.private), client_id=None, deliver=lambda message: None) as link:
            for session in (1_700_000_000_000_000_000, 1_700_000_000_000):
                for number, row in enumerate(rows):
                    payload = encode_raw(session, number, row[None], 1)
                    await link.publish(raw_topic("hmd-1"), payload, qos=1)
            for _ in range(20):
                await link.publish(raw_topic("hmd-1"), b"rubbish", qos=1)
        await until(lambda: sidecar.pipeline.counters.rejected.total() == 20)
    said = [line for line in warnings(caplog) if "its tracker is refused" in line]
    assert len(said) == 2, said
    assert "(stale_session): its session number must be larger" in said[0]
    assert "nanoseconds" in said[0]
    assert "docs/protocol.md" in said[1]


async def test_a_spent_budget_is_a_warning_a_gauge_and_not_ok(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    settings = msgspec.structs.replace(settings, budget=msgspec.structs.replace(settings.budget, session_epsilon=9.6))
    names = settings.stream[0].names
    async with running(settings) as sidecar:
        await until(lambda: health(sidecar) == "ok")
        async with Publisher(mosquitto.url, "hmd-1", names, 2.0) as publisher:
            await publisher.send(rows_of_a_stranger(160, len(names)))
        await until(lambda: sidecar.pipeline.counters.withheld.total() == 3)
        word = health(sidecar)
        page = metrics(sidecar, read_ledger(settings.sidecar.ledger).odometers, Ceilings.of(2, 9.6, 9.6, 100))
    assert word == "session"
    assert word in PLANNED
    [line] = [line for line in warnings(caplog) if "releases go on" in line]
    assert line.endswith("what the budget allows a session is spent; releases go on with the tracker's next session")
    for text in (
        'eyestream_epsilon_spent{device="hmd-1",scope="session"} 9.6\n',
        'eyestream_epsilon_spent{device="hmd-1",scope="lifetime"} 9.6\n',
        'eyestream_epsilon_ceiling{scope="session"} 9.6\n',
        'eyestream_epsilon_ceiling{scope="day"} 100\n',
    ):
        assert text in page
    assert 'ceiling{scope="lifetime"}' not in page


@pytest.mark.long
async def test_devices_that_are_served_are_listed(
    mosquitto: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["devices", "--broker", mosquitto.url, "--seconds", "0.3"]
    await asyncio.to_thread(main, words)
    assert capsys.readouterr().out.startswith("no device is served here")
    settings = settings_for(mosquitto.url, tmp_path)
    names = settings.stream[0].names
    async with running(settings) as sidecar:
        await until(lambda: health(sidecar) == "ok")
        listing = asyncio.create_task(asyncio.to_thread(main, [*words[:-1], "2", "--json"]))
        await asyncio.sleep(0.8)
        async with Publisher(mosquitto.url, "hmd-1", names, 2.0) as publisher:
            await publisher.send(rows_of_a_stranger(32, len(names)))
        await listing
        found = {line["device"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
        assert found.keys() == {"hmd-1", "sidecar"}
        one = found["hmd-1"]
        assert (one["stream"], one["state"], one["reason"], one["epsilon"]) == ("features", "online", "ready", 4.8)
        assert one["chunk"] == 0
        await asyncio.to_thread(main, words)
        lines = capsys.readouterr().out.splitlines()
        assert any(line.startswith("hmd-1") and "online, ready" in line and "no chunk" in line for line in lines)


def test_what_is_left_in_chunks_and_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "s")])
    capsys.readouterr()
    config = str(tmp_path / "s" / "sidecar.toml")
    main(["budget", "--config", config])
    said = capsys.readouterr().out
    assert "this session            240 chunks, 2 h 08 min; more with the tracker's next session" in said
    assert "this day                480 chunks, 4 h 16 min; more at midnight UTC" in said
    main(["budget", "--config", config, "--json"])
    [left] = json.loads(capsys.readouterr().out)["left"].values()
    assert [(one["scope"], one["chunks"], one["seconds"]) for one in left] == [
        ("session", 240, 7680.0),
        ("day", 480, 15360.0),
    ]


def test_left_is_what_the_account_grants() -> None:
    """Against the ledger itself, at every spend, over a change of day and of session."""
    from eyestream.core.reservation import Granted, Request
    from tests.rigs.memory_ledger import MemoryLedger

    ceilings, charge = Ceilings.of(session=1.0, day=1.5, lifetime=4.0), Charge.of("0.25")
    ledger, row = MemoryLedger(ceilings), 0
    for session, day, most in ((1, 10, 4), (2, 10, 2), (3, 11, 4), (4, 11, 2), (5, 12, 4)):
        granted = 0
        for _ in range(6):
            [answer] = ledger.reserve([Request(KEY, session, row, row + 31, 32, charge)], day)
            row += 32
            granted += isinstance(answer, Granted)
            lefts = {left.scope: left.chunks for left in left_of(ledger.odometer("hmd-1"), ceilings, charge, day)}
            assert lefts["session"] == 4 - granted
        assert granted == most, (session, day)
        assert min(lefts.values()) == 0
    assert left_of(None, ceilings, charge, 1)[0].chunks == 4
    tomorrow = {left.scope: left.chunks for left in left_of(ledger.odometer("hmd-1"), ceilings, charge, 13)}
    assert tomorrow["day"] == 6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gaurantee"], "there is no command gaurantee; did you mean guarantee?"),
        (["run", "--confg", "x", "--config", "y"], "did you mean --config?"),
        (["fit", "x", "--calibration", "everyday-ktl-32"], "did you mean everyday-klt-32?"),
        (["extract", "x", "--profile", "degres", "--out", "y"], "did you mean degrees?"),
    ],
)
def test_did_you_mean(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_mistyped_key_of_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "s")])
    path = tmp_path / "s" / "sidecar.toml"
    path.write_text(path.read_text().replace("session_epsilon", "sesion_epsilon"))
    with pytest.raises(SystemExit):
        main(["guarantee", "--config", str(path)])
    assert "[budget] sesion_epsilon: unknown key; did you mean session_epsilon?" in capsys.readouterr().err


def test_the_words_say_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "s")])
    main(["guarantee", "--config", str(tmp_path / "s" / "sidecar.toml")])
    said = " ".join(capsys.readouterr().out.split())
    assert "at most epsilon 1152, enough for 2 h 08 min of releases" in said
    assert "at most epsilon 2304, enough for 4 h 16 min of releases" in said


@pytest.mark.parametrize("json_lines", [False, True])
def test_the_journal_is_told_how_grave_a_line_is(tmp_path: Path, json_lines: bool) -> None:
    """`journalctl -p warning` has the warnings; a file, or a pipe, has no numbers in front."""
    said = "import logging; from eyestream.cli.log import JsonLines, start_log; "
    said += f"start_log({'formatter=JsonLines()' if json_lines else ''}); log = logging.getLogger('eyestream.x'); "
    said += "[log.log(level, 'so') for level in (20, 30, 40)]"
    told = {}
    for journal in (True, False):
        with (tmp_path / "log").open("w") as file:
            found = os.fstat(file.fileno())
            here = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino + (not journal)}"}
            subprocess.run([sys.executable, "-c", said], stderr=file, env=os.environ | here, check=True)
        told[journal] = (tmp_path / "log").read_text().splitlines()
    assert [line[:3] for line in told[True]] == ["<6>", "<4>", "<3>"]
    assert all(line.startswith("{" if json_lines else "2") for line in told[False])
