"""Start and size: imports, time to ready and to the first chunk, resident memory, wheel and installation."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.hop import carry_out
from benchmarks.measure import interleaved
from benchmarks.mqtt import Client
from benchmarks.processes import (
    CALIBRATION,
    RUN,
    Child,
    Waiter,
    broker,
    mosquitto_missing,
    python_child,
    sidecar,
    write_config,
)
from benchmarks.report import Result, Table, amount
from eyestream.rim.files import calibrations
from eyestream.wire.topics import sidecar_status_topic

__all__ = ["run"]

_REPOSITORY = Path(__file__).resolve().parents[1]
_IMPORTS = {
    "bare Python": "pass",
    "numpy": "import numpy",
    "eyestream": "import eyestream",
    "eyestream.subscribe": "import eyestream; eyestream.subscribe",
    "eyestream.CFPA": "import eyestream; eyestream.CFPA",
    "the sidecar": "import eyestream.cli.run",
}


def run(quick: bool, minutes: float = 0.0) -> Result:
    """Everything, `quick` without building and installing; with `minutes`, memory over that time alone."""
    result = Result("footprint")
    if minutes:
        _over_time(result, 60 * minutes)
        return result
    _imports(result, 0 if quick else 8)
    missing = mosquitto_missing()
    if missing:
        result.notes.append(missing)
    else:
        _running(result, 1 if quick else 5, 1 if quick else 20)
    if not quick:
        _sizes(result)
    return result


def _imports(result: Result, seconds: float) -> None:
    """Wall time of a fresh process, beside one that imports nothing."""
    cases = {
        name: lambda code=code: subprocess.run([sys.executable, "-c", code], check=True)
        for name, code in _IMPORTS.items()
    }
    timings = interleaved(cases, seconds, most=1)
    bare = timings["bare Python"]
    rows = []
    for name, timing in timings.items():
        rows.append([name, amount(timing.median_us / 1e3), amount((timing.median_us - bare.median_us) / 1e3)])
        record = {"benchmark": "footprint", "mechanism": "", "n": 0, "F": 0, "import": name}
        result.records.append(record | timing.record())
    result.tables.append(Table("a process that imports, ms", ["", "whole", "more than bare"], rows))


def _running(result: Result, times: int, seconds: float) -> None:
    """`eyestream run`: ready (online, devices subscribed), first chunk, memory idle and under 120 rows/s."""
    calibration = calibrations.load(CALIBRATION)
    n, features = calibration.n, len(calibration.names)
    ready, first = [], []
    for turn in range(times):
        with broker() as port, tempfile.TemporaryDirectory() as folder:
            path = write_config(Path(folder), port, ["foot"])
            client = Client(port, "watcher")
            client.subscribe([sidecar_status_topic("bench")])
            with Child([sys.executable, "-c", RUN, "run", "--config", str(path)]) as child:
                ready.append((Waiter(client)() - child.started) / 1e6)
                plan = {"mode": "burst", "devices": ["foot"], "chunks": 1, "window": 1, "seconds": 5}
                took = carry_out(port, plan | {"n": n, "features": features})
                first.append(took[0][2] / 1e6)
                idle = child.resident_mib()
                plan = {"mode": "alternate", "rate": 120, "devices": ["foot"]}
                plan["seconds"] = seconds if turn == times - 1 else 0
                carry_out(port, plan | {"n": n, "features": features})
                loaded = child.resident_mib()
            client.close()
    middle = sorted(ready)[len(ready) // 2]
    rows = [
        ["start to ready, ms (median, largest)", f"{middle:.0f}, {max(ready):.0f}"],
        ["first chunk after its first row, ms", f"{sorted(first)[len(first) // 2]:.1f}"],
        ["resident after the first chunk, MiB", f"{idle:.1f}"],
        [f"resident after {seconds} s of 120 rows/s, MiB", f"{loaded:.1f}"],
    ]
    result.tables.append(Table("eyestream run, one device", ["", ""], rows))
    record = {"benchmark": "footprint", "mechanism": "cfpa", "n": n, "F": features, "ready_ms": ready}
    figures = {"median_us": middle * 1e3, "p99_us": max(ready) * 1e3, "rss_idle_mib": idle, "rss_loaded_mib": loaded}
    result.records.append(record | figures)


def _over_time(result: Result, seconds: float) -> None:
    """Resident memory of one sidecar while 1,000 rows/s of one device flow, and its slope after the first tenth."""
    calibration = calibrations.load(CALIBRATION)
    plan = {"mode": "alternate", "rate": 1000, "devices": ["foot"], "seconds": seconds}
    plan |= {"n": calibration.n, "features": len(calibration.names)}
    with broker() as port, sidecar(port, ["foot"], fast_disk=True) as child, python_child("tracker") as tracker:
        tracker.tell(json.dumps(plan | {"port": port}))
        tracker.line()
        tracker.tell("")
        began, cpu, samples = time.monotonic(), child.cpu_seconds(), []
        while (passed := time.monotonic() - began) < seconds:
            samples.append((passed, child.resident_mib()))
            time.sleep(min(1.0, seconds / 100))
        share = (child.cpu_seconds() - cpu) / (time.monotonic() - began)
        chunks = len(json.loads(tracker.line()))
    times, resident = np.array(samples).T
    settled = times > seconds / 10
    slope = float(np.polyfit(times[settled] / 60, resident[settled], 1)[0]) * 1024
    rows = [
        ["minutes", f"{seconds / 60:g}"],
        ["chunks", str(chunks)],
        ["processor", f"{100 * share:.1f} %"],
        ["resident at the beginning, MiB", f"{resident[0]:.1f}"],
        ["resident at the end, MiB", f"{resident[-1]:.1f}"],
        ["largest, MiB", f"{resident.max():.1f}"],
        ["slope after the first tenth, kB a minute", f"{slope:.1f}"],
    ]
    result.tables.append(Table("memory under 1,000 rows/s", ["", ""], rows))
    record = {"benchmark": "footprint", "mechanism": "cfpa", "n": plan["n"], "F": plan["features"]}
    figures = {"minutes": seconds / 60, "slope_kib_per_minute": slope, "rss_mib": resident.tolist(), "cpu_share": share}
    result.records.append(record | figures | {"median_us": share * 1e6, "p99_us": share * 1e6})


def _sizes(result: Result) -> None:
    """The wheel, and what a fresh installation with its dependencies takes on the disk."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
        try:
            subprocess.run(
                [*pip, "wheel", "--no-deps", "-w", folder, str(_REPOSITORY)],
                check=True,
                timeout=120,
                capture_output=True,
            )
            wheel = next(Path(folder).glob("eyestream-*.whl"))
            target = Path(folder) / "target"
            subprocess.run([*pip, "install", "--target", target, wheel], check=True, timeout=180, capture_output=True)
        except (OSError, subprocess.SubprocessError, StopIteration) as error:
            result.notes.append(f"wheel and installation: left out ({type(error).__name__})")
            return
        parts = {
            path.name: sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
            for path in target.iterdir()
            if path.is_dir()
        }
        whole = sum(parts.values())
        largest = sorted(parts.items(), key=lambda part: -part[1])[:6]
        rows = [
            ["wheel", f"{wheel.stat().st_size / 2**20:.2f}"],
            ["installed, with dependencies", f"{whole / 2**20:.0f}"],
        ]
        rows += [[f"of that {name}", f"{size / 2**20:.1f}"] for name, size in largest]
        result.tables.append(Table("sizes, MiB", ["", ""], rows))
