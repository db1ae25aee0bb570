"""Faults by which a row is released twice, in the wrong chunk, or as it is."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from auditing.planting import Patch, fault

from eyestream.chunking import chunks, device, session
from eyestream.privacy import accountant, mechanism
from eyestream.rim.sidecar import outbox, pipeline

# Once


def _rows_forgotten(changed_only: bool) -> Patch:
    obstacle = accountant.Account.obstacle

    def forgetting(self: Any, request: Any, chunk: int, ceilings: Any, today: int) -> Any:
        found = obstacle(self, request, chunk, ceilings, today)
        excused = found in {"rows", "change"} and (chunk != self._chunk or not changed_only)
        return None if excused else found

    return accountant.Account, "obstacle", forgetting


def _mark_forgotten() -> Patch:
    create = device.Device.__init__
    return device.Device, "__init__", lambda self, settings, refused=None: create(self, settings, None)


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
    create = device.Device.__init__

    def exact(self: Any, settings: Any, refused: Any = None) -> None:
        create(self, settings, refused)
        if refused is not None:
            self._refused = refused

    return [(device.Device, "__init__", exact)]


@fault("an account that forgets its rows (the device is left)", "once")
def _() -> list[Patch]:
    return [_rows_forgotten(False)]


@fault("sessions that are over come back", "once")
def _() -> list[Patch]:
    return [(device.Device, "_is_over", lambda self, number: False)]


@fault("fresh noise on a retry", "once")
def _() -> list[Patch]:
    release, first = pipeline.Pipeline._release, outbox.Outbox.first
    again: dict[bytes, Callable[[], bytes]] = {}
    handed: set[bytes] = set()

    def remembering(self: Any, line: Any, chunk: Any) -> None:
        publish = self._publish

        def anew() -> bytes:
            payloads: list[bytes] = []
            self._publish = lambda topic, payload: payloads.append(payload)
            release(self, line, chunk)
            self._publish = publish
            return payloads[0]

        def keep(topic: str, payload: bytes) -> None:
            again[payload] = anew
            publish(topic, payload)

        self._publish = keep
        release(self, line, chunk)
        self._publish = publish

    def fresh(self: Any, now: float) -> Any:
        entry = first(self, now)
        if entry is not None and entry.payload in handed:
            self._waiting[0] = entry = dataclasses.replace(entry, payload=again[entry.payload]())
        elif entry is not None:
            handed.add(entry.payload)
        return entry

    return [(pipeline.Pipeline, "_release", remembering), (outbox.Outbox, "first", fresh)]


# Device and faults on the way


@fault("rows of one chunk left in the buffer of the next", "border")
def _() -> list[Patch]:
    values = chunks.ChunkBuffer.values
    kept: dict[tuple[int, ...], Any] = {}

    def reusing(self: Any) -> Any:
        own = values(self)
        own = np.where(np.isnan(own), kept.get(own.shape, own), own)
        kept[own.shape] = own
        return own

    return [(chunks.ChunkBuffer, "values", reusing)]


@fault("late rows taken into the open chunk", "border")
def _() -> list[Patch]:
    take = session.Session.take

    def lenient(self: Any, seq: int, rows: Any, time: float) -> int:
        begin = self._current * self._settings.n
        return take(self, max(seq, begin), rows, time)

    return [(session.Session, "take", lenient)]


@fault("pass-through when the mechanism fails", "closed")
def _() -> list[Patch]:
    release = mechanism.Mechanism.release

    def open_(self: Any, chunk: Any) -> Any:
        try:
            return release(self, chunk)
        except Exception:  # the fault itself
            return chunk

    return [(mechanism.Mechanism, "release", open_)]


@fault("the error's words in the log", "closed")
def _() -> list[Patch]:
    class Words:
        def __init__(self, error: Exception) -> None:
            self.__name__ = str(error)

    return [(pipeline, "type", Words)]
