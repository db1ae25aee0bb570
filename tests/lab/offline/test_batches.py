"""A batch on processes and on a cluster: each recording is released once, whoever is killed, and booked as it was."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream_lab.embedded import free_port
from eyestream_lab.simulation.people import load_statistics, simulate_person
from eyestream_lab.workers import workers
from eyestream_lab.workshop import once

CALIBRATION = "everyday-cfpa-32"


def corpus(folder: Path, count: int) -> list[Path]:
    """Recordings of four chunks."""
    statistics, paths, names = load_statistics(), [], calibrations.load(CALIBRATION).names
    for number in range(count):
        rows = simulate_person(statistics, 128, np.random.default_rng(number)).astype(np.float64)
        paths.append(folder / f"r{number}.npz")
        recordings.save(Recording(np.arange(128) / 2.0, rows, names), paths[-1])
    return paths


def command(paths: list[Path], out: Path, *more: str) -> list[str]:
    given = ["--calibration", CALIBRATION, "--epsilon", "4.8", "--out", str(out)]
    return ["privatize", *map(str, paths), *given, *more]


def test_the_first_one_wins_and_leaves_nothing_of_the_other(tmp_path: Path) -> None:
    place = tmp_path / "place"

    def slow(folder: Path) -> None:
        (folder / "a").write_text("second")
        once(place, lambda own: (own / "a").write_text("first"))

    once(place, slow)
    once(place, lambda own: (own / "a").write_text("third"))
    assert (place / "a").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_what_is_half_done_is_not_there(tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        (folder / "a").write_text("x")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        once(tmp_path / "place", fails)
    assert list(tmp_path.iterdir()) == []


def test_processes_release_each_recording_and_book_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths, out, ledger = corpus(tmp_path, 3), tmp_path / "out", tmp_path / "ledger"
    create_ledger(ledger, created=0)
    main(command(paths, out, "--jobs", "2", "--ledger", str(ledger), "--device", "d"))
    assert sorted(path.name for path in out.iterdir()) == sorted(
        name for path in paths for name in (path.name, f"{path.name}.claim.json")
    )
    for path in paths:
        assert not np.array_equal(recordings.load(out / path.name).features, recordings.load(path).features)
    chunks = sum(json.loads((out / f"{path.name}.claim.json").read_text())["chunks"] for path in paths)
    assert read_ledger(ledger).odometers["d"].released == chunks == 12
    assert capsys.readouterr().out.count(": 4 chunks, epsilon 19.2") == 3


def test_an_interrupted_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    """What is there keeps its bytes; nothing is at its target before all is done; another run is refused."""
    paths, out = corpus(tmp_path, 3), tmp_path / "out"
    out.mkdir()
    limit = threading.Event()

    def stop_after_one() -> None:
        whole = out / ".release.partial" / "whole"
        while not limit.is_set():
            if whole.exists() and any(not path.name.startswith(".") for path in whole.iterdir()):
                child.send_signal(signal.SIGKILL)
                return
            time.sleep(0.001)

    child = subprocess.Popen(
        [sys.executable, "-c", "from eyestream.cli.main import main; main()", *command(paths, out, "--jobs", "1")],
        start_new_session=True,
    )
    watch = threading.Thread(target=stop_after_one)
    watch.start()
    child.wait(60)
    limit.set()
    watch.join()
    os.killpg(child.pid, signal.SIGKILL) if _alive(child.pid) else None
    whole = out / ".release.partial" / "whole"
    there = {path.name: (path / paths[int(path.name)].name).read_bytes() for path in whole.glob("[0-9]")}
    assert there
    assert list(out.glob("*.npz")) == []
    with pytest.raises(SystemExit):
        main(command(paths[:2], out, "--jobs", "1"))
    main(command(paths, out, "--jobs", "1"))
    assert len(list(out.glob("r*.npz"))) == 3
    assert all((out / f"r{name}.npz").read_bytes() == data for name, data in there.items())
    assert not (out / ".release.partial").exists()


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_that_was_moving_goes_on_moving_and_releases_nothing_again(tmp_path: Path) -> None:
    paths, out = corpus(tmp_path, 2), tmp_path / "out"
    main(command(paths, out, "--jobs", "1"))
    first = (out / "r0.npz").read_bytes()
    real, moved = os.replace, list[Path]()

    def replace(source: Path, target: Path) -> None:
        if len(moved) == 2:
            raise KeyboardInterrupt
        moved.append(Path(target))
        real(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eyestream_lab.recordings.batch.os.replace", replace)
        with pytest.raises(SystemExit):
            main(command(paths, out, "--jobs", "1"))
    second = (out / "r0.npz").read_bytes()
    assert second != first
    main(command(paths, out, "--jobs", "1"))
    assert (out / "r0.npz").read_bytes() == second, "released once"


class Cluster:
    """A Dask scheduler and workers, each a process in its own session."""

    def __init__(self, folder: Path, count: int) -> None:
        self.url = f"tcp://127.0.0.1:{free_port()}"
        self._folder = folder
        here = ["--host", "127.0.0.1", "--port", self.url.rpartition(":")[2], "--no-dashboard", "--no-show"]
        self._scheduler = self._start("distributed.cli.dask_scheduler", *here)
        self.workers = [self._worker() for _ in range(count)]

    def _start(self, module: str, *given: str) -> "subprocess.Popen[bytes]":
        code = f"from {module} import main; main()"
        with (self._folder / "dask.log").open("ab") as log:
            return subprocess.Popen([sys.executable, "-c", code, *given], stdout=log, stderr=log, cwd=self._folder)

    def _worker(self) -> "subprocess.Popen[bytes]":
        given = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self._folder)]
        return self._start("distributed.cli.dask_worker", self.url, "--host", "127.0.0.1", *given)

    def kill(self, number: int) -> None:
        """One is gone; another takes its place."""
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self._worker()

    def stop(self) -> None:
        for process in (*self.workers, self._scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "dask").mkdir()
    made = Cluster(tmp_path / "dask", 2)
    yield made
    made.stop()


@pytest.mark.needs("dask")
@pytest.mark.long
def test_three_workers_of_a_cluster_are_killed_and_each_recording_is_released_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Whatever was there, under whichever name, was there with one byte string; the ledger has each chunk once."""
    paths, out, ledger = corpus(tmp_path, 40), tmp_path / "out", tmp_path / "ledger"
    create_ledger(ledger, created=0)
    seen: dict[str, set[bytes]] = {path.name: set() for path in paths}
    whole, ended, kills = out / ".release.partial" / "whole", threading.Event(), list[int]()

    def look() -> int:
        count = 0
        for number, path in enumerate(paths):
            for place in (whole / str(number) / path.name, out / path.name):
                if place.exists():
                    count += 1
                    seen[path.name].add(place.read_bytes())
        return count

    def kill() -> None:
        while not ended.is_set():
            if look() > 5 * (len(kills) + 1) and len(kills) < 3:
                cluster.kill(len(kills) % 2)
                kills.append(1)
            time.sleep(0.02)

    watch = threading.Thread(target=kill)
    watch.start()
    try:
        main(command(paths, out, "--cluster", cluster.url, "--ledger", str(ledger), "--device", "d"))
    finally:
        ended.set()
        watch.join()
    look()
    assert len(kills) == 3
    assert {len(payloads) for payloads in seen.values()} == {1}
    assert read_ledger(ledger).odometers["d"].released == 4 * len(paths)


@pytest.mark.needs("dask")
@pytest.mark.long
def test_what_tasks_share_comes_once_and_again_after_all_who_had_it_are_killed(cluster: Cluster) -> None:
    shared = np.zeros(1_500_000)
    with workers(cluster.url, 1, shared) as several:
        answers = several.done(slow, [(number,) for number in range(12)])
        found = dict([next(answers)])
        for number in range(2):
            cluster.kill(number)
        found |= dict(answers)
    assert found == {number: (len(shared), number) for number in range(12)}


@pytest.mark.needs("dask")
@pytest.mark.long
def test_a_cluster_does_tasks_in_their_order(tmp_path: Path) -> None:
    """Neighbours share what is made for the first of them; and how long the rest takes is told early."""
    one = Cluster(tmp_path, 1)
    try:
        with workers(one.url, 1, 0.0) as several:
            began = dict(several.done(begins, [()] * 20))
    finally:
        one.stop()
    assert sorted(began, key=began.__getitem__) == list(range(20))


def begins(shared: float) -> float:
    time.sleep(0.02)
    return time.monotonic()


def slow(shared: NDArray[np.float64], number: int) -> tuple[int, int]:
    time.sleep(0.2)
    return len(shared), number


def ends_its_process(shared: int) -> None:
    os._exit(shared)


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_give_what_is_shared_first(jobs: int) -> None:
    with workers(None, jobs, np.zeros(5)) as several:
        assert dict(several.done(slow, [(3,), (4,)])) == {0: (5, 3), 1: (5, 4)}


def test_a_process_that_is_ended_is_told() -> None:
    with pytest.raises(ConfigError, match="a process was ended from outside"), workers(None, 2, 3) as several:
        list(several.done(ends_its_process, [()]))


@pytest.mark.needs("dask")
def test_a_scheduler_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(command(corpus(tmp_path, 1), tmp_path / "out", "--cluster", "nowhere"))
    assert "--cluster nowhere: no Dask scheduler answers" in capsys.readouterr().err
