"""`eyestream forget`: the diary is erased, of a ledger at rest and of a sidecar at work, and the debt stays."""

import asyncio
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.cli.pause import ask
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Request
from eyestream.errors import ConfigError
from eyestream.rim.ledger.identity import ledger_name, wearer_number
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.ledger.records import RELEASED
from eyestream.rim.plan import load
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sidecar.control import control_socket, serving
from eyestream.streams import StreamKey

CONFIG = """[sidecar]
ledger = "ledger"
[private]
url = "mqtt://127.0.0.1:9"
[[device]]
id = "hmd-1"
[[stream]]
[stream.privacy]
calibration = "everyday-klt-32"
epsilon = 4
"""
HANDLE = "guest-4711"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose ledger has slots of two wearers on two days."""
    create_ledger(tmp_path / "ledger", created=0)
    (tmp_path / "sidecar.toml").write_text(CONFIG)
    number = number_in(tmp_path / "ledger")
    with Ledger(tmp_path / "ledger", ceilings=Ceilings()) as ledger:
        for day, session, wearer in ((20_000, 1, number), (20_001, 2, 9), (20_001, 3, number)):
            ledger.reserve([Request(StreamKey("hmd-1", "features"), session, 0, 31, 32, Charge(7), wearer)], day)
    return tmp_path / "sidecar.toml"


def number_in(path: Path) -> int:
    return wearer_number(ledger_name(read_ledger(path).header.ledger_id), "hmd-1", HANDLE)


def slots(path: Path) -> int:
    """Records of released slots in the file."""
    header = read_ledger(path).header
    data = path.read_bytes()[64 + header.snapshot_bytes :]
    return sum(data[at] == RELEASED for at in range(0, len(data), 64))


@pytest.mark.parametrize("handle", [HANDLE, "somebody-else"])
def test_of_a_ledger_at_rest_the_sums_are_left(
    config: Path, handle: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = config.with_name("ledger")
    before = read_ledger(path).odometers
    assert slots(path) == 1, "the first day has melted with the first slot of the next"
    main(["forget", handle, "--config", str(config)])
    assert capsys.readouterr().out == "forgotten\n", "the answer does not tell whether the handle is known"
    assert slots(path) == 0
    assert read_ledger(path).odometers == before
    assert b"20000" not in path.read_bytes(), "the day is gone"
    assert HANDLE.encode() not in path.read_bytes()
    assert HANDLE not in caplog.text


@pytest.mark.parametrize("handle", ["", "0", "x" * 65, "a b", "é"])
def test_what_is_no_handle_is_refused_and_not_told(
    config: Path, handle: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = config.with_name("ledger").read_bytes()
    with pytest.raises(SystemExit):
        main(["forget", handle, "--config", str(config)])
    said = capsys.readouterr().err
    assert "expected a handle" in said
    assert len(handle) < 2 or handle not in said
    assert config.with_name("ledger").read_bytes() == before


async def test_a_sidecar_at_work_is_told_and_who_comes_back_has_spent_what_they_had(config: Path) -> None:
    plan, path = load(config), config.with_name("ledger")
    before = read_ledger(path).odometers
    with assemble(plan, lambda: 20_001) as made:
        async with serving(plan.settings, made.sidecar.off) as control:
            assert control is not None
            control.lines |= {"forget": made.forget, "wearer": made.sidecar.wearing.answer}
            await asyncio.to_thread(main, ["forget", HANDLE, "--config", str(config)])
            assert slots(path) == 0
            with pytest.raises(ConfigError, match="expected a handle"):
                await asyncio.to_thread(ask, control_socket(plan.settings), "forget a/b")
        assert made.sidecar.number("hmd-1", HANDLE) == number_in(path)
        assert made.odometers()["hmd-1"].wearers == before["hmd-1"].wearers
