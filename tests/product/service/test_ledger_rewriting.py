"""A ledger is rewritten: whatever the power leaves is one valid ledger that has forgotten nothing."""

import errno
import gc
import logging
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.meter import WearerOdometer
from eyestream.core.reservation import Granted, Request, RowMark
from eyestream.errors import LedgerError
from eyestream.rim.ledger import file as file_module
from eyestream.rim.ledger import writer
from eyestream.rim.ledger.book import Book
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.ledger.records import RECORD_BYTES
from eyestream.streams import StreamKey
from tests.product.service.disk import Trace, TracedDisk, states
from tests.product.service.test_ledger_power_loss import CEILINGS, Outsider, work

ROOT = Path(__file__).resolve().parents[3]
KEY = StreamKey("d", "features")
BESIDE = ".ledger.rewritten"


def ask(index: int, session: int = 1, key: StreamKey = KEY) -> Request:
    return Request(key, session, 32 * index, 32 * index + 31, 32, Charge(5, 3))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger"
    create_ledger(path, created=1_700_000_000)
    return path


@pytest.fixture
def often(monkeypatch):
    """Rewritten after a few records, and whenever it is opened."""
    monkeypatch.setattr(writer, "_MANY_RECORDS", 1)
    monkeypatch.setattr(writer, "_TOO_MANY_RECORDS", 9)


def seen(trace: Trace) -> Outsider:
    outsider = Outsider()
    for step, request, _ in trace:
        if step == "seen":
            outsider.see(request)
    return outsider


def life(path: Path, monkeypatch, rng: random.Random, calls: int) -> Trace:
    """What a life on the ledger did to the disk, and what it released."""
    with monkeypatch.context() as patch:
        disk = TracedDisk()
        patch.setattr(file_module, "os", disk)
        with Ledger(path, ceilings=CEILINGS) as ledger:
            for _ in range(calls):
                released: list = []
                work(ledger, released, rng, calls=1)
                disk.trace += [("seen", request, None) for _, request in released]
        return disk.trace


def put(folder: Path, state: dict[str, bytes]) -> Path:
    for each in folder.iterdir():
        each.unlink()
    for name, data in state.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    return folder / "ledger"


def judge(path: Path, monkeypatch, before: bytes, trace: Trace, damages: int) -> tuple[int, int]:
    """How many directories a cut after any step may leave, and how many of them forget a release or do not open."""
    folder, rng, tried, wrong = path.parent, random.Random(3), 0, 0
    for cut in range(len(trace) + 1):
        for state in states(before, trace, cut, rng, damages):
            path, tried = put(folder, state), tried + 1
            try:
                with Ledger(path, ceilings=CEILINGS) as ledger:
                    good = seen(trace[:cut]).agrees(ledger)
                second = life(path, monkeypatch, rng, calls=1)
                seen(trace[:cut] + second)  # no row twice
                with Ledger(path, ceilings=CEILINGS) as ledger:
                    good = good and seen(trace[:cut] + second).agrees(ledger)
            except (LedgerError, AssertionError):
                good = False
            wrong += not good
            assert {each.name for each in folder.iterdir()} == {"ledger"} or not good
    return tried, wrong


@pytest.mark.long
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("seed", range(2))
def test_the_power_goes_at_every_step_of_lives_with_rewriting(path, monkeypatch, seed):
    before = path.read_bytes()
    trace = life(path, monkeypatch, random.Random(seed), calls=12)
    assert sum(step == "rename" for step, _, _ in trace) >= 2
    tried, wrong = judge(path, monkeypatch, before, trace, damages=4)
    assert (tried > 300, wrong) == (True, 0)


@pytest.mark.long
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("lost", ["sync", "names"])
def test_a_rewriting_that_is_not_durable_in_time_would_be_noticed(path, monkeypatch, lost):
    """Renamed before its bytes, or appended to before its name, is durable."""
    before = path.read_bytes()
    trace = life(path, monkeypatch, random.Random(1), calls=12)
    new = {what for step, what, _ in trace if step == "create"}
    lazy, fresh = [], set(new)
    for step, what, more in trace:
        if step == lost == "sync" and what in fresh:
            fresh.discard(what)  # the first one of a new file, before its name
        elif step != lost or lost == "sync":
            lazy.append((step, what, more))
    assert len(lazy) < len(trace)
    assert judge(path, monkeypatch, before, lazy, damages=2)[1] > 5


def test_many_records_become_a_snapshot_on_opening_and_at_work(path, monkeypatch):
    monkeypatch.setattr(writer, "_MANY_RECORDS", 20)
    monkeypatch.setattr(writer, "_TOO_MANY_RECORDS", 40)
    sizes = []
    with Ledger(path, ceilings=Ceilings()) as ledger:
        for index in range(60):
            ledger.reserve([ask(index)], 19_700)
            sizes.append(path.stat().st_size)
        assert ledger.header.generation == 1
        expected = ledger.odometer("d")
    assert max(sizes) < 64 * 45
    assert min(sizes[30:]) < 1000
    with Ledger(path, ceilings=Ceilings()) as ledger:
        assert (ledger.header.generation, ledger.header.created) == (2, 1_700_000_000)
        assert ledger.odometer("d") == expected
        assert ledger.mark(KEY) == RowMark(1, 60 * 32 - 1)
        assert type(ledger.reserve([ask(60)], 19_700)[0]) is Granted


@pytest.mark.usefixtures("often")
def test_everything_that_is_known_survives(path):
    gaze, new = StreamKey("d", "gaze"), StreamKey("e", "features")
    with Ledger(path, ceilings=Ceilings(4, streams={"gaze": Ceilings(3, 99)})) as ledger:
        requests = [Request(gaze, 1, 8 * i, 8 * i + 7, 8, Charge(2, 1), wearer=3, write_ahead=True) for i in range(3)]
        ledger.reserve([ask(0), *requests], 19_700)
        ledger.settle(gaze, RowMark(1, 15), reference=2**64 - 1)
        known = read_ledger(path)
        for first in (1, 20):
            ledger.reserve([ask(index) for index in range(first, first + 19)], 19_700)
        assert ledger.unsettled(gaze) == [requests[0], requests[2]]
        assert ledger.unsettled(StreamKey("nobody", "s")) == []
    with Ledger(path, ceilings=Ceilings(4, streams={"gaze": Ceilings(3, 99)})) as ledger:
        assert ledger.header.generation >= 2
        assert ledger.unsettled(gaze) == [requests[0], requests[2]]
        assert ledger.odometer("d").wearers == {3: WearerOdometer(6, 3, 6, 3)}
        ledger.settle(gaze, RowMark(1, 7), reference=0)
        ledger.settle(gaze, RowMark(1, 7), reference=0)  # twice: nothing is left to settle
        ledger.reserve([ask(0, key=new)], 19_700)
    after = read_ledger(path)
    assert after.streams[KEY] == known.streams[KEY]
    assert after.odometers["e"].epsilon == 5
    assert [span.first_row for span in after.streams[gaze].unsettled] == [16]


def test_what_is_reserved_ahead_and_not_settled_is_known_after_a_kill(path):
    request = Request(KEY, 1, 0, 31, 32, Charge(5), write_ahead=True)
    with Ledger(path, ceilings=Ceilings()) as ledger:
        ledger.reserve([request, ask(1)], 19_700)
    with Ledger(path, ceilings=Ceilings()) as ledger:
        assert ledger.unsettled(KEY) == [request]
        for index in range(300):
            ledger.reserve([Request(KEY, 2, index, index, 32, Charge(5), write_ahead=True)], 19_700)
        for index in range(44, 200):
            ledger.settle(KEY, RowMark(2, index), index)
        assert [span.first_row for span in ledger.unsettled(KEY)] == list(range(200, 300)), "the oldest are forgotten"
        with pytest.raises(KeyError):
            ledger.settle(StreamKey("nobody", "s"), RowMark(1, 1), 0)


def failing(number: int, **only):
    def fail(*given, **named):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("call", ["open", "write", "fsync"])
def test_a_rewriting_that_cannot_be_prepared_is_said_and_the_ledger_goes_on(path, monkeypatch, caplog, call):
    right = {name: getattr(os, name) for name in ("open", "write", "fsync")}

    class NoRoom(TracedDisk):
        """Has none for a file beside the ledger."""

        beside = -1

        def open(self, file, flags, mode=0o777):
            if Path(file).name == BESIDE and call == "open":
                failing(errno.ENOSPC)()
            fd = right["open"](file, flags, mode)
            self.beside = fd if Path(file).name == BESIDE else self.beside
            return fd

        def write(self, fd, data):
            return right["write"](fd, data[:100] if fd == self.beside and call == "write" else data)

        def fsync(self, fd):
            failing(errno.EIO)() if fd == self.beside and call == "fsync" else right["fsync"](fd)

    with monkeypatch.context() as patch:
        patch.setattr(file_module, "os", NoRoom())
        with caplog.at_level(logging.WARNING), Ledger(path, ceilings=Ceilings()) as ledger:
            for index in range(40):
                assert type(ledger.reserve([ask(index)], 19_700)[0]) is Granted
            assert ledger.header.generation == 0
    said = [message for record in caplog.records if "clock" not in (message := record.getMessage())]
    assert 1 < len(said) < 6, "at every doubling, not at every reservation"
    assert "cannot be shortened and goes on as it is" in said[0]
    assert [each.name for each in path.parent.iterdir()] == ["ledger"]
    with Ledger(path, ceilings=Ceilings()) as ledger:
        assert (ledger.odometer("d").released, ledger.header.generation) == (40, 1)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("call", ["rename", "names"])
def test_a_replacement_of_which_nobody_knows_the_end_stops_the_ledger(path, monkeypatch, call):
    class Unknown(TracedDisk):
        renamed = False

        def rename(self, old, new):
            self.renamed = True
            failing(errno.EIO)() if call == "rename" else os.rename(old, new)

        def fsync(self, fd):
            lost = call == "names" and self.renamed and os.path.isdir(f"/proc/self/fd/{fd}")
            failing(errno.EIO)() if lost else None

    granted = 0
    with monkeypatch.context() as patch:
        patch.setattr(file_module, "os", Unknown())
        with Ledger(path, ceilings=Ceilings()) as ledger:
            with pytest.raises(LedgerError, match="durably: Input/output error"):  # noqa: PT012
                for index in range(40):
                    granted += type(ledger.reserve([ask(index)], 19_700)[0]) is Granted
            with pytest.raises(LedgerError, match="nothing can be reserved any more"):
                ledger.reserve([ask(50)], 19_700)
    with Ledger(path, ceilings=Ceilings()) as ledger:
        assert ledger.odometer("d").released > granted > 0
        assert [each.name for each in path.parent.iterdir()] == ["ledger"]


@pytest.mark.usefixtures("often")
def test_a_file_that_was_put_into_place_and_no_more_is_durable_when_it_is_opened(path, monkeypatch):
    """The process ends between the rename and the sync of the names: the next one writes into the new file."""
    before, disk = path.read_bytes(), TracedDisk()
    with monkeypatch.context() as patch:
        patch.setattr(file_module, "os", disk)
        with pytest.raises(Killed), Ledger(path, ceilings=Ceilings()) as ledger:  # noqa: PT012
            patch.setattr(file_module, "_sync_directory", killed)
            for index in range(40):
                ledger.reserve([ask(index)], 19_700)
    with monkeypatch.context() as patch:
        patch.setattr(file_module, "os", disk)
        with Ledger(path, ceilings=Ceilings()) as ledger:
            ledger.reserve([ask(50)], 19_700)
            granted = ledger.odometer("d").released
    for state in states(before, disk.trace, len(disk.trace), random.Random(1), damages=6):
        assert Book([state["ledger"]]).released >= granted


def test_what_a_failed_sync_left_in_memory_is_written_again(path, monkeypatch):
    """The system calls its pages clean; whoever opens the ledger reads them, and goes on after them."""
    with Ledger(path, ceilings=Ceilings()) as ledger:
        monkeypatch.setattr(file_module, "_sync_data", failing(errno.EIO))
        with pytest.raises(LedgerError, match="Input/output error"):
            ledger.reserve([ask(0)], 19_700)
        monkeypatch.undo()
    read, written, real = path.read_bytes()[RECORD_BYTES:], [], os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: written.append((at, bytes(data))) or real(fd, data, at))
    Ledger(path, ceilings=Ceilings()).close()
    assert len(read) >= RECORD_BYTES
    assert written == [(RECORD_BYTES, read)]


class Killed(BaseException):
    """The process is gone."""


def killed(*given: object) -> None:
    raise Killed


def test_whoever_waited_for_the_old_file_does_not_get_its_lock(path, monkeypatch):
    """Between opening a name and locking the file, another process may have rewritten it and gone."""
    check = file_module._check_rights

    def rewritten_meanwhile(name: Path, fd: int) -> None:
        check(name, fd)
        other = name.with_name("other")
        other.write_bytes(name.read_bytes())
        other.rename(name)

    with monkeypatch.context() as patch:
        patch.setattr(file_module, "_check_rights", rewritten_meanwhile)
        with pytest.raises(LedgerError, match="just rewritten"):
            Ledger(path, ceilings=Ceilings())


@pytest.mark.usefixtures("often")
def test_a_rewritten_ledger_is_held_by_its_process(path):
    with Ledger(path, ceilings=Ceilings()) as ledger:
        ledger.reserve([ask(index) for index in range(20)], 19_700)
        assert ledger.header.generation == 1
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(LedgerError, match="in use by another process"):
            Ledger(path, ceilings=Ceilings())
        assert read_ledger(path).odometers["d"].released == 20


@pytest.mark.usefixtures("often")
def test_damage_in_a_snapshot_and_records_of_an_older_generation_are_refused(path):
    with Ledger(path, ceilings=Ceilings()) as ledger:
        ledger.reserve([ask(index) for index in range(20)], 19_700)
        old = path.read_bytes()
        ledger.reserve([ask(index) for index in range(20, 40)], 19_700)
        assert ledger.header.generation == 2
        ledger.reserve([ask(40)], 19_700)
        ledger.reserve([ask(41)], 19_700)
    good, begin = path.read_bytes(), ledger.header.snapshot_bytes + 64
    for at in range(64, begin, 5):
        path.write_bytes(good[:at] + bytes([good[at] ^ 16]) + good[at + 1 :])
        with pytest.raises(LedgerError, match="damaged snapshot"):
            read_ledger(path)
    for cut in (65, 200, begin - 1):
        path.write_bytes(good[:cut])
        with pytest.raises(LedgerError, match="damaged snapshot"):
            read_ledger(path)
    path.write_bytes(good[:begin] + old[-64:] + good[begin + 64 :])
    with pytest.raises(LedgerError, match="record 0 was durable"):
        read_ledger(path)


def test_killed_publishers_never_outrun_a_ledger_that_is_rewritten_all_the_time():
    run = [sys.executable, "-m", "tools.verification.kill_test", "--rounds", "40", "--rewrite", "8"]
    good = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "40 kills" in good.stdout


@pytest.mark.parametrize("size", [1, 7, 64, 100, 4096])
@pytest.mark.usefixtures("often")
def test_how_the_bytes_arrive_does_not_matter(path, monkeypatch, size):
    with Ledger(path, ceilings=Ceilings(3)) as ledger:
        ledger.reserve([ask(index) for index in range(12)], 19_700)
        monkeypatch.setattr(writer, "_TOO_MANY_RECORDS", 1000)
        for index in range(12, 15):
            ledger.reserve([ask(index)], 19_700)
    for name, data in (
        ("whole", path.read_bytes()),
        ("torn", path.read_bytes()[:-9]),
    ):
        whole = Book([data])
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        pieces[1:1] = [b""]
        ragged = Book(pieces)
        assert (ragged.header, ragged.days.last, ragged.tail.records) == (
            whole.header,
            whole.days.last,
            whole.tail.records,
        ), name
        states = [{d: account.state() for d, account in book.accounts.items()} for book in (whole, ragged)]
        assert states[0] == states[1], name


def test_collection_of_garbage_stays_as_it_was(path):
    assert gc.isenabled()
    read_ledger(path)
    assert gc.isenabled()
    gc.disable()
    try:
        read_ledger(path)
        assert not gc.isenabled()
    finally:
        gc.enable()
