"""This checkout against another one, by turns in one run: ``python -m benchmarks.against CHECKOUT [--turns N]``.

Both are children of this process, started with the same interpreter. Each turn measures one and then the other, in an
order that changes, so that whatever the machine does it does to both; a figure is the median over the turns of new over
old, with the interval that holds the true median with 95 % (order statistics, binomial). Noise that an old version drew
ahead of a release is switched off in it: what is compared is what a release costs when its noise is drawn then. 0.1.0
took a new key for every chunk, when it was reserved; here it takes it when it draws, as this version takes its entropy,
and not at all where it says so. What codes chunks jointly is compared with klt as it was, at the same chunk length.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from math import comb
from pathlib import Path

import numpy as np

from benchmarks.mqtt import Client
from benchmarks.processes import Child, broker, write_config
from eyestream.wire.raw import encode_raw
from eyestream.wire.topics import private_topic, raw_topic, sidecar_status_topic

_HERE = Path(__file__).resolve().parents[1]
_KINDS = ("klt", "cfpa", "dcfpa", "lpa")
_FORMS = {"bare": "release, the old one without a new key", "release": "release", "session": "session"}
_JOINT = ("klt", "klt-mapped", "klt-anchored")
_LENGTHS = (32, 64, 128)
_ROWS, _FEATURES = 64, 52

_RELEASES = """
import sys, time
import numpy as np
try:
    from eyestream.rim.files import calibrations
except ImportError:
    from eyestream.files import calibrations
from eyestream.core.mechanisms import build
made = {}
for kind in sys.argv[1:]:
    calibration = calibrations.load(f"everyday-{kind}")
    low, high = calibration.lo[:, None], calibration.hi[:, None]
    chunk = low + (high - low) * np.random.default_rng(0).random((52, calibration.n))
    made[kind] = build(calibration, 4.8, **({"k": 8} if "fpa" in kind else {})), chunk
print("ready", flush=True)
for line in sys.stdin:
    kind, form, count = line.split()
    mechanism, chunk = made[kind]
    who = mechanism.session() if form == "session" else mechanism
    for _ in range(getattr(mechanism, "baseline_chunks", 0)):
        who.anchor(chunk)
    who.release(chunk)
    renew = getattr(getattr(mechanism, "_noise", None), "renew", lambda: None)
    begin = time.process_time_ns()
    for _ in range(int(count)):
        if form != "bare":
            renew()
        who.release(chunk)
    print(time.process_time_ns() - begin, flush=True)
"""

_RUN = """
import eyestream.core.noise as noise
for name in vars(noise):
    if hasattr(getattr(noise, name), "ahead"):
        kind = getattr(noise, name)
        kind.ahead = lambda self, law: None
        if hasattr(kind, "renew") and name == "SecureNoise":
            def late(self, law, renew=kind.renew, draw=kind.draw):
                if self.__dict__.pop("_reserved", False):
                    renew(self)
                return draw(self, law)
            kind.draw = late
            kind.renew = lambda self: self.__dict__.update(_reserved=True)
from eyestream.cli.main import main
main()
"""


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Median, and an interval that holds the true one with at least 95 %."""
    ordered, n = sorted(ratios), len(ratios)
    below = 0
    while 2 * sum(comb(n, i) for i in range(below + 1)) / 2**n <= 0.05:
        below += 1
    below = max(below - 1, 0)
    return float(np.median(ordered)), ordered[below], ordered[n - 1 - below]


def by_turns(turns: int, measure: Callable[[int], float]) -> list[float]:
    """New over old, a ratio a turn; `measure` is called with 0 for the old checkout, 1 for this one."""
    ratios = []
    for turn in range(turns):
        first = turn % 2
        figures = {first: measure(first), 1 - first: measure(1 - first)}
        ratios.append(figures[1] / figures[0])
    return ratios


def _child(checkout: Path, code: str, *words: str) -> Child:
    """A child that finds `checkout` before what is installed."""
    return Child([sys.executable, "-P", "-c", code, *words], environment={"PYTHONPATH": str(checkout)})


def releases(old: Path, turns: int) -> dict[str, list[float]]:
    """Processor time of one release, and of one chunk of a session, of each mechanism."""
    asked = [(f"{kind}: {what}", f"{kind}-64", f"{kind}-64", form) for kind in _KINDS for form, what in _FORMS.items()]
    asked += [(f"{kind}-{n}: session", f"klt-{n}", f"{kind}-{n}", "session") for n in _LENGTHS for kind in _JOINT]
    found = {}
    with ExitStack() as stack:
        children = []
        for which, checkout in enumerate((old, _HERE)):
            names = sorted({one[1 + which] for one in asked})
            children.append(stack.enter_context(_child(checkout, _RELEASES, *names)))
        for child in children:
            child.line()
        for label, *names, form in asked:

            def measure(which: int, names: list[str] = names, form: str = form) -> float:
                children[which].tell(f"{names[which]} {form} 200")
                return float(children[which].line())

            found[label] = by_turns(turns, measure)
    return found


def _ledger(checkout: Path, folder: Path) -> Path:
    """A new ledger, made by a checkout's own command."""
    path = folder / "ledger"
    words = ["budget", "--new", "--ledger", str(path)]
    helped = _command(checkout, "budget", "--help").stdout
    if "--chunk" in helped:
        words += ["--chunk", str(_ROWS), "--window", "2"]
    done = _command(checkout, *words)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return path


def _command(checkout: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    code = "from eyestream.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class Served:
    """A sidecar at work, its tracker and its application."""

    def __init__(self, child: Child, port: int, name: str) -> None:
        self.child = child
        self._tracker, self._application = Client(port, f"tracker-{name}"), Client(port, f"application-{name}")
        self._application.subscribe([private_topic(name)])
        self._topic, self._seq = raw_topic(name), 0
        self._rows = np.random.default_rng(0).random((_ROWS, _FEATURES)).astype(np.float32)

    def latency(self, chunks: int, pause_s: float) -> float:
        """Median nanoseconds from the last row of a chunk, one row a message with pauses, to the application."""
        waits = []
        for _ in range(chunks):
            for row in self._rows:
                time.sleep(pause_s)
                self._send(row[None])
            sent = time.monotonic_ns()
            waits.append(self._next() - sent)
            time.sleep(0.01)
        return float(np.median(waits))

    def work(self, chunks: int) -> float:
        """Processor seconds of the sidecar for so many chunks, 32 rows a message."""
        before = self.child.cpu_seconds()
        for _ in range(chunks):
            for part in (self._rows[:32], self._rows[32:]):
                self._send(part)
            self._next()
        return self.child.cpu_seconds() - before

    def _send(self, rows: np.ndarray) -> None:
        self._tracker.publish(self._topic, encode_raw(1, self._seq, rows, 1))
        self._seq += len(rows)

    def _next(self) -> int:
        arrivals = self._application.arrivals
        if not self._application.wait(self._seq // _ROWS, 30):
            raise RuntimeError("a chunk did not arrive within 30 s")
        return arrivals[self._seq // _ROWS - 1][1]


def sidecars(old: Path, turns: int) -> dict[str, list[float]]:
    """Latency, work and memory of the whole sidecar."""
    found: dict[str, list[float]] = {}
    with ExitStack() as stack:
        port = stack.enter_context(broker())
        served = []
        for name, checkout in (("old", old), ("new", _HERE)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            made = write_config(folder, port, [name])
            (folder / "ledger").unlink()
            _ledger(checkout, folder)
            made.write_text(made.read_text().replace('name = "bench"', f'name = "bench-{name}"'))
            watcher = Client(port, f"watcher-{name}")
            watcher.subscribe([sidecar_status_topic(f"bench-{name}")])
            child = stack.enter_context(_child(checkout, _RUN, "run", "--config", str(made)))
            end = time.monotonic() + 30
            while not any(b"online" in payload for payload in watcher.payloads):
                if time.monotonic() > end:
                    raise RuntimeError(f"the sidecar of {checkout} is not ready after 30 s")
                time.sleep(0.01)
            served.append(Served(child, port, name))
        found["latency at 1,000 rows/s"] = by_turns(turns, lambda which: served[which].latency(8, 0.001))
        found["latency of 64 rows at once"] = by_turns(turns, lambda which: served[which].latency(20, 0.0))
        found["processor time of 200 chunks"] = by_turns(turns, lambda which: served[which].work(200))
        found["resident memory"] = [served[1].child.resident_mib() / served[0].child.resident_mib()]
    return found


def main() -> None:
    """Print a line for each figure, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="of an older version")
    parser.add_argument("--turns", type=int, default=40, metavar="N", help="of each figure (default 40)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    old = options.checkout.resolve()
    found = releases(old, options.turns) | sidecars(old, options.turns)
    told = {name: interval(ratios) for name, ratios in found.items()}
    if options.json:
        print(json.dumps({name: {"median": m, "low": low, "high": high} for name, (m, low, high) in told.items()}))
        return
    for name, (median, low, high) in told.items():
        print(f"{name:<50} new / old {median:5.2f}  ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
