"""What a sidecar takes of a battery and of a flash: idle, and with gaze over MQTT and LSL, by turns with relays.

Shares of a core are the scheduler's nanoseconds of all threads. Wake-ups are voluntary context switches of all threads.
System calls are counted in seconds of their own, by strace, which slows them down. The null relay of MQTT is paho-mqtt
alone, in MQTT 5 like the sidecar: it subscribes and publishes each message again. That of LSL pulls each sample and
drops it. LSL runs in a network of its own, because its sockets are open to every interface.
"""

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.hop import carry_out
from benchmarks.mqtt import Client
from benchmarks.processes import (
    CALIBRATION,
    RUN,
    Child,
    broker,
    mosquitto_missing,
    python_child,
    sidecar,
    write_config,
)
from benchmarks.report import Result, Table, amount
from eyestream.rim.files import calibrations
from eyestream.wire.gaze import encode_gaze
from eyestream.wire.topics import gaze_topic

__all__ = ["run"]

RATES_HZ = (120, 1000)
_SETTLE_S = 12.0
"""Until after the second in which a sidecar looks who else publishes raw data."""

_DEVICE = "foot"
_ROW_HZ = 2.0

_PAHO = f"""
import sys
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5
client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
client.on_message = lambda client, _, message: client.publish("again", message.payload)
client.connect("127.0.0.1", int(sys.argv[1]))
client.subscribe("{gaze_topic(_DEVICE)}")
client.loop_forever()
"""
_PULLING = """
from eyestream.rim.sources.lsl import pylsl_module
pylsl = pylsl_module()
inlet = pylsl.StreamInlet(pylsl.resolve_byprop("name", "gaze", timeout=10.0)[0], max_buflen=10)
while True:
    inlet.pull_sample(timeout=1.0)
"""
_OWN_NETWORK = 'ip link set lo up && ip link set lo multicast on && exec "$@"'


class Taken(NamedTuple):
    """What a process took a second: of a core in per cent, wake-ups, system calls, bytes to the disk; and MiB."""

    share: float
    wakeups: float
    calls: float
    written: float
    resident_mib: float


def run(quick: bool) -> Result:
    """All cases in every turn."""
    result = Result("idle")
    if missing := mosquitto_missing():
        result.notes.append(missing)
        return result
    seconds, turns, settle_s = (1.0, 1, 1.0) if quick else (20.0, 3, _SETTLE_S)
    cases = [("sidecar", "mqtt", 0)]
    cases += [(subject, "mqtt", rate) for rate in RATES_HZ[: 1 if quick else 2] for subject in ("sidecar", "relay")]
    if shutil.which("unshare") is None or _lsl_missing():
        result.notes.append("LSL: left out, there is no pylsl with liblsl, or no unshare")
    elif not quick:
        cases += [(subject, "lsl", rate) for rate in RATES_HZ for subject in ("sidecar", "relay")]
    taken: dict[tuple[str, str, int], list[Taken]] = {case: [] for case in cases}
    for _ in range(turns):
        for case in cases:
            taken[case].append(_lsl_apart(case, seconds) if case[1] == "lsl" else measure(*case, seconds, settle_s))
    _tell(result, taken)
    _flash(result, 3 if quick else 100)
    result.notes.append(f"{turns} turns of {seconds:g} s each; medians, and for the ratio its range over the turns")
    return result


def measure(subject: str, kind: str, rate_hz: int, seconds: float, settle_s: float = _SETTLE_S) -> Taken:
    """One case, once, from `settle_s` after its start on."""
    with ExitStack() as stack:
        port = stack.enter_context(broker())
        if kind == "lsl":
            outlet = [sys.executable, "-m", "tests.rigs.lsl", "gaze", str(rate_hz), "0", "0", "-1", "1"]
            stack.enter_context(Child(outlet))
        if subject == "sidecar":
            child = stack.enter_context(_sidecar(port, kind, rate_hz or RATES_HZ[0]))
        elif kind == "mqtt":
            child = stack.enter_context(Child([sys.executable, "-c", _PAHO, str(port)]))
        else:
            child = stack.enter_context(Child([sys.executable, "-c", _PULLING]))
        if kind == "mqtt" and rate_hz:
            stack.enter_context(python_child("idle", "track", port, rate_hz))
        time.sleep(settle_s)
        return _watch(child, seconds)


@contextmanager
def _sidecar(port: int, kind: str, rate_hz: int) -> Iterator[Child]:
    source = f'\n[[source]]\nkind = "{kind}"\nrate_hz = {rate_hz}\ndevice = "{_DEVICE}"\n'
    source += '[source.options]\nname = "gaze"\n' if kind == "lsl" else ""
    with tempfile.TemporaryDirectory() as folder:
        path = write_config(Path(folder), port, [_DEVICE])
        path.write_text(path.read_text() + source)
        # A link to a source is taken once it stands: `online` would wait for the first vote on a tracker's clock.
        with Child([sys.executable, "-c", RUN, "run", "--config", str(path)]) as child:
            yield child


def _watch(child: Child, seconds: float) -> Taken:
    began, before = time.monotonic(), child.counts()
    time.sleep(seconds)
    passed, after = time.monotonic() - began, child.counts()
    spent, woken, written = (float(b - a) / passed for a, b in zip(before, after, strict=True))
    return Taken(spent / 1e7, woken, _calls(child.pid, min(seconds, 3.0)), written, child.resident_mib())


def _calls(pid: int, seconds: float) -> float:
    """System calls a second; NaN where there is no strace, or it may not."""
    if shutil.which("strace") is None:
        return float("nan")
    command = ["timeout", "-s", "INT", str(seconds), "strace", "-c", "-f", "-p", str(pid)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    found = re.search(r"^\s*100\.00\s+\S+\s+(?:\S+\s+)?(\d+)(?:\s+\d+)?\s+total$", said, re.M)
    return int(found[1]) / seconds if found else float("nan")


def _lsl_missing() -> bool:
    try:
        import pylsl  # noqa: F401
    except (ImportError, RuntimeError):
        return True
    return False


def _lsl_apart(case: tuple[str, str, int], seconds: float) -> Taken:
    """A case in a network of its own."""
    own = [sys.executable, "-m", "benchmarks.idle", "measure", *map(str, case), str(seconds)]
    done = subprocess.run(["unshare", "-rn", "sh", "-c", _OWN_NETWORK, "sh", *own], capture_output=True, check=True)
    return Taken(*json.loads(done.stdout))


def _tell(result: Result, taken: dict[tuple[str, str, int], list[Taken]]) -> None:
    rows = []
    for (subject, kind, rate), found in taken.items():
        middle = Taken(*(statistics.median(column) for column in zip(*found, strict=True)))
        ratio = ""
        if subject == "sidecar" and rate:
            relays = taken["relay", kind, rate]
            ratios = [own.share / relay.share for own, relay in zip(found, relays, strict=True)]
            ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        name = f"{subject}, {kind}, {rate} Hz" if rate else "sidecar, no tracker"
        cells = [f"{middle.share:.2f}", amount(middle.wakeups), amount(middle.calls), amount(middle.resident_mib)]
        rows.append([name, *cells, ratio])
        shares = [1e4 * one.share for one in found]  # microseconds a second
        record = {"benchmark": "idle", "mechanism": "cfpa", "n": 64, "F": 52, "subject": subject, "kind": kind}
        figures = {"median_us": float(np.median(shares)), "p99_us": max(shares)} | middle._asdict()
        result.records.append(record | {"rate_hz": rate} | figures)
    columns = ["", "of a core, %", "wake-ups/s", "system calls/s", "resident, MiB", "sidecar / relay"]
    result.tables.append(Table("a sidecar and its null relays", columns, rows))


def _flash(result: Result, chunks: int) -> None:
    """Bytes that reach the disk by a chunk, its reservation and all else, one after the other; and so an hour."""
    calibration = calibrations.load(CALIBRATION)
    plan = {"mode": "burst", "devices": [_DEVICE], "chunks": chunks, "window": 1, "seconds": 60}
    with broker() as port, sidecar(port, [_DEVICE]) as child:
        carry_out(port, plan | {"n": calibration.n, "features": len(calibration.names), "chunks": 1})
        before = child.counts()[2]
        done = len(carry_out(port, plan | {"n": calibration.n, "features": len(calibration.names)}))
        each = (child.counts()[2] - before) / max(done, 1)
    an_hour = 3600 * _ROW_HZ / calibration.n
    columns = ["", "bytes a chunk", "chunks an hour", "kB an hour"]
    row = [f"n = {calibration.n}, {_ROW_HZ:g} rows/s", amount(each), amount(an_hour), amount(each * an_hour / 1e3)]
    result.tables.append(Table("written to the disk, as the system counts it", columns, [row]))


def _track(port: int, rate_hz: float) -> None:
    """Role: publish gaze, one sample a message, until killed."""
    client, rng, began = Client(port, "tracker"), np.random.default_rng(1), time.monotonic()
    count = 0
    while True:
        t = began + count / rate_hz
        time.sleep(max(0.0, t - time.monotonic()))
        values = np.append(rng.normal(0.0, 5.0, 2), 3.0).astype(np.float32)
        client.publish(gaze_topic(_DEVICE), encode_gaze(np.array([t]), values[None], 1))
        count += 1


if __name__ == "__main__":
    if sys.argv[1] == "track":
        _track(int(sys.argv[2]), float(sys.argv[3]))
    else:
        _, _, subject, kind, rate, seconds = sys.argv
        print(json.dumps(measure(subject, kind, int(rate), float(seconds))))
