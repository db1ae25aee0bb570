"""Many devices at 2 rows/s in one process: latency of their chunks, processor time, memory."""

import json
import time
from typing import Any

import numpy as np

from benchmarks.hop import carry_out
from benchmarks.machine import cores
from benchmarks.measure import of_samples
from benchmarks.processes import CALIBRATION, broker, mosquitto_missing, python_child, sidecar
from benchmarks.report import Result, Table, amount
from eyestream.rim.files import calibrations
from eyestream.wire.topics import private_topic

__all__ = ["run"]

RATE = 2
BROKEN_US = 1e6


def run(quick: bool) -> Result:
    """1, 10, 100, 1,000 devices, and twice as many again and again until it breaks."""
    result = Result("fleet")
    missing = mosquitto_missing()
    if missing:
        result.notes.append(missing)
        return result
    rows, counts = [], [20] if quick else [1, 10, 100, 1000, 2000, 4000, 8000]
    for count in counts:
        try:
            record = _measure(count, 4 if quick else 30)
        except RuntimeError as error:
            result.notes.append(f"{count:,} devices: {error}")
            break
        result.records.append(record)
        rows.append(
            [
                *(f"{count:,}", str(record["samples"]), str(record["lost"])),
                *(amount(record[key] / 1e3) for key in ("median_us", "p99_us")),
                *(f"{100 * record['cpu_share']:.0f} %", amount(record["rss_idle_mib"]), amount(record["rss_mib"])),
                amount(record["ready_s"]),
            ]
        )
        if record["lost"] or record["p99_us"] > BROKEN_US:
            break
    columns = ["devices", "chunks", "lost", "p50 ms", "p99 ms", "CPU", "MiB idle", "MiB loaded", "s to ready"]
    result.tables.append(Table(f"devices at {RATE} rows/s, chunks of 64x52", columns, rows))
    first, last = result.records[0], result.records[-1]
    if last["devices"] > first["devices"]:
        each = (last["rss_mib"] - first["rss_mib"]) / (last["devices"] - first["devices"]) * 1024
        result.notes.append(f"memory: {each:.0f} kB for one more device")
    result.notes.append(
        "the sidecar has a core to itself, its ledger on the disk; load generator, broker and application share "
        "another; it stops where a chunk is lost or p99 passes a second"
    )
    return result


def _measure(count: int, seconds: float) -> dict[str, Any]:
    """The record of `count` devices."""
    calibration, own = calibrations.load(CALIBRATION), cores()
    n, features = calibration.n, len(calibration.names)
    devices = [f"d{i}" for i in range(count)]
    plan = {"mode": "fleet", "rate": RATE, "devices": devices, "seconds": seconds, "n": n, "features": features}
    start = time.perf_counter()
    with (
        broker() as port,
        sidecar(port, devices, core=own[0]) as child,
        python_child("application", port, private_topic("any").replace("/any/", "/+/"), core=own[-1]) as application,
    ):
        ready = time.perf_counter() - start
        application.line()
        idle, before, began = child.resident_mib(), child.cpu_seconds(), time.perf_counter()
        sent = carry_out(port, plan, core=own[-1])
        time.sleep(0.5)
        share = (child.cpu_seconds() - before) / (time.perf_counter() - began)
        loaded = child.resident_mib()
        application.tell("")
        arrivals = json.loads(application.line())
    came = {(topic, index): moment for topic, index, moment, _ in arrivals}
    taken = [came[key] - ns for d, i, ns in sent if (key := (private_topic(d), i)) in came]
    record = {"benchmark": "fleet", "mechanism": "cfpa", "n": n, "F": features, "devices": count, "ready_s": ready}
    record |= {"cpu_share": share, "rss_idle_mib": idle, "rss_mib": loaded, "lost": len(sent) - len(taken)}
    return record | of_samples(np.array(taken or [0])).record()
