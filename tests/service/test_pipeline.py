"""The order of effects: reserve, then draw noise, then publish, for every chunk, and nothing without a reservation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from noise import SeededNoise
from rig import rows_of_a_stranger

from eyestream.chunking.settings import DeviceSettings
from eyestream.privacy.accountant import Request
from eyestream.privacy.charge import Ceilings
from eyestream.privacy.laws import Law
from eyestream.privacy.mechanisms import build
from eyestream.privacy.reservation import Granted, Withheld
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline
from eyestream.wire.messages import encode_raw

CALIBRATION = calibrations.load("everyday-cfpa-32")


class Diary:
    """What happened, in order."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, object]] = []

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.entries]


class DiaryLedger(Ledger):
    diary: Diary

    def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        answers = super().reserve(requests, day)
        self.diary.entries += [
            ("reserve" if isinstance(answer, Granted) else "withhold", answer.request.first_row) for answer in answers
        ]
        return answers


class DiaryNoise(SeededNoise):
    def __init__(self, diary: Diary) -> None:
        super().__init__(1)
        self._diary = diary

    def draw(self, law: Law) -> np.ndarray:
        self._diary.entries.append(("draw", None))
        return super().draw(law)


def pipeline(folder: Path, diary: Diary, devices: tuple[str, ...] = ("a",), window: float | None = None) -> Pipeline:
    create_ledger(folder / "ledger", created=0)
    ledger = DiaryLedger(folder / "ledger", ceilings=Ceilings.of(2 if window else 0, window))
    ledger.diary = diary
    settings = [
        DeviceSettings(
            id=device,
            stream="features",
            schema=1,
            names=CALIBRATION.names,
            rate_hz=2.0,
            n=32,
            grace_s=1.0,
            idle_s=60.0,
            jump_chunks=16,
        )
        for device in devices
    ]
    return Pipeline(
        settings,
        build(CALIBRATION, 4.8, noise=DiaryNoise(diary)),
        ledger,
        today=lambda: 1,
        publish=lambda topic, payload: diary.entries.append(("publish", topic)),
        changed=lambda: None,
    )


def arrival(first: int, count: int, at: float, device: str = "a", session: int = 1) -> Arrival:
    rows = rows_of_a_stranger(count, 52)
    return Arrival(f"eyestream/v1/{device}/features/raw", encode_raw(session, first, rows, 1), at)


async def test_a_chunk_is_reserved_when_it_opens_and_its_release_waits_for_no_disk(tmp_path: Path) -> None:
    diary = Diary()
    line = pipeline(tmp_path, diary)
    await line.take([arrival(0, 31, 0.0)], 0.0)
    assert diary.entries == [("reserve", 0)]
    await line.take([arrival(31, 1, 1.0)], 1.0)
    assert diary.kinds()[1:] == ["draw", "publish"]


async def test_of_a_burst_each_chunk_is_reserved_before_its_noise(tmp_path: Path) -> None:
    diary = Diary()
    line = pipeline(tmp_path, diary)
    await line.take([arrival(start, 64, 0.0) for start in (0, 64, 128)], 0.0)
    kinds = diary.kinds()
    assert [first for kind, first in diary.entries if kind == "reserve"] == [0, 32, 64, 96, 128, 160]
    assert kinds.count("draw") == kinds.count("publish") == 6
    for index, kind in enumerate(kinds):
        reserved, drawn = kinds[:index].count("reserve"), kinds[:index].count("draw")
        assert kind != "draw" or drawn < reserved
        assert kind != "publish" or kinds[:index].count("publish") < drawn


async def test_noise_is_bound_to_no_withheld_chunk(tmp_path: Path) -> None:
    diary = Diary()
    line = pipeline(tmp_path, diary, window=4.8)
    await line.take([arrival(0, 32 * 5, 0.0)], 0.0)
    kinds = diary.kinds()
    assert (kinds.count("reserve"), kinds.count("withhold")) == (3, 2)
    assert kinds.count("draw") == kinds.count("publish") == 3
    assert line.counters.withheld == {"window": 2}


async def test_a_device_that_waits_for_the_disk_does_not_hold_up_another(tmp_path: Path) -> None:
    diary = Diary()
    line = pipeline(tmp_path, diary, devices=("a", "b"))
    await line.take([arrival(0, 31, 0.0)], 0.0)
    before = len(diary.entries)
    await line.take([arrival(0, 32, 1.0, device="b"), arrival(31, 1, 1.0)], 1.0)
    assert diary.entries[before:] == [
        ("draw", None),
        ("publish", "eyestream/v1/a/features/private"),
        ("reserve", 0),
        ("draw", None),
        ("publish", "eyestream/v1/b/features/private"),
    ]


async def test_the_clock_alone_makes_a_chunk_due(tmp_path: Path) -> None:
    diary = Diary()
    line = pipeline(tmp_path, diary)
    await line.take([arrival(0, 1, 100.0)], 100.0)
    due = line.next_due()
    assert due is not None
    assert 116.5 < due < 117.5  # 31 rows at two a second, 1 % slack, one second of grace
    await line.take([], due - 0.01)
    assert "publish" not in diary.kinds()
    await line.take([], due)
    assert diary.kinds()[-2:] == ["draw", "publish"]


async def test_at_the_end_what_is_reserved_is_released(tmp_path: Path) -> None:
    diary = Diary()
    line = pipeline(tmp_path, diary)
    await line.take([arrival(0, 33, 0.0)], 0.0)
    line.close(1.0)
    assert diary.kinds().count("publish") == 2
    assert line.counters.dropped.total() == 0
