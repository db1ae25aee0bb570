"""``eyestream guarantee``: what a privacy officer needs to know of a configuration."""

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from eyestream.rim.config import load
from eyestream.rim.sidecar.assembly import mechanisms_of
from eyestream.rim.sidecar.ceilings import ceilings_of
from eyestream.rim.sidecar.description import guarantee_in

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "guarantee",
        help="say in words what a configuration guarantees",
        description="Print what a configuration guarantees and what it does not: per chunk, gaze event, window, "
        "session, hour and day. Applications receive the same text in `meta`.",
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
    settings = load(options.config)
    mechanisms = mechanisms_of(settings)
    ceilings_of(settings, mechanisms)  # what `run` refuses has no guarantee
    guarantees = {stream.name: guarantee_in(settings, stream, mechanisms) for stream in settings.stream}
    if options.json:
        print(json.dumps({name: guarantee.claim() for name, guarantee in guarantees.items()}))
        return
    for name, guarantee in guarantees.items():
        if len(guarantees) > 1:
            print(f"stream {name}")
        for topic, sentence in guarantee.sentences():
            print(textwrap.fill(f"{topic + ' ':<16}{sentence}", width=100, subsequent_indent=" " * 16))
