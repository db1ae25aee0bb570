"""Faults by which a row is released twice, too early, unpaid, in the wrong chunk, or as it is."""

import contextlib
import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from eyestream.core.charge import bounds, faded, level_of
from eyestream.core.kinds import Loss
from eyestream.core.release.order import Release
from eyestream.core.release.stream import Outcome
from eyestream.core.reservation import Granted
from tests.rigs.seams import original
from tools.verification.auditing.planting import Patch, fault

# Once


def _rows_forgotten(changed_only: bool) -> Patch:
    obstacle = original("Account.obstacle")

    def forgetting(self: Any, request: Any, *given: Any) -> Any:
        found = obstacle(self, request, *given)
        changed = request.key.stream in self._streams and request.chunk != self.chunk_of(request.key.stream)
        excused = found in {"rows", "change"} and (changed or not changed_only)
        return None if excused else found

    return "Account.obstacle", forgetting


def _mark_forgotten() -> Patch:
    create = original("Device.__init__")
    return "Device.__init__", lambda self, settings, refused=None: create(self, settings, None)


@fault("a change of chunk length that re-releases rows", "once")
def _() -> list[Patch]:
    return [_rows_forgotten(True), _mark_forgotten()]


@fault("a restart that forgets its rows", "once")
def _() -> list[Patch]:
    return [_rows_forgotten(False), _mark_forgotten()]


@fault("a restart that forgets its rows (the ledger is left)", "once")
def _() -> list[Patch]:
    return [_mark_forgotten()]


@fault("a mark that is not rounded to the chunk", "once")
def _() -> list[Patch]:
    create = original("Device.__init__")

    def exact(self: Any, settings: Any, refused: Any = None) -> None:
        create(self, settings, refused)
        if refused is not None:
            self._refused = refused

    return [("Device.__init__", exact)]


@fault("an account that forgets its rows (the device is left)", "once")
def _() -> list[Patch]:
    return [_rows_forgotten(False)]


@fault("sessions that are over come back", "once")
def _() -> list[Patch]:
    return [("session is over", lambda self, number: False)]


@fault("fresh noise on a retry", "once")
def _() -> list[Patch]:
    release, first = original("stream releases"), original("Outbox.first")
    again: dict[bytes, Callable[[], bytes]] = {}
    handed: set[bytes] = set()

    def remembering(self: Any, chunk: Any, granted: Granted, outcome: Outcome) -> bytes | None:
        payload: bytes | None = release(self, chunk, granted, outcome)
        if payload is not None:
            again[payload] = lambda: release(self, chunk, granted, Outcome())
        return payload

    def fresh(self: Any, now: float) -> Any:
        entry = first(self, now)
        if entry is not None and entry.payload in handed:
            self._waiting[0] = entry = dataclasses.replace(entry, payload=again[entry.payload]())
        elif entry is not None:
            handed.add(entry.payload)
        return entry

    return [("stream releases", remembering), ("Outbox.first", fresh)]


@fault("a chunk released twice", "once", "order")
def _() -> list[Patch]:
    settle = original("order settles")

    def twice(self: Any) -> list[Any]:
        effects = settle(self)
        return [effect for effect in effects for _ in range(1 + isinstance(effect, Release))]

    return [("order settles", twice)]


@fault("a restored state keeps its grants", "restored")
def _() -> list[Patch]:
    restored = original("order restored")

    def trusting(settings: Any, charge: Any, data: bytes, **given: Any) -> Any:
        order, _ = restored(settings, charge, data, **given)
        spans = [*(chunk.span for chunk in order._due), *order._device.coming]
        order._answers.update({span: Granted(order._request(span)) for span in spans})
        return order, order._settle()

    return [("order restored", staticmethod(trusting))]


# Order


@fault("spend after publish", "order")
def _() -> list[Patch]:
    def publishing(self: Any, chunks: Any) -> list[Any]:
        self._add(chunks)
        asks = self._ask()
        self._answers.update({chunk.span: Granted(self._request(chunk.span)) for chunk in self._due})
        return [*self._settle(), *asks]

    return [("order collects", publishing)]


@fault("nothing made durable", "order")
def _() -> list[Patch]:
    return [("LedgerFile.sync", lambda self: None)]


@fault("noise drawn before the reservation, and kept", "order")
def _() -> list[Patch]:
    feed, noisy = original("stream feeds"), original("noisy integers")
    ready: list[Any] = []

    def early(self: Any, rows: Any, now: float) -> Any:
        ready.append(self._mechanism.noise.draw(self._mechanism.core.private.law))
        return feed(self, rows, now)

    class Kept:
        def __init__(self, source: Any) -> None:
            self._source = source

        def draw(self, law: Any) -> Any:
            return ready.pop() if ready else self._source.draw(law)

    return [("stream feeds", early), ("noisy integers", lambda self, chunk, source: noisy(self, chunk, Kept(source)))]


@fault("a withheld chunk is released all the same", "order")
def _() -> list[Patch]:
    answer = original("order answers")
    return [("order answers", lambda self, answers: answer(self, [Granted(one.request) for one in answers]))]


@fault("an answer taken for another chunk", "order")
def _() -> list[Patch]:
    """The one that has waited for longest, whichever the ledger was asked about."""
    place = original("place of an answer")
    return [("place of an answer", lambda self, asked: self._due[0].span if self._due else place(self, asked))]


@fault("what is due at the end is released unreserved", "order")
def _() -> list[Patch]:
    def hasty(self: Any, now: float) -> list[Any]:
        self._add(self._device.close(now))
        for chunk in self._due:
            self._answers.setdefault(chunk.span, Granted(self._request(chunk.span)))
        effects: list[Any] = self._settle()
        return effects

    return [("order closes", hasty)]


@fault("one feature's share charged for a chunk", "order")
def _() -> list[Patch]:
    prices = original("stream charges")
    return [
        ("stream charges", lambda priced, levels: prices(Loss("chunk", Fraction(priced.epsilon) / 2), levels)),
        ("stream on its level", lambda self, granted, session: session),
    ]


@fault("the epsilon of the first level on every level", "levels")
def _() -> list[Patch]:
    return [("stream on its level", lambda self, granted, session: session)]


@fault("the figure of a level on the noise of the first", "levels")
def _() -> list[Patch]:
    def figure(self: Any, granted: Granted, session: Any) -> Any:
        self.epsilon = faded(self._mechanism.epsilon, granted.level)
        return session

    return [("stream on its level", figure)]


@fault("a level that forgets the other streams", "levels")
def _() -> list[Patch]:
    def own(self: Any, request: Any, ceilings: Any) -> int:
        known = self._streams.get(request.key.stream)
        limits = bounds(ceilings.lifetime, ceilings.levels)
        return level_of(0 if known is None else known.meter.epsilon, request.charges, limits)

    return [("Account.level", own)]


@fault("what waits when the ledger fails is released", "durable")
def _() -> list[Patch]:
    def generous(self: Any) -> list[Any]:
        self._answers.update({chunk.span: Granted(self._request(chunk.span)) for chunk in self._due})
        effects: list[Any] = self._settle()
        return effects

    return [("order fails", generous)]


# Device and faults on the way


@fault("rows of one chunk left in the buffer of the next", "border")
def _() -> list[Patch]:
    values = original("ChunkBuffer.values")
    kept: dict[tuple[int, ...], Any] = {}

    def reusing(self: Any) -> Any:
        own = values(self)
        own = np.where(np.isnan(own), kept.get(own.shape, own), own)
        kept[own.shape] = own
        return own

    return [("ChunkBuffer.values", reusing)]


@fault("late rows taken into the open chunk", "border")
def _() -> list[Patch]:
    take = original("SessionChunker.take")

    def lenient(self: Any, seq: int, *rest: Any) -> int:
        left: int = take(self, max(seq, self._current * self._settings.n), *rest)
        return left

    return [("SessionChunker.take", lenient)]


@fault("pass-through when the mechanism fails", "closed")
def _() -> list[Patch]:
    release = original("mechanism releases")

    def open_(self: Any, chunk: Any, turn: int, state: Any) -> Any:
        try:
            return release(self, chunk, turn, state)
        except Exception:  # the fault itself
            return chunk, state

    return [("mechanism releases", open_)]


@fault("the error's words in the log", "closed")
def _() -> list[Patch]:
    class Words:
        def __init__(self, error: Exception) -> None:
            self.__name__ = str(error)

    return [("stream names an error", Words)]


@fault("a special value told in a warning of numpy", "closed")
def _() -> list[Patch]:
    return [("numpy's silence", lambda **ignored: contextlib.nullcontext())]
