"""The ledger keeps its promises when the disk, the operator or a second process does not keep theirs."""

import errno
import fcntl
import hashlib
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

from eyestream.core.accountant import Announcement
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request, RowMark, Withheld
from eyestream.errors import LedgerError
from eyestream.rim.ledger import file as file_module
from eyestream.rim.ledger import writer as writer_module
from eyestream.rim.ledger.book import MOST_UNSYNCED
from eyestream.rim.ledger.file import LedgerFile
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.ledger.records import RELEASED, Checksum, SlotFields, announced_body, slot_body, waiting
from eyestream.streams import StreamKey

ROOT = Path(__file__).resolve().parents[3]
FREE = Ceilings(window_chunks=4)
KEY = StreamKey("d", "features")
CHARGE = Charge(5, 3)


def ask(index: int, session: int = 1, device: str = "d", charge: Charge = CHARGE) -> Request:
    return Request(StreamKey(device, "features"), session, 32 * index, 32 * index + 31, 32, charge)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger"
    create_ledger(path, created=1_700_000_000)
    return path


def use(path: Path, ceilings: Ceilings = FREE) -> OperatedLedger:
    return OperatedLedger(path, ceilings=ceilings)


def epsilon(path: Path, device: str = "d") -> int:
    odometer = read_ledger(path).odometers.get(device)
    return 0 if odometer is None else odometer.epsilon


def test_a_reservation_survives_and_its_rows_are_gone(path):
    with use(path) as ledger:
        assert ledger.mark(KEY) is None
        assert ledger.reserve([ask(0), ask(1)], 100) == [Granted(ask(0)), Granted(ask(1))]
    with use(path) as ledger:
        assert ledger.mark(KEY) == RowMark(1, 63)
        assert ledger.reserve([ask(1), ask(0, session=0), ask(2)], 100) == [
            Withheld(ask(1), "rows"),
            Withheld(ask(0, session=0), "rows"),
            Granted(ask(2)),
        ]
        odometer = ledger.odometer("d")
    assert (odometer.epsilon, odometer.delta, odometer.released, odometer.withheld) == (15, 9, 3, 0)
    assert read_ledger(path).odometers == {"d": odometer}


def test_devices_have_budgets_of_their_own_and_streams_share_that_of_their_device(path):
    gaze = Request(StreamKey("d", "gaze"), 1, 0, 7, 8, CHARGE)
    with use(path, Ceilings(4, 10)) as ledger:
        answers = ledger.reserve([ask(0), ask(0, device="e"), gaze, ask(1), ask(1, device="e")], 100)
    assert [type(answer) for answer in answers] == [Granted, Granted, Granted, Withheld, Granted]
    assert answers[3].obstacle == "window"


def test_a_stream_may_have_lower_ceilings_of_its_own(path):
    with Ledger(path, ceilings=Ceilings(4, streams={"features": Ceilings(session=5)})) as ledger:
        gaze = [Request(StreamKey("d", "gaze"), 1, 8 * i, 8 * i + 7, 8, CHARGE) for i in range(3)]
        answers = ledger.reserve([ask(0), *gaze, ask(1)], 100)
    assert [type(answer) for answer in answers] == [Granted] * 4 + [Withheld]
    assert answers[4].obstacle == "session"


def test_the_window_goes_on_after_a_restart(path):
    ceilings = Ceilings(4, 10)
    kinds = []
    for index in range(9):
        with use(path, ceilings) as ledger:
            kinds += [type(answer) is Granted for answer in ledger.reserve([ask(index, session=index)], 100)]
    assert kinds == [True, True, False, False, True, True, False, False, True]


def test_another_chunk_length_needs_a_session_and_a_full_window(path):
    with use(path) as ledger:
        ledger.reserve([ask(0)], 100)

    def wide(session: int, index: int) -> Request:
        return Request(KEY, session, 64 * index, 64 * index + 63, 64, CHARGE)

    with use(path) as ledger:
        assert ledger.reserve([wide(1, 1)], 100) == [Withheld(wide(1, 1), "change")]
        assert [type(a) for a in ledger.reserve([wide(2, i) for i in range(2)], 100)] == [Withheld] * 2
    with use(path) as ledger:
        answers = ledger.reserve([wide(2, i) for i in range(2, 5)], 100)
    assert [type(answer) for answer in answers] == [Withheld, Withheld, Granted]


def test_a_stream_that_changes_inside_one_call_is_read_as_it_was_written(path):
    """Its announcement must not get in front of slots that were taken under another."""
    narrow = [Request(KEY, 2, 16 * i, 16 * i + 15, 16, CHARGE) for i in range(9)]
    with use(path) as ledger:
        answers = ledger.reserve([ask(0), ask(1), *narrow, ask(0, device="e")], 100)
        odometers = {device: ledger.odometer(device) for device in "de"}
    assert [type(a) for a in answers] == [Granted] * 2 + [Withheld] * 8 + [Granted] * 2
    assert read_ledger(path).odometers == odometers


def test_a_refused_chunk_leaves_no_trace(path):
    with use(path) as ledger:
        ledger.reserve([ask(3)], 100)
        before = path.read_bytes()
        ledger.reserve([ask(3), ask(0)], 100)
    assert path.read_bytes() == before


def test_a_name_that_cannot_be_one_is_a_mistake_and_changes_nothing(path):
    with use(path) as ledger:
        with pytest.raises(ValueError, match="names"):
            ledger.reserve([ask(0, device="a/b")], 100)
        assert ledger.reserve([ask(0)], 100) == [Granted(ask(0))]


def test_a_long_list_of_requests_is_cut_and_answered_in_order(path):
    requests = [ask(i) for i in range(3000)] + [ask(0, device=f"{i:064}") for i in range(1500)]
    with use(path) as ledger:
        assert ledger.reserve(requests, 100) == [Granted(request) for request in requests]
    assert (epsilon(path), epsilon(path, f"{7:064}")) == (15000, 5)


def test_the_file_is_private_and_begins_with_its_name(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes()[:8] == b"EYELEDGR"


@pytest.mark.parametrize("mode", [0o660, 0o606, 0o666, 0o620, 0o602, 0o644, 0o640, 0o604, 0o610, 0o601])
def test_a_ledger_that_others_can_read_or_write_is_not_opened(path, mode):
    """Client ids follow from its id, and who knows one can take the link's place at the broker."""
    path.chmod(mode)
    with pytest.raises(LedgerError, match=rf"others than its owner can read or write the ledger; chmod 600 {path}"):
        use(path)
    assert read_ledger(path).odometers == {}
    for private in (0o600, 0o700):
        path.chmod(private)
        use(path).close()


def test_a_ledger_that_everybody_can_replace_is_not_opened(path):
    for mode, refused in ((0o777, True), (0o703, True), (0o1777, False), (0o755, False), (0o775, False)):
        path.parent.chmod(mode)
        if refused:
            with pytest.raises(LedgerError, match=rf"everybody can replace the ledger.*chmod o-w {path.parent}"):
                use(path)
        else:
            use(path).close()


def test_a_ledger_is_never_overwritten(path):
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="exists already"):
        create_ledger(path, created=0)
    assert path.read_bytes() == before


def test_a_missing_ledger_says_how_to_make_one(tmp_path):
    for attempt in (use, read_ledger):
        with pytest.raises(LedgerError, match=r"put it back.*eyestream budget --new.*eyestream init"):
            attempt(tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda data: b"", "is not a ledger"),
        (lambda data: data[:63], "is not a ledger"),
        (lambda data: b"SQLite format 3\0" + data[16:], "is not a ledger"),
        (lambda data: data[:20] + b"\1" + data[21:], "damaged header"),
        (lambda data: data[:64] + bytes(64) + data[128:], "record 0 was durable"),
    ],
)
def test_an_unreadable_ledger_is_refused_and_stays_as_it_is(path, change, what):
    with use(path) as ledger:
        ledger.reserve([ask(0)], 100)
    path.write_bytes(change(path.read_bytes()))
    before = path.read_bytes()
    for attempt in (use, read_ledger):
        with pytest.raises(LedgerError, match=what):
            attempt(path)
    assert path.read_bytes() == before


def test_records_of_another_ledger_do_not_fit(path, tmp_path):
    other = tmp_path / "other"
    create_ledger(other, created=0)
    for each, device in ((path, "d"), (other, "e")):
        with use(each) as ledger:
            ledger.reserve([ask(0, device=device)], 100)
            ledger.reserve([ask(1, device=device)], 100)
    data, foreign = path.read_bytes(), other.read_bytes()
    path.write_bytes(data[:64] + foreign[64:128] + data[128:])
    with pytest.raises(LedgerError, match="record 0 was durable"):
        use(path)
    path.write_bytes(data[:-64] + foreign[-64:])
    assert epsilon(path) == 10
    assert read_ledger(path).odometers["d"].unreadable == 1


@pytest.fixture
def ten_records(path):
    """The name of a device, and nine slots of it, each durable before the next."""
    with use(path) as ledger:
        for index in range(9):
            ledger.reserve([ask(index)], 100)
    return path


def refused(path: Path, data: bytes) -> bool:
    path.write_bytes(data)
    try:
        read_ledger(path)
    except LedgerError as error:
        assert "is damaged: " in str(error) and "eyestream budget --new" in str(error)  # noqa: PT018, PT017
        return True
    return False


@pytest.mark.parametrize("length", [1, 3, 63, 64, 65, 127, 128, 200, 320])
def test_what_is_cut_out_before_the_last_record_is_noticed(ten_records, length):
    good = ten_records.read_bytes()
    for start in range(64, len(good) - 64 - length + 1, 7 if length % 64 else 1):
        assert refused(ten_records, good[:start] + good[start + length :]), start


def test_an_end_cut_off_is_not_noticed_as_documented(ten_records):
    good = ten_records.read_bytes()
    assert not refused(ten_records, good[:-64])
    assert epsilon(ten_records) == 8 * 5
    assert not refused(ten_records, good[:-65])
    assert epsilon(ten_records) == 8 * 5


@pytest.mark.parametrize("length", [1, 40, 64, 130])
def test_what_is_put_in_is_noticed(ten_records, length):
    good = ten_records.read_bytes()
    for start in range(64, len(good) - 64, 9):
        for extra in (bytes(length), good[100 : 100 + length]):
            assert refused(ten_records, good[:start] + extra + good[start:]), start


def test_records_that_are_moved_or_doubled_are_noticed(ten_records):
    good = ten_records.read_bytes()
    records = [good[start : start + 64] for start in range(0, len(good), 64)]
    for one in range(1, 11):
        for other in range(one + 1, 11):
            moved = list(records)
            moved[one], moved[other] = moved[other], moved[one]
            assert refused(ten_records, b"".join(moved))
        assert refused(ten_records, good + records[one])


def test_a_symbolic_link_is_not_followed(path):
    link = path.with_name("link")
    link.symlink_to(path)
    with pytest.raises(LedgerError, match="cannot open"):
        use(link)
    path.with_name("dangling").symlink_to(path.with_name("elsewhere"))
    with pytest.raises(LedgerError, match="exists already"):
        create_ledger(path.with_name("dangling"), created=0)


def test_a_second_user_is_refused_also_in_another_process(path):
    program = (
        "import sys; from pathlib import Path; from eyestream.rim.ledger.ledger import Ledger; "
        "from eyestream.core.charge import Ceilings; Ledger(Path(sys.argv[1]), ceilings=Ceilings())"
    )
    with use(path):
        with pytest.raises(LedgerError, match="in use by another process"):
            use(path)
        second = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
        assert "in use by another process" in second.stderr
        assert read_ledger(path).header.created == 1_700_000_000
    use(path).close()


def test_a_forked_child_cannot_spend(path):
    with use(path) as ledger:
        child = os.fork()
        if child == 0:
            try:
                ledger.reserve([ask(0)], 100)
            except LedgerError:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        ledger.reserve([ask(0)], 100)
    assert epsilon(path) == 5


class FailingFile(LedgerFile):
    """Fails at the step that `fuse` counts down to, for ever after; `error` ENOSPC writes a part first."""

    fuse = 0
    error = errno.EIO
    steps = 0

    def _step(self) -> None:
        FailingFile.steps += 1
        FailingFile.fuse -= 1
        if FailingFile.fuse < 0:
            raise OSError(self.error, os.strerror(self.error))

    def append(self, data: bytes) -> None:
        try:
            self._step()
        except OSError:
            if self.error == errno.ENOSPC:
                super().append(data[: len(data) // 2 + 3])
            raise
        super().append(data)

    def sync(self) -> None:
        self._step()
        super().sync()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_the_disk_fails_at_every_step(path, monkeypatch, error):
    """SQLite's moving failure point; a torn tail of the round before is mended, or not, on the way."""
    monkeypatch.setattr(writer_module, "LedgerFile", FailingFile)
    monkeypatch.setattr(FailingFile, "error", error)
    granted, fuse, completed = 0, 0, False
    session = 0
    while not completed:
        monkeypatch.setattr(FailingFile, "fuse", fuse)
        session += 1
        try:
            with use(path, Ceilings(4, 12)) as ledger:
                for index in range(4):
                    answers = ledger.reserve([ask(index, session), ask(index, session, device=f"e{fuse}")], 100)
                    granted += sum(type(a) is Granted and a.request.key.device == "d" for a in answers)
                completed = True
        except LedgerError:
            pass
        assert epsilon(path) >= granted * CHARGE.epsilon
        fuse += 1
    assert fuse > 5
    monkeypatch.setattr(writer_module, "LedgerFile", LedgerFile)
    with use(path) as ledger:
        assert type(ledger.reserve([ask(0, session + 1)], 100)[0]) is Granted


def test_after_a_failed_sync_nothing_is_tried_again(path, monkeypatch):
    monkeypatch.setattr(writer_module, "LedgerFile", FailingFile)
    monkeypatch.setattr(FailingFile, "fuse", 1000)
    with use(path) as ledger:
        ledger.reserve([ask(0)], 100)
        monkeypatch.setattr(FailingFile, "fuse", 1)  # the append works, its sync fails
        with pytest.raises(LedgerError, match="cannot write the ledger durably"):
            ledger.reserve([ask(1)], 100)
        monkeypatch.setattr(FailingFile, "fuse", 1000)
        steps = FailingFile.steps
        for index in (1, 2):
            with pytest.raises(LedgerError, match="nothing can be reserved any more"):
                ledger.reserve([ask(index)], 100)
        assert FailingFile.steps == steps
    assert epsilon(path) == 10


def test_a_file_that_may_not_grow_stops_the_ledger(path):
    """A real limit of the system, in a child so that it binds nobody else: a part of the record is written."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with use(path) as ledger:
            ledger.reserve([ask(0)], 100)
            size = path.stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 70, size + 70))
            try:
                ledger.reserve([ask(1), ask(2)], 100)
            except LedgerError:
                os._exit(7)
            finally:
                os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert path.stat().st_size % 64 == 6
    assert epsilon(path) == 15
    with use(path) as ledger:
        assert type(ledger.reserve([ask(5, session=2)], 100)[0]) is Granted
    assert path.stat().st_size % 64 == 0
    assert epsilon(path) == 20


def test_what_a_killed_process_left_is_made_durable_before_it_is_built_upon(path, monkeypatch):
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LedgerError, match="make it durable"):
        use(path)
    with pytest.raises(LedgerError, match="cannot create"):
        create_ledger(path.with_name("other"), created=0)
    assert not path.with_name("other").exists()
    monkeypatch.undo()
    use(path).close()


def test_what_is_no_day_is_refused_and_one_past_the_last_is_the_last(path):
    with use(path) as ledger:
        for day in (-1, 2**32):
            with pytest.raises(LedgerError, match="is no day"):
                ledger.begin_day_at(day)
        assert ledger.odometer("d") is None
        assert type(ledger.reserve([ask(0)], 2**40)[0]) is Granted
        assert ledger.odometer("d").day == 2**32 - 1


def test_ceilings_of_streams_are_lowered_and_never_raised(path):
    with Ledger(path, ceilings=Ceilings(4, streams={"features": Ceilings(2, 10)})) as ledger:
        features = (({}, "window"), ({"features": Ceilings(2, 11)}, "window"))
        for higher, named in (*features, ({"features": Ceilings(3, 10)}, "window_chunks")):
            with pytest.raises(ValueError, match=rf"no higher, found .*streams\.features\.{named}\b"):
                ledger.lower(Ceilings(4, streams=higher))
        ledger.lower(Ceilings(4, streams={"features": Ceilings(2, 5), "gaze": Ceilings(session=1)}))
        gaze = Request(StreamKey("d", "gaze"), 1, 0, 7, 8, CHARGE)
        assert [type(answer) for answer in ledger.reserve([ask(0), ask(1), gaze], 100)] == [Granted, Withheld, Withheld]


def test_every_call_waits_for_the_one_before_it(path, monkeypatch):
    """While a reservation is on its way to the disk, nothing is read or changed beside it."""
    on_the_way, go_on = threading.Event(), threading.Event()

    class SlowFile(LedgerFile):
        def sync(self) -> None:
            on_the_way.set()
            go_on.wait(20)
            super().sync()

    monkeypatch.setattr(writer_module, "LedgerFile", SlowFile)
    with use(path) as ledger:
        done: list[str] = []
        calls = {
            "lower": lambda: ledger.lower(Ceilings(4, 5)),
            "mark": lambda: ledger.mark(KEY),
            "odometer": lambda: ledger.odometer("d"),
            "header": lambda: ledger.header,
            "unsettled": lambda: ledger.unsettled(KEY),
            "begin_day_at": lambda: ledger.begin_day_at(100),
        }
        first = threading.Thread(target=lambda: (ledger.reserve([ask(0)], 100), done.append("reserve")))
        first.start()
        assert on_the_way.wait(20)
        others = [
            threading.Thread(target=lambda name=name, call=call: (call(), done.append(name)))
            for name, call in calls.items()
        ]
        for thread in others:
            thread.start()
        time.sleep(0.2)
        assert done == []
        go_on.set()
        for thread in [first, *others]:
            thread.join(20)
        assert (set(done), len(done)) == ({"reserve", *calls}, len(calls) + 1)


def test_ceilings_are_lowered_and_never_raised(path):
    with use(path, Ceilings(4, 15)) as ledger:
        for higher in (Ceilings(4, 16), Ceilings(4), Ceilings(5, 15), Ceilings()):
            with pytest.raises(ValueError, match="no higher"):
                ledger.lower(higher)
        ledger.lower(Ceilings(4, 5, session=5))
        assert [type(answer) for answer in ledger.reserve([ask(0), ask(1)], 100)] == [Granted, Withheld]


def test_a_version_that_this_program_does_not_read(path):
    data = path.read_bytes()[:56].replace(b"EYELEDGR\3", b"EYELEDGR\1")
    path.write_bytes(data + hashlib.blake2b(data, digest_size=8).digest())
    with pytest.raises(
        LedgerError, match="of format 1, and this program reads format 3; start the eyestream that wrote it"
    ):
        use(path)


def test_a_record_of_a_stream_that_has_no_name_is_refused(path):
    """Names are durable before anything is written under them."""
    with use(path) as ledger:
        ledger.reserve([ask(0)], 100)
        checksum = Checksum(ledger.header.file_key)
    good = path.read_bytes()
    slot = slot_body(SlotFields(RELEASED, 1, 7, 1, 0, 32, 100, 0, 0, 9, 0))
    announced = announced_body(7, Announcement(32, 4, 0, 1, 5, 0))
    for body in (slot, announced):
        path.write_bytes(good + checksum.complete(body, 3))
        with pytest.raises(LedgerError, match="stream 7, which has no name"):
            use(path)


def test_a_record_of_a_stream_whose_name_was_torn_is_spent_by_all(path):
    with use(path) as ledger:
        ledger.reserve([ask(0)], 100)
        checksum = Checksum(ledger.header.file_key)
    announced = waiting(announced_body(1, Announcement(32, 4, 0, 1, 9, 0)), 1)  # its name before it was not durable
    with path.open("ab") as file:
        file.write(bytes(64) + checksum.complete(announced, 4))
    assert epsilon(path) == 5 + 5 + 5
    assert read_ledger(path).odometers["d"].unreadable == 2
    for _ in range(2):
        with use(path) as ledger:
            assert ledger.odometer("d").epsilon == 15
            assert ledger.odometer("e") is None or ledger.odometer("e").epsilon == 5
            ledger.reserve([ask(0, device="e")], 100)


def test_where_a_ledger_cannot_be_made_or_read(path, monkeypatch):
    with pytest.raises(LedgerError, match="cannot create the ledger: No such file or directory"):
        create_ledger(path.parent / "none" / "ledger", created=0)
    for attempt in (use, read_ledger):
        with monkeypatch.context() as patch:
            patch.setattr(os, "read", failing(errno.EIO))
            with pytest.raises(LedgerError, match="cannot read the ledger: Input/output error"):
                attempt(path)
    with use(path) as ledger:  # neither attempt kept the lock
        assert type(ledger.reserve([ask(0)], 100)[0]) is Granted


def failing(number):
    def fail(*given):
        raise OSError(number, os.strerror(number))

    return fail


def test_a_part_written_is_a_full_disk(path, monkeypatch):
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
        with pytest.raises(LedgerError, match="cannot create the ledger: No space left on device"):
            create_ledger(path.with_name("other"), created=0)
        assert not path.with_name("other").exists()
        with use(path) as ledger, pytest.raises(LedgerError, match="durably: No space left on device"):
            ledger.reserve([ask(0)], 100)
    with use(path) as ledger:
        assert type(ledger.reserve([ask(0)], 100)[0]) is Granted


def test_an_unknown_kind_of_record_and_a_closed_ledger_are_refused(path):
    with use(path) as ledger:
        ledger.reserve([ask(0)], 100)
        checksum, count = Checksum(ledger.header.file_key), 3
    ledger.close()
    with pytest.raises(LedgerError, match="nothing can be reserved any more"):
        ledger.reserve([ask(1)], 100)
    body = slot_body(SlotFields(9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    with path.open("ab") as file:
        file.write(checksum.complete(body, count))
    with pytest.raises(LedgerError, match="kind 9"):
        use(path)


def test_a_long_stretch_of_damage_is_no_torn_tail(path):
    with use(path) as ledger:
        ledger.reserve([ask(0)], 100)
    good = path.read_bytes()
    path.write_bytes(good + bytes(64 * MOST_UNSYNCED))
    assert epsilon(path) == 5 * (1 + MOST_UNSYNCED)
    path.write_bytes(good + bytes(64 * MOST_UNSYNCED + 1))
    with pytest.raises(LedgerError, match="more than a torn append"):
        use(path)


def damage(path: Path, record: int) -> None:
    """One byte of a record, counted from the end: -1 is the last."""
    data = bytearray(path.read_bytes())
    data[len(data) + 64 * record + 9] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(("known", "spent", "unreadable"), [(1, 5, 0), (2, 10, 1)])
def test_a_damaged_end_under_which_nothing_was_released_is_cut_off(path, known, spent, unreadable):
    """So says who was told of `known` chunks; of more, the damage counts as before."""
    for index in range(2):
        with use(path) as ledger:
            ledger.reserve([ask(index)], 100)
    damage(path, -1)
    with Ledger(path, ceilings=FREE, suffices=lambda book: book.released >= known) as ledger:
        odometer = ledger.odometer("d")
        again = ledger.reserve([ask(1)], 100)
    assert (odometer.epsilon, odometer.unreadable) == (spent, unreadable)
    assert isinstance(again[0], Withheld if unreadable else Granted)
    assert epsilon(path) == spent + (0 if unreadable else 5), "and for every later reading"


def test_damage_before_a_whole_record_is_never_cut_off(path):
    """What the whole one says may rest on it."""
    with use(path) as ledger:
        ledger.reserve([ask(0), ask(1)], 100)
    damage(path, -2)
    with Ledger(path, ceilings=FREE, suffices=lambda book: True) as ledger:
        odometer = ledger.odometer("d")
    assert (odometer.epsilon, odometer.unreadable) == (10, 1)


def test_a_withheld_slot_waits_for_no_sync_and_a_released_one_does(path, monkeypatch):
    syncs = []
    monkeypatch.setattr(LedgerFile, "sync", lambda self: syncs.append(1))
    with use(path, Ceilings(4, 5)) as ledger:
        ledger.reserve([ask(0)], 100)
        first = len(syncs)
        ledger.reserve([ask(1)], 100)
        assert len(syncs) == first == 2  # the device's name, then its first slot
        ledger.reserve([ask(i, device="e") for i in range(4)] + [ask(i) for i in range(2, 5)], 100)
        assert len(syncs) == first + 2


def test_a_copy_put_back_forgets_as_documented(path):
    """The limit that the ledger's docstring states."""
    with use(path) as ledger:
        ledger.reserve([ask(0)], 100)
        copy = path.read_bytes()
        ledger.reserve([ask(1)], 100)
    path.write_bytes(copy)
    assert epsilon(path) == 5


@pytest.mark.long
def test_killed_publishers_never_outrun_the_ledger():
    run = [sys.executable, "-m", "tools.verification.kill_test", "--rounds", "50"]
    good = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "50 kills" in good.stdout
    for _ in range(5):  # on a busy machine hardly a kill comes between the two
        late = subprocess.run([*run, "--fault", "late"], cwd=ROOT, capture_output=True, text=True, check=False)
        if late.returncode:
            break
    assert late.returncode == 1
    assert "published and not in the ledger" in late.stdout


@pytest.mark.parametrize(("fault", "synced"), [(errno.ENOTSUP, True), (errno.EIO, False)])
def test_a_volume_that_knows_no_full_sync_is_synced_as_others_are(path, monkeypatch, fault, synced):
    """As on macOS: only that the command is unknown there is taken for an answer."""
    asked, plainly = [], []

    def fcntl_of_macos(fd, command):
        asked.append(command)
        raise OSError(fault, os.strerror(fault))

    system = types.SimpleNamespace(F_FULLFSYNC=51, fcntl=fcntl_of_macos, flock=fcntl.flock, LOCK_EX=2, LOCK_NB=4)
    monkeypatch.setattr(file_module, "fcntl", system)
    monkeypatch.setattr(os, "fsync", plainly.append)
    if synced:
        LedgerFile(path).close()
    else:
        with pytest.raises(LedgerError, match="durable"):
            LedgerFile(path)
    assert set(asked) == {51}
    assert bool(plainly) == synced
