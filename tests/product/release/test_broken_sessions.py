"""A session that is broken off and begins anew: no gaze lies in what was released before and in the new baseline.

Lives of a tracker that pauses, skips, repeats and strays, of a sidecar that is started again, and of sessions that
follow one another quickly. Of each life some rows are changed, as many as one event enters, and all that the mechanism
is given is compared. Only the lives are random, and they are seeded: there are no false alarms.
"""

import dataclasses
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.core.anchor import Anchor
from eyestream.core.charge import Ceilings
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.kinds import Loss
from eyestream.core.release.stream import StreamRelease
from eyestream.core.scopes import Deployment, scopes_of
from eyestream.rim.plan import resolved
from eyestream.wire.raw import RawRows
from tests.rigs.given import Given, Stretch, reached
from tests.rigs.memory_ledger import MemoryLedger
from tests.rigs.sidecar import NO_BROKER, settings_for

Change = Callable[[int, int], bool]
"""Whether row `number` of `session` is changed."""

NO_FEATURE = np.zeros(0, dtype=np.int64)
UNITS = {"gaze event": 0.0, "second of gaze": 1.0}


@dataclasses.dataclass(frozen=True)
class Step:
    """Rows `first` to `first + count - 1` of a session arrive; or the time alone; or the sidecar is started again."""

    now: float
    session: int = 0
    first: int = 0
    count: int = 0
    end: bool = False
    restart: bool = False


class ClaimedLife:
    """A configuration, one life under it, and what is claimed there."""

    def __init__(self, luck: random.Random, folder: Path) -> None:
        self.n, self.baseline = luck.choice([2, 4, 8]), luck.choice([0, 1, 1, 2, 3])
        made = settings_for(
            NO_BROKER,
            folder,
            names=("a",),
            window_s=luck.choice([0.0, 0.5, 3.0, 6.0]),
            memory_s=luck.choice([0.0, 0.7, 2.0]),
            idle_s=luck.choice([1.0, 8.0]),  # also a shorter one than `eyestream run` takes
            jump_chunks=luck.choice([1, 2, 16]),
            release=luck.choice(["on_row", "on_clock"]),
        )
        given: Any = Given(self.n, self.baseline)
        [(self.settings, stream)] = resolved(made, mechanisms={"features": given}).served.values()
        rows = stream.spec
        self.rows_of = {unit: rows.rows_touched(seconds) for unit, seconds in UNITS.items()}
        around, anchored = Deployment(rows, Ceilings.of(1000, 1e6)), self.baseline > 0
        takes_off = Anchor(self.baseline, NO_FEATURE, NO_FEATURE) if anchored else None
        scopes = scopes_of(Loss("chunk", Fraction(1, 2)), self.n, around, takes_off)
        chunks = {scope.unit: scope.chunks or 0 for scope in scopes}
        self.claimed = {unit: chunks[f"{unit}, in no baseline" if anchored else unit] for unit in UNITS}
        self.life = life(luck, self.settings)

    def given(self, change: Change = lambda session, number: False) -> list[Stretch]:
        """What the mechanism is given in this life."""
        mechanism, ledger = Given(self.n, self.baseline), MemoryLedger(Ceilings())

        def started() -> StreamRelease:
            return StreamRelease(self.settings, mechanism, lambda: 1, ledger.mark(self.settings.key))

        stream = started()
        for step in self.life:
            if step.restart:
                stream = started()
                continue
            numbers = range(step.first, step.first + step.count)
            rows = np.array([[content(step.session, k, change(step.session, k))] for k in numbers]).reshape(-1, 1)
            outcome = stream.feed(RawRows(step.session, step.first, rows, step.end), step.now)
            requests = [*outcome.requests, *stream.tick(step.now).requests]
            stream.answer(ledger.reserve(requests, 20_000))
        return mechanism.stretches


def content(session: int, number: int, changed: bool) -> float:
    """Of a row: a whole number, and a very different one where it is changed, so that every mean is."""
    return float((7919 * session + 104_729 * number) % 2**20 + changed * 2**30)


def life(luck: random.Random, settings: DeviceSettings) -> list[Step]:
    """What happens to a stream: rows that come in pieces, and all that breaks a session off."""
    now, session, row, steps = 0.0, 1, luck.randrange(8), []
    far, n = settings.jump_chunks * settings.n, settings.n
    for _ in range(40):
        kind = luck.random()
        if kind < 0.06:  # a pause, in which the tracker counts on, or the way holds its rows up
            seconds = settings.idle_s * luck.choice([0.5, 1.1, 3.0])
            now, row = now + seconds, row + luck.choice([0, round(seconds * settings.rate_hz)])
        elif kind < 0.12:
            row += luck.choice([1, n, far - 1, far + n, far + 3 * n])
        elif kind < 0.16:  # one number that is wrong
            steps.append(Step(now, session, row + far + n + luck.randrange(50), 1))
        elif kind < 0.20:
            row = max(0, row - luck.randrange(1, 3 * n))
        elif kind < 0.25:
            steps.append(Step(now, restart=True))
        elif kind < 0.28:
            session, row = session + luck.randint(1, 3), luck.randrange(4)
        count = luck.randint(0, 2 * n)
        now += count / settings.rate_hz
        steps.append(Step(now, session, row, count, end=luck.random() < 0.01))
        row += count
    return steps


def fault(world: ClaimedLife, luck: random.Random, plain: list[Stretch]) -> str | None:
    """What one change of some rows reaches beyond what is claimed; None: nothing."""
    unit = luck.choice([*UNITS, "row"])
    step = luck.choice([step for step in world.life if step.count])
    count = world.rows_of.get(unit, 1)
    first = luck.randint(step.first - count + 1, step.first + step.count - 1)
    other = world.given(lambda session, k: session == step.session and first <= k < first + count)
    touched = [counts for counts in reached(plain, other) if any(counts)]
    if any(anchored for anchored, _ in touched):
        return f"{unit}: in a baseline, and in a chunk before it or in another one" if len(touched) > 1 else None
    count, claimed = sum(released for _, released in touched), world.claimed.get(unit, 1)
    return f"{unit}: {count} releases, {claimed} claimed" if count > claimed else None


def found(
    folder: Path, lives: int, change: Callable[[DeviceSettings], DeviceSettings] = lambda settings: settings
) -> tuple[list[str], int]:
    """Faults of so many lives, and how many stretches they have of which something was released."""
    faults, stretches = [], 0
    for seed in range(lives):
        luck = random.Random(seed)
        world = ClaimedLife(luck, folder)
        world.settings = change(world.settings)
        plain = world.given()
        stretches += sum(bool(stretch.released) for stretch in plain)
        faults += [said for _ in range(6) if (said := fault(world, luck, plain)) is not None]
    return faults, stretches


@pytest.mark.parametrize(
    "lives",
    [
        120,
        pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_no_gaze_reaches_further_than_is_claimed(tmp_path: Path, lives: int) -> None:
    """Without baselines too, where `apart` is 0: a break changes nothing there, as each row is in one chunk."""
    faults, stretches = found(tmp_path, lives)
    assert faults == []
    assert stretches > 2 * lives  # a life without a break has one


@pytest.mark.parametrize(
    "wrong",
    [
        lambda settings: dataclasses.replace(settings, apart=0),
        lambda settings: dataclasses.replace(settings, apart=max(0, settings.apart - 1)),
    ],
    ids=["at once", "one row too early"],
)
def test_a_baseline_that_begins_too_early_is_found(tmp_path: Path, wrong: Callable[..., DeviceSettings]) -> None:
    faults, _ = found(tmp_path, 120, wrong)
    assert any("in a baseline" in said for said in faults)
    assert all("in a baseline" in said for said in faults)
