"""Gaze in: samples a second with their rows, a row, memory of a device, and the way from a sample to a chunk."""

import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Timing, interleaved, of_samples
from benchmarks.mqtt import Client
from benchmarks.processes import RUN, Child, broker, mosquitto_missing, python_child, watcher, write_config
from benchmarks.report import Result, Table, amount
from eyestream.gaze.features import NAMES, STEP_S, WINDOW_S
from eyestream.gaze.front_end import FrontEnd
from eyestream.gaze.live import DELAY_S, LiveFrontEnd
from eyestream.gaze.samples import Samples
from eyestream.rim.files import fast_tables
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import pulse_s
from eyestream.wire.gaze import encode_gaze
from eyestream.wire.raw import encode_raw
from eyestream.wire.topics import gaze_topic, private_topic, raw_topic
from eyestream_lab.simulation.gaze import gaze_of, gaze_person
from tests.rigs.footprint import heap_bytes

__all__ = ["run"]

RATES_HZ = (60.0, 250.0, 1000.0)
N = 32
_TRACKER_HZ = 60.0
_BEFORE_S = 10.0
"""A session of live gaze begins within so many seconds of its first sample."""

_COMMON: dict[str, Any] = {"benchmark": "gaze", "mechanism": "cfpa", "n": N, "F": len(NAMES)}


def run(quick: bool) -> Result:
    """Everything; `quick` with shorter gaze and fewer chunks."""
    result = Result("gaze")
    _throughput(result, 40.0 if quick else 300.0, 0.5 if quick else 20.0)
    _file(result, 100.0 if quick else 600.0, 1.0 if quick else 20.0)
    _row(result, 1.0 if quick else 5.0)
    _memory(result, 60.0 if quick else 3600.0, devices=2 if quick else 8)
    missing = mosquitto_missing()
    if missing:
        result.notes.append(missing)
    else:
        _way(result, devices=4 if quick else 8, chunks=1 if quick else 6)
    return result


def _person(rate_hz: float, seconds: float) -> Samples:
    rng = np.random.default_rng(1)
    return gaze_of(gaze_person(rng), rate_hz, seconds, rng)[0]


def _velocity(samples: Samples) -> float:
    """The least that any detector of saccades does: the speed of every sample, by whole arrays."""
    speed = np.hypot(np.gradient(samples.x, samples.t), np.gradient(samples.y, samples.t))
    return float(np.nanmax(speed))


def _live(rate_hz: float, samples: Samples) -> int:
    """As a sidecar does: in its portions, through the map of clocks."""
    profile, rows = load_profile("mqtt").at_rate(rate_hz), 0
    live, portion = LiveFrontEnd(profile), round(rate_hz * pulse_s(profile))
    for begin in range(0, len(samples), portion):
        part = samples[begin : begin + portion]
        live.take(part, part.t)
        rows += len(live.due(float(part.t[-1])))
    return rows


def _throughput(result: Result, seconds: float, each_s: float) -> None:
    rows = []
    for rate in RATES_HZ:
        samples, profile = _person(rate, seconds), load_profile("mqtt").at_rate(rate)
        whole = functools.partial(lambda samples, profile: FrontEnd(profile).feed(samples), samples, profile)
        cases: dict[str, Callable[[], object]] = {
            "whole": whole,
            "live": functools.partial(_live, rate, samples),
            "velocity": functools.partial(_velocity, samples),
        }
        timings = interleaved(cases, each_s, most=3)
        speed = {name: len(samples) / timing.median_us * 1e6 for name, timing in timings.items()}
        ratios = {name: timings[name].over(timings["velocity"]) for name in ("whole", "live")}
        rows.append(
            [f"{rate:g} Hz", *(f"{speed[name]:,.0f}" for name in ("whole", "live")), *map(amount, ratios.values())]
        )
        for name in ("whole", "live"):
            record = _COMMON | {"subject": f"samples, {name}", "rate_hz": rate, "samples_per_s": speed[name]}
            result.records.append(record | {"ratio_to_velocity": ratios[name]} | timings[name].record())
    columns = ["gaze at", "samples/s, whole", "samples/s, live", "whole / velocity", "live / velocity"]
    result.tables.append(Table("samples that one core takes, with their rows", columns, rows))
    result.notes.append(
        f"{seconds:g} s of simulated gaze; live: in the sidecar's portions, through the map of clocks; velocity: what "
        "`numpy.gradient` takes for the speed of the same samples as whole arrays, the least that any detector does"
    )


def _file(result: Result, seconds: float, each_s: float) -> None:
    """Rows of a recording in a CSV beside rows of the same samples in memory; with pyarrow and without."""
    samples = _person(1000.0, seconds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gaze.csv"
        table = np.stack((samples.t, samples.x, samples.y, samples.pupil_mm), axis=1)
        np.savetxt(path, table, fmt="%.6f", delimiter=",", header="t_s,x_deg,y_deg,pupil_mm", comments="")

        def rows_of_file(fewest_bytes: float) -> None:
            fast_tables.FEWEST_BYTES = fewest_bytes  # type: ignore[assignment]
            made = load_gaze(path, load_profile("mqtt"))
            FrontEnd(made.profile).feed(made.samples)

        usual = fast_tables.FEWEST_BYTES
        cases: dict[str, Callable[[], object]] = {
            "memory": lambda: FrontEnd(load_profile("mqtt").at_rate(1000.0)).feed(samples),
            "pyarrow": functools.partial(rows_of_file, usual),
            "csv of Python": functools.partial(rows_of_file, np.inf),
        }
        timings = interleaved(cases, each_s, most=5)
        fast_tables.FEWEST_BYTES = usual
    rows = []
    for name in ("pyarrow", "csv of Python"):
        ratio = timings["memory"].over(timings[name])
        rows.append(
            [f"gaze at 1,000 Hz, {name}", f"{len(samples) / timings[name].median_us * 1e6:,.0f}", amount(ratio)]
        )
        result.records.append(_COMMON | {"subject": f"file, {name}", "of_memory": ratio} | timings[name].record())
    columns = ["a recording as CSV", "samples/s, with their rows", "of the speed of memory"]
    result.tables.append(Table("recordings in files", columns, rows))


def _row(result: Result, seconds: float) -> None:
    front = FrontEnd(load_profile("mqtt").at_rate(250.0))
    front.feed(_person(250.0, 60.0))
    window = front._window
    durations = window._fixations.rows
    cases = {"row": window.row, "moments": lambda: (durations.mean(axis=0), durations.var(axis=0))}
    timings = interleaved(cases, seconds)
    own, other = timings["row"], timings["moments"]
    columns = ["a row of 52 features, us", "p50", "p99", "mean and variance by numpy", "ratio"]
    figures = (own.median_us, own.p99_us, other.median_us, own.over(other))
    result.tables.append(
        Table(
            f"one row ({len(durations)} fixations in 30 s)",
            columns,
            [["30 s of gaze at 250 Hz", *map(amount, figures)]],
        )
    )
    result.records.append(_COMMON | {"subject": "row"} | own.record())


def _memory(result: Result, seconds: float, devices: int) -> None:
    """Bytes in use, for each of some devices at 1 kHz, after a minute and at the end."""
    portion = 100
    lives = [LiveFrontEnd(load_profile("mqtt").at_rate(1000.0)) for _ in range(devices)]
    minute = _person(1000.0, 60.0)
    taken = np.zeros(int(seconds) // 60 * (len(minute) // portion), dtype=np.int64)  # now: it must not count as growth
    before, held, done = heap_bytes(), [], 0
    for begin_s in range(0, int(seconds), 60):
        for begin in range(0, len(minute), portion):
            part = minute[begin : begin + portion]
            t = part.t + begin_s
            began = time.perf_counter_ns()
            for live in lives if begin_s == 0 else lives[:1]:
                live.take(Samples(t, part.x, part.y, part.pupil_mm, part.valid), t)
                live.due(float(t[-1]))
            taken[done] = (time.perf_counter_ns() - began) // (devices if begin_s == 0 else 1)
            done += 1
        held.append(heap_bytes())
    each, grown = (held[0] - before) / devices / 2**20, (held[-1] - held[0]) / 2**20
    columns = ["memory of a device", "after a minute, MiB", f"one device, {seconds / 60:g} minutes later, MiB more"]
    result.tables.append(
        Table("memory of the front end", columns, [["gaze at 1,000 Hz", amount(each), f"{grown:.3f}"]])
    )
    result.notes.append("memory: bytes in use as the allocators say, not pages")
    record = _COMMON | {"subject": "memory", "mib_a_device": each, "mib_more": grown}
    result.records.append(record | of_samples(taken).record())  # times of a portion of 0.1 s


def _way(result: Result, devices: int, chunks: int) -> None:
    """From the end of a chunk's last window to the application, and through a null relay."""
    names = [f"gaze-{i}" for i in range(devices)]
    with broker() as port, tempfile.TemporaryDirectory() as folder:
        path = write_config(Path(folder), port, names)
        text = path.read_text().replace("cfpa-64", f"cfpa-{N}")
        sources = "".join(
            f'\n[[source]]\nkind = "mqtt"\nrate_hz = {_TRACKER_HZ}\ndevice = "{name}"\n' for name in names
        )
        path.write_text(text + sources)
        with (
            watcher(port) as wait,
            Child([sys.executable, "-c", RUN, "run", "--config", str(path)]) as child,
            python_child("relay", port, "null", 1, len(NAMES)) as relay,
            python_child("application", port, private_topic("any").replace("/any/", "/+/")) as application,
        ):
            wait()
            relay.line()
            application.line()
            passed = _track(port, names, _BEFORE_S + WINDOW_S + STEP_S * N * chunks + DELAY_S + 1.0)
            application.tell("")
            arrivals = json.loads(application.line())
            resident = child.resident_mib()
    topics = {private_topic(name) for name in names}
    ours = _timing([came - 1e9 * (at + STEP_S * (N - 1)) for topic, _, came, at in arrivals if topic in topics])
    relayed = [came for topic, _, came, _ in arrivals if topic == private_topic("null")]
    null = _timing([came - max(moment for moment in passed if moment <= came) for came in relayed])
    columns = ["from the last sample to the application, us", "chunks", "p50", "p99", "relay p50", "relay p99"]
    figures = map(amount, (ours.median_us, ours.p99_us, null.median_us, null.p99_us))
    result.tables.append(
        Table("the way of gaze", columns, [[f"{devices} devices, MQTT", str(len(ours.samples)), *figures]])
    )
    result.notes.append(
        f"a row is made {1e3 * DELAY_S:g} ms after the end of its window, on purpose, whatever comes; the rest is the "
        f"way. The sidecar held {resident:.0f} MiB"
    )
    for subject, timing in (("sample to chunk", ours), ("null relay", null)):
        result.records.append(_COMMON | {"subject": subject, "resident_mib": resident} | timing.record())


def _track(port: int, names: list[str], seconds: float) -> list[int]:
    """Send gaze of each device by its own clock, and a row of the relay's twice a second; the relay's times."""
    client, person = Client(port, "tracker"), _person(_TRACKER_HZ, 30.0)
    values = np.stack((person.x, person.y, person.pupil_mm), axis=1)
    began = time.monotonic()
    first = {name: began + round(i * STEP_S / len(names) * _TRACKER_HZ) / _TRACKER_HZ for i, name in enumerate(names)}
    passed, number, row = [], 0, np.zeros((1, len(NAMES)))
    while (now := time.monotonic()) < began + seconds:
        for name in names:
            since = round((now - first[name]) * _TRACKER_HZ) / _TRACKER_HZ
            if since >= 0.0:
                t = np.array([first[name] + since])
                client.publish(gaze_topic(name), encode_gaze(t, values[number % len(values)][None], 1))
        if number % int(_TRACKER_HZ / 2) == 0:
            passed.append(time.monotonic_ns())
            client.publish(raw_topic("null"), encode_raw(1, len(passed), row, 1))
        number += 1
        time.sleep(max(0.0, began + number / _TRACKER_HZ - time.monotonic()))
    time.sleep(0.5)
    client.close()
    return passed


def _timing(waits: list[float]) -> Timing:
    """Of so many nanoseconds each."""
    if not waits:
        raise RuntimeError("nothing came")
    return of_samples(np.array(waits))
