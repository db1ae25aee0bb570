"""``eyestream guarantee``: what a privacy officer needs to know of a configuration."""

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from eyestream.rim.plan import load
from eyestream.rim.plan.summary import summary

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "guarantee",
        help="say in words what a configuration guarantees",
        description="Print what a configuration guarantees and what it does not: per chunk, gaze event, window, "
        "session, hour and day. Ten lines come first. Applications receive the full text in `meta`.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the sidecar's configuration")
    parser.add_argument("--json", action="store_true", help="the claim of each stream for machines, one JSON object")


def main(options: argparse.Namespace) -> None:
    """Print the guarantee.

    Raises
    ------
    ConfigError, CalibrationError
        The configuration or its calibration cannot be used.
    """
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
        for topic, sentence in summary(streams[name]):
            print(textwrap.fill(f"{topic + ' ':<16}{sentence}", width=100, subsequent_indent=" " * 16))
        print("\nThe full text, which applications receive in `meta`:\n")
        for topic, sentence in guarantee.sentences():
            print(textwrap.fill(f"{topic + ' ':<16}{sentence}", width=100, subsequent_indent=" " * 16))
