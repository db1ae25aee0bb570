"""Kill a small publisher at random times; what an outsider saw must be in the ledger.

    python -m tools.verification.kill_test --rounds 10000

Each round starts a process that opens the ledger, reserves chunks and publishes them into a pipe, and kills it with
SIGKILL after a random time, also while it starts. Then the ledger is read and compared with what came through the pipe:
for each device the ledger's epsilon is at least what was published, at most one block a device and kill is wasted, and
no row was published twice. `--rewrite N` has the ledger rewritten after N records. `--fault late` publishes before it
reserves, to show that the comparison would notice. The last line sums up; exit code 1 when anything was wrong.
"""

import argparse
import dataclasses
import os
import random
import select
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NoReturn

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import LAST_ROW, Granted, Request
from eyestream.rim.ledger import writer
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams import StreamKey

CHUNK = 32
DEVICES = 3
CHARGE = Charge.of("4.8")
CEILINGS = Ceilings.of(4, "14.4")
SEEN = struct.Struct("<IQQQ")
ROUNDS_PER_LEDGER = 100
MOST_SECONDS = 0.03


@dataclasses.dataclass
class Outcome:
    """What happened in all rounds."""

    kills: int = 0
    published: int = 0
    reserved: int = 0
    unreadable: int = 0
    faults: Counter[str] = dataclasses.field(default_factory=Counter)


def publish(path: Path, pipe: int, late: bool) -> NoReturn:
    """The child: reserve and publish for ever. A new session now and then, and always when the old one is closed.

    When `late`, nothing is withheld: the order alone is at fault.
    """
    ceilings = Ceilings(CEILINGS.window_chunks) if late else CEILINGS
    with Ledger(path, ceilings=ceilings) as ledger:
        places = []
        for device in range(DEVICES):
            mark = ledger.mark(StreamKey(f"d{device}", "features"))
            if mark is None or mark.last_row == LAST_ROW:
                places.append([0 if mark is None else mark.session + 1, 0])
            else:
                places.append([mark.session, mark.last_row + 1])
        while True:
            requests = [
                Request(StreamKey(f"d{i}", "features"), session, row, row + CHUNK - 1, CHUNK, CHARGE)
                for i, (session, row) in enumerate(places)
            ]
            if late:
                os.write(pipe, b"".join(_said(request) for request in requests))
            answers = ledger.reserve(requests, 20_000)
            if not late:
                os.write(pipe, b"".join(_said(answer.request) for answer in answers if isinstance(answer, Granted)))
            for place in places:
                place[1] += CHUNK
                if place[1] == 20 * CHUNK:
                    place[:] = [place[0] + 1, 0]


def _said(request: Request) -> bytes:
    return SEEN.pack(int(request.key.device[1:]), request.session, request.first_row, request.last_row)


def one_round(path: Path, seconds: float, late: bool) -> list[tuple[int, int, int, int]]:
    """(device, session, first row, last row) of all that came out of a publisher that lived for `seconds`."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            publish(path, writer, late)
        finally:
            os._exit(1)
    os.close(writer)
    seen = bytearray()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            seen += os.read(reader, 1 << 16)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    while piece := os.read(reader, 1 << 16):
        seen += piece
    os.close(reader)
    if not os.WIFSIGNALED(status):
        raise RuntimeError("the publisher ended by itself")
    return list(SEEN.iter_unpack(seen))


def run(rounds: int, seed: int, folder: Path, late: bool = False) -> Outcome:
    """`rounds` kills, a new ledger now and then so that the readings stay short."""
    random_ = random.Random(seed)
    outcome = Outcome()
    while outcome.kills < rounds:
        path = folder / f"ledger-{outcome.kills}"
        create_ledger(path, created=0)
        count: Counter[str] = Counter()
        last: dict[int, tuple[int, int]] = {}
        for kills in range(1, min(ROUNDS_PER_LEDGER, rounds - outcome.kills) + 1):
            for device, session, first, end in one_round(path, random_.uniform(0, MOST_SECONDS), late):
                if (session, first) <= last.get(device, (-1, -1)):
                    outcome.faults["row published twice"] += 1
                last[device] = (session, end)
                count[f"d{device}"] += 1
            _compare(path, count, kills, outcome)
        outcome.kills += kills
        outcome.published += count.total()
        odometers = read_ledger(path).odometers.values()
        outcome.reserved += sum(odometer.epsilon for odometer in odometers) // CHARGE.epsilon
        outcome.unreadable += sum(odometer.unreadable for odometer in odometers)
        path.unlink()
    return outcome


def _compare(path: Path, published: Counter[str], kills: int, outcome: Outcome) -> None:
    odometers = read_ledger(path).odometers
    for name, chunks in published.items():
        spent = odometers[name].epsilon if name in odometers else 0
        if spent < chunks * CHARGE.epsilon:
            outcome.faults["published and not in the ledger"] += 1
        if spent > (chunks + kills) * CHARGE.epsilon:
            outcome.faults["more than one block wasted by a kill"] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where ledgers go; on a disk, not in memory (default: /var/tmp)")
    parser.add_argument("--rewrite", type=int, metavar="N", help="records after which the ledger is rewritten")
    parser.add_argument("--fault", choices=["late"], help="publish before reserving: must be noticed")
    args = parser.parse_args()
    if args.rewrite:
        writer._MANY_RECORDS = writer._TOO_MANY_RECORDS = args.rewrite
    with tempfile.TemporaryDirectory(dir=args.folder or "/var/tmp") as folder:
        outcome = run(args.rounds, args.seed, Path(folder), late=args.fault == "late")
    print(
        f"{outcome.kills} kills, {outcome.published} chunks published, {outcome.reserved} in the ledgers, "
        f"{outcome.unreadable} torn, {outcome.faults.total()} faults {dict(outcome.faults) or ''}"
    )
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
