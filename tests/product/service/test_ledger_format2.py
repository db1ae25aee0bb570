"""Ledgers that 0.1.0 wrote are read, and rewritten with every spend.

The files were made by 0.1.0 itself; index.json has what it read in each: by "device/stream", as its budgets were.
"""

import json
import logging
import struct
from pathlib import Path

import pytest

from eyestream.core.accountant import LAST_ROW, Granted, Request, RowMark, Withheld
from eyestream.core.charge import Ceilings, Charge
from eyestream.errors import LedgerError
from eyestream.rim.ledger.checksum import Checksum, read_header
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.streams import StreamKey

FOLDER = Path(__file__).parent / "format2"
INDEX = json.loads((FOLDER / "index.json").read_text())
WHOLE = ("empty", "two-devices", "changed", "long-name")
SUMS = ("epsilon", "delta", "session_epsilon", "released", "withheld", "chunk", "window", "wait")


@pytest.fixture
def copy(tmp_path):
    def make(name: str) -> Path:
        path = tmp_path / "ledger"
        path.write_bytes((FOLDER / name).read_bytes())
        path.chmod(0o600)
        return path

    return make


def streams_of(name: str) -> dict[StreamKey, dict]:
    return {StreamKey(*each.split("/", 1)): said for each, said in INDEX[name]["streams"].items()}


@pytest.mark.parametrize("name", [f"{name}.ledger" for name in WHOLE])
def test_a_whole_one_says_what_it_said_and_counts_it_toward_the_device(copy, name):
    header, odometers, *_ = read_ledger(copy(name))
    assert (header.created, header.legacy) == (INDEX[name]["created"], (INDEX[name]["chunk"], INDEX[name]["window"]))
    old = streams_of(name)
    assert {StreamKey(d, s) for d, odometer in odometers.items() for s in odometer.streams} == set(old)
    for key, said in old.items():
        stream = odometers[key.device].streams[key.stream]
        assert {field: getattr(stream, field) for field in SUMS} == {field: said[field] for field in SUMS}
        assert stream.mark == (None if said["mark"] is None else tuple(said["mark"]))
    for device, odometer in odometers.items():
        mine = [said for key, said in old.items() if key.device == device]
        for field in ("epsilon", "delta", "released", "withheld"):
            assert getattr(odometer, field) == sum(said[field] for said in mine)
        assert odometer.session_epsilon == sum(said["session_epsilon"] for said in mine)
        assert odometer.day == max(said["day"] for said in mine)
        today = [said for said in mine if said["day"] == odometer.day]
        assert odometer.day_epsilon == sum(said["day_epsilon"] for said in today)
        assert odometer.unreadable == 0


@pytest.mark.parametrize("name", sorted(INDEX))
def test_a_torn_one_counts_for_at_least_what_it_did_and_closes_every_session(copy, name):
    odometers = read_ledger(copy(name)).odometers
    torn = any(said["unreadable"] for said in streams_of(name).values())
    assert torn == (name.removesuffix(".ledger") not in WHOLE)
    for key, said in streams_of(name).items():
        odometer = odometers[key.device]
        stream = odometer.streams[key.stream]
        assert (stream.epsilon >= said["epsilon"], stream.delta >= said["delta"]) == (True, True)
        assert stream.mark is None or stream.mark >= tuple(said["mark"])
        assert odometer.unreadable >= said["unreadable"]
        assert not torn or "mended" in name or stream.mark.last_row == LAST_ROW


@pytest.mark.parametrize("name", sorted(INDEX))
def test_it_is_rewritten_on_opening_and_said_once(copy, caplog, name):
    path = copy(name)
    before = read_ledger(path)
    with caplog.at_level(logging.INFO), Ledger(path, ceilings=Ceilings(4)) as ledger:
        assert ledger.header.legacy is None
        assert {device: ledger.odometer(device) for device in before.odometers} == before.odometers
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: a ledger of 0.1.0, rewritten in format 3 with every spend"
    ]
    after = read_ledger(path)
    assert after.odometers == before.odometers
    assert after.header._replace(generation=0, snapshot_bytes=0) == before.header._replace(legacy=None)
    with caplog.at_level(logging.INFO), Ledger(path, ceilings=Ceilings(4)) as ledger:
        assert ledger.header.legacy is None
    assert len(caplog.records) == 1


def test_rows_and_ceilings_go_on_where_they_were(copy):
    path = copy("two-devices.ledger")
    old = streams_of("two-devices.ledger")
    ceilings = Ceilings(4, lifetime=sum(said["epsilon"] for key, said in old.items() if key.device == "hmd-a") + 1)
    with Ledger(path, ceilings=ceilings) as ledger:
        for key, said in old.items():
            session, row = said["mark"]
            gone = Request(key, session, row, row, 32, Charge(1))
            assert ledger.reserve([gone], 20_004) == [Withheld(gone, "rows")]
        gaze = Request(StreamKey("hmd-a", "gaze"), 99, 0, 31, 32, Charge(1))
        new = Request(StreamKey("hmd-a", "new"), 1, 0, 31, 32, Charge(1))
        assert ledger.reserve([gaze, new], 20_004) == [Granted(gaze), Withheld(new, "lifetime")]


def test_a_wait_that_had_begun_goes_on(copy):
    with Ledger(copy("changed.ledger"), ceilings=Ceilings(6, 10**13)) as ledger:
        wait = INDEX["changed.ledger"]["streams"]["d/features"]["wait"]
        assert wait > 0
        key = StreamKey("d", "features")
        answers = ledger.reserve([Request(key, 3, 16 * i, 16 * i + 15, 16, Charge(1)) for i in range(wait + 1)], 20_001)
    assert [type(answer) for answer in answers] == [Withheld] * wait + [Granted]


def test_a_stream_without_a_slot_stands_at_the_header(copy):
    path = copy("long-name.ledger")
    path.write_bytes(path.read_bytes()[:-64])  # the slot is gone, the name is there
    key = StreamKey("d" * 64, "x" * 64)
    with Ledger(path, ceilings=Ceilings(2)) as ledger:
        assert ledger.mark(key) is None
        answers = ledger.reserve([Request(key, 1, 64 * i, 64 * i + 63, 64, Charge(1)) for i in range(5)], 20_001)
    assert [type(answer) for answer in answers] == [Withheld] * 4 + [Granted]


def test_a_damaged_middle_and_kinds_that_it_never_had_are_refused(copy):
    path = copy("damaged.ledger")
    before = path.read_bytes()
    for attempt in (read_ledger, lambda path: Ledger(path, ceilings=Ceilings())):
        with pytest.raises(LedgerError, match="was durable and cannot be read"):
            attempt(path)
    assert path.read_bytes() == before


def test_a_torn_name_a_flipped_bit_and_zeros(copy):
    """The flipped bit had booked the charge of `b` nowhere; zeros had closed no session that had just begun."""
    bit = read_ledger(copy("torn-bit.ledger")).odometers
    assert {device: odometer.epsilon for device, odometer in bit.items()} == {
        "a": 3 * 48 * 10**11 + 48 * 10**11,
        "b": 2 * 48 * 10**11 + 48 * 10**11,
    }
    zeros = read_ledger(copy("torn-zeros.ledger")).odometers
    assert [odometer.streams["features"].mark for odometer in zeros.values()] == [RowMark(1, LAST_ROW)] * 2


def completed(path: Path, *records: tuple[int, ...]) -> bytes:
    """The file with more records of format 2, made as 0.1.0 did."""
    data = path.read_bytes()
    header = read_header(data)
    checksum, first = Checksum(header.file_key), len(data) // 64 - 1
    bodies = [struct.pack("<HHIQQIIIIQQ", *fields) for fields in records]
    return data + b"".join(checksum.complete(body, first + 1 + i) for i, body in enumerate(bodies))


def test_a_slot_of_a_stream_whose_name_was_torn_is_spent_by_all(copy):
    path = copy("long-name.ledger")
    slot = (1 + 1, 1, 7, 1, 0, 32, 32, 4, 20_000, 9, 0)  # released; the name of key 7 before it was not durable
    data = completed(path, slot)
    path.write_bytes(data[:-64] + bytes(64) + data[-64:])
    [odometer] = read_ledger(path).odometers.values()
    assert (odometer.epsilon, odometer.unreadable) == (7 + 7, 2)  # its own slot was withheld


def test_a_kind_that_format_2_does_not_have_is_refused(copy):
    path = copy("long-name.ledger")
    data = path.read_bytes()
    fields = (9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    checksum = Checksum(read_header(data).file_key)
    path.write_bytes(data + checksum.complete(struct.pack("<HHIQQIIIIQQ", *fields), len(data) // 64 - 1))
    with pytest.raises(LedgerError, match="kind 9, which no ledger of format 2 has"):
        read_ledger(path)
