"""Seeded histories of copies: lives of shards and of sidecars' ledgers are killed, paused, copied and started again.

No thread, no loop and no clock. A life is a coroutine that stops at each answer of the second place and before each
publication, and the world lets one of them take a step, or ends it at an effect. Every choice is that of
`random.Random(seed)`, and none looks at noise, names or tokens, so a seed gives the same history. Each seed also draws
how often each kind of fault comes. The judge knows what an outsider hears, and what a supervisor sees that starts every
folder again.
"""

import contextlib
import os
import random
import shutil
import types
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from unittest import mock

from eyestream.errors import LinkError
from eyestream.rim.ledger import second_place
from eyestream.rim.ledger.file import LedgerFile, put
from eyestream_fleet.second_place import RevisedPlace
from tests.rigs.shards import Killed

__all__ = ["CellPlace", "Cells", "Disk", "History", "pause"]

_PREPARE = LedgerFile.prepare


@types.coroutine
def pause() -> Generator[None, None, None]:
    yield


class Disk:
    """Files as they are, what a loss of power would take of them, and a process that ends at one of its effects."""

    def __init__(self, luck: random.Random) -> None:
        self._luck, self.torn = luck, False
        self.left: int | None = None
        self._durable: dict[Path, bytes] = {}
        self.lazy = False

    def point(self) -> bool:
        """Whether the process is to end with this effect."""
        if self.left is None:
            return False
        self.left -= 1
        return self.left < 0

    def append(self, real: Callable[..., None], file: LedgerFile, data: bytes) -> None:
        if self.point():
            real(file, data[: self._luck.randrange(len(data) + 1)] if self.torn else data)
            raise Killed
        real(file, data)

    def other(self, real: Callable[..., object], file: LedgerFile, *given: object) -> object:
        """A sync, or a part of a replacement: it was carried out, or it was not."""
        if self.point():
            raise Killed
        done = real(file, *given)
        if real is not _PREPARE:
            self.keep(file)
        return done

    def keep(self, file: LedgerFile) -> None:
        """All of it is durable."""
        self._durable[file._path] = file._path.read_bytes()

    def put(self, path: Path, data: bytes) -> None:
        if self.point():
            raise Killed
        if self.lazy:
            self._durable.setdefault(path, path.read_bytes() if path.exists() else b"")
        put(path, data)
        if not self.lazy:
            self._durable[path] = data
        if self.point():
            raise Killed

    def lose_power(self, folder: Path) -> None:
        """Of what was appended since the last sync, a part may be there; what was to be put durably is."""
        for path in sorted(folder.iterdir()):
            durable, held = self._durable.get(path), path.read_bytes()
            if durable is None:
                continue
            if held.startswith(durable):
                os.truncate(path, self._luck.randint(len(durable), len(held)))
            else:
                path.write_bytes(durable)


class Cells:
    """A store on a server: values with revisions; what is asked for may come late, and answers may be lost."""

    def __init__(self, luck: random.Random) -> None:
        self._luck, self.faulty = luck, luck.choice([0.0, 0.12, 0.5])
        self.revision, self.held = 0, dict[str, tuple[int, bytes]]()
        self._late: list[tuple[str, bytes, int]] = []

    def set(self, ledger: str, value: bytes, last: int) -> int | None:
        if self.held.get(ledger, (0, b""))[0] != last:
            return None
        self.revision += 1
        self.held[ledger] = self.revision, value
        return self.revision

    def ask(self, ledger: str, value: bytes, last: int) -> int | None:
        """As `set`, over a link. Raises LinkError."""
        if self._luck.random() < self.faulty:
            way = self._luck.choice(["late", "set", "lost"])
            if way == "late":
                self._late.append((ledger, value, last))
            elif way == "set":
                self.set(ledger, value, last)
            raise LinkError("no answer in time")
        return self.set(ledger, value, last)

    def arrive(self) -> None:
        """What was under way is here."""
        for one in self._late:
            self.set(*one)
        self._late.clear()


class CellPlace(RevisedPlace):
    """One process's view of the cells."""

    def __init__(self, cells: Cells) -> None:
        super().__init__()
        self._cells = cells

    async def _get(self, ledger: str) -> tuple[int, bytes] | None:
        await pause()
        held = self._cells.held.get(ledger)
        await pause()
        return held

    async def _set(self, ledger: str, value: bytes, last: int) -> int | None:
        await pause()
        try:
            return self._cells.ask(ledger, value, last)
        finally:
            await pause()


class History:
    """What outlives processes, and what was found. `run` plays one history to its end.

    Attributes
    ----------
    disk : a `Disk`; `lazy`: tokens are not written durably, which is a fault.
    locks : whether the lock of a second place in a file holds; on some network disks none does.
    heard : publications.
    """

    def __init__(self, seed: int, root: Path) -> None:
        self.luck, self.root = random.Random(seed), root
        self.disk = Disk(self.luck)
        self.folders = [root / "f0"]
        self.faults: list[str] = []
        self.story: list[str] = []
        self.heard = 0
        self.locks = self.luck.random() < 0.5
        self.kills = self.luck.choice([0.01, 0.05, 0.15])
        self._copying: list[tuple[Path, Path, list[str]]] = []
        root.mkdir()

    def run(self) -> list[str]:
        """What is wrong with the history; no life is left."""
        with self._watched():
            for _ in range(self.luck.randint(30, 90)):
                self.act()
                if self.faults:
                    break
            else:
                self.finish()
            self.close()
        return self.faults

    def close(self) -> None:
        """Let no process be left."""
        raise NotImplementedError

    def act(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """No more faults: some folder must go on, for a supervisor that tries them all."""
        raise NotImplementedError

    def begin_copy(self, source: Path) -> None:
        """Copy a folder; its files one after the other, in any order, with whatever happens in between."""
        target = self.root / f"f{len(self.folders) + len(self._copying)}"
        names = sorted(path.name for path in source.iterdir() if not path.name.startswith("."))
        self.luck.shuffle(names)
        target.mkdir()
        self._copying.append((source, target, names))
        self.story.append(f"{target.name} is copied from {source.name}")
        if self.luck.random() < 0.6:
            while self._copying:
                self.go_on_copying()

    def go_on_copying(self) -> None:
        source, target, names = copy = self._copying[0]
        if names and (source / (name := names.pop())).exists():
            shutil.copy(source / name, target / name)
        if not names:
            self._copying.remove(copy)
            self.folders.append(target)

    def fault(self, words: str) -> None:
        self.faults.append(words)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        disk, append, lock, opened = self.disk, LedgerFile.append, LedgerFile._lock, LedgerFile.__init__

        def opens(file: LedgerFile, path: Path) -> None:
            opened(file, path)
            disk.keep(file)

        def locks(file: LedgerFile, fd: int) -> None:
            if self.locks or file._path.name != "place":
                lock(file, fd)

        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(LedgerFile, "__init__", opens))
            stack.enter_context(mock.patch.object(LedgerFile, "_lock", locks))
            stack.enter_context(
                mock.patch.object(LedgerFile, "append", lambda file, data: disk.append(append, file, data))
            )
            for name in ("sync", "prepare", "replace"):
                real = getattr(LedgerFile, name)
                stack.enter_context(
                    mock.patch.object(LedgerFile, name, lambda file, *given, real=real: disk.other(real, file, *given))
                )
            stack.enter_context(mock.patch.object(second_place, "put", disk.put))
            stack.enter_context(mock.patch("os.fsync", return_value=None))
            stack.enter_context(mock.patch("os.fdatasync", return_value=None))
            yield
