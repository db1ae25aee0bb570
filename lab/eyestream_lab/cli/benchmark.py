"""`eyestream benchmark`: systems that hide who looked, and attackers on them, judged alike on a corpus of gaze."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eyestream.cli.options import add_profile, whole
from eyestream.cli.progress import Line
from eyestream.errors import ConfigError
from eyestream.rim.files.profiles import load_profile


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "benchmark",
        help="judge systems that hide the wearer's identity, yours and others', on a corpus",
        description="Give each system a folder of recordings, and let attackers name the people in what it writes. "
        "Writes one JSON file a run. With --page, makes one page of many such files. docs/benchmark.md has examples.",
    )
    parser.add_argument(
        "given", nargs="*", type=Path, metavar="CORPUS", help="folder with participants.tsv; with --page, JSON files"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the JSON file of the run; an interrupted one goes on")
    parser.add_argument("--page", type=Path, metavar="DIR", help="make DIR/benchmark-figures.md of JSON files")
    parser.add_argument("--schema", action="store_true", help="print the schema of the JSON file")
    add_profile(parser)
    parser.add_argument(
        "--system",
        action="append",
        metavar="S",
        help="[NAME=]'PROGRAM {in} {out}', [NAME=]package.module:FUNCTION, or one of ours as NAME:option=value,... "
        "(kalman:sd_deg=1.0,push=500), or preset:NAME, or 'presets' for all published ones; more than once",
    )
    parser.add_argument(
        "--attacker",
        action="append",
        metavar="A",
        help="[NAME=]'PROGRAM {labelled} {unnamed} {scores}', or [NAME=]package.module:FUNCTION; more than once",
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these attackers of the list alone, to try it")
    parser.add_argument("--corpus", metavar="TEXT", default="", help="name of the corpus, for the page")
    parser.add_argument("--sha256", metavar="HEX", default="", help="refuse recordings whose hash begins otherwise")
    parser.add_argument(
        "--tasks-are",
        choices=("sessions", "activities", "pieces"),
        default="sessions",
        help="what the tasks of participants.tsv are: other sessions, other activities, or pieces of one recording",
    )
    parser.add_argument("--trials", type=int, default=2, metavar="N", help="ways to divide the tasks (default: 2)")
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of all that is random here (default: 0)")
    parser.add_argument("--limit", type=float, default=3600.0, metavar="S", help="seconds of a program (default 3600)")


def main(options: argparse.Namespace) -> None:
    """Run it.

    Raises
    ------
    ConfigError
        An option or a file makes no sense.
    RecordingError
        The folder is no corpus.
    """
    from eyestream_lab.benchmark import page, run  # noqa: PLC0415  heavy

    if options.schema:
        print(page.schema())
        return
    if options.page is not None:
        if not options.given:
            raise ConfigError("--page: expected one or more JSON files of runs")
        print(page.write_page([run.load_run(path) for path in options.given], options.page))
        return
    if len(options.given) != 1 or options.out is None:
        raise ConfigError("CORPUS and --out FILE: expected a folder of recordings, and where to write")
    _run(options)


def _run(options: argparse.Namespace) -> None:
    from eyestream_lab.benchmark.attackers import ATTACKERS  # noqa: PLC0415
    from eyestream_lab.benchmark.outside import ATTACKER_PLACES, program_of  # noqa: PLC0415
    from eyestream_lab.benchmark.page import finding  # noqa: PLC0415
    from eyestream_lab.benchmark.run import benchmark  # noqa: PLC0415
    from eyestream_lab.corpora.kinds import gaze_kind  # noqa: PLC0415
    from eyestream_lab.corpora.layouts import open_folder  # noqa: PLC0415

    unknown = [name for name in options.only or () if name not in ATTACKERS]
    if unknown:
        raise ConfigError(f"--only {unknown[0]}: expected {', '.join(ATTACKERS)}")
    found = benchmark(
        open_folder(options.given[0], gaze_kind(load_profile(options.profile or "degrees"))),
        _systems(options.system or (), options.seed),
        options.out,
        name=options.corpus,
        tasks_are=options.tasks_are,
        attackers=[program_of(text, ATTACKER_PLACES, "--attacker") for text in options.attacker or ()],
        only=options.only,
        trials=options.trials,
        seed=options.seed,
        limit_s=options.limit,
        sha256=options.sha256,
        progress=Line(),
    )
    Line().clear()
    for one in found.systems:
        print(f"{one.name}: {finding(one)}")
    print(options.out)


def _systems(texts: Sequence[str], seed: int) -> list[Any]:
    from eyestream_lab.benchmark.neighbours import PRESETS, source_of  # noqa: PLC0415
    from eyestream_lab.benchmark.ours import spec_of  # noqa: PLC0415
    from eyestream_lab.benchmark.outside import SYSTEM_PLACES, Program, program_of  # noqa: PLC0415
    from eyestream_lab.benchmark.run import Wanted  # noqa: PLC0415
    from eyestream_lab.corpora.registry import SYSTEMS  # noqa: PLC0415

    found: list[Wanted] = []
    given = [one for text in texts for one in ([f"preset:{name}" for name in PRESETS] if text == "presets" else [text])]
    for asked in given:
        head, _, name = asked.partition(":")
        if head == "preset" and name not in PRESETS:
            raise ConfigError(f"--system {asked}: expected one of {', '.join(PRESETS)}")
        text = PRESETS[name].spec if head == "preset" else asked
        if text.partition(":")[0] in SYSTEMS:
            spec_of(text)
            words = (sys.executable, "-m", "eyestream_lab.benchmark.ours", text, str(seed), "{in}", "{out}")
            found.append(Wanted(text, Program(text, words), text, *source_of(text)))
        else:
            program = program_of(text, SYSTEM_PLACES, "--system")
            found.append(Wanted(program.name, program, text))
    names = [one.name for one in found]
    twice = [name for name in names if names.count(name) > 1 or name == "raw"]
    if twice:
        raise ConfigError(f"--system: {twice[0]} is the name of two systems; expected NAME=... for one of them")
    return found
