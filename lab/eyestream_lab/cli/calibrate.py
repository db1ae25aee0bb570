"""``eyestream calibrate``: what a mechanism must know, from recordings of a public corpus."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.cli.options import RECORDING, add_profile
from eyestream.cli.progress import busy, load_all
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.mechanisms.entry import Entry, referred
from eyestream.core.mechanisms.registry import names
from eyestream.core.release_type import Rows
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.elsewhere import mechanism_named
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus, refuse_twice
from eyestream_lab.cli.options import add_own_options, own_options
from eyestream_lab.files.books import with_shipped_books
from eyestream_lab.files.labels import load_labels
from eyestream_lab.parts import calibrate, declared_range, part_of
from eyestream_lab.words.directions import LabelledSession

_INSIDE = (
    "Do not release the people of these recordings with it: who is in a calibration is found more easily "
    "(docs/corpus-figures.md has figures)"
)


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "calibrate",
        help="make a calibration from public recordings",
        description="Learn what a mechanism must know before it may see a user: the range of every feature, and the "
        "ball that every chunk is projected onto. A calibration is not private. Use recordings of people who "
        "agreed to publish them, one recording a person, and never those of the people it will protect: who is in a "
        "calibration is found more easily in what is released with it.",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help=RECORDING)
    add_profile(parser)
    parser.add_argument(
        "--adapt",
        metavar="BASE",
        help="a calibration of klt or of asked features, file or shipped name, made again for the tracker of the "
        "recordings: maps or units of the features from them, and a mixture of both models; needs neither --mechanism "
        "nor --chunk",
    )
    parser.add_argument(
        "--mechanism",
        metavar="NAME",
        help=f"what it is for: {', '.join(names())}, or package.module:NAME of one that lives elsewhere",
    )
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="FILE.tsv",
        help="a table with the columns participant_id, recording and --task: make a judge of tasks (task-words), for "
        "purpose tasks. Several recordings of each person; needs no --mechanism",
    )
    parser.add_argument("--task", metavar="COLUMN", help="with --labels: the column that says what somebody did")
    parser.add_argument(
        "--pseudonym",
        type=int,
        metavar="N",
        help="with --labels: sessions of a pseudonym, the withheld first one included (default 10)",
    )
    parser.add_argument("--chunk", type=int, metavar="N", help="rows a chunk: 32, 64, 128 or so")
    parser.add_argument(
        "--k", type=int, metavar="K", help="Fourier coefficients to keep (default: the best for epsilon)"
    )
    parser.add_argument(
        "--coverage",
        type=float,
        metavar="Q",
        help="share of the chunks that the ball holds; 1 for the smallest ball that holds all (default 0.95)",
    )
    parser.add_argument(
        "--one-score",
        "--shed-identity",
        dest="shed_identity",
        type=float,
        metavar="W",
        help="klt: code only the one score that changes most within people; this reduces how well they are "
        "recognised, and does not hide them. W divides what stays with a person by 1 + W, which a reader can undo",
    )
    parser.add_argument(
        "--anchored",
        action="store_true",
        default=None,
        help="klt: take a baseline of its first minute, which is withheld, off every session: what is constant in a "
        "wearer cancels exactly",
    )
    parser.add_argument(
        "--linear",
        action="store_true",
        help="klt: code features as they are, as version 0.1.0 did, not half by their ranks",
    )
    parser.add_argument(
        "--constant",
        action="append",
        metavar="NAME",
        help="a feature that is released as a constant and never read (default: the wordbook minima)",
    )
    parser.add_argument(
        "--range", action="store_true", help="use the range of each feature as the domain instead of a ball"
    )
    add_own_options(parser)
    parser.add_argument("--about", default="recordings given by the user", help="what the recordings are, in words")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write; must not exist")


def main(options: argparse.Namespace) -> None:
    """Calibrate and write the file.

    Raises
    ------
    ConfigError
        The chunk length is no power of two, a constant is no feature, or FILE is there already or cannot be written.
    CalibrationError
        There is no such mechanism, a recording was given twice, or they do not fit together, or hold no whole chunk.
    """
    if options.out.exists():
        raise ConfigError(f"{options.out}: exists already; nothing was written")
    if options.adapt is not None:
        _adapt(options)
        return
    if options.labels is not None or options.task is not None or options.pseudonym is not None:
        _label(options)
        return
    if options.mechanism is None or options.chunk is None:
        raise ConfigError("expected --mechanism and --chunk, or --adapt BASE")
    entry = _entry(options.mechanism)
    if not entry.mechanism.domain.takes(options.chunk):
        raise ConfigError(f"--chunk must be {entry.mechanism.domain.length}, not {options.chunk}")
    loaded = _loaded(options)
    names = loaded[0].names
    unknown = [name for name in options.constant or () if name not in names]
    if unknown:
        raise ConfigError(f"--constant {unknown[0]}: the recordings have no such feature")
    corpus = Corpus.of(loaded, options.chunk)
    calibration = _calibrated(options, entry, corpus)
    _save(calibration, options.out)
    active = ~calibration.constant
    print(
        f"{options.out}: {entry.name}, chunks of {options.chunk} rows, {active.sum()} of {len(names)} features "
        f"released, {len(corpus.chunks)} chunks of {len(loaded)} recordings, hash {calibration.content_hash}"
    )
    if corpus.lacks:
        print(f"features that are not in every recording: {corpus.lacks}")
    print(_INSIDE)
    tables = calibration.tables
    if isinstance(tables, PerFeatureTables) and not options.range:
        covered = np.median(tables.diameter[active] / (2 * tables.radius[active]))
        print(f"largest distance of two chunks over the sensitivity, median feature: {covered:.2f}")


def _loaded(options: argparse.Namespace) -> list[Recording]:
    """The recordings, each of which must be there once."""
    profile = load_profile(options.profile) if options.profile else None
    loaded = load_all(options.recordings, profile)
    refuse_twice(loaded)
    return loaded


def _save(calibration: Calibration, path: Path) -> None:
    try:
        calibrations.save(calibration, path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None


def _adapt(options: argparse.Namespace) -> None:
    """A calibration that is there, made anew for another tracker."""
    given = {
        name: getattr(options, name) for name in ("mechanism", "chunk", "coverage", "k", "shed_identity", "constant")
    }
    given |= {name: getattr(options, name) for name in ("labels", "task", "pseudonym")}
    _refuse_others(options, given, "--adapt, which takes it from BASE")
    base = calibrations.load(options.adapt)
    adapt = referred(part_of(base.mechanism).adapt)
    if adapt is None:
        raise CalibrationError(
            f"--adapt: the calibration to adapt has no maps of features; it is one of {base.mechanism}"
        )
    loaded = _loaded(options)
    with busy(f"adapting to {len(loaded)} recordings"):
        calibration, kept = adapt(base, Corpus.of(loaded, base.n), options.about)
    _save(calibration, options.out)
    print(
        f"{options.out}: {base.mechanism}, chunks of {base.n} rows, adapted from {options.adapt} to {len(loaded)} "
        f"recordings, hash {calibration.content_hash}"
    )
    if kept:
        constant = calibration.constant[calibration.names.index(kept[0])]
        then = "nobody can ask for them" if constant else f"they have the map of {options.adapt}"
        print(f"features that did not vary or were not there, so {then}: {', '.join(kept)}")
    print(_INSIDE)


def _refuse_others(options: argparse.Namespace, given: dict[str, Any], what: str) -> None:
    """Raise ConfigError for an option that was given and is not for `what`."""
    given |= {name: getattr(options, name) or None for name in ("anchored", "linear", "range", "option")}
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"--{name.replace('_', '-')} is not for {what}")


def _label(options: argparse.Namespace) -> None:
    """A judge of tasks."""
    if options.labels is None or options.task is None or options.chunk is None:
        raise ConfigError("expected --labels FILE.tsv, --task COLUMN and --chunk N together")
    given = {name: getattr(options, name) for name in ("mechanism", "coverage", "k", "shed_identity")}
    _refuse_others(options, given, "--labels")
    if not Rows().takes(options.chunk):
        raise ConfigError(f"--chunk must be {Rows().length}, not {options.chunk}")
    known = load_labels(options.labels, options.task, options.recordings)
    people: dict[str, list[LabelledSession]] = {}
    for recording, one in zip(_loaded(options), known, strict=True):
        people.setdefault(one.person, []).append(LabelledSession(one.label, recording))
    labelled = next(found for name in names() if (found := part_of(name).labelled) is not None)
    given = {"sessions": options.pseudonym, "declared": options.constant, "description": options.about}
    asked = {name: value for name, value in given.items() if value is not None}
    with busy(f"learning a judge from {len(known)} recordings"):
        calibration, notes = referred(labelled)(list(people.values()), options.chunk, **asked)
    _save(calibration, options.out)
    tasks = sorted({one.label for one in known})
    print(
        f"{options.out}: {calibration.mechanism}, chunks of {options.chunk} rows, {len(tasks)} words "
        f"({', '.join(tasks)}), {len(known)} recordings of {len(people)} people, hash {calibration.content_hash}"
    )
    for line in notes:
        print(line)


def _entry(named: str) -> Entry:
    try:
        return mechanism_named(named, "--mechanism")
    except CalibrationError as error:
        raise ConfigError(f"--mechanism: {error}") from None


def _calibrated(options: argparse.Namespace, entry: Entry, corpus: Corpus) -> Calibration:
    own = {name: getattr(options, name) for name in ("coverage", "k", "shed_identity", "anchored")}
    own["ranks"] = False if options.linear else None
    for name, value in own.items():
        if value is not None and name not in part_of(entry.name).calibration_options:
            said = "linear" if name == "ranks" else name.replace("_", "-")
            raise ConfigError(f"--{said} is not for {entry.name}")
    if options.range and part_of(entry.name).declare is None:
        raise ConfigError(f"--range is not for {entry.name}, which has no ball")
    declared = None if options.constant is None else tuple(options.constant)
    given: dict[str, Any] = {"declared": declared, "description": options.about}
    with busy(f"learning {entry.name} from {len(corpus.hashes)} recordings") as counted:
        given["progress"] = counted
        calibration = calibrate(
            entry.name, corpus, **with_shipped_books(entry.name, own_options(options) | given | own)
        )
    return declared_range(calibration, options.chunk) if options.range else calibration
