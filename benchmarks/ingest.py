"""Rows a second that one core takes before it falls behind, by rows a message."""

from typing import Any

from benchmarks.hop import carry_out
from benchmarks.machine import cores
from benchmarks.processes import CALIBRATION, broker, mosquitto_missing, sidecar
from benchmarks.report import Result, Table, amount
from eyestream.rim.files import calibrations

__all__ = ["run"]

BATCHES = (1, 8, 32)


def run(quick: bool) -> Result:
    """As many rows as are taken while at most 32 chunks are under way; the sidecar has a core to itself."""
    result = Result("ingest")
    missing = mosquitto_missing()
    if missing:
        result.notes.append(missing)
        return result
    calibration, own = calibrations.load(CALIBRATION), cores()
    n, features = calibration.n, len(calibration.names)
    rows = []
    for batch in BATCHES:
        with broker() as port, sidecar(port, ["ingest"], core=own[0], fast_disk=True) as child:
            plan: dict[str, Any] = {
                "mode": "burst",
                "devices": ["ingest"],
                "chunks": 10**6,
                "window": 32,
                "batch": batch,
            }
            plan |= {"seconds": 1 if quick else 8, "n": n, "features": features}
            before = child.cpu_seconds()
            taken = carry_out(port, plan, core=own[-1])
            used = child.cpu_seconds() - before
        count, rate = len(taken) * n, _rate(len(taken), n, plan["seconds"])
        each = used / max(count, 1) * 1e6
        rows.append([str(batch), f"{rate:,.0f}", f"{rate / 2:,.0f}", amount(each), f"{1e6 / each:,.0f}"])
        record = {"benchmark": "ingest", "mechanism": "cfpa", "n": n, "F": features, "rows_per_message": batch}
        result.records.append(record | {"rows_per_s": rate, "cpu_us_per_row": each, "median_us": each, "p99_us": each})
    columns = ["rows a message", "rows/s", "times 2 Hz", "CPU us a row", "rows per CPU second"]
    result.tables.append(Table("rows that one core takes", columns, rows))
    result.notes.append(
        "closed loop: 32 chunks under way keep the sidecar busy without its inbox overflowing; tracker and broker "
        "share another core; the ledger is in memory. Where rows/s lies below rows per CPU second, tracker or broker "
        "are the limit"
    )
    return result


def _rate(chunks: int, n: int, seconds: float) -> float:
    return chunks * n / seconds
