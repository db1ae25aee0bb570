"""``eyestream guarantee``: what a privacy officer needs to know of a configuration, or of a released recording."""

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from eyestream.claims.composition import composed_epsilon
from eyestream.core.charge import EPSILON_UNITS
from eyestream.errors import ConfigError
from eyestream.rim.files.claims import load_claim
from eyestream.rim.plan import load
from eyestream.rim.plan.stream import StreamPlan
from eyestream.rim.plan.summary import summary


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "guarantee",
        help="explain what a configuration guarantees, or a released recording",
        description="Print what a configuration guarantees and what it does not: per chunk, gaze event, window, "
        "session, hour and day. Ten lines come first. Applications receive the full text in `meta`. With CLAIM: "
        "what is claimed of a recording that somebody has released.",
    )
    parser.add_argument(
        "claim", nargs="?", type=Path, metavar="CLAIM", help="NAME.claim.json, which lies beside a released recording"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="the sidecar's configuration")
    parser.add_argument(
        "--delta",
        type=float,
        metavar="D",
        help="what a session adds up to, where a loss may be larger with probability D",
    )
    parser.add_argument("--json", action="store_true", help="the claim of each stream for machines, one JSON object")


def main(options: argparse.Namespace) -> None:
    """Print the guarantee.

    Raises
    ------
    ConfigError, CalibrationError
        The configuration or its calibration cannot be used.
    RecordingError
        CLAIM is no claim of a released recording.
    """
    if (options.claim is None) == (options.config is None):
        raise ConfigError("expected --config FILE, or the CLAIM of a released recording")
    if options.claim is not None:
        if options.json:
            raise ConfigError("--json goes with --config: a CLAIM is JSON already")
        _say(load_claim(options.claim))
        return
    streams = load(options.config).streams
    for name, stream in streams.items():
        for line in stream.warnings:
            print(f"eyestream guarantee: warning: {name}: {line}", file=sys.stderr)
    guarantees = {name: stream.guarantee for name, stream in streams.items()}
    if options.json:
        print(json.dumps({name: guarantee.claim() for name, guarantee in guarantees.items()}))
        return
    for name, guarantee in guarantees.items():
        if len(guarantees) > 1:
            print(f"stream {name}")
        _say(summary(streams[name]) + ([] if options.delta is None else [_composed(streams[name], options.delta)]))
        print("\nThe full text, which applications receive in `meta`:\n")
        _say(guarantee.sentences())


def _composed(stream: StreamPlan, delta: float) -> tuple[str, str]:
    mechanism, session = stream.mechanism, (stream.deployment.ceilings.session or 0) / EPSILON_UNITS
    count = int(session / mechanism.epsilon + 1e-9)
    if not 0.0 < delta < 1.0 or mechanism.delta or not count:
        raise ConfigError("--delta: expected one between 0 and 1, for pure epsilons and a session's ceiling")
    epsilon = composed_epsilon(mechanism.epsilon, count, delta)
    told = f"{count * mechanism.epsilon:g} by basic composition, {epsilon:.4g} by the optimal one at delta {delta:g}"
    return "composition", f"{count} chunks of a session: {told}. The ledger charges the first"


def _say(sentences: Iterable[tuple[str, str]]) -> None:
    for topic, sentence in sentences:
        print(textwrap.fill(f"{topic + ' ':<16}{sentence}", width=100, subsequent_indent=" " * 16))
