"""``python -m benchmarks NAME [--quick] [--minutes M] [--json FILE] [--plot DIR] [--write]``."""

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any

from benchmarks import machine, plots
from benchmarks.report import write_section

NAMES = ("kernel", "hop", "ingest", "fleet", "footprint", "offline")
_RESULTS = Path(__file__).with_name("RESULTS.md")
_HEAD = """# What eyestream costs

Written by `python -m benchmarks all --write`; one section by `python -m benchmarks NAME --write`. Times on another
machine differ; the ratios are what to compare, each against something measured in the same run, by turns.

## Choices

What was chosen by these numbers, and by the comparisons below, which stand here because what lost is not in the tree:

- The kept coefficients are computed by a product with a basis for k <= 12 and by planned FFTW above (kernel, last table
  but one). With the usual k, FFTW is not even loaded.
- A client of our own behind `transport` (260 lines of packets, 180 of protocol) instead of aiomqtt and paho. gmqtt is
  as lean, but has no Unix socket, does not say which message was acknowledged, and sends again by itself after a
  reconnect, which is for our outbox to decide. aiomqtt reads along in the tests.
- A chunk goes out in the turn of the loop in which its last row came in; no task is woken for it.
- asyncio's own loop. uvloop took about a tenth off a chunk's processor time (two runs each) and nothing off a row's:
  not worth a dependency.
- One process: a thousand devices at 2 rows/s keep a fifth of a core busy, four thousand not yet a half. Several
  processes were not measured; nothing is shared between two sidecars, so devices can be divided among them.
- What start-up made is frozen out of the garbage collector: a full collection of it takes 4 to 13 ms. None was seen
  in 4,000 chunks back to back, so this is a precaution and explains no stall.
- No rehearsal of a release when the last row but one is there: of five pairs of runs it took 41 to 121 us off the
  median hop of 650 to 720 us at 1,000 rows/s, and at 120 rows/s nothing that could be told from noise (7 to 11 chunks a
  run). It would compute every release twice.
- A release is some sixty array operations of 0.4 to 2 us each, most of it what numpy takes to begin one: more than
  half of the time beyond the floor, by our estimate. What is left to gain there needs compiled code.

Before: aiomqtt, a task woken for each row and each chunk, one chunk under way. Several people worked on the machine,
load 2 to 8; where a row gives a range, it is of two to four runs.

| on the same busy machine | before | after | how |
| --- | ---: | ---: | --- |
| client, 13 kB there and back, one by one: processor us | 229 to 288 | 53 to 69 | by turns; gmqtt 52 to 94 |
| the same, 8 at a time | 105 to 176 | 32 to 39 | by turns; gmqtt 45 to 47 |
| ingest, 1 row a message: rows/s | 18,192 | 48,352 to 61,152 | 2 minutes apart; uvloop 37,584 to 52,224 |
| processor us a row | 48 | 16 to 17 | uvloop 17 |
| ingest, 8 rows a message: rows/s | 79,024 | 183,376 to 211,712 | 2 minutes apart; uvloop 164,656 to 218,000 |
| processor us a row | 11.3 | 3.9 | uvloop 3.8 to 4.0 |
| back to back, 1 under way: p50 us | 842 to 879 | 595 to 613 | by turns |
| processor us a chunk | 765 to 805 | 488 to 528 | by turns; 470 to 480 beside uvloop's 430 to 433 |
| back to back, 4 under way: p50 us | 2,357 to 2,591 | 1,145 to 1,200 | by turns |
| processor us a chunk | 603 to 668 | 293 to 303 | by turns; 290 to 293 beside uvloop's 277 to 280 |
| stalls above 10 ms in 16,000 chunks | 21 | 5 | by turns; 14 and 2 of them with a bystander late too |
| fleet, 1,000 devices: p99 ms; core | 86; 27 % | 3.9; 20 % | one run each, one after the other |
| fleet, 4,000 devices: p99 ms; core | 358; 52 % | 9.5; 45 % | one run each, one after the other |

The stalls that no bystander shared (7 before, 3 after) are unexplained.

Inside the sidecar, from the raw socket that can be read to the last byte with the private one, median us
(`benchmarks/staged.py`, whose notes cost some of it; 18 to 87 chunks a run, not by turns). A row that comes after a
pause finds the caches cold: warm, all between reading and sending takes 81 us.

| rows/s | read | decode | device | release | encode | send | in all | before |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| 2 | 74 | 77 | 117 | 177 | 50 | 70 | 587 | 960 |
| 120 | 53 to 67 | 57 to 63 | 109 to 113 | 173 to 190 | 46 to 50 | 77 to 79 | 534 to 565 | 861 |
| 1000 | 21 | 18 | 60 | 147 | 38 | 54 | 354 | not measured |
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
