"""A device moves between ledgers: it is in one of them or in none, whatever the power leaves, and brings its spends."""

import argparse
import hashlib
import random
from pathlib import Path

import pytest

from eyestream.cli import budget
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request, Withheld
from eyestream.errors import ConfigError, LedgerError
from eyestream.rim.ledger import file as file_module
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.operating import OperatedLedger, read_export, write_export
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.ledger.snapshot import DeviceExport
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.streams import StreamKey
from tests.product.service.disk import TracedDisk, states
from tests.product.service.test_ledger_rewriting import put
from tests.rigs.sidecar import settings_for

MOVED, OTHER = StreamKey("moved", "features"), StreamKey("other", "features")
CEILINGS = Ceilings.of(2, 1.0, 1.0, 1.0)


def ask(index: int, key: StreamKey = MOVED) -> Request:
    return Request(key, 7, 32 * index, 32 * index + 31, 32, Charge.of(0.25, 0.0), wearer=4)


def spend(path: Path, *indices: int, key: StreamKey = MOVED) -> list[bool]:
    """Whether each chunk is granted."""
    with OperatedLedger(path, ceilings=CEILINGS) as ledger:
        return [isinstance(answer, Granted) for answer in ledger.reserve([ask(i, key) for i in indices], 20_000)]


@pytest.fixture
def ledgers(tmp_path: Path) -> tuple[Path, Path]:
    """Two: one that knows a device, and another."""
    folders = tmp_path / "old", tmp_path / "new"
    for folder in folders:
        folder.mkdir()
        create_ledger(folder / "ledger", created=1_700_000_000)
    old, new = (folder / "ledger" for folder in folders)
    assert spend(old, 0, 1) == [True, True]
    assert spend(old, 0, key=OTHER) == [True]
    return old, new


def name(path: Path) -> str:
    return ledger_name(read_ledger(path).header.ledger_id)


def give(path: Path, to: str = "0" * 32) -> DeviceExport:
    with OperatedLedger(path, ceilings=CEILINGS) as ledger:
        return ledger.export_device("moved", to)


def take(path: Path, export: DeviceExport) -> None:
    with OperatedLedger(path, ceilings=CEILINGS) as ledger:
        ledger.import_device(export)


def test_what_was_spent_comes_with_it(ledgers: tuple[Path, Path]) -> None:
    old, new = ledgers
    before = read_ledger(old).odometers["moved"]
    export = give(old, name(new))
    with OperatedLedger(old, ceilings=CEILINGS) as ledger:
        with pytest.raises(ValueError, match="moved to another ledger"):
            ledger.reserve([ask(0, OTHER), ask(2)], 20_000)
        assert ledger.export_device("moved", name(new)) == export  # as often as one likes
    take(new, export)
    assert read_ledger(new).odometers["moved"] == before
    assert before.wearers[4].epsilon == before.epsilon == 2 * Charge.of(0.25).epsilon
    assert read_ledger(old).exported == frozenset({"moved"})
    assert read_ledger(new).exported == set()
    with OperatedLedger(new, ceilings=CEILINGS) as ledger:
        answers = ledger.reserve([ask(i) for i in range(5)], 20_000)
    assert [type(answer) for answer in answers] == [Withheld, Withheld, Granted, Granted, Withheld]  # 4 of 0.25
    assert [answer.obstacle for answer in answers if isinstance(answer, Withheld)] == ["rows", "rows", "session"]
    assert spend(old, 1, key=OTHER) == [True]  # the others stay


def test_nothing_is_taken_over_twice_and_nothing_old(ledgers: tuple[Path, Path]) -> None:
    old, new = ledgers
    first = give(old, name(new))
    take(new, first)
    with pytest.raises(LedgerError, match="is in it already"):
        take(new, first)
    with pytest.raises(LedgerError, match="and for no other"):
        take(old, first)
    assert spend(new, 2) == [True]
    second = give(new, name(old))
    with pytest.raises(LedgerError, match="exported again"):
        take(new, first)
    take(old, second)  # it comes back with what was spent elsewhere
    assert read_ledger(old).odometers["moved"].released == 3
    assert spend(old, 0, 1, 2, 3) == [False, False, False, True]
    with pytest.raises(LedgerError, match="is in it already"):
        take(old, second)
    with pytest.raises(LedgerError, match="knows nothing"), OperatedLedger(new, ceilings=CEILINGS) as ledger:
        ledger.export_device("stranger", name(old))


def test_an_export_is_for_one_ledger(ledgers: tuple[Path, Path], tmp_path: Path) -> None:
    """Two ledgers that never had the device would each grant what is left of its budget."""
    old, new = ledgers
    third = tmp_path / "third"
    create_ledger(third, created=1_700_000_000)
    for wrong in (name(old), "", "x" * 32, str(new)):
        with pytest.raises(LedgerError, match="is not the name of another ledger"):
            give(old, wrong)
    assert spend(old, 2) == [True], "nothing was given away"
    export = give(old, name(new))
    with pytest.raises(LedgerError, match=f"was moved to the ledger {name(new)}; export it from there"):
        give(old, name(third))
    with pytest.raises(LedgerError, match=f"is for the ledger {name(new)}, and for no other"):
        take(third, export)
    assert give(old, name(new)) == export
    take(new, export)
    with pytest.raises(LedgerError, match="is in it already"):
        take(new, export)


def test_an_export_of_before_names_no_ledger_and_is_refused(ledgers: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "export"
    write_export(path, give(ledgers[0]))
    text = (
        path.read_bytes()
        .split(b"\n")[0]
        .replace(b'"eyestream device 2","to":"' + b"0" * 32 + b'"', b'"eyestream device 1"')
    )
    path.write_bytes(text + b"\n" + hashlib.blake2b(text, digest_size=32).hexdigest().encode() + b"\n")
    with pytest.raises(LedgerError, match=r"names no ledger that it is for.*with --to"):
        read_export(path)


def test_the_power_goes_at_every_step_of_giving_away(ledgers: tuple[Path, Path], monkeypatch) -> None:
    old, _ = ledgers
    before, expected = old.read_bytes(), read_ledger(old).odometers
    with monkeypatch.context() as patch:
        disk = TracedDisk()
        patch.setattr(file_module, "os", disk)
        export = give(old)
    steps = [step for step, _, _ in disk.trace]
    assert steps == ["sync", "names", "sync", "create", "write", "sync", "rename", "names"]
    outcomes = set()
    for cut in range(len(steps) + 1):
        for state in states(before, disk.trace, cut, random.Random(cut), damages=6):
            path = put(old.parent, state)
            gone = "moved" in read_ledger(path).exported
            assert read_ledger(path).odometers == expected
            assert gone or cut < len(steps)  # nobody has the export before that
            if gone:
                assert give(path) == export
            else:
                assert spend(path, 2) == [True]
            outcomes.add(gone)
    assert outcomes == {True, False}


def test_the_power_goes_at_every_step_of_taking_over(ledgers: tuple[Path, Path], monkeypatch) -> None:
    old, new = ledgers
    expected = read_ledger(old).odometers["moved"]
    export, before = give(old, name(new)), new.read_bytes()
    with monkeypatch.context() as patch:
        disk = TracedDisk()
        patch.setattr(file_module, "os", disk)
        take(new, export)
    outcomes = set()
    for cut in range(len(disk.trace) + 1):
        for state in states(before, disk.trace, cut, random.Random(cut), damages=6):
            path = put(new.parent, state)
            known = "moved" in read_ledger(path).odometers
            if not known:
                take(path, export)  # again, as the file is still there
            assert read_ledger(path).odometers["moved"] == expected
            assert spend(path, 1, 2) == [False, True]
            outcomes.add(known)
    assert outcomes == {True, False}


def test_a_parcel_is_read_whole_or_refused(ledgers: tuple[Path, Path], tmp_path: Path) -> None:
    export, path = give(ledgers[0]), tmp_path / "export"
    write_export(path, export)
    assert read_export(path) == export
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(LedgerError, match="exists already"):
        write_export(path, export)
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
            path.write_bytes(changed)
            with pytest.raises(LedgerError, match="wrote, or is damaged"):
                read_export(path)
    with pytest.raises(LedgerError, match="cannot be read"):
        read_export(tmp_path / "none")


def run(*words: object) -> None:
    parser = argparse.ArgumentParser()
    budget.add_parser(parser.add_subparsers())
    budget.main(parser.parse_args(["budget", *map(str, words)]))


def test_the_commands(ledgers: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = ledgers
    export = tmp_path / "export"
    run("--ledger", old, "--export", "moved", export, "--to", name(new))
    with pytest.raises(LedgerError, match="exists already"):
        run("--ledger", old, "--export", "other", export, "--to", name(new))
    assert read_ledger(old).exported == frozenset({"moved"})
    run("--ledger", new, "--import", export)
    assert not export.exists()
    with pytest.raises(ConfigError, match="--to NAME: expected both or none"):
        run("--ledger", old, "--export", "moved", export)
    capsys.readouterr()
    run("--ledger", new)
    assert f"name {name(new)}" in capsys.readouterr().out
    run("--ledger", old)
    assert "moved: moved to another ledger" in capsys.readouterr().out
    run("--ledger", new)
    assert "epsilon 0.5" in capsys.readouterr().out


def test_a_sidecar_does_not_start_with_a_device_that_is_gone(tmp_path: Path) -> None:
    settings = settings_for("mqtt://127.0.0.1:1", tmp_path, devices=("moved", "other"))
    spend(settings.sidecar.ledger, 0)
    give(settings.sidecar.ledger)
    made = assemble(resolved(settings), lambda: 20_000)
    with pytest.raises(ConfigError, match=r"\[\[device\]\] moved: was moved to another ledger"), made:
        pass
