"""``eyestream privatize --jobs`` and ``--cluster``: many recordings by many workers."""

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eyestream.cli.ledger_words import plural
from eyestream.cli.progress import Progress
from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.rim.files.recordings import Recording
from eyestream_lab.cli.booking import booked
from eyestream_lab.cli.options import own_options
from eyestream_lab.cli.privatize_words import after
from eyestream_lab.cli.schedule import kept_low
from eyestream_lab.recordings.released import claim_beside

__all__ = ["batch", "builder"]


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Options of the mechanism."""
    return own_options(options) | {key: True for key in ("shrink", "clip", "smooth") if getattr(options, key)}


def builder(options: argparse.Namespace, calibration: Calibration) -> Callable[[float], Mechanism]:
    """The mechanism of an epsilon."""
    return functools.partial(build, calibration, **_given(options))


def batch(
    options: argparse.Namespace, calibration: Calibration, loaded: list[Recording], targets: list[Path], first: int
) -> None:
    """Release them on processes or on a cluster."""
    from eyestream_lab.recordings.batch import BatchSettings, privatize_batch  # noqa: PLC0415  for who asks for workers

    mechanism, correlated = kept_low(options, calibration, loaded, builder(options, calibration))
    counted = Progress("privatize", len(loaded), "recordings")
    with booked(options, calibration, loaded, mechanism, first) as booking:
        claims = privatize_batch(
            loaded,
            targets,
            BatchSettings(
                calibration,
                mechanism.epsilon,
                _given(options),
                place=options.mechanism,
                every=options.every,
                first_row=first,
                levels=1 if booking is None else booking.levels,
                correlated=correlated,
            ),
            booking,
            cluster=options.cluster,
            jobs=options.jobs or 1,
            progress=counted,
        )
    counted.clear()
    for target, claim in zip(targets, claims, strict=True):
        print(f"{target}: {plural(claim['chunks'])}" + (f", epsilon {e:g}" if (e := claim["epsilon"]) else ""))
    for said in after(loaded, claim_beside(targets[0])):
        print(said)
