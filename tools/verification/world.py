"""`python -m tools.verification.world --seeds N`: histories of the whole world, each from one seed, and their judge.

    python -m tools.verification.world --seeds 1000
    python -m tools.verification.world --part fleet --only 17        # one seed, with its story
    python -m tools.verification.world --seeds 1000000 --jobs 2 --json world.json
    python -m tools.verification.world --planted all --seeds 2000    # faults are planted: each must be found
    python -m tools.verification.world --page world.json             # plays nothing: puts the figures into a page

It stops at the first history that is wrong, and prints it as short as it can be, and the command that plays it again.
What is done stands in the file of `--json` every few seconds, and the same command goes on there. A long run may be cut
into several, with `--first` and a file for each; `--page` takes them all.

The exit code is 1 where a history is wrong, or a planted fault is not found.
"""

import argparse
import contextlib
import gc
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.rigs.simulated.planted import PLANTED
from tests.rigs.simulated.playing import PARTS, found_by, play, shortened

__all__ = ["main"]

PAGE = Path(__file__).parents[2] / "docs" / "promises.md"
BEGIN, END = "<!-- world: begin -->\n", "<!-- world: end -->\n"

_BLOCK = 100
_SAID_EVERY_S = 10.0
_DIGESTS = 1 << 64


class Block(NamedTuple):
    """What became of some seeds that follow one another.

    `digest` is the sum of the digests of the histories, so that it does not matter how seeds are cut into runs.
    """

    histories: int
    chunks: int
    digest: int
    processor_s: float
    wrong: list[int]


def play_block(part: str, seeds: range) -> Block:
    """Play them up to the first one that is wrong."""
    gc.disable()  # cycles are collected by hand: that is a fifth faster
    before, histories, chunks, digest = time.process_time(), 0, 0, 0
    wrong: list[int] = []
    for seed in seeds:
        one = play(part, seed)
        histories, chunks, digest = histories + 1, chunks + one.chunks, (digest + int(one.digest, 16)) % _DIGESTS
        if one.faults:
            wrong.append(seed)
            break
    gc.collect()
    return Block(histories, chunks, digest, time.process_time() - before, wrong)


class Report:
    """What is done, in a file that a run goes on with.

    Raises
    ------
    SystemExit
        The file is of another commit, another interpreter or other seeds.
    """

    def __init__(self, file: Path | None, first: int) -> None:
        self._file, self._written = file, time.monotonic()
        self.parts: dict[str, dict[str, Any]] = {}
        self._made = {"commit": _commit(), "python": platform.python_version(), "first": first}
        if file is not None and file.exists():
            told = json.loads(file.read_text())
            self.parts = told.pop("parts")
            if told != self._made:
                raise SystemExit(f"{file}: is of {told}, and this is {self._made}: take another file")

    def done(self, part: str) -> int:
        """How many seeds."""
        return int(self.parts.setdefault(part, Block(0, 0, 0, 0.0, [])._asdict())["histories"])

    def note(self, part: str, block: Block) -> None:
        """Some more are done; written every few seconds."""
        own = self.parts[part]
        for name, value in block._asdict().items():
            own[name] += value
        own["digest"] %= _DIGESTS
        if time.monotonic() - self._written > _SAID_EVERY_S:
            self.write()

    def write(self) -> None:
        """Whole, or not at all."""
        self._written = time.monotonic()
        if self._file is not None:
            beside = self._file.with_suffix(".partial")
            beside.write_text(json.dumps(self._made | {"parts": self.parts}, indent=1) + "\n")
            beside.replace(self._file)


def _commit() -> str:
    """The commit that is checked out; with a plus sign where files differ from it; empty outside of a checkout."""

    def said(*words: str) -> str:
        return subprocess.run(["git", *words], capture_output=True, text=True, check=True, cwd=PAGE.parent).stdout

    try:
        return said("rev-parse", "HEAD").strip() + "+" * bool(said("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return ""


def _run(part: str, seeds: range, jobs: int, report: Report) -> int:
    """Play what is not done yet; gives how many histories are wrong."""
    done = report.done(part)
    own = report.parts[part]
    blocks = [] if own["wrong"] else [seeds[at : at + _BLOCK] for at in range(done, len(seeds), _BLOCK)]
    said = began = time.monotonic()
    try:
        with contextlib.ExitStack() as stack:
            for block in _played(part, blocks, jobs, stack):
                report.note(part, block)
                if block.wrong:
                    break
                if time.monotonic() - said > _SAID_EVERY_S:
                    said = time.monotonic()
                    now = report.done(part)
                    left = (said - began) / (now - done) * (len(seeds) - now)
                    print(
                        f"{part}: {now} of {len(seeds)} histories, {left / 60:.0f} min left",
                        file=sys.stderr,
                        flush=True,
                    )
    finally:
        report.write()
    rate = own["histories"] / (own["processor_s"] or 1.0)
    print(
        f"{part}: {own['histories']} histories, {own['chunks']} chunks, {len(own['wrong'])} wrong, "
        f"digest {own['digest']:016x}, {rate:.0f} a second of processor",
        flush=True,
    )
    for seed in own["wrong"]:
        _explain(part, seed)
    return len(own["wrong"])


def _played(part: str, blocks: Sequence[range], jobs: int, stack: contextlib.ExitStack) -> Iterator[Block]:
    """What becomes of each block, in order."""
    if jobs == 1:
        return map(partial(play_block, part), blocks)
    pool = stack.enter_context(ProcessPoolExecutor(jobs))
    stack.callback(pool.shutdown, wait=True, cancel_futures=True)
    return pool.map(partial(play_block, part), blocks)


def _explain(part: str, seed: int, planted: str = "") -> None:
    """A failure in as few lines as it needs, and how to see it again."""
    history = shortened(part, seed)
    print(f"\n{part} {seed}: {history.judge.faults[0]}")
    print(f"    with {', '.join(sorted(history.on)) or 'no fault of the surroundings'}")
    print("    " + "\n    ".join(history.story))
    more = f" --planted {planted}" if planted else ""
    print(f"    python -m tools.verification.world --part {part} --only {seed}{more}")


def _show(parts: list[str], seed: int, planted: str | None) -> int:
    failed = False
    if planted:
        part, plant = PLANTED[planted]
        with plant():
            _explain(part, seed, planted)
        return 1
    for part in parts:
        history = PARTS[part](seed)
        faults = history.run()
        print(f"{part} {seed}: with {', '.join(sorted(history.on)) or 'no faults'}")
        print("    " + "\n    ".join(history.story))
        print(f"    {len(history.judge.chunks)} chunks, digest {history.judge.digest.hexdigest()}")
        failed |= bool(faults)
        if faults:
            _explain(part, seed)
    return int(failed)


def _search(names: list[str], seeds: int) -> int:
    missed = 0
    for name in names:
        seed = found_by(name, seeds)
        missed += seed is None
        print(f"{name}: {'NOT FOUND' if seed is None else f'found by seed {seed}'}", flush=True)
    return missed


def page(reports: Sequence[dict[str, Any]]) -> str:
    """A table of runs whose seeds follow one another: a row for each part and commit, in the order of the seeds.

    Raises
    ------
    SystemExit
        They are of files that were changed; a history is wrong; or seeds are left out or played twice.
    """
    if any(not one["commit"] or one["commit"].endswith("+") for one in reports):
        raise SystemExit("expected runs of commits, with no file changed")
    lines = ["| part | seeds | chunks | wrong | digest | commit | Python |", "|---|---|---|---|---|---|---|"]
    for part in PARTS:
        rows, end = dict[tuple[str, str], list[int]](), 0
        for one in sorted((one for one in reports if part in one["parts"]), key=lambda one: one["first"]):
            run, row = one["parts"][part], rows.setdefault((one["commit"], one["python"]), [0, 0, 0])
            if one["first"] != end or run["wrong"]:
                raise SystemExit(f"{part}: seeds from {end} on are missing or twice, or a history is wrong")
            end += run["histories"]
            row[:] = [sum_ + run[name] for sum_, name in zip(row, ("histories", "chunks", "digest"), strict=True)]
        for (commit, python), (histories, chunks, digest) in rows.items():
            text = f"{digest % _DIGESTS:016x}"
            lines.append(f"| `{part}` | {histories:,} | {chunks:,} | 0 | `{text}` | `{commit[:12]}` | {python} |")
    return "\n".join(lines)


def put_in(text: str, table: str) -> str:
    """A page with the table between its two lines of comment. Raises ValueError where one of them is missing."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


def _whole(text: str) -> int:
    """A seed, or how many."""
    with contextlib.suppress(ValueError):
        if (number := int(text)) >= 0:
            return number
    raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, not {text!r}")


def main(arguments: list[str] | None = None) -> int:
    """Play, show, search or write a page."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.verification.world",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=_whole, default=1000, metavar="N", help="so many seeds (1000)")
    parser.add_argument("--first", type=_whole, default=0, metavar="SEED", help="from this one on (0)")
    parser.add_argument("--only", type=_whole, metavar="SEED", help="this one, with its story")
    parser.add_argument("--part", choices=PARTS, help="one part of the world; without it all of them")
    parser.add_argument("--planted", choices=["all", *PLANTED], metavar="NAME", help="plant a fault, or all in turn")
    parser.add_argument("--jobs", type=_whole, default=1, metavar="N", help="processes (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="figures; what they hold is not played again")
    parser.add_argument("--page", type=Path, nargs="+", metavar="FILE", help=f"put such figures into {PAGE.name}")
    options = parser.parse_args(arguments)
    if options.page:
        table = page([json.loads(file.read_text()) for file in options.page])
        PAGE.write_text(put_in(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
        return 0
    parts = [options.part] if options.part else list(PARTS)
    if options.only is not None:
        return _show(parts, options.only, options.planted)
    if options.planted:
        names = list(PLANTED) if options.planted == "all" else [options.planted]
        return _search(names, options.seeds)
    report, seeds = Report(options.json, options.first), range(options.first, options.first + options.seeds)
    return int(any(_run(part, seeds, max(options.jobs, 1), report) for part in parts))


if __name__ == "__main__":
    sys.exit(main())
