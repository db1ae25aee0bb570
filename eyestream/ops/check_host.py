"""Findings on this machine: does it keep secrets, ledger, memory and time as it must? Nothing is changed."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.registry import entry_of
from eyestream.core.spectrum import used
from eyestream.errors import OperatorError
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.config import Settings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.ledger.seal import seal_by
from eyestream.rim.plan import Plan, resolved
from eyestream.rim.process import keep_memory_private, memory_is_private, not_forbidden

_OTHERS, _OTHERS_WRITE = 0o077, 0o022
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True, slots=True)
class ConfigurationFindings:
    """Findings on whether a sidecar can be made of a configuration.

    Attributes
    ----------
    findings : a line each.
    plan : the configuration, resolved; None where no sidecar can be made of it.
    """

    findings: tuple[Finding, ...]
    plan: Plan | None


def host_findings(
    settings: Settings,
    path: Path,
    made: ConfigurationFindings,
    *,
    wall: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> list[Finding]:
    """All findings that need no broker.

    A configuration with a table of another distribution has neither ledger nor links of its own: the table finds out
    how those are.

    Parameters
    ----------
    settings, path
        The configuration and its file.
    made
        The result of `configuration_findings`.
    wall, monotonic
        Seconds since 1970, and of a clock that is never set.
    pause
        Waits for so many seconds.
    """
    added = settings.added
    return [
        _kept("the configuration is not for others to change", path, _OTHERS_WRITE, "go-w"),
        *(_files(settings) if added is None else ()),
        _memory(),
        _clock(wall, monotonic, pause),
        *made.findings,
        *(
            _ledger(settings, made.plan, int(wall()) // _SECONDS_A_DAY)
            if added is None
            else (Finding(*one) for one in added.findings(settings))
        ),
    ]


def configuration_findings(settings: Settings, path: Path) -> ConfigurationFindings:
    """Find out whether a sidecar can be made of the configuration at `path`, without ledger, machine and broker."""
    what = "calibration, epsilon, budget and sources fit"
    try:
        plan = resolved(settings, path.parent)
        plan.sources()
        _ = plan.metas
    except OperatorError as error:
        remedy = "Correct [[stream]], [stream.privacy], [budget] or [[source]]"
        return ConfigurationFindings(tuple(bad(what, line, remedy) for line in str(error).splitlines()), None)
    return ConfigurationFindings((good(what), *_streams(plan), *_gaze(plan)), plan)


def _files(settings: Settings) -> Iterator[Finding]:
    """Whether secrets, ledger and second place are private."""
    named = [
        (table, key, file)
        for table, broker in (("private", settings.private), ("raw", settings.raw))
        for key in ("password_file", "key_file")
        if broker is not None and (file := getattr(broker, key)) is not None
    ]
    for table, key, file in named:
        yield _kept(f"[{table}] {key} is a secret", file, _OTHERS, "go=")
    ledger = settings.sidecar.ledger
    yield _kept("the ledger's directory is private", ledger.parent, _OTHERS, "go=")
    yield _kept("the ledger is private", ledger, _OTHERS, "go=")
    second = settings.sidecar.second_place
    if second is not None:
        yield _kept("the second place is private", second, _OTHERS, "go=")
        if ledger.exists() and second.exists():
            what = "the second place is on another disk than the ledger"
            apart = os.stat(second).st_dev != os.stat(ledger).st_dev
            yield good(what) if apart else bad(what, f"{second} is on the same one", "Name a file on another disk")


def _kept(what: str, path: Path, forbidden: int, mode: str) -> Finding:
    """Whether `path` is ours, or root's, and nobody else has one of the `forbidden` rights."""
    try:
        found = os.stat(path)
    except OSError as error:
        return bad(what, f"{path}: {error.strerror}", "Put it there, or correct the path in the configuration")
    if not hasattr(os, "geteuid"):
        return good(f"{what} (not looked at: Windows shows no rights in a mode)")
    if found.st_uid not in (0, os.geteuid()):
        remedy = f"Run it as the user that runs the sidecar, or as root; or chown {path}"
        return bad(what, f"{path} belongs to another user", remedy)
    if stat.S_IMODE(found.st_mode) & forbidden:
        return bad(what, f"{path} has mode {stat.S_IMODE(found.st_mode):o}", f"chmod {mode} {path}")
    return good(what)


def _memory() -> Finding:
    what = "no core dumps, no debugger"
    keep_memory_private()
    if memory_is_private():
        return good(what)
    readers = " and ".join(not_forbidden())
    return bad(what, f"nothing stops {readers}", "Run it on Linux, where prctl and setrlimit are not filtered")


def _clock(wall: Callable[[], float], monotonic: Callable[[], float], pause: Callable[[float], None]) -> Finding:
    """Check the host's clock, which the budget of a day trusts. All else goes by the clock that is never set."""
    what = "the clock is sane"
    year = datetime.fromtimestamp(wall(), UTC).year
    if not 2026 <= year <= 2100:
        return bad(what, f"it says {year}", "Set the clock")
    before, before_wall = monotonic(), wall()
    pause(0.1)
    passed, passed_wall = monotonic() - before, wall() - before_wall
    if not 0.05 < passed < 5:
        return bad(what, "the monotonic clock does not advance as it should", "Mend the machine's clock source")
    if abs(passed_wall - passed) > 1:
        return bad(what, "it was set while we looked", "Let the clock settle, then check again")
    return good(what)


def _streams(plan: Plan) -> Iterator[Finding]:
    """Findings of each stream: what its purpose comes to, how long its ceilings last, what computes it; warnings."""
    for name, stream in plan.streams.items():
        if stream.purpose is not None:
            yield good(f"the purpose of {name} comes to: {stream.purpose}")
        yield good(f"the ceilings of {name} last: {stream.lasting}")
        if "transform" in entry_of(stream.mechanism.name).options.__struct_fields__:
            yield good(_transform(name, stream.mechanism))
        for line in stream.warnings:
            yield good(f"{name} can be released, but its {line}")


def _transform(name: str, mechanism: Mechanism) -> str:
    way: Any = mechanism.options.get("transform", "auto")
    found = used(mechanism.n, max(mechanism.k), way)
    return f"{found} computes the coefficients of {name}" + " (pyFFTW is not installed)" * (found == "numpy")


def _gaze(plan: Plan) -> Iterator[Finding]:
    """Findings on the front ends in this process, and on the cost of a second of gaze."""
    for name, stream in plan.streams.items():
        calibration, takes_off = stream.mechanism.calibration, stream.mechanism.calibration.takes_off
        # What is taken off the rows, a baseline or a history, is the first fact; a second in it costs more.
        which = "" if takes_off is None else f" that enters no {stream.mechanism.facts(stream.chunk_s)[0].topic}"
        for profile, mark in stream.marks:
            made_with = (
                "the same"
                if calibration.check_front_end(mark)
                else "its detector and another tracker: `eyestream fit` says whether yours fits"
            )
            yield good(
                f"front end {mark.front_end} makes rows of {name} from gaze of profile {profile.name}; the calibration "
                f"was made with {made_with}"
            )
            yield good(
                f"one second of gaze{which} enters up to {stream.touched} chunks of {name}, epsilon "
                f"{stream.touched * stream.mechanism.epsilon:g} (the front end remembers {stream.spec.memory_s:.2g} s)"
            )


def _ledger(settings: Settings, plan: Plan | None, today: int) -> Iterator[Finding]:
    """Check the ledger. Its file is read without its lock, so also beside a sidecar that is at work."""
    what = "the ledger opens and fits"
    try:
        reading = read_ledger(settings.sidecar.ledger, seal_by(settings.sidecar.ledger_key))
    except OperatorError as error:
        yield bad(what, str(error), "If chunks were ever released under these pseudonyms, put the backup back")
        return
    if plan is None:
        yield bad(what, "what it must fit cannot be used", "Correct the configuration first, as said above")
        return
    window, latest = settings.budget.window_chunks, reading.days.latest
    for key, (served, _) in plan.served.items():
        spent = reading.odometers.get(key.device)
        counted = None if spent is None else spent.streams.get(key.stream)
        if counted is not None and (counted.chunk, counted.window) != (served.n, window):
            yield bad(
                what,
                f"it counts {key} in chunks of {counted.chunk} rows and windows of {counted.window}, the configuration "
                f"in {served.n} and {window}",
                "The next session starts with a full window: run it once to take that over, or go back to the old "
                "values",
            )
            break
    else:
        yield good(what)
    if latest > today:
        yield bad(
            "the ledger's days lie in the past",
            f"it has opened day {latest} (since 1970), and this machine's clock says {today}: one clock was wrong",
            "Set the clock. If it is right, stop the sidecar and run `eyestream budget --config FILE --today`",
        )
    else:
        yield good("the ledger's days lie in the past")
