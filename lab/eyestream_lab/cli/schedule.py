"""Schedule of `eyestream privatize` for a recording that is known whole: one chunk in so many, and how much."""

import argparse
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.claims.correlation.published import Correlated
from eyestream.cli.options import positive
from eyestream.core.calibration import Calibration
from eyestream.core.charge import spendable
from eyestream.core.mechanism import Mechanism
from eyestream.errors import ConfigError
from eyestream.rim.files.processes import load_process
from eyestream.rim.files.recordings import Recording
from eyestream.rim.plan.correlated import kept_below
from eyestream_lab.cli.options import own_options
from eyestream_lab.recordings.worth import better_start, obstacles, without_values

_CLASS = "everyday"


def add_schedule(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        metavar="G",
        help="release one chunk in G and nothing of the others, whose rows are NaN: chunks further apart tell less of "
        "each other; not with --smooth",
    )
    parser.add_argument(
        "--epsilon-prime",
        type=positive,
        metavar="E",
        help="lower epsilon of a chunk until one whole session tells no more than this of one of its chunks, if "
        f"chunks follow the shipped class {_CLASS!r} (docs/correlations.md)",
    )
    parser.add_argument(
        "--sessions",
        choices=("one", "files"),
        help="with --epsilon-prime: the recordings are parts of one session of one person, which count together (one, "
        "the default), or each is a session of its own (files); give all parts of a session in one run",
    )


def check_schedule(options: argparse.Namespace) -> None:
    """Raise ConfigError for a schedule that is none."""
    if options.whole and (options.every != 1 or options.epsilon_prime is not None):
        raise ConfigError("--every and --epsilon-prime are of chunks: they are not for --whole")
    if options.every < 1:
        raise ConfigError(f"--every must be at least 1, not {options.every}")
    if options.sessions is not None and options.epsilon_prime is None:
        raise ConfigError("--sessions says what --epsilon-prime counts: expected both")
    if options.every > 1 and (options.smooth or own_options(options).get("smooth")):
        raise ConfigError("--smooth takes the chunks that are released for neighbours: it is not for --every")


def kept_low(
    options: argparse.Namespace,
    calibration: Calibration,
    loaded: Sequence[Recording],
    build_at: Callable[[float], Mechanism],
) -> tuple[Mechanism, Correlated | None]:
    """The mechanism of the largest epsilon that --epsilon-prime allows for a whole session, and the claim.

    Raises
    ------
    ConfigError
        No epsilon keeps to the target, or the calibration has a baseline.
    """
    if options.epsilon_prime is None:
        return build_at(options.epsilon), None
    from eyestream.claims.correlation.published import session_claim  # noqa: PLC0415  for who names a class

    process, seconds = load_process(_CLASS), calibration.n / calibration.rate_hz
    if calibration.takes_off is not None:
        what = calibration.takes_off.fact(calibration.n, seconds).topic
        raise ConfigError(f"--epsilon-prime: of a calibration with a {what} the class says nothing: leave it out")
    lengths, every = [len(recording.t) for recording in loaded], options.every
    chunks, cuts, counted = _session(lengths, calibration.n * every, apart=options.sessions == "files")

    def claimed(epsilon: float) -> tuple[Mechanism, Correlated]:
        mechanism = build_at(epsilon)
        claim = session_claim(mechanism, process, seconds, chunks=chunks, touched=None, every=every, cuts=cuts)
        return mechanism, dataclasses.replace(claim, counted=counted)

    mechanism, claim = kept_below(options.epsilon_prime, options.epsilon, claimed, "--epsilon-prime")
    instead = " instead" if mechanism.epsilon < spendable(options.epsilon) else ""
    print(f"epsilon {mechanism.epsilon:.4g} a chunk{instead}: {claim.words()}")
    return mechanism, claim


def _session(lengths: Sequence[int], rows: int, *, apart: bool) -> tuple[int, int, str]:
    """Released chunks of the longest session, each of which stands for so many `rows`; its cuts; and both in words.

    `apart`: each file is a session; else all of them are one, in an order that nobody knows.
    """
    counts = [-(-length // rows) for length in lengths]
    if len(lengths) == 1:
        return counts[0], 0, "of the file, counted as a session"
    if apart:
        return max(counts), 0, f"of the longest of {len(lengths)} files, each counted as a session of its own"
    cuts = min(sum(length % rows > 0 for length in lengths), len(lengths) - 1)
    return sum(counts), cuts, f"of {len(lengths)} files, counted together as one session"


def add_worth(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--baseline-at",
        type=positive,
        metavar="SECONDS",
        help="begin each recording so much later, where its baseline is taken; nothing of the rows before is released, "
        "nor charged. The release shows this time: one that is chosen after a look at recordings tells of them",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="release also what is refused: a recording that lost its baseline or nearly all its rows, that is too "
        "short, or that is there twice",
    )


def first_row(
    options: argparse.Namespace, calibration: Calibration, loaded: Sequence[Recording], released: NDArray[np.intp]
) -> int:
    """The row of each recording at which its release begins; says what is missing of the features `released`.

    Raises
    ------
    ConfigError
        Recordings are not worth their epsilon, or --baseline-at is of no baseline.
    """
    anchor = None if options.whole else calibration.anchor
    if anchor is None and options.baseline_at is not None:
        raise ConfigError("--baseline-at: expected a calibration that takes a baseline, and no --whole")
    first = 0 if options.baseline_at is None else int(np.ceil(options.baseline_at * calibration.rate_hz))
    baseline = 0 if anchor is None else anchor.chunks * calibration.n
    if options.baseline_at is not None:
        print(f"baselines begin at {options.baseline_at:g} s: a time chosen after a look at recordings tells of them")
    for recording in loaded:
        missing = without_values(recording, calibration, released, first=first, baseline=baseline)
        if missing:
            print(f"{recording.path}: no value of {', '.join(missing)}: released as if at the corpus' mean")
    found = list(obstacles(loaded, calibration, released, first=first, baseline=baseline))
    for line in found:
        print(line)
    if not found or options.anyway:
        return first
    offer = better_start(loaded, calibration, released, first=first, baseline=baseline) if baseline else None
    instead = "" if offer is None else f", --baseline-at {offer}, from where all have a baseline,"
    raise ConfigError(f"nothing was spent: expected other recordings{instead} or --anyway")
