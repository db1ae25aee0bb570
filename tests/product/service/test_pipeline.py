"""The order of effects: reserve, then draw noise, then publish, for every chunk, and nothing without a reservation."""

from pathlib import Path
from typing import Any

from eyestream.core.charge import Ceilings
from eyestream.rim.files import calibrations
from eyestream.rim.sidecar.pipeline import Arrival
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.rig import Rig

CALIBRATION = calibrations.load("everyday-cfpa-32")


def rig(folder: Path, devices: tuple[str, ...] = ("a",), window: float | None = None) -> Rig:
    ceilings = Ceilings.of(2 if window else 0, window)
    times = {"grace_s": 1.0, "idle_s": 60.0, "jump_chunks": 16}
    return Rig(folder, devices=devices, calibration=CALIBRATION, ceilings=ceilings, **times)


def arrival(rig: Rig, first: int, count: int, at: float, device: str = "a") -> Arrival:
    rig.clock.now = at
    return rig.sent(rows_of_a_stranger(count, 52), first, device=device)


def told(rig: Rig) -> list[tuple[str, Any]]:
    """The events, with the first row of what was asked for."""
    return [(kind, what.first_row if kind in {"reserve", "withhold"} else what) for kind, what in rig.events]


async def test_a_chunk_is_reserved_when_it_opens_and_its_release_waits_for_no_disk(tmp_path: Path) -> None:
    line = rig(tmp_path)
    await line.take(arrival(line, 0, 31, 0.0), now=0.0)
    assert told(line) == [("reserve", 0)]
    await line.take(arrival(line, 31, 1, 1.0), now=1.0)
    assert line.kinds()[1:] == ["draw", "publish"]


async def test_of_a_burst_each_chunk_is_reserved_before_its_noise(tmp_path: Path) -> None:
    line = rig(tmp_path)
    await line.take(*[arrival(line, start, 64, 0.0) for start in (0, 64, 128)], now=0.0)
    kinds = line.kinds()
    assert [first for kind, first in told(line) if kind == "reserve"] == [0, 32, 64, 96, 128, 160]
    assert kinds.count("draw") == kinds.count("publish") == 6
    for index, kind in enumerate(kinds):
        reserved, drawn = kinds[:index].count("reserve"), kinds[:index].count("draw")
        assert kind != "draw" or drawn < reserved
        assert kind != "publish" or kinds[:index].count("publish") < drawn


async def test_noise_is_bound_to_no_withheld_chunk(tmp_path: Path) -> None:
    line = rig(tmp_path, window=4.8)
    await line.take(arrival(line, 0, 32 * 5, 0.0), now=0.0)
    kinds = line.kinds()
    assert (kinds.count("reserve"), kinds.count("withhold")) == (3, 2)
    assert kinds.count("draw") == kinds.count("publish") == 3
    assert line.counters.withheld == {"window": 2}


async def test_a_device_that_waits_for_the_disk_does_not_hold_up_another(tmp_path: Path) -> None:
    line = rig(tmp_path, devices=("a", "b"))
    await line.take(arrival(line, 0, 31, 0.0), now=0.0)
    before = len(told(line))
    await line.take(arrival(line, 0, 32, 1.0, device="b"), arrival(line, 31, 1, 1.0), now=1.0)
    assert told(line)[before:] == [
        ("draw", None),
        ("publish", "eyestream/v1/a/features/private"),
        ("reserve", 0),
        ("draw", None),
        ("publish", "eyestream/v1/b/features/private"),
    ]


async def test_the_clock_alone_makes_a_chunk_due(tmp_path: Path) -> None:
    line = rig(tmp_path)
    await line.take(arrival(line, 0, 1, 100.0), now=100.0)
    due = line.pipeline.next_due()
    assert due is not None
    assert 116.5 < due < 117.5  # 31 rows at two a second, 1 % slack, one second of grace
    await line.take(now=due - 0.01)
    assert "publish" not in line.kinds()
    await line.take(now=due)
    assert line.kinds()[-2:] == ["draw", "publish"]


async def test_at_the_end_what_is_reserved_is_released(tmp_path: Path) -> None:
    line = rig(tmp_path)
    await line.take(arrival(line, 0, 33, 0.0), now=0.0)
    line.pipeline.close(1.0)
    assert line.kinds().count("publish") == 2
    assert line.counters.dropped.total() == 0
