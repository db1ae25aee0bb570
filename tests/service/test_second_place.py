"""A second place of one sidecar: an older copy of its ledger is refused, until somebody accepts it."""

import shutil
from pathlib import Path

import msgspec
import pytest

from eyestream.cli.main import main
from eyestream.errors import LedgerError
from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.reservation import Granted, Request
from eyestream.rim.config import Settings
from eyestream.rim.ledger.file import LedgerFile
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.second_place import FilePlace, GuardedLedger, accept, guarded
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


def spent(folder: Path, chunks: range) -> None:
    with Ledger(folder / "ledger", ceilings=Ceilings()) as ledger, guarded(ledger, folder / "place") as own:
        for chunk in chunks:
            spend(own, chunk)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = with_place(tmp_path)
    with Ledger(made.sidecar.ledger, ceilings=Ceilings()) as ledger:
        assert accept(ledger, tmp_path / "place") == (0, 0)
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

    with Ledger(settings.sidecar.ledger, ceilings=Ceilings()) as ledger, guarded(ledger, tmp_path / "place") as own:
        monkeypatch.setattr(LedgerFile, "sync", sync)
        spend(own, 0)
    assert order[-1] == "place"
    assert set(order[:-1]) == {"ledger"}


def test_a_second_place_that_cannot_be_written_grants_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: LedgerFile, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with Ledger(settings.sidecar.ledger, ceilings=Ceilings()) as ledger, guarded(ledger, tmp_path / "place") as own:
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
        accept(ledger, tmp_path / "other" / "place")
        shutil.copy(tmp_path / "other" / "place", tmp_path / "place")
    with pytest.raises(LedgerError, match="of another ledger"), assemble(resolved(settings), lambda: 0):
        pass


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
