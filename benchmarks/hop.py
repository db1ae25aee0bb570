"""What the sidecar adds between a chunk's last row and the chunk in an application's hands, beside the null relay."""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import numpy as np

from benchmarks.machine import cores
from benchmarks.measure import Timing, of_samples
from benchmarks.processes import (
    CALIBRATION,
    broker,
    embedded_broker,
    mosquitto_missing,
    python_child,
    sidecar,
)
from benchmarks.report import Result, Table, amount
from eyestream.rim.files import calibrations
from eyestream.wire.topics import private_topic

__all__ = ["run"]

STALL_US = 10_000
SUBJECTS = {"hop-sidecar": "sidecar", "hop-relay": "null relay"}


def run(quick: bool) -> Result:
    """Rates of 2, 60, 120 and 1000 rows/s over mosquitto, 120 over the embedded broker, and chunks back to back."""
    result = Result("hop")
    calibration = calibrations.load(CALIBRATION)
    size = {"n": calibration.n, "features": len(calibration.names)}
    rows: list[list[str]] = []
    missing = mosquitto_missing()
    if missing:
        result.notes.append(missing)
    else:
        rates = {1000: 1.0} if quick else {2: 60.0, 60: 60.0, 120: 60.0, 1000: 60.0}
        rows += _hops(result, "mosquitto", broker, rates, size)
    rows += _hops(result, "embedded", embedded_broker, {120: 4.0 if quick else 30.0}, size)
    columns = ["broker, rows/s", "chunks", "sidecar p50", "p99", "relay p50", "p99", "p50 ratio", "p99 ratio"]
    result.tables.append(Table("last row sent to chunk decoded in the application, us", columns, rows))
    if not missing:
        _stalls(result, size, 200 if quick else 10_000)
    result.notes += [
        "one broker, and a process each for tracker, sidecar, null relay and application, not pinned; chunks of the "
        "two by turns; the relay has the sidecar's links, client and QoS, and republishes the bytes of "
        "its 64 raw messages untouched (16 kB; a released chunk has 13 kB)",
        "both hand the chunk on in the function that takes its last message: the relay makes no detour that the "
        "sidecar does not make",
        "2 rows/s: the first 63 rows come at once and the last one half a second later, so that chunks are not rare",
    ]
    return result


def _hops(
    result: Result,
    name: str,
    start: Callable[[], AbstractContextManager[int]],
    rates: dict[int, float],
    size: dict[str, int],
) -> list[list[str]]:
    """Both subjects over one broker; `rates` with the seconds for each."""
    ours, other = SUBJECTS
    rows = []
    with (
        start() as port,
        sidecar(port, [ours]),
        python_child("relay", port, other, *size.values()) as relay,
    ):
        relay.line()
        for rate, seconds in rates.items():
            plan = {"mode": "alternate", "rate": rate, "seconds": seconds, "devices": list(SUBJECTS)}
            timings = _latencies(port, plan | size)
            rows.append(_row(f"{name}, {rate}", timings[ours], timings[other]))
            for device, timing in timings.items():
                common = {"benchmark": "hop", "mechanism": "cfpa", "n": size["n"], "F": size["features"]}
                own = {"broker": name, "rate": rate, "subject": SUBJECTS[device]}
                result.records.append(common | own | timing.record())
    return rows


def _row(what: str, ours: Timing, relay: Timing) -> list[str]:
    ratios = ours.median_us / relay.median_us, ours.p99_us / relay.p99_us
    figures = (ours.median_us, ours.p99_us, relay.median_us, relay.p99_us, *ratios)
    return [what, str(len(ours.samples)), *map(amount, figures)]


def _latencies(port: int, plan: dict[str, Any]) -> dict[str, Timing]:
    """Carry out a plan; how long each chunk of each device took."""
    with python_child("application", port, private_topic("any").replace("/any/", "/+/")) as application:
        application.line()
        sent = carry_out(port, plan)
        time.sleep(1.0)
        application.tell("")
        arrivals: list[tuple[str, int | None, int, float | None]] = json.loads(application.line())
    timings = {}
    for device in plan["devices"]:
        own = np.array([moment for name, _, moment in sent if name == device])
        came = np.array([moment for topic, _, moment, _ in arrivals if topic == private_topic(device)])
        chunk = np.searchsorted(own, came, side="right") - 1  # chunks are far apart: it is the last one that was sent
        _, first = np.unique(chunk, return_index=True)
        if len(first) < 2:
            raise SystemExit(f"{device}: {len(first)} of {len(own)} chunks came back: the broker does not keep up")
        timings[device] = of_samples((came[first] - own[chunk[first]])[1:])  # the first warms up
    return timings


def carry_out(port: int, plan: dict[str, Any], core: int | None = None) -> list[Any]:
    """Let the trackers of a process of their own do what `plan` says; what they sent."""
    with python_child("tracker", core=core) as tracker:
        tracker.tell(json.dumps(plan | {"port": port}))
        tracker.line()
        tracker.tell("")
        sent: list[Any] = json.loads(tracker.line())
        return sent


def _stalls(result: Result, size: dict[str, int], chunks: int) -> None:
    """Chunks back to back, 1 and 4 under way, the ledger in memory: is there a timer in the path?"""
    rows = []
    for window in (1, 4):
        with ExitStack() as stack:
            bystanders = [stack.enter_context(python_child("bystander", core)) for core in cores()]
            port = stack.enter_context(broker())
            stack.enter_context(sidecar(port, ["burst"], fast_disk=True))
            for bystander in bystanders:
                bystander.line()
            plan = {"mode": "burst", "devices": ["burst"], "chunks": chunks, "window": window, "seconds": 60}
            sent = np.array([entry[2:] for entry in carry_out(port, plan | size)][1:])
            for bystander in bystanders:
                bystander.tell("")
            late = [pair for bystander in bystanders for pair in json.loads(bystander.line())]
        taken, began = sent.T
        timing, stalled = of_samples(taken), taken > 1000 * STALL_US
        shared = sum(_overlaps(began[i], taken[i], late) for i in np.flatnonzero(stalled))
        figures = (timing.median_us, timing.p99_us, float(taken.max()) / 1e3)
        rows.append(
            [f"{window} under way", str(len(taken)), *map(amount, figures), str(int(stalled.sum())), str(shared)]
        )
        common = {"benchmark": "hop", "mechanism": "cfpa", "n": size["n"], "F": size["features"]}
        own = {"subject": f"back to back, {window}", "stalls": int(stalled.sum()), "stalls_of_the_machine": shared}
        result.records.append(common | own | timing.record())
    columns = ["back to back", "chunks", "p50", "p99", "largest", "above 10 ms", "the machine's"]
    result.tables.append(Table("chunks sent back to back, us (ledger in memory)", columns, rows))
    result.notes.append(
        "the machine's: stalls during which a process that only sleeps, on either core, was kept waiting for 4 ms or "
        "more too"
    )


def _overlaps(began: int, taken: int, late: list[tuple[int, int]]) -> bool:
    return any(due < began + taken and due + waited > began for due, waited in late)
