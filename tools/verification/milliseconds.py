"""What an application can read from when messages come: pairs of worlds beside real sidecars, over a real broker.

    python -m tools.verification.milliseconds              # about 22 minutes
    python -m tools.verification.milliseconds --quick
    python -m tools.verification.milliseconds --only tile --pairs 600 --json tile.json

A sidecar runs in a process of its own, as `eyestream run` has it, behind mosquitto. Trackers send rows or gaze of
worlds that alternate at random from chunk to chunk: the eye is lost, busy, still; nothing or twice as much is sent; the
last row comes early or late within its millisecond; another device sends shortly before. An application hears
everything but raw data, with the times of the kernel. `tests.rigs.two_worlds` compares the worlds. Sizes of packets
are compared with the times: those of TLS records follow from them. In one scenario a worker of a fleet serves, on
NATS. It has no moments, and what its times tell is shown, not judged.

A table comes out: for each pair the number of observations, the difference of the medians in microseconds, how often
one chunk and a vote over 15 are told right, each with its 95 % interval, and the smallest difference that would have
been seen. Leaks of 500, 100 and 50 us are planted first, and must be found.

The exit code is 0 when nothing was told apart and every planted leak was found; 1 when not; 2 on a machine that is not
quiet: then nothing is judged, unless with `--anyway`.

One sidecar has TLS on its private link, and so has its application. What somebody on the way sees of that link is
compared too: times and sizes of the sidecar's records, and when the broker acknowledges. In another one every second
chunk is withheld, and the moment of the `status` that says so is compared. Beside a third one the monitor shows its
page, and the moments of its frames are compared.

Channels that it does not measure: acknowledgements of raw messages (the broker gives them to the tracker alone, and the
sidecar, which subscribes at QoS 0, gives none); and `meta` (it is sent with a link and with a configuration, beside no
chunk).
"""

import argparse
import contextlib
import dataclasses
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from eyestream_lab.embedded import free_port
from tests.rigs.certificates import Authority
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.nats import NatsServer
from tests.rigs.two_worlds import Comparison, compare
from tools.verification.moments.machine import when_quiet
from tools.verification.moments.scenarios import SCENARIOS, Scenario, Worlds, drive, observed
from tools.verification.moments.tap import Record
from tools.verification.moments.wire import Listener, Sender, Visitor

PAIRS, QUICK = 300, 70
PATIENCE_S = 120.0
"""How long a scenario waits for a machine that is busy for a moment."""
PAGE = Path("docs/promises.md")
BEGIN, END = "<!-- milliseconds: begin -->\n", "<!-- milliseconds: end -->\n"
LEAVES = ("private", "budget", "status", "meta")
HEAD = (
    f"{'scenario':14} {'question':10} {'worlds':16} {'n':>5}  {'time':7} {'median difference':>24} {'least seen':>13}"
)


def run(scenario: Scenario, pairs: int, rng: np.random.Generator) -> list[Any]:
    """Observations of one scenario."""
    worlds = Worlds(rng, scenario.worlds)
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        folder, records = Path(place), list[Record]()
        authority = Authority(folder) if scenario.tls else None
        tls_port = free_port()
        if scenario.served.shard:
            log = _log(stack, folder / "log")
            port, raw_port, url, raw_url = log.mqtt_port, log.mqtt_port, log.url, ""
        else:
            private = _broker(stack, folder / "private", *([] if authority is None else _tls(authority, tls_port)))
            raw = _broker(stack, folder / "raw")
            port, raw_port, url, raw_url = private.port, raw.port, private.url, raw.url
        served = dataclasses.replace(scenario.served, url=url, raw_url=raw_url)
        tap = None
        if authority is not None:
            tap = _started(stack, folder, "tap", str(tls_port))
            tapped = f"mqtts://localhost:{_word(tap)}"
            served = dataclasses.replace(served, url=tapped, authority=str(authority.pem))
        spec = json.dumps({"served": dataclasses.asdict(served), "folder": place})
        sidecar = _started(stack, folder, "serving", spec)
        if _word(sidecar) != "ready":
            raise SystemExit(f"the sidecar of {scenario.name} has not started: {(folder / 'serving.log').read_text()}")
        filters = [f"eyestream/v1/+/+/{leaf}" for leaf in LEAVES]
        port, pem = (port, None) if authority is None else (tls_port, authority.pem)
        listener = Listener(port, filters, pem)
        visitor = Visitor(_word(_started(stack, folder, "page", url))) if scenario.name == "monitor" else None
        sender = Sender(raw_port, "tracker")
        drive(scenario, sender, listener, scenario.seconds(pairs), worlds)
        sender.close()
        listener.close()
        if tap is not None:
            tap.terminate()
            records = sorted((at, outward, size) for at, outward, size in json.loads(_word(tap)))
        if visitor is not None:
            visitor.close()
    return observed(scenario, listener.heard, worlds, records, [] if visitor is None else visitor.frames)


def _broker(stack: contextlib.ExitStack, folder: Path, *more: str) -> Mosquitto:
    """A broker, until the end of `stack`."""
    folder.mkdir()
    return stack.enter_context(Mosquitto(folder, *more))


def _log(stack: contextlib.ExitStack, folder: Path) -> NatsServer:
    """The log of a fleet, until the end of `stack`."""
    log = NatsServer(folder, 1)
    log.start()
    stack.callback(log.kill)
    return log


def _tls(authority: Authority, port: int) -> list[str]:
    """Lines of a broker's listener with TLS."""
    own = authority.issue("private", host="localhost")
    return [f"listener {port} 127.0.0.1", "allow_anonymous true", f"certfile {own.pem}", f"keyfile {own.key}"]


def _started(stack: contextlib.ExitStack, folder: Path, module: str, argument: str) -> subprocess.Popen[str]:
    """A process of one of our modules, which is ended with `stack`."""
    said = stack.enter_context((folder / f"{module}.log").open("w"))
    command = [sys.executable, "-m", f"tools.verification.moments.{module}", argument]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)

    def end() -> None:
        process.terminate()
        process.communicate(timeout=20)

    stack.callback(end)
    return process


def _word(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def compared(scenario: Scenario, found: list[Any], rng: np.random.Generator, comparisons: int) -> list[dict[str, Any]]:
    """Every pair of worlds of a scenario, as rows of the table."""
    rows = []
    for question, first, second in scenario.pairs:
        sides = [[one.seen for one in found if one.tags.get(question) == world] for world in (first, second)]
        row: dict[str, Any] = {"scenario": scenario.name, "question": question, "worlds": [first, second]}
        try:
            result = compare(sides[0], sides[1], rng, comparisons)
        except ValueError as error:
            row |= {"missing": str(error), "passed": False}
        else:
            row |= {"planted": scenario.must_find, "passed": scenario.must_find in (None, result.apart)}
            row |= dataclasses.asdict(result)
        rows.append(row)
        show(row, result if "missing" not in row else None)
    return rows


def show(row: dict[str, Any], result: Comparison | None) -> None:
    """Some lines of the table."""
    worlds = " / ".join(row["worlds"])
    begin = f"{row['scenario']:14} {row['question']:10} {worlds:16}"
    if result is None:
        print(f"{begin} {row['missing']}", flush=True)
        return
    for name, one in result.difference.items():
        span = f"{one.estimate:+8.0f} [{one.low:+6.0f}, {one.high:+6.0f}]"
        print(f"{begin} {result.observations:5}  {name:7} {span:>24} {result.smallest[name]:13.0f}")
        begin = " " * len(begin)
    told = f"one chunk {result.told.estimate:.2f} [{result.told.low:.2f}, {result.told.high:.2f}]"
    if result.votes is not None:
        told += f", vote over 15 {result.votes.estimate:.2f} [{result.votes.low:.2f}, {result.votes.high:.2f}]"
    verdict = "told apart" if result.apart else "not told apart"
    expected = "" if row["passed"] else "  <-- " + ("PLANTED AND NOT FOUND" if row["planted"] else "LEAK")
    print(f"{begin}        {told}; chance {result.chance:.1e}: {verdict}{expected}", flush=True)


def page(whole: dict[str, Any]) -> str:
    """A table in Markdown of what was measured; of each pair the time whose medians differ most beyond chance."""
    lines = [
        "| sidecar | question | worlds | n | median difference, us [95 %] | one chunk told right [95 %] | least seen |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in whole["rows"]:
        begin = f"| `{row['scenario']}` | {row['question']} | {', '.join(row['worlds'])} |"
        if "missing" in row:
            lines.append(f"{begin} | {row['missing']} | | |")
            continue
        name = max(
            row["difference"], key=lambda one: abs(row["difference"][one]["estimate"]) / (row["smallest"][one] or 1)
        )
        one, told = row["difference"][name], row["told"]
        lines.append(
            f"{begin} {row['observations']} | {name} {one['estimate']:+.0f} [{one['low']:+.0f}, {one['high']:+.0f}] "
            f"| {told['estimate']:.2f} [{told['low']:.2f}, {told['high']:.2f}] | {row['smallest'][name]:.0f} |"
        )
    return "\n".join(lines)


def put_in(text: str, table: str) -> str:
    """A page with the table between its two lines of comment. Raises ValueError where one of them is missing."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, help=f"chunks of each world ({PAIRS})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} of them: less than eight minutes")
    parser.add_argument("--only", action="append", choices=[one.name for one in SCENARIOS], help="this scenario alone")
    parser.add_argument("--anyway", action="store_true", help="measure on a busy machine too; nothing is judged then")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write everything into this file")
    parser.add_argument("--page", type=Path, help=f"measure nothing: put such a file's table into {PAGE}")
    options = parser.parse_args()
    if options.page is not None:
        whole = json.loads(options.page.read_text())
        if not whole["quiet"]:
            print(page(whole))
            raise SystemExit(f"{options.page}: the machine was not quiet, so no page has this table")
        PAGE.write_text(put_in(PAGE.read_text(encoding="utf-8"), page(whole)), encoding="utf-8")
        return 0
    pairs = options.pairs or (QUICK if options.quick else PAIRS)
    chosen = [one for one in SCENARIOS if not options.only or one.name in options.only]
    comparisons, rng = sum(len(one.pairs) for one in chosen), np.random.default_rng(options.seed)
    print(f"about {sum(one.seconds(pairs) + 8.0 for one in chosen) / 60.0:.0f} minutes, {comparisons} comparisons")
    rows: list[dict[str, Any]] = []
    noises, quiet = [], True
    for scenario in chosen:
        noise = when_quiet(0.0 if options.anyway else PATIENCE_S)
        noises.append(dataclasses.asdict(noise) | {"before": scenario.name})
        if noise.why_not is not None:
            quiet = False
            print(f"before {scenario.name} the machine is not quiet: {noise.why_not}", flush=True)
            if not options.anyway:
                print("nothing is judged on such a machine")
                break
        if not rows:
            print(HEAD, flush=True)
        rows += compared(scenario, run(scenario, pairs, rng), rng, comparisons)
    if options.json is not None:
        whole = {"pairs": pairs, "seed": options.seed, "quiet": quiet, "noise": noises, "rows": rows}
        options.json.write_text(json.dumps(whole, indent=1))
    if not quiet:
        return 2
    failed = [row for row in rows if not row["passed"]]
    print(f"{len(rows)} comparisons, {len(failed)} not as they must be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
