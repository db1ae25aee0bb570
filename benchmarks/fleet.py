"""Many devices at 2 rows/s in one process: latency of their chunks, processor time, memory."""

import json
import time

import numpy as np

from benchmarks.hop import finish
from benchmarks.machine import cores
from benchmarks.measure import of_samples
from benchmarks.processes import CALIBRATION, broker, mosquitto_missing, python_child, sidecar
from benchmarks.report import Result, Table, amount
from eyestream.files import calibrations
from eyestream.wire.topics import private_topic

__all__ = ["run"]

RATE = 2


def run(quick: bool) -> Result:
    """1, 10, 100, 1,000 devices, and twice as many again and again until it breaks."""
    result = Result("fleet")
    missing = mosquitto_missing()
    if missing:
        result.notes.append(missing)
        return result
    calibration, own = calibrations.load(CALIBRATION), cores()
    n, features = calibration.n, len(calibration.names)
    rows, seconds = [], 4 if quick else 30
    counts = [20] if quick else [1, 10, 100, 1000]
    while counts:
        count = counts.pop(0)
        devices = [f"d{i}" for i in range(count)]
        start = time.perf_counter()
        with (
            broker() as port,
            sidecar(port, devices, core=own[0]) as child,
            python_child(
                "application", port, private_topic("any").replace("/any/", "/+/"), core=own[-1]
            ) as application,
        ):
            ready = time.perf_counter() - start
            application.line()
            idle, before, began = child.resident_mib(), child.cpu_seconds(), time.perf_counter()
            plan = {"mode": "fleet", "rate": RATE, "devices": devices, "seconds": seconds, "n": n, "features": features}
            with python_child("tracker", json.dumps(plan | {"port": port}), core=own[-1]) as tracker:
                sent = finish(tracker)
            time.sleep(0.5)
            share = (child.cpu_seconds() - before) / (time.perf_counter() - began)
            loaded = child.resident_mib()
            application.tell("")
            arrivals = json.loads(application.line())
        came = {(topic, index): moment for topic, index, moment in arrivals}
        taken = [came[key] - ns for d, i, ns in sent if (key := (private_topic(d), i)) in came]
        lost = len(sent) - len(taken)
        timing = of_samples(np.array(taken or [0]))
        rows.append(
            [
                *(
                    f"{count:,}",
                    str(len(taken)),
                    str(lost),
                    amount(timing.median_us / 1e3),
                    amount(timing.p99_us / 1e3),
                ),
                *(f"{100 * share:.0f} %", amount(idle), amount(loaded), amount(ready)),
            ]
        )
        record = {"benchmark": "fleet", "mechanism": "cfpa", "n": n, "F": features, "devices": count, "lost": lost}
        result.records.append(record | {"cpu_share": share, "rss_mib": loaded} | timing.record())
        fell_behind = lost > 0 or timing.p99_us > 1e6
        if not quick and not counts and not fell_behind and count < 8000:
            counts.append(2 * count)
    columns = ["devices", "chunks", "lost", "p50 ms", "p99 ms", "CPU", "MiB idle", "MiB loaded", "s to ready"]
    result.tables.append(Table(f"devices at {RATE} rows/s, chunks of {n}x{features}", columns, rows))
    first, last = result.records[0], result.records[-1]
    if last["devices"] > first["devices"]:
        each = (last["rss_mib"] - first["rss_mib"]) / (last["devices"] - first["devices"]) * 1024
        result.notes.append(f"memory: {each:.0f} kB for one more device")
    result.notes.append(
        "the sidecar has a core to itself, its ledger on the disk; load generator, broker and application share another"
    )
    return result
