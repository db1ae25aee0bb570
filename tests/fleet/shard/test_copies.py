"""Copies of a shard, and of a sidecar's ledger: whatever becomes of them, no chunk has two byte strings."""

import shutil
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from unittest import mock

import pytest

from eyestream.cli.main import main
from eyestream.errors import LedgerError
from eyestream.rim.ledger import guarded, second_place
from eyestream.rim.ledger.file import LedgerFile
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered
from eyestream_fleet import directory
from eyestream_fleet import second_place as fleet_place
from eyestream_fleet.directory import create_shard
from eyestream_fleet.second_place import RevisedPlace, _unpacked
from tests.rigs.copied import LedgerHistory, ShardHistory
from tests.rigs.fleets import fleet_config
from tests.rigs.histories import History


def played(kind: type[History], seeds: range, folder: Path, change: Callable[[History], object] = id) -> list[str]:
    """Faults of these histories, by seed."""
    found = []
    for seed in seeds:
        history = kind(seed, folder / f"{kind.__name__}-{seed}")
        change(history)
        found += [f"seed {seed}: {fault}\n  " + "\n  ".join(history.story[-25:]) for fault in history.run()]
    return found


@pytest.mark.parametrize("kind", [ShardHistory, LedgerHistory])
def test_no_history_of_copies_releases_a_chunk_twice(tmp_path: Path, kind: type[History]) -> None:
    assert played(kind, range(40), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ShardHistory, LedgerHistory])
def test_no_history_of_thousands_releases_a_chunk_twice(tmp_path: Path, kind: type[History]) -> None:
    assert played(kind, range(40, 5000), tmp_path) == []


@pytest.mark.parametrize("wrong", [False, True])
def test_two_workers_on_copies_that_are_started_again_for_ever(tmp_path: Path, wrong: bool) -> None:
    """All chunks are heard, each with one byte string; lengths alone let both workers publish."""
    found = set()
    for seed in range(12):
        history = ShardHistory(seed, tmp_path / str(seed))
        if history.file:
            continue  # one at a time holds it
        history.cells.faulty = 0.0
        shutil.copytree(history.folders[0], history.root / "copy")
        history.folders.append(history.root / "copy")
        with ExitStack() as stack:
            if wrong:
                lengths_alone(stack)
            history.supervise(300)
        found |= set(history.faults)
        assert wrong or len(history.said) == history.wanted
    assert bool(found) == wrong


def lengths_alone(stack: ExitStack) -> None:
    for module in (directory, guarded):
        stack.enter_context(mock.patch.object(module, "check_not_overtaken"))


async def _second_place_first(path: Path, remembered: Remembered, write: Callable[..., object]) -> str:
    token = second_place.announce(path.with_name("elsewhere"), remembered)
    await write(remembered._replace(life=token))  # type: ignore[misc]
    second_place.settle(path, token)
    return token


def second_place_first(stack: ExitStack) -> None:
    """The token is written beside the ledger when the second place has it."""
    begin = ShardHistory.__init__

    def made(self: ShardHistory, seed: int, root: Path) -> None:
        begin(self, seed, root)
        self.begin = _second_place_first

    def sync(place: FilePlace, name: str, lives: Path, remembered: Remembered) -> str:
        token = second_place.announce(lives.with_name("elsewhere"), remembered)
        place.remember(name, remembered._replace(life=token))
        second_place.settle(lives, token)
        return token

    stack.enter_context(mock.patch.object(ShardHistory, "__init__", made))
    stack.enter_context(mock.patch.object(guarded, "_begin", sync))


def unconditional(stack: ExitStack) -> None:
    """Whatever is in the second place is written over."""
    write = RevisedPlace.write

    async def over(self: RevisedPlace, ledger: str, remembered: Remembered) -> None:
        held = await self._get(ledger)
        self._revision = 0 if held is None else held[0]
        await write(self, ledger, remembered)

    stack.enter_context(mock.patch.object(RevisedPlace, "write", over))


def tokens_alone(stack: ExitStack) -> None:
    """A writing is conditional on the token that was read or written last, not on all that is there."""
    write, read = RevisedPlace.write, RevisedPlace.read

    async def noted(self: RevisedPlace, ledger: str) -> Remembered | None:
        found = await read(self, ledger)
        self.token = "" if found is None else found.life  # type: ignore[attr-defined]
        return found

    async def over(self: RevisedPlace, ledger: str, remembered: Remembered) -> None:
        held = await self._get(ledger)
        if held is not None and _unpacked(ledger, held[1]).life == self.token:  # type: ignore[attr-defined]
            self._revision = held[0]
        await write(self, ledger, remembered)
        self.token = remembered.life  # type: ignore[attr-defined]

    stack.enter_context(mock.patch.object(RevisedPlace, "read", noted))
    stack.enter_context(mock.patch.object(RevisedPlace, "write", over))


def zombies_write(stack: ExitStack) -> None:
    """A second place in a file is written, whoever wrote it since."""
    stack.enter_context(mock.patch.object(LedgerFile, "is_there", return_value=True))


def before_the_lengths(stack: ExitStack) -> None:
    begin = ShardHistory.__init__

    def made(self: ShardHistory, seed: int, root: Path) -> None:
        begin(self, seed, root)
        self.hasty = True

    stack.enter_context(mock.patch.object(ShardHistory, "__init__", made))


def not_durable(stack: ExitStack) -> None:
    begin = History.__init__

    def made(self: History, seed: int, root: Path) -> None:
        begin(self, seed, root)
        self.disk.lazy = True

    stack.enter_context(mock.patch.object(History, "__init__", made))


def token_again(stack: ExitStack) -> None:
    """A start that finds a token announced takes it, and so does the same start of a copy."""

    def announce(path: Path, remembered: Remembered) -> str:
        held = second_place.lives_in(path)
        return real(path, remembered) if len(held) < 2 else held[-1]

    real = second_place.announce
    stack.enter_context(mock.patch.object(fleet_place, "announce", announce))


_COMMON = [
    (lengths_alone, ShardHistory, "two byte strings"),
    (second_place_first, ShardHistory, "no folder goes on"),
    (second_place_first, LedgerHistory, "no folder goes on"),
    (unconditional, ShardHistory, "two byte strings"),
    (before_the_lengths, ShardHistory, "no folder goes on"),
    (not_durable, ShardHistory, "no folder goes on"),
    (not_durable, LedgerHistory, "no folder goes on"),
]
_RARE = [
    (tokens_alone, ShardHistory, "two byte strings"),
    (zombies_write, ShardHistory, "two byte strings"),
    (token_again, ShardHistory, "two byte strings"),
]
_WRONG = [*_COMMON, *(pytest.param(*one, marks=pytest.mark.long) for one in _RARE)]


@pytest.mark.parametrize(("wrong", "kind", "said"), _WRONG)
def test_the_histories_find_a_wrong_version(
    tmp_path: Path, wrong: Callable[[ExitStack], None], kind: type[History], said: str
) -> None:
    with ExitStack() as stack:
        wrong(stack)
        assert any(said in fault for seed in range(2000) for fault in played(kind, range(seed, seed + 1), tmp_path))


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
        token = second_place.announce(own / "lives", Remembered(Lengths(0, 0)))
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
