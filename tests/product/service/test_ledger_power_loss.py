"""The power may go at any step, and leave anything of what was not durable: the ledger never under-counts."""

import contextlib
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import LAST_ROW, Granted, Request
from eyestream.errors import LedgerError
from eyestream.rim.ledger import writer as writer_module
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.ledger.records import RECORD_BYTES
from eyestream.streams import StreamKey
from tests.product.service.power_loss import TracedFile, images

CEILINGS = Ceilings(window_chunks=4, window=6)
DEVICES = ("short", "d" * 64, "third")


@pytest.fixture(autouse=True)
def no_real_waiting(monkeypatch):
    """The durability of these files is simulated; thousands of real syncs would only take time."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)


def ask(device: str, index: int, charge: Charge) -> Request:
    return Request(StreamKey(device, "s"), 1, 32 * index, 32 * index + 31, 32, charge)


class Outsider:
    """Counts what was released, and knows the rows."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.worn: Counter[tuple[str, int]] = Counter()
        self.rows: dict[str, tuple[int, int]] = {}

    def see(self, request: Request) -> None:
        assert (request.session, request.first_row) > self.rows.get(request.key.device, (-1, -1)), (
            "a row was released twice"
        )
        self.rows[request.key.device] = (request.session, request.last_row)
        self.spent[request.key.device] += request.charge.epsilon
        if request.wearer:
            self.worn[request.key.device, request.wearer] += request.charge.epsilon

    def agrees(self, ledger: Ledger) -> bool:
        for device, spent in self.spent.items():
            odometer, mark = ledger.odometer(device), ledger.mark(StreamKey(device, "s"))
            if odometer is None or mark is None or odometer.epsilon < spent or mark < self.rows[device]:
                return False
        return all(
            (odometer := ledger.odometer(device)) is not None
            and wearer in odometer.wearers
            and odometer.wearers[wearer].epsilon >= spent
            for (device, wearer), spent in self.worn.items()
        )


def work(ledger: Ledger, trace: list, rng: random.Random, calls: int) -> None:
    """Some calls, each with a few devices; the trace gets what they released. Devices go on where the ledger stands."""
    for _ in range(calls):
        requests = []
        for device in rng.sample(DEVICES, rng.randint(1, len(DEVICES))):
            mark = ledger.mark(StreamKey(device, "s"))
            session, row = (1, 0) if mark is None else (mark.session, mark.last_row + 1)
            if row > LAST_ROW or rng.random() < 0.2:
                session, row = session + 1, 0
            charge = Charge(rng.randint(1, 3), rng.randint(0, 5))
            requests.append(Request(StreamKey(device, "s"), session, row, row + 31, 32, charge, rng.randint(0, 2)))
        trace += [("seen", a.request) for a in ledger.reserve(requests, 7) if isinstance(a, Granted)]


def outsider_of(trace: list) -> Outsider:
    outsider = Outsider()
    for step, what in trace:
        if step == "seen":
            outsider.see(what)
    return outsider


def lives(path: Path, monkeypatch, seed: int) -> tuple[bytes, list]:
    """The file before, and the trace of a first life upon it."""
    create_ledger(path, created=0)
    before, trace = path.read_bytes(), []
    monkeypatch.setattr(TracedFile, "trace", trace, raising=False)
    monkeypatch.setattr(writer_module, "LedgerFile", TracedFile)
    with Ledger(path, ceilings=CEILINGS) as ledger:
        work(ledger, trace, random.Random(seed), calls=12)
    return before, trace


def put(path: Path, image: bytes) -> None:
    """A new file: some file systems write one that is truncated and rewritten to the disk at once."""
    path.unlink()
    path.touch(0o600)
    path.write_bytes(image)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_every_prefix_of_the_writes_with_damages(tmp_path, monkeypatch, seed):
    path, rng = tmp_path / "ledger", random.Random(seed)
    before, first = lives(path, monkeypatch, seed)
    assert len({step for step, _ in first}) == 3
    for cut in range(len(first) + 1):
        for image in images(before, first, cut, rng, damages=100):
            put(path, image)
            second: list = []
            monkeypatch.setattr(TracedFile, "trace", second)
            with Ledger(path, ceilings=CEILINGS) as ledger:
                assert outsider_of(first[:cut]).agrees(ledger)
                work(ledger, second, rng, calls=2)
                now = {device: ledger.odometer(device) for device in DEVICES}
            outsider_of(first[:cut] + second)
            with Ledger(path, ceilings=CEILINGS) as ledger:
                assert {device: ledger.odometer(device) for device in DEVICES} == now


@pytest.mark.long
def test_the_power_goes_again_while_a_torn_tail_is_mended(tmp_path, monkeypatch):
    path, rng = tmp_path / "ledger", random.Random(11)
    before, first = lives(path, monkeypatch, seed=11)
    mendings = 0
    for cut in range(len(first) + 1):
        for image in images(before, first, cut, rng, damages=8):
            put(path, image)
            second: list = []
            monkeypatch.setattr(TracedFile, "trace", second)
            with Ledger(path, ceilings=CEILINGS) as ledger:
                mendings += bool(second)
                work(ledger, second, rng, calls=1)
            for again in range(len(second) + 1):
                for worse in images(image, second, again, rng, damages=2):
                    put(path, worse)
                    monkeypatch.setattr(TracedFile, "trace", [])
                    with Ledger(path, ceilings=CEILINGS) as ledger:
                        assert outsider_of(first[:cut] + second[:again]).agrees(ledger)
    assert mendings > 10


def test_a_sync_that_does_nothing_is_noticed_by_these_tests(tmp_path, monkeypatch):
    """The negative control: releasing on a write that is not durable must fail."""
    path = tmp_path / "ledger"
    before, trace = lives(path, monkeypatch, seed=1)
    lazy = [step for step in trace if step[0] != "sync"]
    wrong = 0
    for cut in range(len(lazy) + 1):
        for image in images(before, lazy, cut, random.Random(cut), damages=2):
            put(path, image)
            with contextlib.suppress(LedgerError), Ledger(path, ceilings=CEILINGS) as ledger:
                wrong += not outsider_of(lazy[:cut]).agrees(ledger)
    assert wrong > 10


def test_a_durable_record_cut_anywhere_counts_as_spent(tmp_path):
    """Also of a record that was released under, whatever part of it is left, as long as any is."""
    path = tmp_path / "ledger"
    create_ledger(path, created=0)
    with Ledger(path, ceilings=CEILINGS) as ledger:
        ledger.reserve([Request(StreamKey("d", "s"), 3, 0, 31, 32, Charge(2, 9))], 7)
    whole = path.read_bytes()
    for lost in range(1, RECORD_BYTES):
        path.write_bytes(whole[:-lost])
        known = whole[-lost:] == bytes(lost)  # a tail is filled up with zeros: then this is the record again
        for _ in range(2):
            with Ledger(path, ceilings=CEILINGS) as ledger:
                odometer = ledger.odometer("d")
                assert odometer.epsilon == 2
                assert odometer.window_epsilon == 2
                assert ledger.mark(StreamKey("d", "s")) == (3, 31 if known else LAST_ROW)
    assert (path.stat().st_size - len(whole)) == RECORD_BYTES


def test_what_cannot_be_read_costs_the_largest_charge_so_far_for_every_device(tmp_path):
    path = tmp_path / "ledger"
    create_ledger(path, created=0)
    with Ledger(path, ceilings=Ceilings()) as ledger:
        for index, epsilon in enumerate((2, 9, 4)):
            ledger.reserve([ask(d, index, Charge(epsilon, epsilon)) for d in "ab"], 7)
    with path.open("ab") as file:
        file.write(b"\xff" * 10)
    with Ledger(path, ceilings=Ceilings()) as ledger:
        for device in "ab":
            odometer = ledger.odometer(device)
            assert (odometer.epsilon, odometer.delta) == (15 + 9, 15 + 9)
            assert ledger.mark(StreamKey(device, "s")) == (1, LAST_ROW)


@pytest.mark.parametrize("bit", range(0, RECORD_BYTES * 8, 7))
def test_a_damaged_record_before_the_tail_is_refused_and_at_the_tail_is_spent(tmp_path, bit):
    path = tmp_path / "ledger"
    create_ledger(path, created=0)
    with Ledger(path, ceilings=CEILINGS) as ledger:
        ledger.reserve([ask("other", 0, Charge(1))], 7)
        for i in range(3):
            ledger.reserve([ask("d", i, Charge(2))], 7)
    good = path.read_bytes()

    def damage(record: int) -> None:
        data = bytearray(good)
        data[len(good) + record * RECORD_BYTES + bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)

    damage(-2)
    with pytest.raises(LedgerError, match=r"is damaged.*eyestream budget --new"):
        Ledger(path, ceilings=CEILINGS)
    damage(-1)
    with Ledger(path, ceilings=CEILINGS) as ledger:
        assert ledger.odometer("d").epsilon >= 6
        assert ledger.odometer("d").unreadable == 1
