"""``eyestream privatize``: recorded data sets, file to file."""

import argparse
import contextlib
import functools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.claims.correlation.published import Correlated
from eyestream.cli.ledger_words import plural
from eyestream.cli.options import RECORDING, add_profile, positive
from eyestream.cli.progress import Progress, load_all
from eyestream.core.calibration import Calibration
from eyestream.core.charge import DELTA_UNITS, EPSILON_UNITS, LEVELS, Ceilings, charge_of, charges_of
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.registry import entry_of
from eyestream.core.meter import Odometer
from eyestream.core.remaining import left_of
from eyestream.core.whole import chunk_count
from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.profile import Profile
from eyestream.ops.asked_sets import asked_features
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.extraction import stem
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.plan.ceilings import check_fading
from eyestream.rim.plan.words import too_little
from eyestream.streams import GAZE, StreamKey
from eyestream.wire.topics import FEATURE_STREAM
from eyestream_lab.cli import privatize_corpus
from eyestream_lab.cli.options import add_own_options, add_workers, check_targets, own_options
from eyestream_lab.cli.privatize_words import after, before, line
from eyestream_lab.cli.schedule import add_schedule, add_worth, check_schedule, first_row, kept_low
from eyestream_lab.files.labels import load_labels
from eyestream_lab.recordings.gaze import front_end_of, save_released_gaze, write_claim
from eyestream_lab.recordings.privatize import Booking, RefusedError, privatize, privatize_whole
from eyestream_lab.recordings.released import Released, claim_beside
from eyestream_lab.recordings.worth import refuse_own_people


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "privatize",
        help="release whole recordings privately, file to file",
        description="Release every chunk of each recording through the mechanism that the calibration was made for. "
        "This is one release: epsilon of all its chunks is spent, and running it again on the same "
        "recording spends as much again. Beside each file lies what is claimed of it, for machines "
        "(NAME.claim.json). With --mechanism NAME and a folder with participants.tsv, release a whole corpus of people "
        "at tasks: DIR is another such folder, with claim.json and CLAIM.md.",
    )
    parser.add_argument(
        "recordings", nargs="+", type=Path, metavar="RECORDING", help=f"{RECORDING}; or the folder of a corpus"
    )
    add_profile(parser)
    parser.add_argument("--calibration", metavar="FILE", help="file, or name of a shipped calibration")
    parser.add_argument(
        "--participants",
        type=Path,
        metavar="FILE.tsv",
        help="for a calibration with a history: a table with the columns participant_id and recording, which says "
        "whose sessions the recordings are; without it all are of one person, in the order given",
    )
    add_own_options(parser)
    parser.add_argument(
        "--features",
        metavar="NAME[,NAME...]",
        help="with a calibration such as everyday-asked-64: the one to three features, or the named set of them, that "
        "are released (docs/mechanisms.md)",
    )
    parser.add_argument("--epsilon", type=positive, metavar="E", help="of a chunk, all features together")
    privatize_corpus.add_options(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")
    parser.add_argument("--shrink", action="store_true", help="shrink toward the corpus mean (free post-processing)")
    parser.add_argument("--smooth", action="store_true", help="filter the chunks of a recording (free post-processing)")
    parser.add_argument("--clip", action="store_true", help="clip to the calibrated range (free post-processing)")
    parser.add_argument(
        "--ledger",
        type=Path,
        metavar="FILE",
        help="book what is spent in this ledger first, made with `eyestream budget --new`",
    )
    parser.add_argument("--device", metavar="ID", help="with --ledger: the pseudonym of the person's device")
    parser.add_argument(
        "--lifetime-epsilon",
        type=positive,
        metavar="L",
        help="with --ledger: release nothing that takes what it has booked for the device above L",
    )
    parser.add_argument(
        "--lifetime-mode",
        choices=("stop", "fade"),
        help="with --lifetime-epsilon: refuse what does not fit (stop, the default), or let epsilon of a chunk halve, "
        f"level by level, on {LEVELS} levels on the way there (fade); give the same at each run",
    )
    add_schedule(parser)
    add_workers(parser)
    add_worth(parser)
    parser.add_argument(
        "--whole", action="store_true", help="one chunk as long as the recording (FPA), range instead of ball"
    )


def main(options: argparse.Namespace) -> None:
    """Release every recording and write it under its own name.

    Raises
    ------
    ConfigError
        Epsilon is refused, two recordings share a name, one is not worth its epsilon, or DIR is where a
        recording lies or cannot be written.
    LedgerError
        The ledger cannot be used.
    RecordingError, CalibrationError
        A file is not what it should be, or the calibration is for other features.
    """
    if options.mechanism is not None and ":" not in options.mechanism:
        privatize_corpus.main(options)
        return
    _check_options(options)
    if options.mechanism is not None:
        mechanism_elsewhere(options.mechanism, "--mechanism")
    calibration = calibrations.load(options.calibration)
    profile = load_profile(options.profile) if options.profile else None
    slots = entry_of(calibration.mechanism).front_end is not None
    if slots and (profile is None or options.whole):
        raise ConfigError(f"{options.calibration} releases slots of gaze: expected --profile, and no --whole")
    targets = [options.out / (path.name if profile is None else f"{stem(path)}.npz") for path in options.recordings]
    check_targets(options.recordings, targets, what="release", plural="releases")
    check_targets(options.recordings, [claim_beside(target) for target in targets], what="claim", plural="claims")
    loaded = _loaded(options, calibration, profile)
    for said in before(options, calibration, loaded):
        print(said)
    if options.cluster is not None or options.jobs is not None:
        _release_with_workers(options, calibration, loaded, targets)
        return
    with _releases(options, calibration, loaded) as releases:
        if replaced := sum(target.exists() for target in targets):
            print(f"{plural(replaced, 'earlier release')} in {options.out} replaced. What was told still counts")
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{options.out}: cannot be written: {error.strerror}") from None
        made: list[Released] = []
        counted = Progress("released", len(loaded), "recordings")
        for index, (target, released) in enumerate(zip(targets, releases, strict=True), start=1):
            made += [released] if slots else []
            _write(released, target, booked=options.ledger is not None)
            counted.clear()
            print(line(released, target, fades=options.lifetime_mode == "fade"))
            counted(index)
    counted.clear()
    if slots:
        write_claim(made, targets, options.out / "claim.json")
    for said in after([] if slots else loaded, claim_beside(targets[0])):
        print(said)


def _loaded(options: argparse.Namespace, calibration: Calibration, profile: Profile | None) -> list[Recording]:
    """The recordings, which must be of the calibration's features and front end."""
    loaded = load_all(options.recordings, profile, front_end_of(calibration))
    for recording in loaded:
        _refuse_nothing(recording)
        calibration.check_stream(recording.names, recording.rate_hz)
        if recording.front_end is not None:
            calibration.check_front_end(recording.front_end)
        refuse_own_people(calibration, recording, recording.path)
    if not calibration.sessions and options.participants is not None:
        raise ConfigError(f"--participants: is for calibrations with a history, not for {calibration.mechanism}")
    one_by_one = calibration.sessions or entry_of(calibration.mechanism).front_end is not None
    if one_by_one and (options.cluster is not None or options.jobs is not None):
        raise ConfigError(f"--jobs, --cluster: not for {calibration.mechanism}, whose releases are made in order")
    return loaded


def _check_options(options: argparse.Namespace) -> None:
    """Raise ConfigError for options that do not go together."""
    privatize_corpus.check_no_corpus(options)
    if options.whole and (
        options.shrink or options.clip or options.smooth or options.option or options.features is not None
    ):
        raise ConfigError(
            "--whole releases plainly: --shrink, --clip, --smooth, --option and --features are not for it"
        )
    check_schedule(options)
    if (options.ledger is None) != (options.device is None):
        raise ConfigError("--ledger and --device go together")
    if options.whole and (options.cluster is not None or options.jobs is not None):
        raise ConfigError("--jobs and --cluster release chunks: they are not for --whole")
    if options.ledger is not None and options.whole:
        raise ConfigError("--ledger counts chunks: it is not for --whole")
    if options.lifetime_epsilon is not None and options.ledger is None:
        raise ConfigError("--lifetime-epsilon is of what a ledger has booked: expected --ledger too")
    if options.lifetime_mode is not None and options.lifetime_epsilon is None:
        raise ConfigError("--lifetime-mode goes with --lifetime-epsilon")


def _people(options: argparse.Namespace) -> list[str]:
    """Person of each recording; nothing where all are of one person."""
    if options.participants is None:
        return []
    return [one.person for one in load_labels(options.participants, "participant_id", options.recordings)]


@contextlib.contextmanager
def _releases(
    options: argparse.Namespace, calibration: Calibration, loaded: list[Recording]
) -> Iterator[Iterator[Released]]:
    """The releases, made as they are taken; with --ledger all are booked before the first is made."""
    if options.whole:
        if calibration.takes_off is not None:
            what = "history" if calibration.sessions else "baseline"
            raise ConfigError(f"--whole: not for a calibration with a {what}, whose ranges are of residual rows")
        first_row(options, calibration, loaded, np.flatnonzero(~calibration.constant))
        yield privatize_whole(loaded, calibration, options.epsilon)
        return
    if options.ledger is not None and options.participants is not None:
        raise ConfigError("--ledger books one person's device: it is not for --participants")
    mechanism, correlated = _built(options, calibration, loaded)
    first = first_row(options, calibration, loaded, mechanism.frame.active)
    with booked(options, calibration, loaded, mechanism, first) as booking:
        people = _people(options)
        made = privatize(loaded, calibration, mechanism, booking, every=options.every, first_row=first, people=people)
        yield (_under_class(released, correlated) for released in made)


def _write(released: Released, target: Path, *, booked: bool) -> None:
    """A release, and what is claimed of it beside it."""
    try:
        save = save_released_gaze if set(GAZE) <= set(released.recording.names) else recordings.save
        save(released.recording, target)
        released.save_claim(target)
    except OSError as error:
        said = f"{error.filename or target}: cannot be written: {error.strerror or error}"
        raise ConfigError(f"{said}; what was booked stays spent" if booked else said) from None


def _under_class(released: Released, correlated: Correlated | None) -> Released:
    """With what the whole recording tells of one chunk in its guarantee."""
    return replace(released, guarantee=replace(released.guarantee, correlated=correlated))


def _given(options: argparse.Namespace, calibration: Calibration) -> dict[str, Any]:
    """Options of the mechanism."""
    own = own_options(options) | {key: True for key in ("shrink", "clip", "smooth") if getattr(options, key)}
    if options.features is None:
        return own
    if "features" in own:
        raise ConfigError("--features and --option features=... say the same: expected one of them")
    return own | {"features": asked_features(options.features, calibration.names)}


def _built(
    options: argparse.Namespace, calibration: Calibration, loaded: list[Recording]
) -> tuple[Mechanism, Correlated | None]:
    """The mechanism and the claim of `kept_low`; says where its epsilon leaves nothing to see."""
    build_at = functools.partial(build, calibration, **_given(options, calibration))
    mechanism, correlated = kept_low(options, calibration, loaded, build_at)
    for said in too_little(mechanism):
        print(f"warning: {said}")
    return mechanism, correlated


def _release_with_workers(
    options: argparse.Namespace, calibration: Calibration, loaded: list[Recording], targets: list[Path]
) -> None:
    """Release them on processes or on a cluster."""
    from eyestream_lab.recordings.batch import BatchSettings, privatize_batch  # noqa: PLC0415  for who asks for workers

    mechanism, correlated = _built(options, calibration, loaded)
    first = first_row(options, calibration, loaded, mechanism.frame.active)
    counted = Progress("privatize", len(loaded), "recordings")
    with booked(options, calibration, loaded, mechanism, first) as booking:
        claims = privatize_batch(
            loaded,
            targets,
            BatchSettings(
                calibration,
                mechanism.epsilon,
                _given(options, calibration),
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


def _refuse_nothing(recording: Recording) -> None:
    """Raise RecordingError for a recording in which every value is missing: a release would spend epsilon on nothing.

    Who sees the refusal holds the recording. That the eye was never seen is in no release.
    """
    if not np.isfinite(recording.features).any():
        raise RecordingError(
            f"{recording.path}: every value of its {len(recording.t)} rows is missing, so nothing is released and "
            "nothing spent. Are the unit and the columns of the profile those of the file?"
        )


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
    """Refuse what does not fit as a whole, before any of it is spent."""
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
