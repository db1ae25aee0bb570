"""What `eyestream privatize` releases of a recording that is known whole: one chunk in so many, and how much."""

import argparse
from collections.abc import Callable, Sequence

from eyestream.cli.options import own_options, positive
from eyestream.errors import ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.charge import spendable
from eyestream.privacy.correlated import Correlated
from eyestream.privacy.mechanism import Mechanism
from eyestream.rim.files.processes import load_process
from eyestream.rim.files.recordings import Recording
from eyestream.rim.sidecar.correlated import kept_below

__all__ = ["add_schedule", "check_schedule", "kept_low"]

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
        help="lower epsilon of a chunk until one whole recording tells no more than this of one of its chunks, if "
        f"chunks follow the shipped class {_CLASS!r} (docs/correlations.md)",
    )


def check_schedule(options: argparse.Namespace) -> None:
    """Raise ConfigError for a schedule that is none."""
    if options.whole and (options.every != 1 or options.epsilon_prime is not None):
        raise ConfigError("--every and --epsilon-prime are of chunks: they are not for --whole")
    if options.every < 1:
        raise ConfigError(f"--every must be at least 1, not {options.every}")
    if options.every > 1 and (options.smooth or own_options(options).get("smooth")):
        raise ConfigError("--smooth takes the chunks that are released for neighbours: it is not for --every")


def kept_low(
    options: argparse.Namespace,
    calibration: Calibration,
    loaded: Sequence[Recording],
    build_at: Callable[[float], Mechanism],
) -> tuple[Mechanism, Correlated | None]:
    """The mechanism of the largest epsilon that --epsilon-prime allows for the longest recording, and the claim.

    Raises
    ------
    ConfigError
        No epsilon keeps to the target, or the calibration has a baseline.
    """
    if options.epsilon_prime is None:
        return build_at(options.epsilon), None
    from eyestream.correlation.published import session_claim  # noqa: PLC0415  for who names a class

    if calibration.anchor is not None:
        raise ConfigError("--epsilon-prime: of a calibration with a baseline the class says nothing: leave it out")
    process, seconds = load_process(_CLASS), calibration.n / calibration.rate_hz
    longest = max(len(recording.t) for recording in loaded)
    chunks = -(-longest // (calibration.n * options.every))

    def claimed(epsilon: float) -> tuple[Mechanism, Correlated]:
        mechanism = build_at(epsilon)
        return mechanism, session_claim(mechanism, process, seconds, chunks=chunks, touched=None, every=options.every)

    mechanism, claim = kept_below(options.epsilon_prime, options.epsilon, claimed, "--epsilon-prime")
    instead = " instead" if mechanism.epsilon < spendable(options.epsilon) else ""
    print(f"epsilon {mechanism.epsilon:.4g} a chunk{instead}: {claim.words()}")
    return mechanism, claim
