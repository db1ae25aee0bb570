"""`eyestream simulate`: recordings of people who do not exist."""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.cli.options import positive
from eyestream.cli.progress import Progress
from eyestream.errors import ConfigError
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.files.gaze_writing import save_gaze
from eyestream_lab.simulation.gaze import simulate_gaze
from eyestream_lab.simulation.labelled import DOCUMENTS, simulate_labelled
from eyestream_lab.simulation.people import GENERATOR, NAMES, RATE_HZ, load_statistics, simulate


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "simulate",
        help="make recordings of people who do not exist",
        description="Write recordings of simulated people, DIR/sim-000.npz and so on: 52 features, one row each half "
        "second, whose distributions, correlations, slowness and differences between people are those of a corpus of "
        "30 people. With --gaze: gaze samples, DIR/sim-000.csv and so on, which --profile degrees reads, and what "
        "truly happened (F fixation, S saccade, B blink, P pursuit). With --labels: three recordings a person, of a "
        "comic, a newspaper and a textbook, and a gender and an age, for `eyestream study --labels`. Nobody's data is "
        "in them. The same arguments give the same rows.",
    )
    parser.add_argument("--people", type=int, required=True, metavar="N", help="how many people, one file each")
    parser.add_argument("--seconds", type=float, required=True, metavar="S", help="length of each recording")
    parser.add_argument(
        "--seed", type=int, required=True, metavar="K", help="0 or more; of the simulation only, no secret"
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--gaze", action="store_true", help="gaze samples instead of rows of features")
    kind.add_argument(
        "--labels", type=Path, metavar="FILE", help="people who read three documents each, and a CSV of who and what"
    )
    parser.add_argument(
        "--rate", type=positive, default=250.0, metavar="HZ", help="with --gaze: samples a second (default 250)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")


def main(options: argparse.Namespace) -> None:
    """Simulate and write, one person after the other.

    Raises
    ------
    ConfigError
        A number is out of range, or DIR cannot be written.
    """
    write = _gaze if options.gaze else _features if options.labels is None else _labelled
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        said, counted = "", Progress("simulated", options.people, "people")
        for person, said in enumerate(write(options), start=1):  # noqa: B007  the last one is said below
            counted(person)
    except OSError as error:
        raise ConfigError(f"{options.out}: cannot be written: {error.strerror}") from None
    counted.clear()
    print(f"{options.people} simulated people, {said}")


def _features(options: argparse.Namespace) -> Iterator[str]:
    """Write a recording and yield what to say of it, for each person."""
    drawn = simulate(load_statistics(), options.people, options.seconds, options.seed)
    for person, features in enumerate(drawn):
        recording = Recording(
            t=np.arange(len(features)) / RATE_HZ,
            features=features.astype(np.float64),
            names=NAMES,
            simulated=True,
            simulation=(GENERATOR, options.seed),
        )
        recordings.save(recording, options.out / f"sim-{person:03d}.npz")
        yield f"{len(features)} rows each, seed {options.seed}: {options.out}/sim-*.npz"


def _labelled(options: argparse.Namespace) -> Iterator[str]:
    """The same with three recordings of each person, and their labels."""
    lines, rows = [], 0
    for recording in simulate_labelled(load_statistics(), options.people, options.seconds, options.seed):
        rows = len(recording.rows)
        lines.append({"recording": recording.name} | recording.labels)
        features = recording.rows.astype(np.float64)
        made = Recording(np.arange(rows) / RATE_HZ, features, NAMES, simulated=True)
        recordings.save(made, options.out / f"{recording.name}.npz")
        if len(lines) % len(DOCUMENTS) == 0:
            with options.labels.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(lines)
            yield f"3 recordings of {rows} rows each, seed {options.seed}: {options.out}/p*.npz and {options.labels}"


def _gaze(options: argparse.Namespace) -> Iterator[str]:
    """The same with gaze."""
    drawn = simulate_gaze(options.people, options.rate, options.seconds, options.seed)
    for person, (samples, labels) in enumerate(drawn):
        save_gaze(samples, labels, options.out / f"sim-{person:03d}.csv")
        yield f"{len(samples)} samples each, seed {options.seed}: {options.out}/sim-*.csv"
