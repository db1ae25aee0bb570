"""The benchmark on the corpora of the documentation: hours on two cores. Goes on where it stopped.

python -m tools.verification.benchmark DATA OUT [--corpus NAME] [--system PRESET ...]

DATA and the folders of OUT are those of `tools.verification.release_systems`. OUT/benchmark-CORPUS.json is the run.
Copy it into docs/, and make the page again of all runs that are there, with `eyestream benchmark FILES --page docs`. A
corpus that differs from that of the run in docs/ is refused: its hash stands there.
"""

import argparse
from pathlib import Path

from eyestream.cli.main import main as eyestream
from eyestream_lab.benchmark.neighbours import PRESETS
from eyestream_lab.benchmark.run import load_run
from tools.verification.release_systems import MAKERS

DOCS = Path(__file__).resolve().parents[2] / "docs"
TASKS_ARE = {"nlgem": "sessions", "everyday": "pieces", "gazegraph": "activities"}
TRIALS = {"nlgem": "2", "everyday": "1", "gazegraph": "2"}


def main() -> None:
    """Make the corpus where it is not there yet, and judge the presets on it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", choices=MAKERS, default="nlgem")
    parser.add_argument("--system", nargs="*", choices=PRESETS, default=list(PRESETS))
    options = parser.parse_args()
    folder, name = options.out / options.corpus, options.corpus
    if not folder.exists():
        folder.mkdir(parents=True)
        MAKERS[name](options.data, folder)
    target = options.out / f"benchmark-{name}.json"
    systems = [word for one in options.system for word in ("--system", f"preset:{one}")]
    words = ["--corpus", name, "--tasks-are", TASKS_ARE[name], "--trials", TRIALS[name], "--out", str(target)]
    known = DOCS / target.name
    if known.exists():
        words += ["--sha256", load_run(known).corpus.sha256]
    eyestream(["benchmark", str(folder), *words, *systems])


if __name__ == "__main__":
    main()
