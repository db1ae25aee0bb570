"""One `release`, against the FFT pair and random bits that it cannot do without, and against what one would use."""

import os
import time
from collections.abc import Callable

import numpy as np

from benchmarks.environment import measured_elsewhere
from benchmarks.machine import pinned
from benchmarks.measure import Case, Timing, interleaved
from benchmarks.peers import array_peer, loop_peer
from benchmarks.report import Result, Table, amount
from benchmarks.subjects import (
    KEPT,
    MECHANISMS,
    a_chunk,
    fft_pair,
    floor,
    stages,
    subject,
    words_consumed,
)
from eyestream.core.spectrum import _Basis, _Transformed

__all__ = ["TRANSFORMS", "run"]

FEATURES, LENGTHS = (1, 8, 52, 208), (32, 64, 128, 256)
RECORDINGS = (1024,)
"""Like a recording of FPA, which takes it as one chunk: for the transforms alone."""
MAIN = (52, 64)
TRANSFORMS = "48 signals to k coefficients and back, us of processor time: basis / planned FFTW / numpy"


def run(quick: bool) -> Result:
    """All sizes and mechanisms with the peers; `quick`: CFPA and KLT at 52x64 and the peers that are at hand."""
    result = Result("kernel")
    with pinned() as where:
        result.notes.append(
            f"{where}; garbage collection frozen; warm: 20 runs a turn after one that is not counted; "
            "p99 alone: of the turns in which no other process took the core"
        )
        _main_size(result, ("cfpa", "klt") if quick else MECHANISMS, 0.3 if quick else 4.0)
        _float_peers(result, 0.3 if quick else 3.0)
        if not quick:
            _sizes(result)
            _transforms(result)
    if not quick:
        _safe_peers(result)
    result.notes.append(
        f"floor: planned FFTW forward and inverse of the released features, and as many words of the system's "
        f"generator as the "
        f"sampler takes ({words_consumed('cfpa', *MAIN):,} for CFPA 52x64, k = {KEPT}); KLT takes 6 words and does not "
        "transform by FFT: its floor is the FFT pair of a chunk of its size, for comparison"
    )
    return result


def _main_size(result: Result, names: tuple[str, ...], seconds: float) -> None:
    """52x64: warm, cold, and stage by stage."""
    rows, parts = [], []
    for name in names:
        mechanism = subject(name, *MAIN)
        chunk = a_chunk(mechanism)
        active = int((~mechanism.calibration.constant).sum())
        cases: dict[str, Callable[[], object] | Case] = {
            "release": lambda m=mechanism, c=chunk: m.release(c),
            "floor": floor(name, *MAIN),
            "pair": fft_pair(active, MAIN[1]),
        }
        warm = interleaved(cases, seconds)
        cold = interleaved({"release": cases["release"], "floor": cases["floor"]}, seconds / 2, cold=True)
        stage = interleaved(stages(mechanism), seconds / 2)
        whole = warm["release"]
        rows.append(
            [
                name,
                *map(amount, (whole.median_us, whole.alone_p99_us, whole.p99_us, whole.p999_us, whole.spread_us)),
                *map(amount, (warm["floor"].median_us, whole.over(warm["floor"]))),
                amount(whole.over(warm["pair"])),
                *map(amount, (cold["release"].median_us, cold["release"].over(cold["floor"]))),
            ]
        )
        parts.append([name, *(amount(timing.median_us) for timing in stage.values())])
        common = {"benchmark": "kernel", "mechanism": name, "n": MAIN[1], "F": MAIN[0]}
        result.records += [
            common | {"state": "warm", "ratio_to_floor": whole.over(warm["floor"])} | whole.record(),
            common
            | {"state": "cold", "ratio_to_floor": cold["release"].over(cold["floor"])}
            | cold["release"].record(),
            *(common | {"state": "stage", "stage": s} | timing.record() for s, timing in stage.items()),
        ]
    columns = [
        "mechanism",
        "release",
        "p99 alone",
        "p99",
        "p99.9",
        "spread",
        "floor",
        "/ floor",
        "/ FFT pair",
        "cold",
        "/ floor",
    ]
    result.tables.append(Table(f"release of 52x64, k = {KEPT}, us", columns, rows))
    result.tables.append(
        Table("its stages, us", ["mechanism", "project", "transform", "noise", "inverse", "encode"], parts)
    )


def _float_peers(result: Result, seconds: float) -> None:
    mechanism = subject("cfpa", *MAIN)
    chunk = a_chunk(mechanism)
    by_array, by_loop = array_peer(mechanism, KEPT, np.fft), loop_peer(mechanism, KEPT)
    cases = {
        "eyestream": lambda: mechanism.release(chunk),
        "numpy.fft, float Laplace": lambda: by_array(chunk),
        "a Python loop over features": lambda: by_loop(chunk),
    }
    timings = interleaved(cases, seconds)
    _peer_table(result, "CFPA 52x64 as one would write it, us (floating-point noise is not safe)", timings)


def _peer_table(result: Result, title: str, timings: dict[str, Timing]) -> None:
    ours = timings["eyestream"]
    rows = [[name, amount(t.median_us), amount(t.p99_us), amount(t.over(ours))] for name, t in timings.items()]
    result.tables.append(Table(title, ["", "median", "p99", "/ eyestream"], rows))
    for name, timing in timings.items():
        record = {"benchmark": "kernel", "mechanism": "cfpa", "n": MAIN[1], "F": MAIN[0], "peer": name}
        result.records.append(record | {"ratio_to_eyestream": timing.over(ours)} | timing.record())


def _safe_peers(result: Result) -> None:
    found = measured_elsewhere(4.0)
    if isinstance(found, str):
        result.notes.append(found)
        return
    rows = [[r["peer"], amount(r["median_us"]), amount(r["p99_us"]), amount(r["ratio_to_eyestream"])] for r in found]
    result.tables.append(
        Table("noise alone for 52x64 values, and scipy.fft, us", ["", "median", "p99", "/ eyestream"], rows)
    )
    common = {"benchmark": "kernel", "mechanism": "cfpa", "n": MAIN[1], "F": MAIN[0]}
    result.records += [common | record for record in found]
    result.notes.append("OpenDP, diffprivlib and scipy ran in an environment of their own, each beside eyestream there")


def _sizes(result: Result) -> None:
    """Every mechanism at every size against its floor."""
    for name in MECHANISMS:
        rows = []
        for features in FEATURES:
            row = [f"F = {features}"]
            for n in LENGTHS:
                mechanism = subject(name, features, n)
                chunk = a_chunk(mechanism)
                cases = {"release": lambda m=mechanism, c=chunk: m.release(c), "floor": floor(name, features, n)}
                timings = interleaved(cases, 0.4)
                release, ratio = timings["release"], timings["release"].over(timings["floor"])
                row.append(f"{amount(release.median_us)} ({amount(ratio)})")
                size = {"benchmark": "kernel", "mechanism": name, "n": n, "F": features, "state": "warm, by size"}
                result.records.append(size | {"ratio_to_floor": ratio} | release.record())
            rows.append(row)
        title = f"{name}: release in us (and over its floor)"
        result.tables.append(Table(title, ["", *(f"n = {n}" for n in LENGTHS)], rows))


def _transforms(result: Result) -> None:
    """Coordinates and back of 48 signals: the product with a basis, planned FFTW and numpy's transform, by turns."""
    kept = (1, 4, 8, 12, 13, 14, 16, 17, 20, 24, 33)
    rows, blas = [], f"OpenBLAS for {os.environ.get('OPENBLAS_CORETYPE', 'this machine')}"
    for n in (*LENGTHS, *RECORDINGS):
        x, row = np.random.default_rng(0).normal(size=(48, n)), [f"n = {n}"]
        for k in kept:
            if k > n // 2 + 1:
                row.append("")
                continue
            ways = (_Basis(48, n, k), _Transformed(48, n, k, "pyFFTW"), _Transformed(48, n, k, "numpy"))
            least = _least([lambda w=way, x=x: w.signals(w.coordinates(x)) for way in ways])
            row.append(" / ".join(map(amount, least)))
            size = {"benchmark": "kernel", "state": "transform", "blas": blas, "n": n, "k": k}
            result.records.append(size | {"ratio_basis_to_fftw": least[0] / least[1]})
        rows.append(row)
    result.tables.append(Table(f"{TRANSFORMS}, {blas}", ["", *(f"k = {k}" for k in kept)], rows))


def _least(cases: list[Callable[[], object]], turns: int = 12, runs: int = 50) -> list[float]:
    """Least processor time of each case, us: other processes and a busy core do not enter it."""
    least = [np.inf] * len(cases)
    for _ in range(turns):
        for number, case in enumerate(cases):
            case()
            began = time.process_time_ns()
            for _ in range(runs):
                case()
            least[number] = min(least[number], (time.process_time_ns() - began) / runs / 1e3)
    return least
