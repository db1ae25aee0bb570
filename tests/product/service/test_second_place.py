"""A second place of one sidecar: an older copy of its ledger is refused, until somebody accepts it."""

import hashlib
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request
from eyestream.errors import LedgerError
from eyestream.rim.config import Settings
from eyestream.rim.ledger.file import LedgerFile
from eyestream.rim.ledger.guarded import GuardedLedger, accept, guarded
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.ledger.second_place import FilePlace
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.streams import StreamKey
from tests.rigs.sidecar import NO_BROKER, settings_for

KEY = StreamKey("d", "features")


def with_place(folder: Path) -> Settings:
    settings = settings_for(NO_BROKER, folder, devices=("d",))
    sidecar = msgspec.structs.replace(settings.sidecar, second_place=folder / "place")
    return msgspec.structs.replace(settings, sidecar=sidecar)


def spend(ledger: GuardedLedger, chunk: int) -> None:
    asked = Request(KEY, 1, 4 * chunk, 4 * chunk + 3, 4, Charge.of(1.0))
    assert isinstance(ledger.reserve([asked], 20_000)[0], Granted)


@contextmanager
def opened(ledger_path: Path, place: Path) -> Iterator[GuardedLedger]:
    with Ledger(ledger_path, ceilings=Ceilings()) as ledger, guarded(ledger, ledger_path, place) as own:
        yield own


def spent(folder: Path, chunks: range) -> None:
    with opened(folder / "ledger", folder / "place") as own:
        for chunk in chunks:
            spend(own, chunk)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = with_place(tmp_path)
    with Ledger(made.sidecar.ledger, ceilings=Ceilings()) as ledger:
        assert accept(ledger, made.sidecar.ledger, tmp_path / "place") == (0, 0)
    return made


def test_an_older_copy_of_the_ledger_is_refused_and_the_same_one_is_not(settings: Settings, tmp_path: Path) -> None:
    spent(tmp_path, range(3))
    shutil.copy(tmp_path / "ledger", tmp_path / "old")
    spent(tmp_path, range(3, 5))
    with assemble(resolved(settings), lambda: 20_000):
        pass
    shutil.copy(tmp_path / "old", tmp_path / "ledger")
    with (
        pytest.raises(LedgerError, match=r"older than what was released: 3 of 5.*budget --config FILE --accept"),
        assemble(resolved(settings), lambda: 20_000),
    ):
        pass
    plain = msgspec.structs.replace(settings, sidecar=msgspec.structs.replace(settings.sidecar, second_place=None))
    with assemble(resolved(plain), lambda: 20_000):
        pass  # control: without a second place nobody notices


def test_the_second_place_knows_before_a_release_can_begin(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the two disks leaves a ledger that is longer, never one that is shorter."""
    order: list[str] = []
    write = LedgerFile.sync

    def sync(self: LedgerFile) -> None:
        order.append(self._path.name)
        write(self)

    with opened(tmp_path / "ledger", tmp_path / "place") as own:
        monkeypatch.setattr(LedgerFile, "sync", sync)
        spend(own, 0)
    assert order[-1] == "place"
    assert set(order[:-1]) == {"ledger"}


def test_a_second_place_that_cannot_be_written_grants_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: LedgerFile, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with opened(tmp_path / "ledger", tmp_path / "place") as own:
        monkeypatch.setattr(LedgerFile, "append", full)
        monkeypatch.setattr(Ledger, "reserve", lambda self, asked, day: [Granted(one) for one in asked])
        with pytest.raises(LedgerError, match="place: cannot be written durably: No space left"):
            spend(own, 0)


def test_one_that_is_missing_or_of_another_ledger_is_named(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "place").unlink()
    with pytest.raises(LedgerError, match="there is no file"), assemble(resolved(settings), lambda: 0):
        pass
    FilePlace.create(tmp_path / "place")
    with pytest.raises(LedgerError, match="knows nothing of the ledger"), assemble(resolved(settings), lambda: 0):
        pass
    (tmp_path / "other").mkdir()
    other = with_place(tmp_path / "other")
    with Ledger(other.sidecar.ledger, ceilings=Ceilings()) as ledger:
        accept(ledger, other.sidecar.ledger, tmp_path / "other" / "place")
        shutil.copy(tmp_path / "other" / "place", tmp_path / "place")
    with pytest.raises(LedgerError, match="of another ledger"), assemble(resolved(settings), lambda: 0):
        pass


def test_a_copy_that_was_overtaken_is_refused_however_often_it_is_started(settings: Settings, tmp_path: Path) -> None:
    """It had reserved and ended, before the second place knew: it is as long as the one that went on from the copy."""
    copy, lost = tmp_path / "copy", tmp_path / "lost"
    spent(tmp_path, range(1))
    for name in ("ledger", "ledger.lives"):
        shutil.copy(tmp_path / name, tmp_path / f"newest-{name}")
    with Ledger(tmp_path / "ledger", ceilings=Ceilings()) as ledger:
        ledger.reserve([Request(StreamKey("e", "features"), 1, 0, 3, 4, Charge.of(1.0))], 20_000)
    for folder, first in ((lost, ""), (copy, "newest-")):
        folder.mkdir()
        for name in ("ledger", "ledger.lives"):
            shutil.copy(tmp_path / f"{first}{name}", folder / name)

    def go_on(folder: Path, chunk: int) -> None:
        with opened(folder / "ledger", tmp_path / "place") as own:
            spend(own, chunk)

    go_on(copy, 1)
    for _ in range(3):
        with pytest.raises(LedgerError, match="another copy was opened after this one"):
            go_on(lost, 1)
    go_on(copy, 2)


def test_a_ledger_from_before_lives_had_tokens_goes_on_once(settings: Settings, tmp_path: Path) -> None:
    """Of two copies, the first that is opened; the second place is written in today's form."""
    with Ledger(tmp_path / "ledger", ceilings=Ceilings()) as ledger:
        name = hashlib.blake2b(ledger_name(ledger.header.ledger_id).encode(), digest_size=16).digest()
    (tmp_path / "ledger.lives").unlink()
    body = name + struct.pack("<QQ", 0, 0)
    (tmp_path / "place").write_bytes(2 * (body + hashlib.blake2b(body, digest_size=16).digest()) + b"torn")
    shutil.copy(tmp_path / "ledger", tmp_path / "old")
    spent(tmp_path, range(1))
    spent(tmp_path, range(1, 2))
    (tmp_path / "old").replace(tmp_path / "ledger")
    (tmp_path / "ledger.lives").unlink()
    with pytest.raises(LedgerError, match="older than what was released"):
        spent(tmp_path, range(2, 3))


def test_of_two_copies_from_before_the_second_is_refused(settings: Settings, tmp_path: Path) -> None:
    test_a_ledger_from_before_lives_had_tokens_goes_on_once(settings, tmp_path)
    with Ledger(tmp_path / "ledger", ceilings=Ceilings()) as ledger:
        for chunk in range(2):  # as long as the other one
            ledger.reserve([Request(KEY, 1, 4 * chunk, 4 * chunk + 3, 4, Charge.of(1.0))], 20_000)
    with pytest.raises(LedgerError, match="another copy was opened after this one"):
        spent(tmp_path, range(2, 3))


def test_a_second_place_that_was_replaced_under_a_life_grants_nothing(settings: Settings, tmp_path: Path) -> None:
    with opened(tmp_path / "ledger", tmp_path / "place") as own:
        spend(own, 0)
        shutil.copy(tmp_path / "place", tmp_path / "other")
        (tmp_path / "other").replace(tmp_path / "place")
        with pytest.raises(LedgerError, match="has written the second place, or has replaced it"):
            spend(own, 1)


def test_the_command_compares_copies_and_accepts_one(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("config/sidecar.toml").read_text().replace('ledger = "ledger"', 'second_place = "place"')
    (tmp_path / "sidecar.toml").write_text(text)
    command = ["budget", "--config", str(tmp_path / "sidecar.toml")]
    for name in ("ledger", "ledger.lives"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("ledger", "old"))
    with opened(tmp_path / "ledger", tmp_path / "place") as own:
        spend(own, 0)
        main([*command, "--compare", str(tmp_path / "old"), str(tmp_path / "ledger")])  # while it is at work
    said = capsys.readouterr().out
    assert "old: 0 chunks in the ledger: older than what was released" in said
    assert f"go on from {tmp_path / 'ledger'}: all others are refused" in said
    (tmp_path / "ledger").rename(tmp_path / "lost")
    for name in ("ledger", "ledger.lives"):
        shutil.copy(tmp_path / name.replace("ledger", "old"), tmp_path / name)
    with pytest.raises(SystemExit) as ended:
        main([*command, "--compare"])
    assert ended.value.code == 1
    assert "none of these can go on" in capsys.readouterr().out
    main([*command, "--accept"])
    main([*command, "--compare"])
    assert "can go on" in capsys.readouterr().out
    spent(tmp_path, range(1))


def test_the_command_accepts_an_older_ledger_and_says_what_is_forgotten(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(tmp_path / "ledger", tmp_path / "old")
    spent(tmp_path, range(2))
    shutil.copy(tmp_path / "old", tmp_path / "ledger")
    text = Path("config/sidecar.toml").read_text().replace('ledger = "ledger"', 'second_place = "place"')
    (tmp_path / "sidecar.toml").write_text(text)
    main(["budget", "--config", str(tmp_path / "sidecar.toml"), "--accept"])
    said = capsys.readouterr().out
    assert "remembers 0 chunks" in said
    assert "released after this copy was made, and not counted any more: 2 chunks" in said
    with assemble(resolved(settings), lambda: 20_000):
        pass


@pytest.mark.parametrize("given", [["--ledger", "x"], ["--config", "config/sidecar.toml"]])
def test_without_a_second_place_there_is_nothing_to_accept(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["budget", *given, "--accept"])
    assert ended.value.code == 2
    assert "second_place in [sidecar]" in capsys.readouterr().err


def copied(folder: Path, to: Path) -> None:
    """Put the files of a ledger and its tokens from `folder` into `to`."""
    to.mkdir(exist_ok=True)
    for name in ("ledger", "ledger.lives"):
        shutil.copy2(folder / name, to / name)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders of ledgers with second places; the first one has a device that spent 3."""
    for name in ("old", "new"):
        folder = tmp_path / name
        folder.mkdir()
        made = with_place(folder)
        text = Path("config/sidecar.toml").read_text().replace('ledger = "ledger"', 'second_place = "place"')
        (folder / "config").write_text(text)
        with Ledger(made.sidecar.ledger, ceilings=Ceilings()) as ledger:
            accept(ledger, made.sidecar.ledger, folder / "place")
    spent(tmp_path / "old", range(3))
    spent(tmp_path / "new", range(0))
    return tmp_path / "old", tmp_path / "new"


def budget(folder: Path, *words: object) -> None:
    main(["budget", "--config", str(folder / "config"), *map(str, words)])


def named(folder: Path) -> str:
    return ledger_name(read_ledger(folder / "ledger").header.ledger_id)


def changes(two: tuple[Path, Path], what: str) -> tuple[Path, list[object]]:
    """The folder and the words of a change, ready to be made."""
    old, new = two
    if what == "--import":
        budget(old, "--export", "d", old / "export", "--to", named(new))
        return new, ["--import", old / "export"]
    return old, [what, "d", old / "export", "--to", named(new)] if what == "--export" else [what]


CHANGES = ["--export", "--import", "--today"]


@pytest.mark.parametrize("what", CHANGES)
def test_no_copy_from_before_a_change_goes_on(two: tuple[Path, Path], what: str) -> None:
    """The change takes no slot, so such a copy is as long as the ledger."""
    folder, words = changes(two, what)
    copied(folder, folder / "before")
    budget(folder, *words)
    copied(folder, folder / "after")
    copied(folder / "before", folder)
    with pytest.raises(LedgerError, match="another copy was opened after this one"):
        spent(folder, range(9, 10))
    copied(folder / "after", folder)
    spent(folder, range(0))


@pytest.mark.parametrize("what", CHANGES)
def test_no_copy_that_was_made_during_a_change_goes_on(
    two: tuple[Path, Path], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the token of the life that began before the change, and nothing of the change."""
    folder, words = changes(two, what)
    method = {"--export": "export_device", "--import": "import_device", "--today": "begin_day_at"}[what]
    right = getattr(OperatedLedger, method)

    def change(self: OperatedLedger, *given: Any) -> Any:
        copied(folder, folder / "during")
        return right(self, *given)

    monkeypatch.setattr(OperatedLedger, method, change)
    budget(folder, *words)
    copied(folder / "during", folder)
    with pytest.raises(LedgerError, match="another copy was opened after this one"):
        spent(folder, range(9, 10))


def test_nothing_is_exported_from_a_copy_that_was_overtaken(
    two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = two
    copied(old, old / "before")
    spent(old, range(0))
    copied(old / "before", old)
    with pytest.raises(SystemExit):
        budget(old, "--export", "d", old / "export", "--to", named(new))
    assert "another copy was opened after this one" in capsys.readouterr().err
    assert not (old / "export").exists()
    assert not read_ledger(old / "ledger").exported


@pytest.mark.parametrize("what", CHANGES)
def test_a_ledger_with_a_second_place_is_changed_with_its_configuration(
    two: tuple[Path, Path], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, words = changes(two, what)
    before = (folder / "ledger").read_bytes()
    with pytest.raises(SystemExit):
        main(["budget", "--ledger", str(folder / "ledger"), *map(str, words)])
    assert "has a second place, which must know of this: use --config FILE" in capsys.readouterr().err
    assert (folder / "ledger").read_bytes() == before
