"""``eyestream privatize --mechanism NAME CORPUS``: a whole corpus of people at tasks, folder to folder."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.cli.options import positive
from eyestream.cli.progress import Progress
from eyestream.errors import ConfigError, meant
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.cli.options import own_options
from eyestream_lab.cli.privatize_words import tracker
from eyestream_lab.corpora.attacked import attacked
from eyestream_lab.corpora.corpus import PARTICIPANTS, Dataset
from eyestream_lab.corpora.kinds import FIXATIONS, ROWS, Kind, gaze_kind, rows_of_gaze
from eyestream_lab.corpora.layouts import open_folder
from eyestream_lab.corpora.registry import SYSTEMS, SystemEntry, make_system
from eyestream_lab.corpora.run import privatize_corpus
from eyestream_lab.recordings.worth import without_values

_OF_RECORDINGS = {
    "whole": False,
    "ledger": None,
    "device": None,
    "lifetime_epsilon": None,
    "lifetime_mode": None,
    "epsilon_prime": None,
    "sessions": None,
    "features": None,
}
"""Options that are not for a corpus, and what they are when nobody gives them."""
_NAMED = ("k", "gamma", "delta", "epsilon", "as_published", "every", "shrink", "smooth", "clip")
_USUAL_PROFILE = "degrees"


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--mechanism``, and options that are for a corpus alone."""
    parser.add_argument(
        "--mechanism",
        metavar="NAME",
        help="package.module:NAME of a mechanism that lives elsewhere; of a corpus a name, such as k-same-select",
    )
    group = parser.add_argument_group(
        "corpora",
        "With --mechanism NAME. Each system takes its own options (docs/releases-of-corpora.md), those that are not "
        "listed here as --option NAME=VALUE.",
    )
    group.add_argument("--k", type=int, metavar="K", help="people that go together; one sample in K")
    group.add_argument("--gamma", type=positive, metavar="G", help="width of a class of plausible deniability, above 1")
    group.add_argument("--delta", type=positive, metavar="D", help="of approximate differential privacy")
    group.add_argument(
        "--rate-hz",
        type=positive,
        metavar="R",
        help="samples a second of gaze whose profile leaves it open, or rows a second; released recordings have it",
    )
    group.add_argument("--fixations", action="store_true", help="the files are tables of fixations: x_deg,y_deg")
    group.add_argument(
        "--study",
        type=Path,
        metavar="DIR",
        help="of eyestream study --datasets: CLAIM.md says what attackers achieved there against this system",
    )
    group.add_argument("--as-published", action="store_true", help="a system as printed, which is not what it claims")


def check_no_corpus(options: argparse.Namespace) -> None:
    """Raise ConfigError where a corpus, or an option for one, stands in the place of recordings."""
    for path in options.recordings:
        if path.is_dir():
            raise ConfigError(f"{path}: is a folder; expected recordings, or --mechanism NAME for a corpus")
    if options.calibration is None or options.epsilon is None:
        raise ConfigError(
            "recordings need both --calibration and --epsilon, such as --calibration everyday-klt-anchored-64 "
            "--epsilon 4.8. For a corpus expected --mechanism NAME"
        )
    for option in ("k", "gamma", "delta", "rate_hz", "fixations", "study", "as_published"):
        if getattr(options, option):
            raise ConfigError(f"--{option.replace('_', '-')} is for a corpus; expected --mechanism NAME and its folder")


def main(options: argparse.Namespace) -> None:
    """Release a corpus into a folder that is new.

    Raises
    ------
    ConfigError, RecordingError, CalibrationError
        An option, the corpus, one of its recordings or the calibration cannot be used; nothing has been written then.
    """
    name = options.mechanism
    if name not in SYSTEMS:
        known = f"{', '.join(SYSTEMS)}, and for recordings package.module:NAME{meant(name, SYSTEMS)}"
        raise ConfigError(f"--mechanism {name}: there is none of this name; there are {known}")
    folder = _folder(options)
    entry = SYSTEMS[name]
    system = make_system(name, **_given(options))
    corpus = open_folder(folder, _kind(entry, options))
    found = attacked(options.study, system.name, system.options) if options.study is not None else None
    print(f"{system.name}: {len(corpus.people)} people, {len(corpus.tasks)} tasks, {len(corpus.parts)} recordings")
    for said in _of_calibration(options, corpus):
        print(said)
    shown: list[Progress] = []

    def progress(done: int, units: int, unit: str) -> None:
        if not shown:
            shown.append(Progress(system.name, units, "parts released"))
        shown[0](done)

    promise = privatize_corpus(system, corpus, options.out, attackers=found, progress=progress)
    for bar in shown:
        bar.clear()
    print(f"{options.out}: {promise.claim.statement}")
    for one in promise.not_promised:
        print(f"not promised: {one}")
    for one in promise.as_it_is:
        print(f"released as it is: {one}")
    print(f"{options.out / 'CLAIM.md'} says this for readers, and claim.json for machines.")


def _of_calibration(options: argparse.Namespace, corpus: Dataset[Any]) -> Iterator[str]:
    """Where the first recording does not fit a calibration, as it is said of recordings one by one."""
    if options.calibration is None or corpus.kind.name != "rows":
        return
    calibration, first = calibrations.load(options.calibration), corpus.parts[0].recording
    recording = corpus.load(corpus.parts[0])
    calibration.check_stream(recording.names, recording.rate_hz)
    known = tracker(calibration, recording)
    if known is not None:
        yield f"{first}: {known}"
    missing = without_values(recording, calibration, np.flatnonzero(~calibration.constant))
    if missing:
        yield f"{first}: no value of {', '.join(missing)}: released as if at the corpus' mean"


def _folder(options: argparse.Namespace) -> Path:
    """The corpus; ConfigError for what is none, or for options that are not for one."""
    if len(options.recordings) != 1 or not options.recordings[0].is_dir():
        given = ", ".join(map(str, options.recordings))
        expected = f"expected one folder with {PARTICIPANTS}, or of BIDS or GazeBase"
        known = next((one for one in calibrations.shipped() if one.startswith(f"everyday-{options.mechanism}-")), None)
        instead = "" if known is None else f"; to release recordings: --calibration {known}, without --mechanism"
        raise ConfigError(f"{given}: {expected}, for --mechanism {options.mechanism}{instead}")
    for option, usual in _OF_RECORDINGS.items():
        if getattr(options, option) != usual:
            raise ConfigError(f"--{option.replace('_', '-')} is for recordings: it is not for a corpus")
    folder: Path = options.recordings[0]
    return folder


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Options of the system, from those that were given."""
    given = own_options(options)
    for option in _NAMED:
        value = getattr(options, option)
        if value is not None and value is not False and (option, value) != ("every", 1):
            given[option] = value
    if options.calibration is not None:
        given["calibration"] = calibrations.load(options.calibration)
    return given


def _kind(entry: SystemEntry, options: argparse.Namespace) -> Kind[Any]:
    """Contents of the corpus, as the system reads it."""
    profile = options.profile
    if options.fixations:
        if not entry.fixations or profile is not None:
            raise ConfigError("--fixations is of saliency-gaussian, and goes without --profile")
        return FIXATIONS
    rate_hz = options.rate_hz
    if entry.reads == "rows" and profile is None:
        return replace(ROWS, rate_hz=rate_hz)
    declared = load_profile(profile or _USUAL_PROFILE)
    if rate_hz is not None:
        if declared.rate_hz not in (None, rate_hz):
            raise ConfigError(f"--rate-hz {rate_hz:g}: profile {declared.name} declares {declared.rate_hz:g}")
        declared = declared.at_rate(rate_hz)
    return gaze_kind(declared) if entry.reads == "gaze" else rows_of_gaze(declared)
