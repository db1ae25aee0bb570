"""Copies of a shard, and of a sidecar's ledger: whatever becomes of them, no chunk has two byte strings."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.errors import LedgerError
from eyestream.rim.ledger import second_place
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered
from eyestream_fleet.directory import LIVES, create_shard
from tests.rigs.fleets import fleet_config


def test_a_token_that_may_arrive_yet_stays_named(tmp_path: Path) -> None:
    """A start that ended asked a slow server for its token: the next one keeps it until it has one of its own."""
    lives, held = tmp_path / "lives", Remembered(Lengths(0, 0))
    first, second = second_place.announce(lives, held), second_place.announce(lives, held)
    for token in ("", first, second):
        second_place.check_not_overtaken("s", lives, held._replace(life=token))
    third = second_place.announce(lives, held._replace(life=second))
    assert second_place.lives_in(lives) == [second, third], (
        "what comes before the one that is there cannot arrive any more"
    )
    second_place.settle(lives, third)
    with pytest.raises(LedgerError, match="another copy was opened after this one"):
        second_place.check_not_overtaken("s", lives, held._replace(life=second))
    lives.write_text("something")
    with pytest.raises(LedgerError, match="found something else"):
        second_place.lives_in(lives)


def test_the_command_says_which_folder_is_the_newest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a folder as second place it asks nobody else; nothing is changed by it."""
    config = fleet_config(tmp_path, ["127.0.0.1:1"], 1, ["d"])
    own, place = tmp_path / "shards" / "shard-0", tmp_path / "second" / "shard-0"
    for folder in (own, place.parent):
        folder.mkdir(parents=True)
    name = create_shard(own, 0, 1, created=0)
    FilePlace.create(place)
    shutil.copytree(own, tmp_path / "copy")

    def compare(*folders: Path) -> str:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        main(["shard", "--config", str(config), "--partition", "0", "--compare", *map(str, folders)])
        assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        return capsys.readouterr().out

    with pytest.raises(SystemExit), closing(FilePlace(place)):
        compare()
    assert "the second place knows nothing of it" in capsys.readouterr().out
    with closing(FilePlace(place)) as held:
        held.remember(name, Remembered(Lengths(0, 0)))
        assert f"go on from {own} or {tmp_path / 'copy'}: when one of them has started" in compare(
            own, tmp_path / "copy"
        )
        token = second_place.announce(own / LIVES, Remembered(Lengths(0, 0)))
        held.remember(name, Remembered(Lengths(0, 0), token))
        said = compare(tmp_path / "copy", own)
    assert f"{tmp_path / 'copy'}: 0 chunks in the ledger: another copy was opened after it; must not go on" in said
    assert f"go on from {own}: all others are refused" in said
    with closing(FilePlace(place)) as held:
        held.remember(name, Remembered(Lengths(2, 1), token))
    with pytest.raises(SystemExit):
        compare(own)
    said = capsys.readouterr().out
    assert "0 chunks in the ledger: older than what was released" in said
    assert "`eyestream shard --config FILE --partition 0 --accept` goes on from the copy that is there" in said
