"""`eyestream budget` shows what was spent, and makes a ledger once."""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from eyestream.cli import budget
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request, Withheld
from eyestream.errors import LedgerError
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.streams import StreamKey


def command(*arguments: str) -> None:
    parser = argparse.ArgumentParser()
    budget.add_parser(parser.add_subparsers())
    budget.main(parser.parse_args(["budget", *arguments]))


def test_a_new_ledger_is_empty_and_is_made_once(tmp_path: Path, capsys):
    path = str(tmp_path / "ledger")
    command("--ledger", path, "--new")
    command("--ledger", path)
    assert "nothing spent" in capsys.readouterr().out
    with pytest.raises(LedgerError, match="exists already"):
        command("--ledger", path, "--new")


@pytest.fixture
def spent(tmp_path: Path) -> Path:
    """Two streams of d1 in two sessions, and d2 with a charge that no ceiling allows."""
    path = tmp_path / "ledger"
    create_ledger(path, created=20_000 * 86_400)
    features, gaze = StreamKey("d1", "features"), StreamKey("d1", "gaze")
    charge = Charge.of("0.1", "1e-9")
    ceilings = replace(Ceilings.of(2, "0.2", session="0.6"), streams={"gaze": Ceilings.of(3, 1)})
    with Ledger(path, ceilings=ceilings) as ledger:
        for session in (7, 8):
            requests = [Request(features, session, 32 * i, 32 * i + 31, 32, charge) for i in range(6)]
            ledger.reserve([Request(gaze, session, 0, 7, 8, charge, wearer=5), *requests], 20_000)
        ledger.reserve([Request(StreamKey("d2", "features"), 1, 0, 31, 32, Charge.of(120))], 20_001)
    return path


def test_it_shows_the_exact_sums_of_every_device_and_its_streams_beneath(spent: Path, capsys):
    with Ledger(spent, ceilings=Ceilings(2)):
        command("--ledger", str(spent))  # also while the ledger is in use
    first, second = capsys.readouterr().out.split("\nd2\n")
    device, features, gaze = first.partition("\n")[2].split("d1")[1:]
    for line in (
        "since its beginning     epsilon 1.2, delta 0.000000012",
        "current sessions        epsilon 0.6, delta 0.000000006",
        "last 2 chunks           epsilon 0.1, delta 0.000000001",
        "day 2024-10-04          epsilon 1.2, delta 0.000000012",
        "chunks of all streams   12 released, 2 withheld",
        "wearer 5                epsilon 0.2, delta 0.000000002",
        "    on that day           epsilon 0.2, delta 0.000000002",
    ):
        assert line in device
    assert features.startswith("/features")
    assert "since its beginning     epsilon 1, delta 0.00000001" in features
    assert "last session            epsilon 0.5, delta 0.000000005" in features
    assert "chunks                  of 32 rows: 10 released, 2 withheld" in features
    assert "last row                session 8, row 191" in features
    assert gaze.startswith("/gaze")
    assert "last 3 chunks           epsilon 0.2, delta 0.000000002" in gaze
    assert "epsilon 0, delta 0" in second
    assert "0 released, 1 withheld" in second


def test_the_json_form_has_the_same_as_exact_decimals(spent: Path, capsys):
    command("--ledger", str(spent), "--json")
    said = json.loads(capsys.readouterr().out)
    assert (said["format"], said["created"], list(said["devices"])) == (3, 20_000 * 86_400, ["d1", "d2"])
    device = said["devices"]["d1"]
    assert (device["epsilon"], device["delta"], device["released"]) == ("1.2", "0.000000012", 12)
    amounts = {"epsilon": "0.2", "delta": "0.000000002"}
    assert device["wearers"] == {"5": amounts | {f"day_{name}": amount for name, amount in amounts.items()}}
    stream = device["streams"]["features"]
    assert (stream["epsilon"], stream["mark"], stream["chunk"]) == ("1", [8, 191], 32)
    assert stream["unsettled"] == 0


def test_what_is_rare_is_shown_where_it_is(spent: Path, capsys):
    key = StreamKey("d1", "features")
    with spent.open("ab") as file:
        file.write(b"\1")
    with Ledger(spent, ceilings=Ceilings(4)) as ledger:
        ledger.reserve([Request(key, 9, 0, 15, 16, Charge.of(1))], 20_001)
        for index in range(1, 9):
            ledger.reserve([Request(key, 9, 16 * index, 16 * index + 15, 16, Charge.of(1), write_ahead=True)], 20_001)
        ledger.reserve([Request(StreamKey("d1", "gaze"), 9, 0, 15, 16, Charge.of(1))], 20_001)
    capsys.readouterr()
    command("--ledger", str(spent))
    device, features, gaze = capsys.readouterr().out.partition("\n")[2].split("d1")[1:]
    assert "damaged records         1, counted as spent" in device
    assert "not settled             5 chunks" in features
    assert "to be withheld          3 chunks, as the chunk length or a window changed" in gaze
    with OperatedLedger(spent, ceilings=Ceilings(9)) as ledger:
        ledger.begin_day_at(2**22)
        ledger.reserve([Request(key, 10, 0, 15, 16, Charge.of(1))], 2**22)
    command("--ledger", str(spent))
    said = capsys.readouterr().out
    assert "to be withheld          8 chunks, as the window changed" in said
    assert "day 4194304 days after 1970-01-01" in said


def test_somebody_says_that_the_date_is_right(tmp_path: Path, capsys):
    path = tmp_path / "ledger"
    create_ledger(path, created=1_000_000_000)
    today = int(time.time()) // 86_400
    request = Request(StreamKey("d", "s"), 1, 0, 31, 32, Charge(1))
    with Ledger(path, ceilings=Ceilings(day=1)) as ledger:
        for ahead in (400, 500, 600):
            ledger.reserve([msgspec.structs.replace(request, session=ahead)], today + ahead)
    with Ledger(path, ceilings=Ceilings(day=1)) as ledger:
        ledger.reserve([msgspec.structs.replace(request, session=700)], today + 700)
    command("--ledger", str(path))
    assert "days are open up to" in capsys.readouterr().out
    command("--ledger", str(path), "--today")
    assert "days go on from 20" in capsys.readouterr().out
    with Ledger(path, ceilings=Ceilings(day=1)) as ledger:
        assert isinstance(ledger.reserve([msgspec.structs.replace(request, session=800)], today)[0], Withheld), "spent"
        assert isinstance(ledger.reserve([msgspec.structs.replace(request, session=801)], today + 1)[0], Granted)


@pytest.mark.parametrize(
    "arguments", [["--new", "--json"], ["--new", "--today"], ["--today", "--json"], ["--chunk", "3"]]
)
def test_arguments_that_do_not_go_together_are_refused(tmp_path: Path, arguments, capsys):
    with pytest.raises(SystemExit):
        command("--ledger", str(tmp_path / "ledger"), *arguments)
    assert not (tmp_path / "ledger").exists()


def test_a_missing_ledger_is_an_error_of_the_operator(tmp_path: Path):
    for arguments in ([], ["--json"], ["--today"]):
        with pytest.raises(LedgerError, match="eyestream init"):
            command("--ledger", str(tmp_path / "ledger"), *arguments)
    with pytest.raises(LedgerError, match="cannot create"):
        command("--ledger", str(tmp_path / "no" / "ledger"), "--new")
