"""``python -m benchmarks NAME [--quick] [--minutes M] [--json FILE] [--plot DIR] [--write]``."""

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any

from benchmarks import machine, plots
from benchmarks.report import write_section

NAMES = ("kernel", "hop", "clients", "ingest", "gaze", "fleet", "footprint", "idle", "offline", "ledger", "openxr")
_RESULTS = Path(__file__).with_name("RESULTS.md")
_HEAD = """# What eyestream costs

Written by `python -m benchmarks all --write`; one section by `python -m benchmarks NAME --write`. Times on another
machine differ; the ratios are what to compare, each against something measured in the same run, by turns.
What was chosen by them: CHOICES.md.
"""


def main() -> None:
    """Run what is asked for and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=(*NAMES, "all"), metavar="NAME", help=f"{', '.join(NAMES)}, or all")
    parser.add_argument("--quick", action="store_true", help="smaller and shorter: does it still run")
    parser.add_argument(
        "--minutes", type=float, default=0.0, metavar="M", help="footprint alone: memory over so long, under load"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the records as a list")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="draw them; needs matplotlib")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {_RESULTS.name}")
    options = parser.parse_args()
    if options.minutes and options.name != "footprint":
        parser.error("--minutes goes with footprint")
    records: list[dict[str, Any]] = []
    if options.write and options.name == "all":
        _RESULTS.unlink(missing_ok=True)
    for name in NAMES if options.name == "all" else (options.name,):
        facts = machine.facts()
        start = time.perf_counter()
        more = {"minutes": options.minutes} if options.minutes else {}
        result = importlib.import_module(f"benchmarks.{name}").run(options.quick, **more)
        took = f"{time.perf_counter() - start:.0f} s"
        print(f"\n== {name} ({took}) ==\n\n{result.text()}\n", flush=True)
        records += result.records
        if options.write:
            about = f"{time.strftime('%Y-%m-%d')}, {', '.join(f'{k} {v}' for k, v in facts.items())}; took {took}."
            section = "memory" if options.minutes else name
            write_section(_RESULTS, _HEAD, section, f"{about}\n\n{result.markdown()}")
    print("\n".join(f"{k:<14}{v}" for k, v in machine.facts().items()))
    if options.json:
        options.json.write_text(json.dumps(records, indent=1), encoding="utf-8")
    if options.plot:
        print(plots.draw(records, options.plot))


if __name__ == "__main__":
    main()
