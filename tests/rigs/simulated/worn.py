"""A whole sidecar whose wearers pause it, resume it, put it on after one another, and are forgotten.

The runtime says who wears a device as on the control socket, and the wearer says no, also while no sidecar runs. What
was said is kept by folder, as it is beside each ledger. A crash may leave what was asked for and not answered, or not.
"""

import asyncio
import contextlib
import dataclasses
import functools
import math
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from eyestream.core.charge import Ceilings
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.reservation import Granted, Request, Withheld
from eyestream.errors import LedgerError, PayloadError
from eyestream.rim.sidecar.assembly import Assembly
from eyestream.rim.sidecar.off import forget_pause, remember_pause
from eyestream.rim.sidecar.sender import OutboxEntry
from eyestream.streams import StreamKey
from eyestream.wire.raw import decode_raw
from tests.rigs.simulated.disk import Place
from tests.rigs.simulated.people import SCHEMA, N
from tests.rigs.simulated.whole import Running, Whole

__all__ = ["Worn"]

WINDOW_S, SHARED_S = 1.0, 2.0
"""Seconds of gaze that a row describes; and with those that it is on its way."""

NOBODY = "-"
PEOPLE = ("anna", "ben", "7")


@dataclasses.dataclass
class _Said:
    """What was said to the sidecars of one folder.

    Attributes
    ----------
    off, answered : a pause was asked for and no resume since; and it was answered.
    named : by device, who was named last.
    possible : by device, whom a crash may leave: who was named last with an answer, and all who were named since.
    since : by device, when somebody else put it on, or a pause ended.
    """

    off: bool = False
    answered: bool = False
    named: dict[str, str] = dataclasses.field(default_factory=dict)
    possible: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    since: dict[str, float] = dataclasses.field(default_factory=dict)


class _Watched:
    """The ledger of one life, and who is charged for which chunk."""

    def __init__(self, ledger: Any, world: "Worn", said: _Said) -> None:
        self._ledger, self._world, self._said = ledger, world, said
        self.whose: dict[tuple[StreamKey, int, int], int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        if self._said.answered:
            self._world.judge.fault("something is reserved after a pause was answered")
        answers: list[Granted | Withheld] = self._ledger.reserve(requests, day)
        for one in answers:
            if isinstance(one, Granted):
                request = one.request
                self.whose[request.key, request.session, request.first_row // N] = request.wearer
        return answers


class Worn(Whole):
    """Sidecars, and people who wear them."""

    kinds = (*Whole.kinds, "pauses", "switches", "guests", "forgets")
    lengths = (15, 55)

    def __init__(self, seed: int, events: frozenset[int] | None = None, without: frozenset[str] = frozenset()) -> None:
        super().__init__(seed, events, without)
        self.said: dict[str, _Said] = {self.folders[0]: _Said()}
        self.sent_at = self.judge.sent_at
        self.guests = 0
        self.wishes: dict[Running, list[asyncio.Task[None]]] = {}

    def _settings(self, luck: random.Random) -> list[DeviceSettings]:
        return [dataclasses.replace(one, shared_s=SHARED_S) for one in super()._settings(luck)]

    def _ceilings(self, luck: random.Random) -> Ceilings:
        return dataclasses.replace(super()._ceilings(luck), new_wearers=luck.choice([2, 4, 32]))

    @property
    def devices(self) -> list[str]:
        return sorted({one.id for one in self.settings})

    @property
    def handles(self) -> set[str]:
        """Of all who were ever named."""
        return {NOBODY, *PEOPLE, *(f"guest-{number}" for number in range(self.guests + 1))}

    def beside(self, path: Any) -> Any:
        return path

    def start(self, folder: str) -> None:
        super().start(folder)
        running = self.ever[-1]
        said, pipeline = self._remembered(running), running.pipeline
        watched = pipeline._spending._ledger = _Watched(pipeline._spending._ledger, self, said)
        pipeline.look = functools.partial(self._look, running, watched)
        outbox, killed = running.sidecar.outbox, running.killed
        leave = outbox.sent

        def end() -> None:
            for wish in self.wishes.pop(running, []):
                wish.cancel()
            killed()

        running.killed = running.process.killed = end  # type: ignore[method-assign]

        def sent(entry: OutboxEntry, now: float) -> None:
            if said.off:
                self.judge.fault(f"{entry.topic}: a chunk leaves while it is paused")
            leave(entry, now)

        outbox.sent = sent  # type: ignore[method-assign]

    def _remembered(self, running: Running) -> _Said:
        """What the life begins with, which must be what was said."""
        sidecar, known = running.sidecar, self.said.get(running.folder)
        said = self.said.setdefault(running.folder, _Said())
        sure = known is not None and "lies" not in self.on
        if sure and said.answered and not sidecar.pipeline.paused:
            self.judge.fault(f"{running.folder}: a pause that was answered does not outlive the life")
        said.off = said.answered = sidecar.pipeline.paused
        for device in self.devices:
            possible = said.possible.get(device, {NOBODY}) if sure else self.handles
            numbers = {0 if one == NOBODY else sidecar.number(device, one): one for one in possible}
            number = sidecar.pipeline.worn.get(device, 0)
            if number not in numbers:
                self.judge.fault(f"{device}: who wears it after a start is not who was named")
                continue
            said.named[device], said.possible[device] = numbers[number], {numbers[number]}
        return said

    def _look(self, running: Running, watched: _Watched, key: StreamKey, values: np.ndarray) -> None:
        """At the rows of a chunk in the moment of its release, or of those of a baseline."""
        said, judge, people = self.said[running.folder], self.judge, self.people
        if said.off:
            judge.fault(f"{key}: noise is drawn while it is paused")
        serials = [int(one) for one in values[0] if np.isfinite(one)]
        if not serials:
            return
        first = min(self.sent_at.get(one, 0.0) for one in serials) - WINDOW_S
        if first < said.since.get(key.device, 0.0):
            judge.fault(f"{key}: a row has gaze of before a switch, or of a pause")
        row, handle = people.rows[serials[0]], said.named[key.device]
        own = str(row.wearer) if row.wearer else NOBODY
        own = handle if handle != NOBODY else own
        chunk = key, row.session, row.row // N
        judge.whose[chunk] = watched.whose[chunk]
        if watched.whose[chunk] != (0 if own == NOBODY else running.sidecar.number(key.device, own)):
            judge.fault(f"{key}: rows of one wearer are charged to another one")

    def say(self, key: StreamKey, payload: bytes) -> None:
        with contextlib.suppress(PayloadError):
            rows = decode_raw(payload, self.settings[0].features, SCHEMA).rows
            self.sent_at |= dict.fromkeys((int(one) for one in rows[:, 0]), self.now)
        super().say(key, payload)

    def act(self, luck: random.Random) -> str:
        kinds = [one for one in ("pauses", "switches", "guests", "forgets") if one in self.on]
        if self.life is None:
            kinds = [one for one in kinds if one == "pauses"]
        if kinds and luck.random() < 0.35:
            return self._wish(luck, luck.choice(kinds))
        return super().act(luck)

    def _wish(self, luck: random.Random, kind: str) -> str:
        device = luck.choice(self.devices)
        if kind == "pauses":
            paused = any(one.off for one in self.said.values())
            words = ["resume" if luck.random() < (0.7 if paused else 0.1) else "pause"]
        elif kind == "forgets":
            words = ["forget", *luck.choice([[], [luck.choice(PEOPLE)]])]
        else:
            self.guests += kind == "guests"
            handle = f"guest-{self.guests}" if kind == "guests" else luck.choice((*PEOPLE, NOBODY))
            words = ["wearer", handle, device]
        running, lasts_s = self.life, luck.choice([0.0, 0.0, 0.01, 0.3, 1.0])
        if running is None:
            return self._alone(luck, words)
        before = ""
        if words == ["pause"] and "brokers" in self.on and luck.random() < 0.5:
            self.private.stop(forget=False)  # so that what is released waits for a link, which comes in the pause
            before = f"a broker starts again; {self._burst(luck)}; "
            self.loop.call_later(lasts_s + 0.2, setattr, self.private, "away", False)
        return before + self.guard(luck, " ".join(words), lambda: self._say(running, words, lasts_s), often=0.4)

    def _alone(self, luck: random.Random, words: list[str]) -> str:
        """A command that finds no sidecar at work."""
        folder = self.folders[-1]
        said, path = self.said.get(folder), Place(f"{folder}/ledger")
        if said is None:
            return "nobody listens"

        def switch() -> None:
            self._asked(said, words)
            (remember_pause if said.off else forget_pause)(path)  # type: ignore[arg-type]
            said.answered = said.off

        return self.guard(luck, f"{words[0]} without a sidecar", switch, often=0.4)

    def _asked(self, said: _Said, words: list[str]) -> None:
        """The words are heard."""
        if words[0] == "pause":
            said.off = True
        elif words[0] == "resume":
            if said.off:
                said.since |= dict.fromkeys(self.devices, self.loop.time())
            said.off = said.answered = False
        elif words[0] == "wearer":
            handle, device = words[1:]
            if said.named[device] != handle:
                said.since[device], said.named[device] = self.loop.time(), handle
            said.possible[device] |= {handle}

    def _say(self, running: Running, words: list[str], lasts_s: float) -> None:
        wish = self.loop.create_task(self._carry_out(running, words), context=running.context)
        self.wishes.setdefault(running, []).append(wish)
        self.now += lasts_s + self.loop.disk_s

    async def _carry_out(self, running: Running, words: list[str]) -> None:
        sidecar, said = running.sidecar, self.said[running.folder]
        if not running.process.alive:
            return
        self._asked(said, words)
        try:
            if words[0] == "pause":
                await sidecar.off.pause()
            elif words[0] == "resume":
                await sidecar.off.resume()
            elif words[0] == "forget":
                self._forgets(running, words[1:])
                await Assembly(SimpleNamespace(), running.ledger, sidecar).forget(" ".join(words[1:]))  # type: ignore[arg-type]
            else:
                await sidecar.wearing.answer(" ".join(words[1:]))
        except LedgerError:
            return
        if not running.process.alive:
            return
        if words[0] == "pause":
            said.answered = said.off
        elif words[0] == "wearer" and said.named[words[2]] == words[1]:
            said.possible[words[2]] = {words[1]}

    def _forgets(self, running: Running, handles: list[str]) -> None:
        """From now on nothing is taken off that a forgotten wearer did before."""
        if "copies" in self.on or not self.people.histories:  # each copy has a memory of its own
            return
        before = len(self.people.bases), self.loop.time() - SHARED_S  # rows of since then may be on their way
        for device in self.devices:
            for handle in handles or [*self.handles, *map(str, range(1, 10))]:
                self.judge.forgotten[device, running.sidecar.number(device, handle)] = before
            if not handles:
                self.judge.forgotten[device, 0] = before

    def _go_on(self, device: str) -> None:
        """With nobody named, and when no row describes gaze of before."""
        running = self.life
        if running is None:
            return
        pipeline, tracker = running.pipeline, next(one for one in self.trackers if one.settings.id == device)
        for words in (["resume"], ["wearer", NOBODY, device]):
            self._say(running, words, 2 * SHARED_S)
        is_first = math.isinf(pipeline._served[tracker.settings.key].since)
        if is_first and (pipeline.resumed or device in pipeline.worn):  # and is passed over, with those after it
            self.take(tracker.settings.key, tracker.send(1))
            self.now += 2 * SHARED_S
        super()._go_on(device)
