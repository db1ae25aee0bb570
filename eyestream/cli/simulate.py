"""`eyestream simulate`: recordings of people who do not exist."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.errors import ConfigError
from eyestream.offline.corpus.simulation import GENERATOR, NAMES, RATE_HZ, load_statistics, simulate
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "simulate",
        help="make recordings of people who do not exist",
        description="Write recordings of simulated people, DIR/sim-000.npz and so on: 52 features, one row each half "
        "second, whose distributions, correlations, slowness and differences between people are those of a corpus of "
        "30 people. Nobody's data is in them. The same arguments give the same rows.",
    )
    parser.add_argument("--people", type=int, required=True, metavar="N", help="how many people, one file each")
    parser.add_argument("--seconds", type=float, required=True, metavar="S", help="length of each recording")
    parser.add_argument(
        "--seed", type=int, required=True, metavar="K", help="0 or more; of the simulation only, no secret"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")


def main(options: argparse.Namespace) -> None:
    """Simulate and write, one person after the other.

    Raises
    ------
    ConfigError
        A number is out of range, or DIR cannot be written.
    """
    drawn = simulate(load_statistics(), options.people, options.seconds, options.seed)
    for person, features in enumerate(drawn):
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            recording = Recording(
                t=np.arange(len(features)) / RATE_HZ,
                features=features.astype(np.float64),
                names=NAMES,
                simulated=True,
                simulation=(GENERATOR, options.seed),
            )
            recordings.save(recording, options.out / f"sim-{person:03d}.npz")
        except OSError as error:
            raise ConfigError(f"{options.out}: cannot be written: {error.strerror}") from None
        if sys.stderr.isatty():
            print(f"\rsimulated {person + 1} of {options.people} people", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"{options.people} simulated people, {len(features)} rows each, seed {options.seed}: {options.out}/sim-*.npz")
