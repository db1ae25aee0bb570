"""`python -m tools.verification.world --seeds N`: histories of the whole world, each from one seed, and their judge.

--part inside | fleet | whole     one part of the world; all of them without it
--first S, --only SEED            other seeds than 0 to N - 1; one, with its story
--planted NAME | all              plant faults: each must be found
--json FILE                       figures and failures, for a page
"""

import argparse
import gc
import json
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import blake2b
from pathlib import Path

from tests.rigs.simulated.planted import PLANTED
from tests.rigs.simulated.playing import PARTS, Played, found_by, play, shortened

__all__ = ["main"]


def _explain(part: str, seed: int, planted: str = "") -> None:
    """A failure in as few lines as it needs, and how to see it again."""
    history = shortened(part, seed)
    print(f"\n{part} {seed}: {history.judge.faults[0]}")
    print(f"    with {', '.join(sorted(history.on)) or 'no fault of the surroundings'}")
    print("    " + "\n    ".join(history.story))
    more = f" --planted {planted}" if planted else ""
    print(f"    python -m tools.verification.world --part {part} --only {seed}{more}")


def main(arguments: list[str] | None = None) -> int:
    """1 where a history is wrong, or a planted fault is not found."""
    parser = argparse.ArgumentParser(prog="python -m tools.verification.world", description=(__doc__ or "")[:90])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--planted", choices=["all", *PLANTED])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    gc.disable()  # cycles are collected by hand, which takes a fifth of the time
    parts = [options.part] if options.part else list(PARTS)
    if options.only is not None:
        return _show(parts, options.only, options.planted)
    if options.planted:
        names = list(PLANTED) if options.planted == "all" else [options.planted]
        return _search(names, options.seeds)
    report: dict[str, object] = {"python": platform.python_version(), "first": options.first, "seeds": options.seeds}
    failures = 0
    for part in parts:
        failures += _run(part, range(options.first, options.first + options.seeds), options.jobs, report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return int(failures > 0)


def _run(part: str, seeds: range, jobs: int, report: dict[str, object]) -> int:
    before, digest, wrong, chunks = time.process_time(), blake2b(digest_size=8), list[Played](), 0
    with ProcessPoolExecutor(jobs) if jobs > 1 else _Here() as pool:
        for number, one in enumerate(pool.map(partial(play, part), seeds, chunksize=50)):
            digest.update(one.digest.encode())
            chunks += one.chunks
            wrong += [one] if one.faults else []
            if number % 200 == 0:
                gc.collect()
    spent = time.process_time() - before
    rate = f", {len(seeds) / spent:.0f} a second of processor" if jobs == 1 else ""
    print(f"{part}: {len(seeds)} histories, {chunks} chunks, {len(wrong)} wrong, digest {digest.hexdigest()}{rate}")
    report[part] = {
        "histories": len(seeds),
        "chunks": chunks,
        "digest": digest.hexdigest(),
        "processor_s": round(spent, 1),
        "wrong": [one._asdict() for one in wrong],
    }
    for one in wrong[:3]:
        _explain(part, one.seed)
    return len(wrong)


class _Here:
    """A pool of this process alone."""

    map = staticmethod(lambda function, items, chunksize: map(function, items))

    def __enter__(self) -> "_Here":
        return self

    def __exit__(self, *error: object) -> None:
        pass


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


if __name__ == "__main__":
    sys.exit(main())
