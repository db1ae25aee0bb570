"""`eyestream budget` shows what was spent, and makes a ledger once."""

import argparse
from pathlib import Path

import pytest

from eyestream.cli import budget
from eyestream.errors import ConfigError, LedgerError
from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.reservation import Request
from eyestream.rim.ledger.ledger import Ledger
from eyestream.streams.key import StreamKey


def command(*arguments: str) -> None:
    parser = argparse.ArgumentParser()
    budget.add_parser(parser.add_subparsers())
    budget.main(parser.parse_args(["budget", *arguments]))


def test_a_new_ledger_is_empty_and_is_made_once(tmp_path: Path, capsys):
    path = str(tmp_path / "ledger")
    command("--ledger", path, "--new", "--chunk", "32", "--window", "225")
    command("--ledger", path)
    assert "nothing spent" in capsys.readouterr().out
    with pytest.raises(LedgerError, match="exists already"):
        command("--ledger", path, "--new", "--chunk", "32", "--window", "225")


def test_it_shows_the_exact_sums_of_every_device(tmp_path: Path, capsys):
    path = tmp_path / "ledger"
    command("--ledger", str(path), "--new", "--chunk", "32", "--window", "2")
    charge = Charge.of("0.1", "1e-9")
    with Ledger(path, ceilings=Ceilings.of(2, "0.2", session="0.5")) as ledger:
        for session in (7, 8):
            ledger.reserve(
                [Request(StreamKey("d1", "features"), session, 32 * i, 32 * i + 31, 32, charge) for i in range(6)],
                20_000,
            )
        ledger.reserve([Request(StreamKey("d2", "features"), 1, 0, 31, 32, Charge.of(120))], 20_001)
        capsys.readouterr()
        command("--ledger", str(path))  # also while the ledger is in use
    said = capsys.readouterr().out
    first, second = said.split("d1/features")[1].split("d2/features")
    assert "epsilon 1, delta 0.00000001" in first
    assert "last session          epsilon 0.5" in first
    assert "last 2 chunks         epsilon 0.1" in first
    assert "day 2024-10-04        epsilon 1" in first
    assert "10 released, 2 withheld" in first
    assert "session 8, row 191" in first
    assert "epsilon 0, delta 0" in second
    assert "0 released, 1 withheld" in second


@pytest.mark.parametrize(
    "arguments",
    [
        ["--new"],
        ["--new", "--chunk", "32"],
        ["--new", "--chunk", "0", "--window", "1"],
        ["--new", "--chunk", "32", "--window", "-1"],
        ["--new", "--chunk", str(2**32), "--window", "1"],
        ["--chunk", "32"],
        ["--window", "3"],
    ],
)
def test_arguments_that_do_not_go_together_are_refused(tmp_path: Path, arguments):
    with pytest.raises(ConfigError):
        command("--ledger", str(tmp_path / "ledger"), *arguments)
    assert not (tmp_path / "ledger").exists()


def test_a_missing_ledger_is_an_error_of_the_operator(tmp_path: Path):
    with pytest.raises(LedgerError, match="eyestream init"):
        command("--ledger", str(tmp_path / "ledger"))
    with pytest.raises(LedgerError, match="cannot create"):
        command("--ledger", str(tmp_path / "no" / "ledger"), "--new", "--chunk", "32", "--window", "1")
