"""A newest record that was durable is damaged afterwards: it counts for every device that it could have been of."""

import random
from pathlib import Path

import pytest

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import LAST_ROW, Granted, Request, RowMark
from eyestream.errors import LedgerError
from eyestream.rim.ledger import file
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams import StreamKey

KEYS = [StreamKey("a", "features"), StreamKey("a", "gaze"), StreamKey("b", "features")]
RECORD = 64


def ask(key: StreamKey, session: int, index: int, epsilon: int = 3, *, wearer: int = 0) -> Request:
    return Request(key, session, 32 * index, 32 * index + 31, 32, Charge(epsilon, epsilon), wearer)


class Deed:
    """A ledger, and what was released under it; the newest record is the last release."""

    def __init__(self, path: Path, last: Request) -> None:
        create_ledger(path, created=0)
        first = [
            ask(KEYS[0], 1, 0, wearer=2),
            ask(KEYS[1], 4, 0, 2, wearer=3),
            ask(KEYS[2], 7, 0, 5, wearer=2),
            ask(KEYS[0], 1, 1, wearer=2),
        ]
        self.released: list[Request] = []
        with Ledger(path, ceilings=Ceilings(4)) as ledger:
            for request in [*first, last]:
                answers = ledger.reserve([request], 100)
                self.released += [answer.request for answer in answers if isinstance(answer, Granted)]
        assert len(self.released) == 5
        self.path, self.data = path, path.read_bytes()

    def judge(self, data: bytes) -> None:
        """The damaged file charges every device and wearer, and refuses every row that was released."""
        self.path.unlink()
        self.path.write_bytes(data)
        self.path.chmod(0o600)
        spent = {device: sum(r.charge.epsilon for r in self.released if r.key.device == device) for device in "ab"}
        named = {(r.key.device, r.wearer) for r in self.released if r.wearer}
        worn = {
            (device, wearer): sum(
                r.charge.epsilon for r in self.released if (r.key.device, r.wearer) == (device, wearer)
            )
            for device, wearer in named
        }
        known = sum(r.charge.epsilon for r in self.released[:-1])
        for _ in range(2):
            with Ledger(self.path, ceilings=Ceilings(4)) as ledger:
                odometers = {device: ledger.odometer(device) for device in "ab"}
                for device, odometer in odometers.items():
                    assert odometer.epsilon >= spent[device]
                    assert odometer.delta >= spent[device]
                    assert odometer.unreadable == 1
                for (device, wearer), epsilon in worn.items():
                    found = odometers[device].wearers[wearer]
                    assert min(found.epsilon, found.delta, found.day_epsilon, found.day_delta) >= epsilon
                assert sum(odometer.epsilon for odometer in odometers.values()) == known + sum(self.largest.values())
                answers = ledger.reserve(self.released, 100)
                assert {answer.obstacle for answer in answers} == {"rows"}
                assert all(ledger.mark(key).last_row == LAST_ROW for key in KEYS)

    @property
    def largest(self) -> dict[str, int]:
        return {device: max(r.charge.epsilon for r in self.released if r.key.device == device) for device in "ab"}


LAST = {
    "the next chunk": ask(KEYS[0], 1, 2),
    "another session": ask(KEYS[1], 9, 0, 2),
    "a higher charge": ask(KEYS[2], 7, 1, 8),
    "both, at the end of all numbers": ask(KEYS[0], 2**64 - 1, 5, 10**6),
    "a new wearer": ask(KEYS[2], 8, 0, 5, wearer=2**32 - 1),
    "a new wearer in the same session": ask(KEYS[0], 1, 2, wearer=1),
    "a known wearer": ask(KEYS[0], 1, 2, wearer=3),
}
SHORT = ("another session", "both, at the end of all numbers", "a new wearer in the same session")
"""A kind of record each."""


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Whether the disk keeps it is tried elsewhere; here it is damaged afterwards, some thousand times."""
    for name in ("_sync_data", "_sync_whole"):
        monkeypatch.setattr(file, name, lambda fd: None)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in SHORT else pytest.mark.slow) for name in LAST]
)
def test_any_bit_of_it(tmp_path, name):
    deed = Deed(tmp_path / "ledger", LAST[name])
    for bit in range(8 * RECORD):
        data = bytearray(deed.data)
        data[len(data) - RECORD + bit // 8] ^= 1 << bit % 8
        deed.judge(bytes(data))


@pytest.mark.parametrize("name", LAST)
def test_zeros_noise_and_a_part_of_it(tmp_path, name):
    deed, random_ = Deed(tmp_path / "ledger", LAST[name]), random.Random(8)
    good = deed.data[:-RECORD]
    for rest in (bytes(RECORD), b"\xff" * RECORD, deed.data[64:128], *(random_.randbytes(RECORD) for _ in range(20))):
        if rest != deed.data[64:128]:
            deed.judge(good + rest)
    for length in range(1, RECORD):
        if any(deed.data[len(good) + length :]):  # zeros that are lost are read as zeros: that is the record
            deed.judge(deed.data[: len(good) + length])
    with pytest.raises(LedgerError, match="record 0 stands at place"):
        deed.judge(good + deed.data[64:128])


def test_a_device_that_the_damaged_record_could_not_be_of_is_not_charged(tmp_path):
    """One that came later: its name vouches for what was before it, so the ledger is refused instead."""
    deed = Deed(tmp_path / "ledger", LAST["the next chunk"])
    data = bytearray(deed.data)
    data[-100] ^= 1
    deed.path.write_bytes(data)
    with pytest.raises(LedgerError, match="was durable and cannot be read"):
        read_ledger(deed.path)


def test_what_is_not_noticed_as_documented(tmp_path):
    """Cut off at the border of a record; and a session whose announcement is damaged with its first slot."""
    deed = Deed(tmp_path / "ledger", LAST["another session"])
    deed.path.write_bytes(deed.data[:-RECORD])
    assert read_ledger(deed.path).odometers["a"].epsilon == 3 + 2 + 3
    deed.path.write_bytes(deed.data[: -2 * RECORD] + bytes(2 * RECORD))
    reading = read_ledger(deed.path).odometers
    assert {device: odometer.epsilon for device, odometer in reading.items()} == {"a": 8 + 2 * 3, "b": 5 + 2 * 5}
    assert reading["a"].streams["gaze"].mark == RowMark(4, LAST_ROW), "session 9 is not known"
