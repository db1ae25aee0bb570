"""``eyestream listen``: what an application sees."""

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.cli.ledger_words import budget_words
from eyestream.cli.log import one_line_faults, start_log
from eyestream.cli.options import add_broker, add_stream, broker_settings
from eyestream.errors import ConfigError
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream.sdk.subscriber import Chunk, Chunks, subscribe
from eyestream.wire.status import Budget

SHOWN = 4
"""Features in the table unless named."""

SILENT_S = 5.0
"""A description is kept by the broker, and comes at once: without one for so long, there is none."""

SUFFIXES = (".npz", ".csv", ".csv.gz")


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "listen",
        help="receive private chunks as an application does",
        description="Subscribe to the private topic of a device and print a line for each chunk: its number, its "
        "seconds in the session, its epsilon, and the mean of a few features. What is left of the budget is said at "
        "first, each time that it has halved, and when it is spent. Ends with Ctrl-C, or after --chunks.",
    )
    parser.add_argument("--device", required=True, metavar="ID", help="pseudonym of the tracker")
    add_stream(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write all rows to FILE at the end (.npz, .csv, .csv.gz)"
    )
    parser.add_argument("--chunks", type=int, metavar="N", help="end after N chunks")
    parser.add_argument("--show", metavar="NAME,...", help=f"features in the table (default: the first {SHOWN})")
    add_broker(parser)


def main(options: argparse.Namespace) -> None:
    """Print, and at the end write.

    Raises
    ------
    ConfigError
        FILE cannot be written, or a feature to show is unknown.
    LinkError
        The broker cannot be reached.
    """
    out: Path | None = options.out
    if out is not None:
        if not out.name.endswith(SUFFIXES):
            raise ConfigError(f"{out}: expected a name that ends with one of {' '.join(SUFFIXES)}")
        if not out.resolve().parent.is_dir():
            raise ConfigError(f"{out}: there is no such directory")
    received: list[Chunk] = []
    try:
        asyncio.run(_listen(options, received))
    finally:
        if out is not None and received:
            _write(out, received)


async def _listen(options: argparse.Namespace, received: list[Chunk]) -> None:
    one_line_faults()
    async with subscribe(
        broker_settings(options), options.device, stream=options.stream, wait_s=options.wait
    ) as chunks:
        start_log(logging.WARNING)
        print(f"waiting for chunks of {options.device}; Ctrl-C ends", file=sys.stderr)
        telling = asyncio.create_task(_tell_left(chunks), name="what is left")
        hint = asyncio.get_running_loop().call_later(SILENT_S, _say_unserved, chunks, options.device)
        try:
            await _show(options, chunks, received)
        finally:
            telling.cancel()
            hint.cancel()


def _say_unserved(chunks: Chunks, device: str) -> None:
    if chunks.meta is None:
        print(f"no sidecar serves {device} here so far: `eyestream devices` lists those there are", file=sys.stderr)


async def _show(options: argparse.Namespace, chunks: Chunks, received: list[Chunk]) -> None:
    shown: list[int] = []
    names: tuple[str, ...] = ()
    taken, others = 0, False
    async for chunk in chunks:
        if taken == 0:
            shown, names = _shown(options.show, chunk), chunk.names
            _head(chunks, chunk, shown)
        elif chunk.names != names:
            if not others:
                print("chunks with other features than the first are left out", file=sys.stderr)
            others = True
            continue
        taken += 1
        if options.out is not None:
            received.append(chunk)
        means = "".join(f"{chunk.values[index].mean():>{_width(chunk, index)}.4g}" for index in shown)
        print(f"{chunk.index:>7}{chunk.t[0]:>10.1f}{chunk.epsilon:>9g}{means}", flush=True)
        if taken == options.chunks:
            return


async def _tell_left(chunks: Chunks) -> None:
    """Say what is left, on stderr: at first, when it has halved, when there is more again, and when it is spent."""
    said: Budget | None = None
    exhausted = False
    while True:
        left, meta = chunks.budget, chunks.meta
        if left is not None and meta is not None and _is_news(said, left):
            if said is None and (withheld := _withheld(meta.guarantee)):
                print(withheld, file=sys.stderr)
            said = left
            print("left: " + budget_words(left, meta.n / meta.rate_hz, time.time()), file=sys.stderr)
        if chunks.exhausted and not exhausted:
            print("exhausted: nothing more is released until then", file=sys.stderr)
        exhausted = chunks.exhausted
        await chunks.changed()


def _withheld(guarantee: str) -> str:
    """The guarantee's sentence on the first chunks of each session, which do not come; empty when all do."""
    line = next((line for line in guarantee.splitlines() if line.startswith("baseline: ")), "")
    return line.partition(". ")[0]


def _is_news(said: Budget | None, left: Budget) -> bool:
    return said is None or left.chunks > said.chunks or left.chunks <= said.chunks // 2 < said.chunks


def _shown(wanted: str | None, chunk: Chunk) -> list[int]:
    if wanted is None:
        return list(range(min(SHOWN, len(chunk.names))))
    try:
        for name in wanted.split(","):
            chunk.feature(name)
    except ConfigError as error:
        raise ConfigError(f"--show: {error}") from None
    return [chunk.names.index(name) for name in wanted.split(",")]


def _width(chunk: Chunk, index: int) -> int:
    return max(len(chunk.names[index]), 10) + 2


def _head(chunks: Chunks, chunk: Chunk, shown: list[int]) -> None:
    assert chunks.meta is not None
    print(f"{chunks.meta.mechanism}, {chunks.meta.n} rows a chunk, {chunks.meta.rate_hz:g} rows a second")
    print(chunk.guarantee.partition("\n")[0])
    names = "".join(f"{chunk.names[index]:>{_width(chunk, index)}}" for index in shown)
    errors = "".join(f"{chunk.noise_sd[index]:>{_width(chunk, index)}.4g}" for index in shown)
    print(f"{'chunk':>7}{'second':>10}{'epsilon':>9}{names}\n{'error to expect +-':>26}{errors}", flush=True)


def _write(out: Path, received: list[Chunk]) -> None:
    """All rows as one recording; a later session goes on where the one before ended."""
    times: list[np.ndarray] = []
    start, session = 0.0, received[0].session
    for chunk in received:
        if chunk.session != session:
            steps = np.diff(chunk.t if len(chunk.t) > 1 else np.concatenate(times))
            session, start = chunk.session, times[-1][-1] + (steps.min() if len(steps) else 1.0)
        times.append(start + chunk.t)
    features = np.concatenate([chunk.values.T for chunk in received]).astype(np.float64)
    try:
        recordings.save(Recording(np.concatenate(times), features, received[0].names), out)
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}") from None
    print(f"{len(features)} rows written to {out}")
