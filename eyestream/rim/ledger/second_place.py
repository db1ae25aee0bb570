"""A second place that remembers how long a ledger was, and a token for each of its lives; LEDGER.md says why.

Whoever can put an old copy of the ledger back resets the budget, and the file itself cannot show that. So before
anything is published, the lengths of the ledger, and of a shard's outbox, are written into a second place with another
fate than their volume. A sidecar or a shard whose files are shorter does not start.

Two copies of a ledger are equally long until one of them grows. So a length cannot say which of the two was published,
and a token does. A file beside the ledger holds tokens of 128 random bits. The second place holds one token. A life
begins in this order:

==== ================================================================= ==========================================
step what is done                                                      what a crash right after it leaves
==== ================================================================= ==========================================
1    `check_not_shorter`: refuse files that are shorter                nothing was changed
2    `check_not_overtaken`: refuse a file whose tokens do not name     nothing was changed
     the token of the second place
3    `announce`: write the file durably: that token, and a new one     the second place has the first of the two
4    set the second place to the new token, if nobody else has         it has the second of the two
     written since step 1
5    `settle`: write the file durably: the new token alone             as if nothing had happened
==== ================================================================= ==========================================

Only then are chunks reserved. Every later writing into the second place is refused once anybody else has written.
``docs/decisions/0020-a-token-for-each-life.md`` has the argument.
"""

import hashlib
import os
import secrets
import struct
from pathlib import Path
from typing import NamedTuple

from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import LedgerFile, create_file, put, read_pieces


class Lengths(NamedTuple):
    """`Ledger.released`, and the steps of the outbox. They never fall below what a second place was told, unless a file
    is older or damaged; a start alone raises neither.
    """

    ledger: int
    outbox: int

    def shorter_than(self, remembered: "Lengths") -> list[str]:
        """Names of what is shorter: something was released that these files do not have.

        >>> Lengths(3, 7).shorter_than(Lengths(4, 7))
        ['ledger']
        """
        return [what for what, has, had in zip(self._fields, self, remembered, strict=True) if has < had]


class Remembered(NamedTuple):
    """Facts on a ledger in a second place."""

    lengths: Lengths
    life: str = ""
    """The token of the life that wrote last, 32 hexadecimal digits; empty: no life had one yet."""


def check_not_shorter(where: str, now: Lengths, remembered: Lengths) -> None:
    """Refuse files that are shorter than what was remembered of them; `where` they are is for the error.

    Raises
    ------
    LedgerError
        They are shorter.
    """
    for what in now.shorter_than(remembered):
        raise LedgerError(
            f"{where}: the {what} is older than what was released: {getattr(now, what)} of {getattr(remembered, what)}"
            ". It was rolled back, or is a copy; put the newest one in its place"
        )


_OLD_RECORD = struct.Struct("<16sQQ16s")
"""Name, lengths, digest: a file of these alone, without a head, is of 0.2.0, whose lives had no tokens."""

_RECORD = struct.Struct("<16sQQ16s16s")
"""Name, lengths, token (zero: none), digest."""

_HEAD = b"eyestream second place 2\n".ljust(_RECORD.size)
_MOST_BYTES = 1 << 20


class FilePlace:
    """A second place in a file, on another disk than the ledger; one ledger a file.

    Whoever has it open holds its lock, so nobody else writes. Where a lock does not hold, as on some network disks, or
    where another file was put in its place meanwhile, the next writing finds that and is refused.

    Raises
    ------
    LedgerError
        Missing, in use, not writable, or open to others.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, LedgerFile(path)
        self._held = b"".join(self._file.pieces())
        self._bytes, self._known = len(self._held), False

    @staticmethod
    def create(path: Path) -> None:
        """Make one that knows nothing. Raises LedgerError."""
        create_file(path, b"")

    @staticmethod
    def look(path: Path, ledger: str) -> Remembered | None:
        """Read the file at `path` without its lock: for those who only look. Raises LedgerError."""
        return _last_of(path, b"".join(read_pieces(path)), ledger)

    def close(self) -> None:
        """Give the file and its lock up."""
        self._file.close()

    async def read(self, ledger: str) -> Remembered | None:
        """Recall, for a fleet whose places are asked through the loop."""
        return self.recall(ledger)

    async def write(self, ledger: str, remembered: Remembered) -> None:
        """Remember, for a fleet whose places are asked through the loop."""
        self.remember(ledger, remembered)

    def recall(self, ledger: str) -> Remembered | None:
        """The last record when the file was opened. Under a record that is torn nothing was published."""
        return _last_of(self._path, self._held, ledger)

    def remember(self, ledger: str, remembered: Remembered) -> None:
        """Write, durably. The first time, the file is written again, and put into place by one `rename`.

        Raises LedgerError: it cannot be written, or somebody else has."""
        fields = (_name(ledger), *remembered.lengths, bytes.fromhex(remembered.life).rjust(16, b"\0"))
        record = _RECORD.pack(*fields, _digest(fields))
        try:
            # Where the lock does not hold, two processes may both be here. The length of the file tells who was first.
            if not self._file.is_there(self._bytes):
                raise LedgerError(f"{self._path}: somebody else has written the second place, or has replaced it")
            if not self._known or self._bytes > _MOST_BYTES:
                self._file.replace(self._file.prepare(_HEAD + record))
                self._bytes, self._known = len(_HEAD + record), True
            else:
                self._file.append(record)
                self._file.sync()
                self._bytes += len(record)
        except OSError as error:
            self._bytes = -1  # nobody knows what it holds
            raise LedgerError(f"{self._path}: cannot be written durably: {os.strerror(error.errno or 0)}") from None


def _last_of(path: Path, held: bytes, ledger: str) -> Remembered | None:
    """The last whole record of `held`; None: it is empty. Raises LedgerError: there is none."""
    if not held:
        return None
    kind, records = (_RECORD, held[len(_HEAD) :]) if held.startswith(_HEAD) else (_OLD_RECORD, held)
    whole = [
        one
        for one in kind.iter_unpack(records[: len(records) // kind.size * kind.size])
        if one[0] == _name(ledger) and one[-1] == _digest(one[:-1])
    ]
    if not whole:
        raise LedgerError(f"{path}: is the second place of another ledger, or is damaged")
    last = whole[-1]
    life = last[3].hex() if kind is _RECORD and any(last[3]) else ""
    return Remembered(Lengths(last[1], last[2]), life)


def _name(ledger: str) -> bytes:
    return hashlib.blake2b(ledger.encode(), digest_size=16).digest()


def _digest(fields: tuple[bytes, int, int] | tuple[bytes, int, int, bytes]) -> bytes:
    name, ledger, outbox, *life = fields
    return hashlib.blake2b(name + struct.pack("<QQ", ledger, outbox) + b"".join(life), digest_size=16).digest()


_LIVES = "eyestream lives 1"
"""The first line of a file of tokens."""

_MOST_LIVES = 16
"""Announced tokens that are kept at most. Each start that ends between steps 3 and 4 leaves one more."""


def lives_beside(ledger: Path) -> Path:
    """The file of tokens of a sidecar's ledger."""
    return ledger.with_name(f"{ledger.name}.lives")


def lives_in(path: Path) -> list[str]:
    """The tokens in the file at `path`, in the order in which they were set.

    A file that is missing holds the empty token, as a second place does before its first life: both are so before the
    first start of a new ledger, and of one from before lives had tokens. Raises LedgerError: it cannot be read.
    """
    if not path.exists():
        return [""]
    head, *lives = b"".join(read_pieces(path)).decode("ascii", "replace").splitlines() or [""]
    if head != _LIVES:
        raise LedgerError(f"{path}: expected the tokens of a ledger's lives, found something else")
    return lives


def check_not_overtaken(where: str, path: Path, remembered: Remembered) -> None:
    """Refuse files whose tokens, at `path`, do not name that of the second place; `where` they are is for the error.

    Raises
    ------
    LedgerError
        Another copy was opened since, or the tokens cannot be read.
    """
    if remembered.life not in lives_in(path):
        raise LedgerError(
            f"{where}: another copy was opened after this one, so this one must not go on, or {path.name} is not its "
            "own; put the copy that was opened last in its place"
        )


def announce(path: Path, remembered: Remembered) -> str:
    """Make the token of a new life, and let the file at `path` name it after that of the second place: step 3.

    What was announced later than the token in the second place stays named: a start that ended may have asked for it,
    and a slow server may set it yet. No other copy can have it but one of these files, which have not grown since.

    Raises LedgerError.
    """
    lives = lives_in(path)
    later = lives[lives.index(remembered.life) + 1 :] if remembered.life in lives else []
    life = secrets.token_hex(16)
    _write(path, [remembered.life, *later[-_MOST_LIVES:], life])
    return life


def settle(path: Path, life: str) -> None:
    """Let the file at `path` name `life` alone: step 5. Raises LedgerError."""
    _write(path, [life])


def _write(path: Path, lives: list[str]) -> None:
    put(path, "\n".join([_LIVES, *lives, ""]).encode())
