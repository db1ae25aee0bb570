"""Send rows that can be recognised through the real commands, and search everything that they write.

    python -m tools.verification.canary --quick
    python -m tools.verification.canary --bytes 100000000

Every value a tracker sends is a canary (`tainting/canary.py`). `eyestream run` lives many lives (`tainting/lives.py`):
refused rows, a budget that runs out, errors whose message tells raw values, a full disk, SIGTERM, SIGINT, SIGABRT,
SIGSEGV. Its sources of gaze live such lives too (`tainting/gaze_lives.py`), LSL's where there is the loopback alone:
`unshare -rn sh -c 'ip link set lo up; exec python -m tools.verification.canary'`. `privatize`, `replay` and `demo` work
on canaries too. Searched is every byte that the sidecar handed to the system (strace: sockets, files, their names,
stdout, stderr), what passed on its links, /metrics, and every file it left, core files too. The long form needs strace,
and goes on until so many bytes were searched; the quick one lives two lives with gaze, and does
without strace where there is none. Controls: the search finds what the tracker sent, what the sidecar received, and
what a process under the same capture writes on purpose. The last line sums up; exit code 0 only when all holds.
"""

import argparse
import dataclasses
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from eyestream.rim.files import calibrations, recordings
from eyestream_lab.embedded import free_port
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.tainting.canary import FORMS, Canary
from tests.rigs.tainting.capture import Process, has_strace
from tests.rigs.tainting.gaze_lives import (
    BRIEF_LIVES,
    GAZE_LIVES,
    GazeLife,
    gaze_canary,
    gaze_live,
    in_own_namespace,
)
from tests.rigs.tainting.lives import LIVES, PLAIN, Ended, Life, live
from tests.rigs.tainting.tracker import recording

BEGAN = time.monotonic()
LIVES_AT_ONCE = 4
BROKER = ("log_type none", "max_inflight_messages 1000")
BULK_DEVICES = 8
CHUNKS_A_LIFE = 400
BYTES_A_CHUNK = 64 * 52 * 4


@dataclasses.dataclass
class Tally:
    """What was searched, by where it was caught, and what was found."""

    searched: Counter[str] = dataclasses.field(default_factory=Counter)
    hits: Counter[str] = dataclasses.field(default_factory=Counter)
    controls: Counter[str] = dataclasses.field(default_factory=Counter)
    chunks: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)

    def search(self, canary: Canary, where: str, what: str, data: bytes) -> None:
        """Nothing may be found in `data`."""
        self.searched[what] += len(data)
        found = canary.hits(data)
        self.hits += found
        if found:
            self.wrong.append(f"{where}: {what} has {dict(found)}")

    def control(self, canary: Canary, where: str, what: str, data: bytes, least: int) -> None:
        """At least `least` hits must be found in `data`."""
        found = canary.hits(data).total()
        self.controls[what] += found
        if found < least:
            self.wrong.append(f"{where}: the search finds {found} of {least} canaries in {what}")


def note(tally: Tally, canary: Canary, life: Life | GazeLife, ended: Ended, least: int = 32 * 51) -> None:
    """Search all that a life has written."""
    for what, read in ended.written.items():
        data = b"".join(read())
        tally.search(canary, life.name, what, data)
    for what, data in ended.controls.items():
        tally.control(canary, life.name, what, data, least=least)
    tally.chunks += ended.released
    tally.wrong += [f"{life.name}: {fault}" for fault in ended.wrong]
    seconds = time.monotonic() - BEGAN
    print(f"{life.name}: {ended.released} chunks; {tally.searched.total()} bytes searched, {seconds:.0f} s", flush=True)


def command(tally: Tally, canary: Canary, folder: Path, code: str, *words: object, ends: int = 0) -> Process:
    """A finished command; what it says and leaves is searched. Its sockets are not: they are a tracker's."""
    folder.mkdir()
    process = Process([sys.executable, "-c", code, *map(str, words)], folder, trace=False)
    status, dumped = process.end(60)
    if status != ends or dumped:
        tally.wrong.append(f"{folder.name}: ended with {status}: {process.said()[-300:]}")
    tally.search(canary, folder.name, "files", b"".join(process.left()))
    return process


def other_commands(tally: Tally, canary: Canary, folder: Path, port: int) -> None:
    """`privatize`, `replay` and `demo`, with and without a mistake in what they read."""
    names = calibrations.load("everyday-klt-32").names
    recording(canary, names, folder / "rows.npz")
    recording(canary, names, folder / "rows.csv")
    lines = (folder / "rows.csv").read_text().splitlines(keepends=True)
    (folder / "headless.csv").write_text("".join(lines[1:]))
    (folder / "broken.csv").write_text("".join(lines[:4]) + lines[5].replace(".", ".x", 3))
    out = folder / "privatize" / "out"
    known = ("--calibration", "everyday-klt-32", "--epsilon", "4.8", "--out")
    command(tally, canary, folder / "privatize", PLAIN, "privatize", folder / "rows.npz", *known, out)
    released = recordings.load(out / "rows.npz").features.astype(np.float32)  # in pairs: chance hits single values
    tally.search(canary, "privatize", "released arrays", released.tobytes())
    for source in ("headless", "broken"):
        words = ("privatize", folder / f"{source}.csv", *known, folder / "none")
        command(tally, canary, folder / f"privatize {source}", PLAIN, *words, ends=2)
    there = ("--broker", f"mqtt://127.0.0.1:{port}", "--device", "hmd-0", "--speed", "max")
    command(tally, canary, folder / "replay", PLAIN, "replay", folder / "rows.csv", *there)
    command(tally, canary, folder / "replay broken", PLAIN, "replay", folder / "broken.csv", *there, ends=2)
    person = (
        "import numpy as np\nimport eyestream_lab.demo.gaze as demo\nfrom eyestream.gaze.samples import Samples\n"
        f"rows = np.load({str(folder / 'gaze.npy')!r})\n"
        "def gaze(person, rate_hz, seconds, rng, start_s=0.0):\n"
        "    x, y, pupil = np.resize(rows, (int(seconds * rate_hz), 5)).T[:3]\n"
        "    return Samples.of(start_s + np.arange(len(x)) / rate_hz, x, y, pupil), None\n"
        "demo.gaze_of = gaze\n"
    )
    np.save(folder / "gaze.npy", gaze_canary().rows.astype(np.float64))
    shown = command(tally, gaze_canary(), folder / "demo", person + PLAIN, "demo", "--seconds", 2, "--speed", 80)
    if not re.search(r"came out +[1-9]\d* private chunk", shown.out.read_text()):
        tally.wrong.append("demo: released nothing")


def gaze_lives(tally: Tally, lives: Sequence[GazeLife], folder: Path, port: int, *, trace: bool) -> None:
    """Lives of sources of gaze."""
    canary = gaze_canary()
    for index, life in enumerate(lives):
        if life.kind == "lsl" and not in_own_namespace():
            print("gaze by lsl: left out, there are more interfaces than the loopback")
            continue
        ended = gaze_live(life, folder / f"gaze-{index}", port, canary, trace=trace)
        note(tally, canary, life, ended, least=64)


def capture_control(tally: Tally, canary: Canary, folder: Path, *, trace: bool) -> None:
    """A process that leaks in every form and in every way: the capture must see each."""
    folder.mkdir()
    np.save(folder.parent / "rows.npy", canary.rows[:8])
    code = (
        "import os, socket, sys\nimport numpy as np\n"
        f"rows = np.load({str(folder.parent / 'rows.npy')!r})\n"
        "a, b = socket.socketpair()\n"
        "a.sendall(rows.astype('>f4').tobytes())\n"
        "open('gone', 'wb', 0).write(b'x' + rows.astype('<f8').tobytes())\nos.unlink('gone')\n"
        "os.mkdir(f'{rows[0, 0]:.6g}')\n"
        "print(rows[0].tolist(), flush=True)\nsys.stderr.write(repr(rows[1]))\n"
    )
    process = Process([sys.executable, "-c", code], folder, trace=trace)
    process.end()
    least = 8 * 51 + 8 * 52 + 1 + 100 if trace else 1 + 100
    seen = b"".join(process.strings() if trace else process.left())
    tally.control(canary, "a process that leaks", "capture", seen, least)
    if trace and set(canary.hits(seen)) != set(FORMS):
        tally.wrong.append("a process that leaks: not in every form")


def core_control(folder: Path) -> str:
    """Whether a process that does not seal itself leaves a core here."""
    folder.mkdir()
    process = Process([sys.executable, "-c", "import os; os.abort()"], folder, trace=False)
    return "an unsealed process dumps core" if process.end()[1] else "no process dumps core here: nothing shown"


def bulk(tally: Tally, canary: Canary, folder: Path, port: int, bytes_wanted: float) -> None:
    """Long lives under strace, one after the other, until so much was searched."""
    number = 0
    while tally.searched["strace"] < bytes_wanted and not tally.wrong:
        left = bytes_wanted - tally.searched["strace"]
        chunks = int(min(CHUNKS_A_LIFE, left // BYTES_A_CHUNK // BULK_DEVICES + 8))
        life = Life(f"bulk {number}", hostile=True, metrics=True, devices=BULK_DEVICES, chunks=chunks)
        note(tally, canary, life, live(life, folder / f"bulk-{number}", port, free_port(), canary, trace=True))
        (folder / f"bulk-{number}.strace").unlink()
        number += 1


def lives(tally: Tally, canary: Canary, folder: Path, *, trace: bool) -> None:
    """Four at a time, as they mostly wait. Each has its own broker, as their devices have the same names."""

    def one(life: Life, index: int) -> Ended:
        own = folder / f"broker-{index}"
        own.mkdir()
        with Mosquitto(own, *BROKER) as broker:
            return live(life, folder / f"life-{index}", broker.port, free_port(), canary, trace=trace)

    with ThreadPoolExecutor(LIVES_AT_ONCE) as pool:
        for life, ended in zip(LIVES, pool.map(one, LIVES, range(len(LIVES))), strict=True):
            note(tally, canary, life, ended)


def everything(options: argparse.Namespace, canary: Canary, tally: Tally, *, trace: bool) -> None:
    """All lives, commands and controls; then the bulk, unless it is the quick form."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lives(tally, canary, folder, trace=trace)
        with Mosquitto(folder, *BROKER) as broker:
            brief = BRIEF_LIVES if options.quick else GAZE_LIVES
            gaze_lives(tally, brief, folder, broker.port, trace=trace)
            other_commands(tally, canary, folder, broker.port)
            capture_control(tally, canary, folder / "leak", trace=trace)
            print(core_control(folder / "core"))
            if not options.quick:
                bulk(tally, canary, folder, broker.port, options.bytes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="every life once; strace only where it is installed")
    parser.add_argument("--no-strace", action="store_true", help="with --quick: as if it were not installed")
    parser.add_argument("--bytes", type=float, default=1e8, metavar="N", help="search at least so many (default 1e8)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    trace = has_strace() and not options.no_strace
    if not (trace or options.quick):
        parser.error("the long form needs strace, and the right to trace")
    canary, tally = Canary(128, 52, options.seed), Tally()
    everything(options, canary, tally, trace=trace)
    for fault in tally.wrong:
        print(fault)
    print(
        f"{'with' if trace else 'without'} strace, {time.monotonic() - BEGAN:.0f} s: "
        f"{tally.searched.total()} bytes searched {dict(tally.searched)}, {tally.chunks} chunks, "
        f"{tally.hits.total()} hits; controls {dict(tally.controls)}; {len(tally.wrong)} faults"
    )
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
