"""Fuzz the decoder and the life of a sidecar, guided by coverage: the long form of tests/product/hostile/test_fuzz.py.

    python -m tools.verification.fuzz --seconds 3600

The time is shared among the targets of `tests.rigs.hostile.lives`. Where `atheris` is installed
(`pip install atheris`) it drives; else a small loop of our own, guided by the pairs of lines that an input goes
through. An input that breaks a promise ends its target's run, is written to --folder and makes the exit code 1. Mend
the fault, then append the input to kept.jsonl of tests/product/hostile, or to found.jsonl with its reason when it is a
payload. `--keep` adds the inputs that are worth keeping to kept.jsonl: a small set with the same coverage in lines
and the steps between them.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

SHARES = {"payload": 0.1, "life": 0.5, "release": 0.1, "packets": 0.1, "configuration": 0.1, "ledger": 0.1}
"""Of the time: a life takes some thousand times as long as a payload."""
LONGEST = 4096
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = str(ROOT / "eyestream") + "/"
KEPT_BYTES = 400


def by_atheris(name: str, arguments: list[str]) -> None:
    """In a process of its own: never returns."""
    import atheris  # noqa: PLC0415  optional

    with atheris.instrument_imports(include=["eyestream"]):
        from tests.rigs.hostile.lives import TARGETS  # noqa: PLC0415  only now, to be instrumented
    atheris.Setup([__file__, *arguments], TARGETS[name])
    atheris.Fuzz()


class Coverage:
    """Pairs of lines of our package, one after the other in a function, that were ever seen."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, int, int]] = set()

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        if not path.startswith(PACKAGE):
            return None
        code, last = id(frame.f_code), 0

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "line":
                self.seen.add((code, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line

    def run(self, target: Callable[[bytes], object], data: bytes) -> bool:
        """Run `target`; whether something new was seen."""
        before = len(self.seen)
        sys.settrace(self._call)
        try:
            target(data)
        finally:
            sys.settrace(None)
        return len(self.seen) > before


def by_own_loop(name: str, seconds: float, seed: int, folder: Path) -> dict[str, Any]:
    from tests.rigs.hostile.lives import TARGETS  # noqa: PLC0415  atheris instruments what is not imported yet
    from tests.rigs.hostile.mutation import mutants, seeds  # noqa: PLC0415

    pool, coverage, runs, finds = seeds(name), Coverage(), 0, 0
    end, first, corpus = time.monotonic() + seconds, len(pool), corpus_of(name, folder)
    for data in mutants(pool, seed):
        if time.monotonic() > end or finds:
            break
        runs += 1
        try:
            if coverage.run(TARGETS[name], data):
                pool.append(data)
                (corpus / f"own-{runs}").write_bytes(data)
        except Exception:  # whatever it is, it is a find
            finds += 1
            traceback.print_exc()
            (folder / f"find-{name}-{runs}").write_bytes(data)
    return {"target": name, "engine": "own", "executions": runs, "new": len(pool) - first, "finds": finds}


def corpus_of(name: str, folder: Path) -> Path:
    from tests.rigs.hostile.mutation import seeds  # noqa: PLC0415

    corpus = folder / f"corpus-{name}"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(data)
    return corpus


def drive_atheris(name: str, seconds: float, seed: int, folder: Path) -> dict[str, Any]:
    corpus = corpus_of(name, folder)
    before = len(list(corpus.iterdir()))
    flags = [f"-max_total_time={int(seconds)}", f"-max_len={LONGEST}", f"-seed={seed}", "-timeout=20"]
    flags += ["-rss_limit_mb=1024", "-print_final_stats=1", f"-artifact_prefix={folder}/find-{name}-"]
    log = folder / f"log-{name}"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "tools.verification.fuzz", "--child", name, "--", str(corpus), *flags]
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    text = log.read_text(errors="replace")
    found = re.search(r"number_of_executed_units:\s*(\d+)", text)
    peak = re.search(r"peak_rss_mb:\s*(\d+)", text)
    finds = len(list(folder.glob(f"find-{name}-*")))
    if code or finds:
        print(text[-4000:], file=sys.stderr)
    return {
        "target": name,
        "engine": "atheris",
        "executions": int(found[1]) if found else 0,
        "new": len(list(corpus.iterdir())) - before,
        "peak_rss_mb": int(peak[1]) if peak else None,
        "finds": finds + (code != 0 and not finds),
    }


def keep(folder: Path) -> int:
    """Write inputs that reach all that the corpus reaches: from the smallest on, those that reach something new."""
    from tests.rigs.hostile.corpus import write  # noqa: PLC0415
    from tests.rigs.hostile.lives import TARGETS  # noqa: PLC0415
    from tests.rigs.hostile.mutation import kept  # noqa: PLC0415

    entries = []
    for name in SHARES:
        corpus = [path.read_bytes() for path in (folder / f"corpus-{name}").iterdir()]
        coverage = Coverage()
        best = kept(name)
        for data in [*best, *sorted(corpus, key=lambda data: (len(data), data))]:
            if len(data) <= KEPT_BYTES and coverage.run(TARGETS[name], data) and data not in best:
                best.append(data)
        entries += [{"target": name, "hex": data.hex()} for data in best]
    write("kept", entries)
    return len(entries)


def has_atheris() -> bool:
    try:
        import atheris  # noqa: F401, PLC0415
    except ImportError:
        return False
    return True


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        by_atheris(sys.argv[2], sys.argv[4:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where corpus, logs and finds go (default: a temporary one)")
    parser.add_argument("--own", action="store_true", help="use our own loop even where atheris is installed")
    parser.add_argument(
        "--keep", action="store_true", help="rewrite tests/product/hostile/kept.jsonl from what was reached"
    )
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    drive = by_own_loop if args.own or not has_atheris() else drive_atheris
    results = [drive(name, args.seconds * share, args.seed, folder) for name, share in SHARES.items()]
    for result in results:
        print(json.dumps(result))
    finds = sum(result["finds"] for result in results)
    if args.keep and not finds:
        print(json.dumps({"kept": keep(folder)}))
    if finds:
        print(f"finds are in {folder}", file=sys.stderr)
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
