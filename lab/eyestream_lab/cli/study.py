"""`eyestream study`: what the mechanisms cost and what they stop, measured on recordings."""

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eyestream.cli.options import RECORDING, add_profile, positive, whole
from eyestream.cli.progress import Line, Progress
from eyestream.errors import ConfigError, ShortRecordingError, meant
from eyestream.gaze.profile import Profile
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations
from eyestream.rim.files.extraction import load_rows
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.cli.options import add_workers

Labels = dict[str, dict[str, str]] | None

_SUFFIXES = (".npz", ".csv", ".csv.gz")

_ATTACK_OPTIONS = ("attack", "mechanism", "calibration", "epsilon", "splits")

_ATTACKERS = ("likelihood", "exemplar", "exemplar-raw", "matcher", "lda", "nearest", "forest", "spread", "deep")


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "study",
        help="utility of the mechanisms and attacks on them, as a report",
        description="Calibrate on every second person, release the others through every mechanism, measure what is "
        "left of the signal and who is still recognised, and write one page with figures, CSV of every number "
        "and the settings. An interrupted study goes on where it stopped.",
    )
    parser.add_argument(
        "recordings", nargs="*", type=Path, metavar="RECORDINGS", help=f"{RECORDING}, or folders of them"
    )
    add_profile(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="made if it does not exist")
    parser.add_argument(
        "--table",
        metavar="NAME[=FILE]",
        help="make this table or figure alone, from cells that are saved in DIR or computed now: DIR/tables/NAME.md, "
        "or FILE; 'list' shows the names. 'attacks' is that of the attacks on people: DIR/attacks.md",
    )
    parser.add_argument(
        "--people",
        metavar="WHO",
        help="whose recordings these are: a table with recording and participant_id, a pattern with one group that "
        "finds the person in a file's name, such as '(P[0-9]+)_', or 'each' for another person each",
    )
    parser.add_argument("--labels", type=Path, metavar="FILE", help="CSV recording,person,label... to classify by")
    parser.add_argument("--published", type=Path, metavar="FILE", help="CSV of a paper's NMSE values, to show beside")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="PART",
        help="compute these parts alone and write their tables as CSV; tables, linkage (with --labels), central and "
        "asked are computed only when named, and have a page each",
    )
    parser.add_argument(
        "--datasets",
        action="store_true",
        help="RECORDINGS is the folder of a corpus of gaze (participants.tsv): release it by every system for whole "
        "corpora, or those of --only, and judge each; DIR/datasets.md. With --attack deep also by a dense network on "
        "samples, which takes minutes for each release",
    )
    parser.add_argument("--quick", action="store_true", help="small: to see that everything runs")
    parser.add_argument(
        "--seed",
        type=whole,
        metavar="N",
        help="let mechanisms draw from a generator with this seed, so that the same command gives the same tables, on "
        "processes or on a cluster; such releases have no guarantee, and are for tables alone (default: none)",
    )
    add_workers(parser, "do N cells at once, in processes (default: one for each core)")
    group = parser.add_argument_group(
        "attacks on people",
        "With one of these options only these attacks are made, on calibrations and on people who did not calibrate "
        "them; a table is written in place of the report. docs/attacks.md has the attackers.",
    )
    group.add_argument(
        "--attack",
        nargs="+",
        choices=_ATTACKERS,
        metavar="NAME",
        help=f"{', '.join(_ATTACKERS)} (default: all but deep, which needs 'eyestream-lab[deep]')",
    )
    group.add_argument(
        "--mechanism", metavar="NAME", help="limit them to one mechanism; also package.module:NAME of one elsewhere"
    )
    group.add_argument(
        "--calibration",
        nargs="+",
        metavar="NAME",
        help="shipped calibrations, or files (default: all that are shipped)",
    )
    group.add_argument("--epsilon", nargs="+", type=positive, metavar="E", help="of a chunk (default 2.4 4.8 24 48)")
    group.add_argument("--splits", type=int, metavar="S", help="random splits of the people (default 20; deep: 2)")
    group.add_argument(
        "--corpus",
        metavar="TEXT",
        help="what the recordings are, in words, for the table; with --datasets such as ehtask",
    )


def main(options: argparse.Namespace) -> None:
    """Run the study.

    Raises
    ------
    ConfigError
        A folder holds no recording, there is no such table, or the study cannot be made of
        the recordings.
    RecordingError
        A file is not a recording.
    """
    from eyestream_lab.study import run as tables  # noqa: PLC0415  heavy

    if options.table == "list":
        print(tables.listed())
        return
    if not options.recordings or options.out is None:
        raise ConfigError("RECORDINGS and --out DIR: expected what to study, and where to write")
    if options.datasets:
        print(f"{options.recordings[0]}: {_datasets(options)}")
        return
    attacking = any(getattr(options, name) is not None for name in _ATTACK_OPTIONS)
    name, file = _table(options.table, attacking, tables)
    if options.labels is None:
        tables.check_labelled([*(options.only or ()), *([name] if name else [])])  # before anything is read
    profile = load_profile(options.profile) if options.profile else None
    loaded = _long_enough(_files(options.recordings), profile)
    labels = _people(options, loaded)
    if attacking or name == tables.ATTACKS:
        page = _attack(options, loaded, labels, file)
    elif name is not None:
        page = _one_table(options, loaded, labels, name, file)
    else:
        page = _study(options, loaded, labels)
    Line().clear()
    print(f"{len(loaded)} recordings: {page}")


def _long_enough(paths: list[Path], profile: Profile | None) -> list[Recording]:
    """All recordings but those that are shorter than the window of a row, which are counted and named."""
    loaded, short = [], []
    counted = Progress("read", len(paths), "recordings")
    for number, path in enumerate(paths, start=1):
        try:
            loaded.append(load_rows(path, profile))
        except ShortRecordingError:
            short.append(path.name)
        counted(number)
    counted.clear()
    if short:
        told = f"{len(short)} of {len(paths)} recordings are shorter than the 30 s of a row and left out"
        print(f"{told}: {', '.join(short)}", file=sys.stderr)
    if not loaded:
        raise ConfigError(f"{paths[0]}: no recording is as long as the 30 s of a row")
    return loaded


def _people(options: argparse.Namespace, loaded: list[Recording]) -> Labels:
    """Who is who, as --labels or --people say; ConfigError where nobody says it and names leave it open."""
    from eyestream_lab.study.named import check_one_person_each, people_of  # noqa: PLC0415
    from eyestream_lab.study.population import read_labels  # noqa: PLC0415

    if options.labels is not None and options.people is not None:
        raise ConfigError("--people: not with --labels, whose column person says it")
    if options.labels is not None:
        return read_labels(options.labels)
    names = [Path(recording.path).name.split(".")[0] for recording in loaded]
    if options.people is not None:
        return people_of(names, options.people)
    check_one_person_each(names)
    return None


def _table(asked: str | None, attacking: bool, tables: Any) -> tuple[str | None, Path | None]:
    """Name and file out of NAME[=FILE]; with options of the attacks a file alone is that of their table."""
    if asked is None:
        return None, None
    name, equals, file = asked.partition("=")
    if attacking and not equals and name not in tables.TABLES:
        return tables.ATTACKS, Path(asked)
    if attacking and name != tables.ATTACKS:
        raise ConfigError(f"--table {asked}: with options of the attacks expected --table attacks, or attacks=FILE")
    if name not in tables.TABLES:
        raise ConfigError(
            f"--table {asked}: there is no such table{meant(name, tables.TABLES)}; eyestream study --table list shows "
            f"them; to have the attacks' table in a file: --table attacks={asked}"
        )
    return name, Path(file) if equals else None


def _one_table(
    options: argparse.Namespace, loaded: list[Recording], labels: Labels, name: str, file: Path | None
) -> Path:
    from eyestream_lab.study.run import made_quick  # noqa: PLC0415

    quick = options.quick or made_quick(options.out)
    if quick and not options.quick:
        print(f"{options.out} holds a quick study, and the table is of its cells: for a full one take another --out")
    path: Path = _made(options, loaded, labels, quick=quick).table(name, target=file, published=options.published)
    return path


def _study(options: argparse.Namespace, loaded: list[Recording], labels: Labels) -> Path:
    made = _made(options, loaded, labels, quick=options.quick)
    path: Path = made.parts(options.only) if options.only else made.report(options.published)
    return path


def _made(options: argparse.Namespace, loaded: list[Recording], labels: Labels, *, quick: bool) -> Any:
    from eyestream_lab.study.plan import FULL, QUICK  # noqa: PLC0415
    from eyestream_lab.study.run import Study  # noqa: PLC0415

    plan = QUICK if quick else FULL
    return Study(loaded, options.out, plan, labels, options.jobs, options.cluster, options.seed, Line())


def _datasets(options: argparse.Namespace) -> Path:
    from eyestream_lab.corpora.kinds import gaze_kind  # noqa: PLC0415
    from eyestream_lab.corpora.layouts import open_folder  # noqa: PLC0415
    from eyestream_lab.releases.study import study_datasets  # noqa: PLC0415

    if len(options.recordings) != 1:
        raise ConfigError("--datasets: expected one folder, of a corpus")
    if options.attack not in (None, ["deep"]):
        raise ConfigError("--attack: with --datasets expected deep or nothing; all others attack there anyway")
    if options.seed is not None:
        raise ConfigError("--seed: not with --datasets, whose releases of corpora take none")
    _check_extra(options.attack)
    return study_datasets(
        open_folder(options.recordings[0], gaze_kind(load_profile(options.profile or "degrees"))),
        options.out,
        only=options.only,
        name=options.corpus or "",
        splits=options.splits or 8,
        quick=options.quick,
        deep=options.attack is not None,
        jobs=options.jobs,
        cluster=options.cluster,
        progress=Line(),
    )


def _check_extra(attackers: Sequence[str] | None) -> None:
    """Raise ConfigError where one of them needs what is not installed."""
    if "deep" in (attackers or ()) and find_spec("jax") is None:
        raise ConfigError("jax not installed: pip install 'eyestream-lab[deep]'")


def _attack(options: argparse.Namespace, loaded: list[Recording], labels: Labels, table: Path | None) -> Path:
    from eyestream_lab.study.people.run import Scope, attack_people, subjects_of  # noqa: PLC0415

    attackers = tuple(name.replace("exemplar-raw", "exemplar, raw") for name in options.attack or _ATTACKERS[:-1])
    _check_extra(attackers)
    place = options.mechanism if options.mechanism is not None and ":" in options.mechanism else None
    mechanism = mechanism_elsewhere(place, "--mechanism").name if place is not None else options.mechanism
    named = options.calibration or calibrations.shipped()
    known = [(name, calibrations.load(name)) for name in named]
    usual = Scope(attackers=attackers)
    few = (2, 1) if options.quick else (usual.splits, usual.deep_splits)
    splits, deep_splits = (options.splits, options.splits) if options.splits is not None else few
    scope = Scope(tuple(options.epsilon or usual.epsilons), attackers, splits, deep_splits)
    return attack_people(
        loaded,
        options.out,
        subjects_of(known, mechanism, place, (32, 64, 128)[: 1 if options.quick else 3]),
        scope,
        corpus=(f"{options.corpus}; " if options.corpus else "")
        + f"{len(loaded)} recordings{', simulated' if any(r.simulated for r in loaded) else ''}, "
        f"{sum(len(r.t) for r in loaded)} rows" + (f", made from gaze by {options.profile}" if options.profile else ""),
        labels=labels,
        jobs=options.jobs,
        cluster=options.cluster,
        seed=options.seed,
        table=table,
        progress=Line(),
    )


def _files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES)) if path.is_dir() else [path]
        if not found:
            raise ConfigError(f"{path}: holds no recording")
        files += found
    return files
