"""``eyestream audit``: attack a mechanism from outside, ours or anyone's."""

import argparse
import os
import shlex
import sys
from typing import Any

from eyestream.cli.options import positive
from eyestream.cli.progress import Line
from eyestream.core.mechanisms.registry import names
from eyestream.errors import ConfigError
from eyestream_lab.audit.report import FINDINGS, Report
from eyestream_lab.audit.run import FULL, QUICK, audit
from eyestream_lab.audit.subject import Subject, function, mechanism, program

_SHAPE = ("features", "chunk", "range")


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "audit",
        help="attack a mechanism from outside: a Python function, a program, or one of ours",
        description="Run a mechanism many times on very different chunks and report what gives it away: a lower "
        "bound on epsilon, floating-point noise, noise used twice, state, time and size that depend on data. Exit code "
        "0 when nothing was found, 1 when something was. docs/audit.md has the names and what they mean.",
        epilog="findings: " + ", ".join(FINDINGS),
    )
    parser.add_argument(
        "mechanism",
        nargs="?",
        metavar="MECHANISM",
        help=f"module:function; or, with --calibration, {', '.join(names())} or the place of one that lives elsewhere",
    )
    parser.add_argument(
        "--program", nargs="+", metavar="CMD", help="instead: a program that reads and writes framed chunks"
    )
    parser.add_argument("--epsilon", type=positive, required=True, metavar="E", help="stated loss of one chunk")
    parser.add_argument(
        "--features",
        metavar="F",
        help="features of a chunk; with asked: NAME[,NAME...], what is asked for, or a named set",
    )
    parser.add_argument("--chunk", type=int, metavar="n", help="rows of a chunk")
    parser.add_argument(
        "--range", type=_range, metavar="LO,HI", help="values that a chunk may hold, both ends included"
    )
    parser.add_argument("--calibration", metavar="NAME", help="with one of ours: a shipped calibration, or a file")
    parser.add_argument(
        "--session", action="store_true", help="the function makes a session; every draw gets a new one"
    )
    parser.add_argument("--missing", action="store_true", help="a chunk may hold NaN")
    parser.add_argument(
        "--limit", type=positive, default=5.0, metavar="S", help="longest time of a release (default 5)"
    )
    parser.add_argument("--quick", action="store_true", help="a sixth of the draws")
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def main(options: argparse.Namespace) -> None:
    """Run the audit.

    Raises
    ------
    ConfigError
        The system has no fork; arguments do not fit together, are out of range, or name nothing.
    CalibrationError
        The calibration cannot be used.
    """
    if not hasattr(os, "fork"):
        raise ConfigError("an audit copies the process of the mechanism, which this system cannot: Linux and macOS can")
    line = Line()
    report = audit(_subject(options), QUICK if options.quick else FULL, line)
    line.clear()
    print(report.as_json() if options.json else _words(report))
    if report.findings:
        sys.exit(1)


def _subject(options: argparse.Namespace) -> Subject:
    target: str | None = options.mechanism
    if (target is None) == (options.program is None):
        raise ConfigError("give either MECHANISM or --program CMD")
    if target is not None and (options.calibration is not None or ":" not in target):
        own = ("chunk", "range", "session", "missing")
        given = [name for name in own if getattr(options, name) not in (None, False)]
        if given:
            raise ConfigError(f"--{given[0]} is not for {target}: the calibration says it")
        if options.calibration is None:
            raise ConfigError(f"{target} needs --calibration NAME; a function is named module:function")
        return mechanism(target, options.calibration, options.epsilon, features=options.features, limit_s=options.limit)
    if options.calibration is not None:
        raise ConfigError("--calibration is for mechanisms that are named, not for a program")
    lacking = [name for name in _SHAPE if getattr(options, name) is None]
    if lacking:
        raise ConfigError(f"--{lacking[0]} is needed: a function or a program does not say it")
    low, high = options.range
    claim = {
        "features": _whole(options.features),
        "chunk": options.chunk,
        "low": low,
        "high": high,
        "epsilon": options.epsilon,
        "missing": options.missing,
        "limit_s": options.limit,
    }
    if target is not None:
        return function(target, session=options.session, **claim)
    if options.session:
        raise ConfigError("--session is for a Python function")
    words = options.program
    return program(tuple(shlex.split(words[0]) if len(words) == 1 else words), **claim)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"--features: expected how many features a chunk has, not {text}") from None


def _range(text: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"expected LO,HI, not {text}")
    try:
        return float(parts[0]), float(parts[1])
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected two numbers LO,HI, not {text}") from None


def _words(report: Report) -> str:
    lines = [f"{report.subject}: chunks of {report.features} x {report.chunk}, stated epsilon {report.epsilon:g}"]
    if report.epsilon_lower_bound is not None:
        lines.append(
            f"epsilon is at least {report.epsilon_lower_bound:.3f} ({report.confidence:.1%} confidence; chunks: "
            f"{report.neighbours}); {report.draws} draws could have shown {report.epsilon_resolution:.2f}"
        )
    lines += [f"{finding.name}: {finding.evidence}" for finding in report.found] or ["nothing was found"]
    if report.outputs_repeated:
        lines.append(
            f"{report.outputs_repeated} of {report.outputs_compared} outputs for one chunk had been there before: "
            "there are few outputs, or the noise has few seeds; where neither is meant, it is reuse"
        )
    if report.not_tested:
        lines.append(f"not tested: {', '.join(report.not_tested)}")
    return "\n".join([*lines, f"{report.seconds:.0f} s"])
