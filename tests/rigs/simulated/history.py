"""What all histories share: one generator of luck, a swarm of faults, disks, clocks, people, and the judge.

A history is a list of events. Each event has luck of its own, which follows from the seed and its place alone. So an
event or a kind of fault can be left out, and what is left does what it did: that is how a history is shortened.
"""

import asyncio
import contextlib
import logging
import random
import secrets
import traceback
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

from eyestream.core.charge import Ceilings, charge_units
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.rim.ledger import file as file_module
from eyestream.rim.ledger import writer
from eyestream.rim.sidecar import spending
from eyestream.streams import StreamKey
from tests.rigs.simulated.disk import Disks, Place
from tests.rigs.simulated.judge import Judge
from tests.rigs.simulated.people import EPSILON, SCHEMA, N, People, SerialMechanism, Tracker

__all__ = ["COST", "DAY", "DAY_S", "History"]

DAY, DAY_S = 20_000, 86_400.0
COST = charge_units(EPSILON)

_EFFECTS = ("kill", "torn", "after", "full", "eio")


async def _at_once(function: Callable[..., Any], *given: object) -> Any:
    return function(*given)


_AT_ONCE = SimpleNamespace(**vars(asyncio) | {"to_thread": _at_once})


class History:
    """One seed, played from its beginning to its end by `run`.

    Parameters
    ----------
    seed
        Of all luck.
    events
        Places of the events that are played; None: all.
    without
        Kinds of fault that are switched off.

    Attributes
    ----------
    kinds : of the class: kinds of fault of which a seed switches some on.
    lengths, threads : of the class: how many events there are, and whether a loop has threads for the ledger.
    on : those that are.
    now, slept, day, ahead : the clock of the loop, seconds that it does not count, the day, and how wrong clocks are.
    story : what happened, in lines.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    lengths: ClassVar[tuple[int, int]] = (8, 30)
    threads: ClassVar[bool] = False

    def __init__(self, seed: int, events: frozenset[int] | None = None, without: frozenset[str] = frozenset()) -> None:
        self.seed, self.events = seed, events
        self.luck = luck = random.Random(f"{type(self).__name__} {seed}")
        share = luck.choice([0.0, 0.2, 0.5, 0.8])
        self.on = frozenset(kind for kind in self.kinds if luck.random() < share) - without
        self.count = luck.randint(*self.lengths)
        self.disks = Disks(luck)
        self.now, self.slept, self.day, self.ahead = 1000.0, 0.0, DAY, 0
        self.story: list[str] = []
        self.healed = False
        self.people = People(histories=luck.random() < 0.2)
        self.ceilings = self._ceilings(luck)
        self.settings = self._settings(luck)
        self.mechanism = SerialMechanism(
            self.people,
            luck,
            baseline=0 if self.people.histories else luck.choice([0, 0, 1, 2]),
            sessions=3 if self.people.histories else 0,
            fails=0.1 if "mechanism" in self.on else 0.0,
        )
        self.judge = Judge(self.people, self.ceilings, None if "lies" in self.on else self.durable)
        self.judge.shown.add(DAY)
        self.judge.alone = len({one.id for one in self.settings}) == len(self.settings)
        self.trackers = [Tracker(self.people, one, luck) for one in self.settings]
        self.often = luck.random() < 0.4
        self._effects = [kind for kind in _EFFECTS if kind in self.on]

    def _ceilings(self, luck: random.Random) -> Ceilings:
        def some(most: int) -> int | None:
            return luck.choice([None, None, luck.randint(1, most) * COST])

        window = luck.choice([0, 0, 0, luck.randint(2, 4)])
        lifetime = some(12)
        return Ceilings(
            window,
            luck.randint(1, window) * COST if window else None,
            session=some(5) or 1000 * COST,
            day=some(6),
            lifetime=lifetime,
            levels=1 if lifetime is None else luck.choice([1, 1, 3]),
            wearer=luck.choice([None, None, Ceilings(day=some(4), lifetime=some(8))]),
            streams=luck.choice([{}, {}, {"t": Ceilings(lifetime=luck.randint(1, 5) * COST)}]),
        )

    def _settings(self, luck: random.Random) -> list[DeviceSettings]:
        given = {
            "grace_s": luck.choice([0.5, 9.0]),
            "idle_s": luck.choice([8.0, 60.0]),
            "jump_chunks": luck.choice([1, 3]),
            "release": luck.choice(["on_row", "on_row", "on_clock"]),
            "apart": luck.choice([0, 0, 4]),
        }
        keys = [StreamKey(device, stream) for device in "de" for stream in "st"]
        keys = luck.choice([keys[:1], keys[:2], keys[::2], keys])
        return [DeviceSettings(*key, SCHEMA, ("a", "b", "c"), 2.0, N, **given) for key in keys]  # type: ignore[arg-type]

    @property
    def today(self) -> int:
        """What the host's clock shows."""
        return self.day + self.ahead

    def durable(self) -> bytes:
        """As for `Judge`."""
        raise NotImplementedError

    def act(self, luck: random.Random) -> str:
        """One event; gives what it was."""
        raise NotImplementedError

    def finish(self) -> None:
        """Heal everything, and let the judge see that it goes on."""
        raise NotImplementedError

    def close(self) -> None:
        """End what still runs."""

    def run(self) -> list[str]:
        """What is wrong with the history."""
        luck = random.Random(0)  # seeded anew for each event: to make one takes twice as long
        with self.simulated():
            try:
                for place in range(self.count):
                    if self.events is None or place in self.events:
                        luck.seed(self.seed * 1009 + place)
                        said = self.act(luck)
                        self.story.append(f"{place:3d} {said}")
                        self.judge.note(said)
                    if self.judge.faults:
                        break
                else:
                    self.finish()
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.judge.fault(f"{type(error).__name__} at {where.name}:{where.lineno}: {error}")
            finally:
                self.close()
        return self.judge.faults

    def arm(self, luck: random.Random, often: float = 0.5) -> str:
        """Let one of the next effects on a disk go wrong, if that is switched on."""
        kinds = self._effects
        if not kinds or self.healed or luck.random() > often:
            self.disks.left = None
            return ""
        self.disks.left, self.disks.kind = luck.choice([luck.randint(0, 5), luck.randint(4, 11)]), luck.choice(kinds)
        return f" ({self.disks.kind} at effect {self.disks.left})"

    def clock(self, luck: random.Random) -> str:
        """A day passes, or the host's clock jumps, where clocks do."""
        if "clock" in self.on and luck.random() < 0.6:
            self.ahead = luck.choice([0, 0, 1, 2, 5, 360, -1, -3])
            self.judge.honest = self.judge.honest and self.ahead == 0
            return f"the clock is {self.ahead} days ahead"
        days = luck.choice([1, 1, 1, 2, 40])
        self.day, self.slept = self.day + days, self.slept + days * DAY_S
        return f"{days} days pass"

    def message(self, luck: random.Random) -> tuple[StreamKey, bytes, str]:
        """What a tracker sends next: the next rows, or what its faults make of them."""
        tracker = luck.choice(self.trackers)
        key, chance = tracker.settings.key, luck.random()
        if chance < 0.15 and "again" in self.on and tracker.sent:
            return key, luck.choice(tracker.sent), "sends a message again"
        if chance < 0.25 and "liar" in self.on:
            return key, tracker.lie(luck), "lies"
        if luck.random() < 0.12:
            tracker.begin(luck)
        elif luck.random() < 0.1:
            tracker.row += luck.randint(1, 6)  # rows left out
        count = luck.choice([1, 2, 3, 4, 4, 4, 6, 9])
        payload = tracker.send(count, end=(end := luck.random() < 0.05))
        self.now += count / 2 * luck.choice([1, 1, 1, 1, 1, 3, 20])
        said = f"sends rows up to {tracker.row - 1} of session {tracker.session}"
        if end:
            tracker.begin(luck)
        return key, payload, said + " and ends it" * end

    @contextlib.contextmanager
    def simulated(self) -> Iterator[None]:
        """No file, no entropy and no thread of this machine."""
        luck = self.luck
        patches: list[tuple[Any, str, Any]] = [
            (file_module, "os", self.disks),
            (file_module, "fcntl", self.disks),
            (spending, "asyncio", asyncio if self.threads else _AT_ONCE),
            (secrets, "token_bytes", luck.randbytes),
            (secrets, "token_hex", lambda size: luck.randbytes(size).hex()),
            (secrets, "randbits", luck.getrandbits),
            (random, "uniform", luck.uniform),
        ]
        before = [(home, name, getattr(home, name)) for home, name, _ in patches]
        disks, Place.disks = Place.disks, self.disks
        level, bounds = logging.root.manager.disable, (writer._MANY_RECORDS, writer._TOO_MANY_RECORDS)
        logging.disable(logging.CRITICAL)
        if self.often:
            writer._MANY_RECORDS, writer._TOO_MANY_RECORDS = 1, 9
        try:
            for home, name, ours in patches:  # `mock.patch` takes a tenth of a history
                setattr(home, name, ours)
            yield
        finally:
            for home, name, theirs in before:
                setattr(home, name, theirs)
            Place.disks = disks
            logging.disable(level)
            writer._MANY_RECORDS, writer._TOO_MANY_RECORDS = bounds


def driven(doing: Awaitable[None]) -> None:
    """Run what never waits."""
    step = doing.__await__()
    try:
        next(step)
    except StopIteration:
        return
    raise AssertionError("it waits")
