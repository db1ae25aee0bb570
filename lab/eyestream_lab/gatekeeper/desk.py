"""The desk of a gatekeeper: questions with an id from anybody in, answers out, within limits. Pure.

A question is a msgpack map: `id` (1 to 64 characters), `question` (`eyestream_lab.gatekeeper.questions`), and `each`
where it shall stand: it is then answered at once and with every slot that comes, until the same id is asked again, or
is asked to `stop`. An answer has the `id`, `end_s` (the tracker's clock at the end of the newest slot that it knows, or
nil) and `answer`; or the `id`, or an empty one where it could not be read, and `refused`, why.

Answers come from released slots, and their number and time follow from questions and released slots alone.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from eyestream.errors import PayloadError
from eyestream_lab.gatekeeper.answers import Expected, Gatekeeper, Slot
from eyestream_lab.gatekeeper.questions import LARGEST_QUESTION, Question, question

MOST_A_SECOND = 50
"""Questions that are looked at; of more, each second the first is refused by name and the others are counted."""

MOST_STANDING = 32
LARGEST = LARGEST_QUESTION + 256
"""Bytes of a message."""

_LONGEST_ID = 64


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    question: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    each: bool = False
    stop: bool = False


class _Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    end_s: float | None = None
    answer: Any = msgspec.UNSET
    refused: str | msgspec.UnsetType = msgspec.UNSET


_DECODER = msgspec.msgpack.Decoder(_Asked)
_ENCODE = msgspec.msgpack.Encoder().encode


class Desk:
    """The questions of all applications about one device, and their answers.

    Attributes
    ----------
    unheard : questions that were dropped because too many came in a second.
    """

    def __init__(self) -> None:
        self._keeper, self._session = Gatekeeper(), -1
        self._expected: Expected | None = None
        self._standing: dict[str, Question] = {}
        self._end_s: float | None = None
        self._second, self._heard = -1, 0
        self.unheard = 0

    def take(self, session: int, slot: Slot, expected: Expected | None = None) -> Iterator[bytes]:
        """Take the next released slot; an answer to each question that stands. Another session begins from nothing."""
        if session != self._session:
            self._keeper, self._session = Gatekeeper(), session
        self._keeper.take(slot)
        self._expected, self._end_s = expected, slot.end_s
        for name, asked in self._standing.items():
            yield self._answer(name, asked)

    def ask(self, payload: bytes, now_s: float) -> bytes | None:
        """The answer to a message that came when the clock showed `now_s`; None: nothing is said."""
        if int(now_s) != self._second:
            self._second, self._heard = int(now_s), 0
        self._heard += 1
        if self._heard > MOST_A_SECOND:
            self.unheard += 1
            return _refused("", "rate") if self._heard == MOST_A_SECOND + 1 else None
        if len(payload) > LARGEST:
            return _refused("", "oversize")
        try:
            asked = _DECODER.decode(payload)
        except msgspec.ValidationError:
            return _refused("", "type")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _refused("", "not_msgpack")
        if not 1 <= len(asked.id) <= _LONGEST_ID:
            return _refused("", "id")
        return self._heed(asked)

    def _heed(self, asked: _Asked) -> bytes:
        if asked.stop:
            known = self._standing.pop(asked.id, None)
            return _refused(asked.id, "unknown") if known is None else _ENCODE(_Reply(asked.id, self._end_s, None))
        try:
            wanted = question(b"" if asked.question is msgspec.UNSET else bytes(asked.question))
        except PayloadError as error:
            return _refused(asked.id, error.reason)
        self._standing.pop(asked.id, None)
        if asked.each:
            if len(self._standing) >= MOST_STANDING:
                return _refused(asked.id, "standing")
            self._standing[asked.id] = wanted
        return self._answer(asked.id, wanted)

    def _answer(self, name: str, asked: Question) -> bytes:
        return _ENCODE(_Reply(name, self._end_s, self._keeper.answer(asked, self._expected)))


def _refused(name: str, why: str) -> bytes:
    return _ENCODE(_Reply(name, refused=why))
