"""`privatize`: rows a second of a recorded data set, on one core and on all."""

import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from benchmarks.machine import cores
from benchmarks.report import Result, Table
from benchmarks.subjects import MECHANISMS, subject
from eyestream.core.whole import release_rows

__all__ = ["run"]

ROWS = 64 * 500
RATE_HZ = 2.0
PUBLISHED = (15 * 3600 * 100 / (14.8 * 60), 15 * 3600 * 100 / (2.2 * 60))


def run(quick: bool) -> Result:
    """Each mechanism at its own best k over the same rows; all cores: a recording each."""
    result = Result("offline")
    rows = []
    all_cores = cores()
    for name in MECHANISMS:
        one = [_rows_per_s((name, 0.5)) for _ in range(1 if quick else 5)]
        with ProcessPoolExecutor(len(all_cores)) as pool:
            list(pool.map(_rows_per_s, [(name, 0.05)] * len(all_cores)))
            many = sum(pool.map(_rows_per_s, [(name, 0.5 if quick else 2.0)] * len(all_cores)))
        median = float(np.median(one))
        rows.append([name, f"{median:,.0f}", f"{median / RATE_HZ:,.0f}", f"{many:,.0f}", f"{many / median:.2f}"])
        each = [1e6 * 64 / speed for speed in one]
        record = {"benchmark": "offline", "mechanism": name, "n": 64, "F": 52, "rows_per_s": median}
        result.records.append(
            record | {"rows_per_s_all_cores": many, "median_us": float(np.median(each)), "p99_us": max(each)}
        )
    rows.append(["published, another machine", f"{PUBLISHED[0]:,.0f} to {PUBLISHED[1]:,.0f}", "", "", ""])
    columns = ["", "rows/s, one core", "times 2 Hz", f"rows/s, {len(all_cores)} cores", "gain"]
    result.tables.append(Table("release of recordings, 52 features, chunks of 64, in memory", columns, rows))
    result.notes.append(
        "published: 15 h of 100 Hz data in 2.2 to 14.8 minutes on a desktop, converted to rows/s; not the same "
        "machine, mechanisms or number of features, so an order of magnitude and no comparison"
    )
    return result


def _rows_per_s(what: tuple[str, float]) -> float:
    """How many rows a second a mechanism releases, for about so many seconds."""
    name, seconds = what
    mechanism = subject(name, 52, 64, k=None)
    rows = np.random.default_rng(0).normal(size=(ROWS // 10, mechanism.features))
    release_rows(mechanism, rows[:128])
    count, start = 0, time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        release_rows(mechanism, rows)
        count += len(rows)
    return count / taken
