"""A token for each life of a ledger with a second place, so that no two copies of it are ever gone on from.

Two copies of a ledger are equally long until one of them grows. Both may then write the next chunk into their own files
before either asks the second place. The one that is told that it is not alone ends. Its files stay as long as those of
the other, with other bytes. So a length cannot say which of the two was published, and a token does.

A file beside the ledger holds tokens of 128 random bits. The second place holds one token, beside the lengths. A life
begins in this order:

==== ================================================================= ==========================================
step what is done                                                      after a crash right behind it
==== ================================================================= ==========================================
1    compare the lengths: files that are shorter are refused           nothing was changed
2    refuse a file whose tokens do not name that of the second place   nothing was changed
3    write the file: the token there, and a new one; durably           the second place has the first of the two
4    set the second place to the new token, if nobody else has         it has the second of the two
     written since step 1
5    write the file: the new token alone; durably                      as if nothing had happened
==== ================================================================= ==========================================

Only then are chunks reserved. Every later writing into the second place is refused once anybody else has written. The
argument, and what each step is for, is in ``docs/decisions/0020-a-token-for-each-life.md``.
"""

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import put, read_pieces
from eyestream.rim.ledger.second_place import Lengths, Remembered, SecondPlace

__all__ = ["Life", "announce", "begin_life", "lives_beside", "lives_in", "refuse_overtaken", "settle"]

_HEAD = "eyestream lives 1"

_MOST = 16
"""Announced tokens that are kept at most. Each start that ends between steps 3 and 4 leaves one more."""


class Life(NamedTuple):
    """A life that has begun: it may publish what its second place remembers."""

    place: SecondPlace
    ledger: str
    token: str

    async def remember(self, lengths: Lengths) -> None:
        """Let the second place know how long the files are; raises as `SecondPlace.write`."""
        await self.place.write(self.ledger, Remembered(lengths, self.token))


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
    if head != _HEAD:
        raise LedgerError(f"{path}: expected the tokens of a ledger's lives, found something else")
    return lives


def refuse_overtaken(where: str, path: Path, remembered: Remembered) -> None:
    """Let pass files whose tokens, at `path`, name the one in the second place; `where` they are is for the error.

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
    _write(path, [remembered.life, *later[-_MOST:], life])
    return life


def settle(path: Path, life: str) -> None:
    """Let the file at `path` name `life` alone: step 5. Raises LedgerError."""
    _write(path, [life])


async def begin_life(path: Path, remembered: Remembered, write: Callable[[Remembered], Awaitable[None]]) -> str:
    """Steps 3 to 5, for files that passed the first two; gives the token.

    Parameters
    ----------
    path
        Of the tokens.
    remembered
        What the second place holds.
    write
        Writes into it on the condition that it holds that still, and returns when it has.

    Raises
    ------
    LedgerError
        The tokens cannot be written.
    """
    life = announce(path, remembered)
    await write(remembered._replace(life=life))
    settle(path, life)
    return life


def _write(path: Path, lives: list[str]) -> None:
    put(path, "\n".join([_HEAD, *lives, ""]).encode())
