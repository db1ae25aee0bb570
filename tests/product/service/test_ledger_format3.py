"""Ledgers of this format that versions before budgets of wearers wrote: they are read, and gone on with, as ever.

`write` made the files with the code of before, and makes them again with that of today: where nobody is named, every
byte is the same, of records and of snapshots. Requests could name a wearer then, and the sums of a lifetime were kept.
"""

import hashlib
from pathlib import Path

import pytest

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request
from eyestream.errors import LedgerError
from eyestream.rim.ledger import writer
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.ledger.records import Header, RecordSource, read_header, write_header
from eyestream.streams import StreamKey

FOLDER = Path(__file__).parent / "format3"
KEYS = (StreamKey("a", "features"), StreamKey("a", "gaze"), StreamKey("b", "features"))
DAY = 20_000


def write(path: Path, wearers: tuple[int, ...]) -> None:
    """A ledger with a snapshot and records behind it, of chunks that name `wearers` in turn."""
    path.write_bytes(write_header(Header(b"a made-up ledger", 1_700_000_000)))
    path.chmod(0o600)
    for life in range(3):
        writer._MANY_RECORDS = 1 if life == 1 else 1 << 12
        with Ledger(path, ceilings=Ceilings(3, 9, streams={"gaze": Ceilings(2, 8)})) as ledger:
            for index in range(9):
                key, first = KEYS[index % 3], 8 * index
                charge, wearer = Charge(2 + index % 4, index), wearers[(index + life) % len(wearers)]
                ledger.reserve([Request(key, life + 1, first, first + 7, 8, charge, wearer)], DAY + life)


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the number of records that `write` sets be what it was afterwards."""
    monkeypatch.setattr(writer, "_MANY_RECORDS", writer._MANY_RECORDS)


def test_where_nobody_is_named_every_byte_is_the_same(tmp_path: Path) -> None:
    write(tmp_path / "ledger", (0,))
    data, again = (FOLDER / "nobody.ledger").read_bytes(), (tmp_path / "ledger").read_bytes()
    snapshots = [RecordSource([each[64:]]).read(read_header(each[:64]).snapshot_bytes) for each in (data, again)]
    old, new = (snapshot.split(b"\n") for snapshot in snapshots)
    assert (old[0], new[0]) == (b"20000", b'19675 {"ahead":[20000],"spent":{}}'), "no gap of days was known"
    assert old[1:3] == new[1:3]
    assert again[64 + len(snapshots[1]) :] == data[64 + len(snapshots[0]) :]
    assert read_ledger(tmp_path / "ledger").header.generation == 1, "it has a snapshot"
    assert len(data) > 64 * 20


def test_wearers_of_before_keep_their_sums(tmp_path: Path) -> None:
    path, again = tmp_path / "ledger", tmp_path / "again"
    path.write_bytes((FOLDER / "wearers.ledger").read_bytes())
    path.chmod(0o600)
    write(again, (5, 6, 0))
    old, new = read_ledger(path), read_ledger(again)
    for device, odometer in new.odometers.items():
        found = old.odometers[device]
        assert found.epsilon == odometer.epsilon > 0
        for wearer, spent in odometer.wearers.items():
            assert (found.wearers[wearer].epsilon, found.wearers[wearer].delta) == (spent.epsilon, spent.delta)
            assert found.wearers[wearer].day_epsilon >= spent.day_epsilon, "its snapshot does not say on which day"
    assert new.odometers["a"].wearers.keys() == {5, 6}
    before = old.odometers["a"].wearers[5].epsilon
    with Ledger(path, ceilings=Ceilings(3, 9, wearer=Ceilings(lifetime=before + 2))) as ledger:
        asked = [Request(KEYS[0], 9, 8 * i, 8 * i + 7, 8, Charge(2), 5) for i in range(9)]
        answers = ledger.reserve(asked, DAY + 9)
    assert sum(isinstance(answer, Granted) for answer in answers) == 1
    assert read_ledger(path).odometers["a"].wearers[5].epsilon == before + 2


@pytest.mark.parametrize("number", [2, 4])
def test_a_ledger_of_another_format_is_refused_and_stays_as_it_is(tmp_path: Path, number: int) -> None:
    """Nobody is told to make a new one, which would forget what was spent."""
    path = tmp_path / "ledger"
    data = (FOLDER / "of-0.1.0.ledger").read_bytes()
    if number != 2:
        fields = data[:8] + number.to_bytes(4, "little") + data[12:56]
        data = fields + hashlib.blake2b(fields, digest_size=8).digest() + data[64:]
    path.write_bytes(data)
    path.chmod(0o600)
    which = {2: "0.2.0 on it once: it writes the ledger again, with every spend", 4: "that wrote it"}[number]
    words = f"{path} is a ledger of format {number}, and this program reads format 3; start the eyestream {which}"
    for attempt in (read_ledger, lambda path: Ledger(path, ceilings=Ceilings())):
        with pytest.raises(LedgerError) as error:
            attempt(path)
        assert str(error.value) == words
    assert path.read_bytes() == data
