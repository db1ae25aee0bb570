"""Audit the guarantee: estimate epsilon from outside, check every part of it, and plant faults that must be caught.

    python -m tools.verification.audit --quick
    python -m tools.verification.audit --only order once closed

Three parts. *Estimates*: for each mechanism, k and epsilon a lower confidence bound on epsilon (99.9 %) from what
`release` returns for worst-case neighbours; it must not exceed the stated epsilon, and where enough was drawn must not
lie below 0.9 of it. *Checks*: exact ones of lattice, imputation, entropy, ledger and so on. *Faults*: each is planted
in the shipped code, and a check that knows of it must fail; and every check must fail under some fault, or it may be
one that cannot. The last line sums up; exit code 0 only when all holds.

The short form tries on a fault the checks that know of it, until one fails; in its estimates the system's words, which
take most of the time, are a stream of AES keyed by the system. The long form draws ten times as much and
more, with longer chunks, and tries every check on every fault. `--only` runs the checks that it names and the faults
that one of them may catch, and nothing else.
"""

import argparse
import concurrent.futures
import contextlib
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from eyestream_lab.audit.trials import SHARP, Case, bounded, cases, trial_of
from tests.rigs.seams import replaced
from tools.verification.auditing import (
    beside_checks,
    break_checks,
    claim_checks,
    faults_baseline,
    faults_beside,
    faults_flow,
    faults_gaze,
    faults_history,
    faults_kaleido,
    faults_ledger,
    faults_noise,
    faults_release,
    flow_checks,
    gaze_checks,
    history_checks,
    ledger_checks,
    level_checks,
    noise_checks,
    release_checks,
)
from tools.verification.auditing.findings import Check, Finding
from tools.verification.auditing.planting import FAULTS, Fault, planted

PROCESSES = 2

_CHECKS = (
    release_checks,
    noise_checks,
    ledger_checks,
    flow_checks,
    level_checks,
    break_checks,
    claim_checks,
    beside_checks,
    gaze_checks,
    history_checks,
)
# Importing these fills FAULTS.
_FAULTS = (
    faults_release,
    faults_noise,
    faults_ledger,
    faults_flow,
    faults_baseline,
    faults_beside,
    faults_gaze,
    faults_history,
    faults_kaleido,
)

FAULTY_CASES = {
    "epsilon cfpa k=1": Case("cfpa", 2, 1, 1.0, 200_000),
    "epsilon cfpa k=1 small": Case("cfpa", 2, 1, 0.1, 1_000_000),
    "epsilon cfpa k=2": Case("cfpa", 4, 2, 1.0, 200_000),
    "epsilon klt": Case("klt", 4, None, 5.0, 20_000),
    "epsilon asked": Case("asked", 64, None, 1.0, 4_000),
    "epsilon kaleido": Case("kaleido", 1, None, 5.0, 10_000),
}


class Row(NamedTuple):
    """One line of a table, and whether it is as it should be."""

    fine: bool
    cells: tuple[str, ...]


def estimate(case: Case) -> tuple[bool, float]:
    """Whether the bound must be sharp, and the bound."""
    trial = trial_of(case)
    sharp = trial.sharp(case.draws)
    return sharp, bounded(case, trial)


def words() -> Callable[[int], bytes]:
    """Random bytes in a third of the time of the system's generator: AES in counter mode, with a key from there."""
    stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
    return lambda count: stream.update(bytes(count))


def estimated(case: Case, quick: bool) -> Row:
    """The row of the audit's table; with `quick`, the kernel's part of the work is done by `words`."""
    with replaced("system entropy", words()) if quick else contextlib.nullcontext():
        sharp, bound = estimate(case)
    share = bound / case.epsilon
    fine = share <= 1 and (share >= SHARP or not sharp)
    verdict = "holds" if fine else "EXCEEDS" if share > 1 else "BLIND"
    shape = (case.mechanism, str(case.n), str(case.k or "-"), f"{case.epsilon:g}", f"{case.draws:,}")
    return Row(fine, (*shape, f"{bound:.4f}", f"{share:.3f}", "yes" if sharp else "no", verdict))


def _within(case: Case) -> Check:
    def check() -> Finding:
        _, bound = estimate(case)
        return Finding(bound <= case.epsilon, f"epsilon at least {bound:.3f}, stated {case.epsilon:g}")

    return check


CHECKS: dict[str, Check] = {
    **{name: getattr(module, name) for module in _CHECKS for name in module.__all__},
    **{name: _within(case) for name, case in FAULTY_CASES.items()},
}


def checked(name: str) -> Row:
    """A check of the code as it is."""
    holds, figure = CHECKS[name]()
    return Row(holds, (name, figure if holds else f"FAILS: {figure}"))


def caught(fault: Fault, names: Iterable[str], *, one_is_enough: bool = True) -> Row:
    """The fault planted, and which of the checks fail."""
    found: list[tuple[str, str]] = []
    survives = "it survives"
    with planted(fault), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in names:
            try:
                holds, figure = CHECKS[name]()
            except Exception as error:  # code with a fault may do anything; that it stops is no finding
                survives = f"{name} stopped with {type(error).__name__}"
                continue
            if not holds:
                found.append((name, figure))
                if one_is_enough:
                    break
    expected = any(name in fault.checks for name, _ in found)
    by = ", ".join(name for name, _ in found) or "NOTHING"
    figure = next((figure for name, figure in found if name in fault.checks), survives)
    return Row(expected, (fault.name, by, figure))


def blind(faults: list[Row]) -> Row:
    """Checks that no planted fault has made fail."""
    shown = {name for row in faults for name in row.cells[1].split(", ")}
    never = sorted(CHECKS.keys() - shown)
    return Row(not never, ("every check fails under some fault", ", ".join(never) or f"all {len(CHECKS)} do"))


def table(title: str, heads: tuple[str, ...], rows: list[Row]) -> str:
    lines = [heads, *(row.cells for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    body = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join(["", title, body[0], "-" * len(body[0]), *body[1:]])


def run(quick: bool, only: Sequence[str] = ()) -> bool:
    began = time.monotonic()
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, context) as pool:
        longest_first = [] if only else sorted(cases(quick), key=lambda case: case.epsilon)
        jobs: dict[str, list[concurrent.futures.Future[tuple[Row, float]]]] = {
            "estimates": [pool.submit(_timed, estimated, case, quick) for case in longest_first],
            "checks": [pool.submit(_timed, checked, name) for name in only or CHECKS],
            "faults": [pool.submit(_timed, _caught_by_number, *told) for told in _trials(quick, only)],
        }
        left = [job for part in jobs.values() for job in part]
        for done, _ in enumerate(concurrent.futures.as_completed(left), 1):
            if done % 10 == 0 or done == len(left):
                print(f"{done} of {len(left)} done after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    rows = {part: [job.result()[0] for job in own] for part, own in jobs.items()}
    if not only:
        rows["checks"].append(blind(rows["faults"]))
    heads = ("mechanism", "n", "k", "epsilon", "draws", "lower bound", "share", "must be sharp", "verdict")
    if not only:
        print(table("Lower bounds on epsilon, 99.9 % confidence", heads, rows["estimates"]))
    print(table("Checks of the code as it is", ("check", "figure"), rows["checks"]))
    print(table("Planted faults", ("fault", "caught by", "figure"), rows["faults"]))
    good = {part: sum(row.fine for row in own) for part, own in rows.items()}
    fine = all(good[part] == len(own) for part, own in rows.items())
    print(
        f"\naudit {'holds' if fine else 'FAILS'}: {good['estimates']} of {len(rows['estimates'])} estimates, "
        f"{good['checks']} of {len(rows['checks'])} checks, {good['faults']} of {len(rows['faults'])} faults caught, "
        f"{time.monotonic() - began:.0f} s, {sum(job.result()[1] for job in left):.0f} s of processor time"
    )
    return fine


def _timed(work: Callable[..., Row], *given: object) -> tuple[Row, float]:
    began = time.process_time()
    return work(*given), time.process_time() - began


def _trials(quick: bool, only: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...], bool]]:
    """By fault its number, which checks are tried on it, and whether one is enough."""
    for index, fault in enumerate(FAULTS):
        if not only or not set(fault.checks).isdisjoint(only):
            one_is_enough = quick or bool(only)
            yield index, fault.checks if one_is_enough else tuple(CHECKS), one_is_enough


def _caught_by_number(index: int, names: tuple[str, ...], one_is_enough: bool) -> Row:
    return caught(FAULTS[index], names, one_is_enough=one_is_enough)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under a minute on two free cores")
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=[], metavar="CHECK", help="these checks alone")
    options = parser.parse_args()
    return 0 if run(options.quick, options.only) else 1


if __name__ == "__main__":
    sys.exit(main())
