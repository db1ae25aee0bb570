"""No memory, no disk, a disk that cannot be written: the sidecar stops or counts what it drops; the ledger holds."""

import os
import resource
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request
from eyestream.errors import LedgerError
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams import StreamKey
from eyestream.wire.release import decode_private
from tests.product.guarantee.scarce import CHUNKS, EPSILON, in_child, work
from tests.rigs.payloads import rows_of_a_stranger

KEY = StreamKey("a", "features")
ROWS = rows_of_a_stranger(CHUNKS * 32, 52)


def words_of(rows: np.ndarray) -> set[bytes]:
    """Neighbouring raw values, as they came and as chunks hold them; and one by one as chunks hold them."""
    pairs = {both.tobytes() for rows in (rows, rows.T) for row in rows for both in (row[:2], row[2:4])}
    return pairs | {value.tobytes() for value in rows.astype(np.float64)[:32, :4].ravel()}


WORDS = words_of(ROWS)


def spent(path: Path) -> int:
    """Chunks that the ledger says were released or torn."""
    return sum(odometer.epsilon for odometer in read_ledger(path).odometers.values()) // EPSILON


def goes_on(path: Path) -> bool:
    """Whether the ledger can be opened, and grants a chunk of a new session."""
    with Ledger(path, ceilings=Ceilings()) as ledger:
        mark = ledger.mark(KEY)
        session = 0 if mark is None else mark.session + 1
        [answer] = ledger.reserve([Request(KEY, session, 0, 31, 32, Charge(EPSILON))], 20_000)
    return isinstance(answer, Granted)


def new(path: Path) -> Path:
    create_ledger(path, created=0)
    return path


def breathless(left: int) -> Callable[[], None]:
    """Use up all memory that this process has, and leave it `left` bytes of that and as much of new memory."""

    def take_all() -> None:
        threading.stack_size(1 << 16)
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
        ballast: list[bytearray] = [bytearray(0)] * 200_000
        count = 0
        for block in (1 << 16, 1 << 12, 400):
            try:
                while count < len(ballast):
                    ballast[count] = bytearray(block)
                    count += 1
            except MemoryError:
                pass
        given = 0
        while given < left and count:
            count -= 1
            given += len(ballast[count])
            ballast[count] = ballast[-1]
        held.append(ballast)
        resource.setrlimit(resource.RLIMIT_AS, (size + left, size + left))

    held: list[object] = []
    return take_all


@pytest.mark.long
def test_memory_runs_out_everywhere(tmp_path: Path) -> None:
    """Stepped up from none; in the child's life the failing allocation moves on, until nothing fails."""
    path, published, outcomes = new(tmp_path / "ledger"), 0, Counter[str]()
    for left in [0, *(int(1000 * 1.4**step) for step in range(40))]:
        told = in_child(lambda publish, left=left: work(path, ROWS, publish, breathless(left)), tmp_path)
        published += len(told.published)
        outcomes[told.ended if told.ended != "completed" else f"completed, {len(told.published)} released"] += 1
        assert not any(word in b"".join(told.published) + told.stderr for word in WORDS)
        assert str(float(ROWS[0, 0])).encode() not in told.stderr
        for payload in told.published:
            assert decode_private(payload).values.shape == (52, 32)
        if told.ended == "completed":
            assert told.settled
            assert len(told.published) + told.dropped == CHUNKS
        assert spent(path) >= published
    assert goes_on(path)
    print(outcomes)
    assert outcomes["completed, 4 released"] > 0
    assert outcomes.total() - outcomes["completed, 4 released"] > 10


def limited(size: int) -> None:
    """No file of this process may be longer than `size` bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_file_that_may_not_grow_at_every_length(tmp_path: Path) -> None:
    """Creating it, mending what the life before left, naming the device, each slot: with room for ever more bytes."""
    path, published, outcomes = tmp_path / "ledger", 0, Counter[str]()
    for size in range(0, 64, 21):
        told = in_child(lambda publish, size=size: (limited(size), new(path))[0], tmp_path)
        assert (told.ended, path.exists()) == ("LedgerError", False)
    new(path)
    for room in range(0, 64 * 8, 11):
        size = path.stat().st_size + room
        told = in_child(
            lambda publish, size=size: (limited(size), work(path, ROWS, publish, lambda: None))[1], tmp_path
        )
        published += len(told.published)
        outcomes[f"{told.ended}, {'some' if told.published else 'none'} released"] += 1
        if told.ended == "completed":
            assert told.settled
            assert len(told.published) + told.dropped == CHUNKS
        assert not any(word in b"".join(told.published) + told.stderr for word in WORDS)
        assert spent(path) >= published
    assert outcomes["LedgerError, none released"] > 5  # a torn tail could not be mended
    assert outcomes["completed, none released"] > 5
    assert outcomes["completed, some released"] > 5
    assert read_ledger(path).odometers["a"].unreadable > 5
    assert goes_on(path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, pages: int) -> None:
    """Fill the disk but for `pages` pages."""
    with (place / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                os.write(file.fileno(), bytes(4096))
        except OSError:
            file.truncate(os.fstat(file.fileno()).st_size // 4096 * 4096 - 4096 * pages)


@pytest.mark.long
def test_the_disk_is_full_at_every_step(small_disk: Path, tmp_path: Path) -> None:
    """On a real file system: creating, opening, and releasing until a page more is needed, again and again."""
    path, published, outcomes = small_disk / "ledger", 0, Counter[str]()
    fill(small_disk, 0)
    with pytest.raises(LedgerError, match="No space left on device"):
        new(path)
    assert not path.exists()
    fill(small_disk, 1)
    new(path)
    for pages in (0, 1, 0, 2, 40):
        fill(small_disk, pages)
        for _ in range(14):
            told = in_child(lambda publish: work(path, ROWS, publish, lambda: None), tmp_path)
            published += len(told.published)
            outcomes["full" if told.ended == "LedgerError" or told.dropped else "released"] += 1
            if told.ended == "completed":
                assert told.settled
            assert spent(path) >= published
            assert not any(word in b"".join(told.published) + told.stderr for word in WORDS)
    assert outcomes["full"] > 5
    assert outcomes["released"] > 20
    (small_disk / "ballast").unlink()
    assert goes_on(path)


def test_a_file_system_that_may_only_be_read(small_disk: Path, tmp_path: Path) -> None:
    path = new(small_disk / "ledger")
    assert goes_on(path)
    before = path.read_bytes()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(LedgerError, match="Read-only file system"):
        new(small_disk / "other")
    with pytest.raises(LedgerError, match="cannot open the ledger: Read-only file system"):
        goes_on(path)
    told = in_child(lambda publish: work(path, ROWS, publish, lambda: None), tmp_path)
    assert (told.ended, told.published) == ("LedgerError", [])
    assert spent(path) == 1
    assert path.read_bytes() == before
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert goes_on(path)
