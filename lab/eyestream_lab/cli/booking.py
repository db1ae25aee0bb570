"""``--ledger`` of ``eyestream privatize``: where releases are booked, and what is refused before any of it is spent."""

import argparse
import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace

from eyestream.cli.ledger_words import plural
from eyestream.core.calibration import Calibration
from eyestream.core.charge import DELTA_UNITS, EPSILON_UNITS, LEVELS, Ceilings, charge_of, charges_of
from eyestream.core.mechanism import Mechanism
from eyestream.core.meter import Odometer
from eyestream.core.remaining import left_of
from eyestream.core.whole import chunk_count
from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.plan.ceilings import check_fading
from eyestream.streams import StreamKey
from eyestream.wire.topics import FEATURE_STREAM
from eyestream_lab.recordings.privatize import Booking, RefusedError

__all__ = ["booked"]


@contextlib.contextmanager
def booked(
    options: argparse.Namespace, calibration: Calibration, loaded: list[Recording], mechanism: Mechanism, first: int
) -> Iterator[Booking | None]:
    """Where releases of rows from number `first` on are booked, with the ledger of --ledger open; None without one.

    Raises
    ------
    ConfigError
        The device was moved to another ledger; or this one counts it otherwise, has no room for all of it, or does not
        allow the release.
    LedgerError
        It cannot be used.
    """
    if options.ledger is None:
        yield None
        return
    key, today, ceilings = (
        StreamKey(options.device, FEATURE_STREAM),
        int(time.time()) // 86_400,
        _ceilings(options, mechanism),
    )
    with Ledger(options.ledger, ceilings=ceilings) as ledger:
        ledger.refuse_moved(options.device, f"--ledger {options.ledger}: --device")
        odometer = ledger.odometer(options.device)
        _check_counted_alike(options, calibration.n, odometer)
        _check_room(options, mechanism, [len(each.t) - first for each in loaded], odometer, ceilings)
        try:
            yield Booking(ledger, key, today, ceilings.levels)
        except RefusedError as error:
            raise ConfigError(f"--ledger {options.ledger}: {error}") from None
        odometer = ledger.odometer(options.device)
    if odometer is not None:
        spent = f"epsilon {odometer.epsilon / EPSILON_UNITS:g}"
        spent += f", delta {odometer.delta / DELTA_UNITS:g}" if odometer.delta else ""
        print(f"{options.ledger}: {spent} for {options.device} since the ledger began")


def _ceilings(options: argparse.Namespace, mechanism: Mechanism) -> Ceilings:
    """Ceilings of the person's device in the ledger."""
    ceilings, charge = Ceilings.of(lifetime=options.lifetime_epsilon), charge_of(mechanism)
    if options.lifetime_mode != "fade":
        return ceilings
    check_fading(ceilings, charge, "--lifetime-mode", lifetime="--lifetime-epsilon")
    for level in range(LEVELS):
        mechanism.faded(level)  # one that cannot be is said before anything is booked
    return replace(ceilings, levels=LEVELS)


def _check_room(
    options: argparse.Namespace,
    mechanism: Mechanism,
    lengths: list[int],
    odometer: Odometer | None,
    ceilings: Ceilings,
) -> None:
    """What does not fit as a whole is refused before any of it is spent."""
    charges = charges_of(mechanism, ceilings.levels)
    chunks = [chunk_count(rows, mechanism.n) - mechanism.baseline_chunks for rows in lengths]
    if mechanism.sessions:
        del chunks[:: mechanism.sessions]
    wanted = sum(-(-max(count, 0) // options.every) for count in chunks)
    for left in left_of(odometer, ceilings, charges, today=0):
        if left.chunks < wanted:
            raise ConfigError(
                f"--lifetime-epsilon {options.lifetime_epsilon:g}: leaves {options.device} {plural(left.chunks)}, and "
                f"the recordings have {wanted}; nothing was spent"
            )


def _check_counted_alike(options: argparse.Namespace, n: int, odometer: Odometer | None) -> None:
    """Another chunk length or window would withhold the first chunks, when the others were spent already."""
    if odometer is None:
        return
    stream = odometer.streams.get(FEATURE_STREAM)
    if odometer.window or (stream is not None and stream.chunk != n):
        counted = f"chunks of {stream.chunk} rows" if stream else "other streams"
        raise ConfigError(
            f"--ledger {options.ledger}: counts {options.device} in {counted} and windows of {odometer.window} chunks; "
            f"expected {n} rows and no window: take another --device or ledger"
        )
