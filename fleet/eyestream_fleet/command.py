"""``eyestream shard``: one worker of a fleet."""

import argparse
import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from eyestream.cli.ledger_words import print_accepted, print_comparison
from eyestream.cli.log import JsonLines, start_log
from eyestream.core.release.stream import ChunkCounters
from eyestream.errors import ConfigError, LedgerError
from eyestream.ops.metrics import Page, by_label, common_counters, counter, family, page_of_word, withheld_word
from eyestream.rim.ledger.operating import read_export, write_export
from eyestream.rim.plan import Plan, load
from eyestream.rim.process import keep_memory_private
from eyestream_fleet.fleet import accept_shard, change_shard, copies_of_shard, found_shard, run_shard
from eyestream_fleet.log import partition_of
from eyestream_fleet.table import fleet_of
from eyestream_fleet.worker import ShardWorker

_LOG = logging.getLogger("eyestream.shard")


def worker_pages(worker: ShardWorker) -> dict[str, Page]:
    """The pages that `serve` serves of a worker of a fleet, by path."""

    async def figures() -> tuple[int, str]:
        return 200, worker_metrics(worker)

    async def healthz() -> tuple[int, str]:
        return page_of_word(worker_health(worker))

    return {"/metrics": figures, "/healthz": healthz}


def worker_health(worker: ShardWorker) -> str:
    """``ok``, ``log``, or why nothing is released. A ledger that fails ends a worker."""
    if not worker.stands:
        return "log"
    return withheld_word(stream.condition for stream in worker.shard.streams.values())


def worker_metrics(worker: ShardWorker) -> str:
    """All counters of a worker. None of them outlives it: rates and sums over a fleet are for Prometheus."""
    shard, log, chunks = worker.shard, worker.shard.position, ChunkCounters()
    counted = [*shard.former, *((stream.counters, stream.rows) for stream in shard.streams.values())]
    for own, _ in counted:
        chunks.add(own)
    rows = [own for _, own in counted]
    return "".join(
        (
            *common_counters(shard.taken, shard.rejected, rows, chunks, worker.published),
            *counter("log_breaks", "times the log was away, or lost a message on its way", [("", worker.breaks)]),
            *counter("log_losses", "times the log was without messages that it had", by_label("kind", log.losses)),
            *counter("log_offsets_missing", "offsets never read: forgotten before, or left out", [("", log.missing)]),
            *family("link_up", "gauge", "1 when the link stands", by_label("side", {"log": int(worker.stands)})),
            *family("streams", "gauge", "streams that are served", [("", len(shard.streams))]),
            *family(
                "clock_offset_seconds",
                "gauge",
                "the log's clock, ahead of this host's",
                [("", f"{worker.ahead_s:.3f}")],
            ),
            *family("chunks_waiting", "gauge", "released chunks that wait for the log", [("", worker.waiting)]),
        )
    )


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "shard",
        help="a worker of a fleet: one partition of a log in, private chunks out, each once",
        description="Take raw rows of one partition from the log of [fleet], and publish private chunks there, each "
        "with the same bytes whenever it is sent, until SIGTERM or Ctrl-C. The log is inside the trusted part: "
        "docs/scale.md.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="with [fleet]; one for all workers")
    parser.add_argument("--partition", type=int, required=True, metavar="N", help="which one, from 0 on")
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="in the place of [metrics] port, where several workers share a host",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--new", action="store_true", help="make the shard, and what the log needs; then end")
    what.add_argument(
        "--compare",
        type=Path,
        nargs="*",
        metavar="FOLDER",
        help="say which of these copies of the shard the second place names, by default whether its own folder is it; "
        "changes nothing, and a worker may be at work",
    )
    what.add_argument(
        "--export",
        nargs=2,
        metavar=("DEVICE", "NEW_FILE"),
        help="move a device to the ledger of --to, for ever, and write what that one needs; stop the worker first",
    )
    parser.add_argument("--to", metavar="NAME", help="with --export: the other ledger's name, as `budget` shows it")
    what.add_argument(
        "--import",
        dest="taken",
        type=Path,
        metavar="FILE",
        help="move a device that was exported into the shard, and remove the file; stop the worker first",
    )
    what.add_argument(
        "--today",
        action="store_true",
        help="say that this machine's date is right, as `budget --today` does; stop the worker first",
    )
    what.add_argument(
        "--accept",
        action="store_true",
        help="let the second place remember the shard as it is: where the second place or the newest copy was lost; "
        "stop all its workers first",
    )


def main(options: argparse.Namespace) -> None:
    """Run until asked to stop.

    Raises
    ------
    ConfigError, CalibrationError, LedgerError, ShardError
        What must be mended before it can start.
    LinkError
        The log cannot be reached.
    """
    keep_memory_private()
    if (options.to is None) != (options.export is None):
        raise ConfigError("--export DEVICE FILE and --to NAME: expected both or none")
    plan = load(options.config)
    try:
        if options.new:
            asyncio.run(found_shard(plan, options.partition, int(time.time())))
        elif options.compare is not None:
            _compare(plan, options.partition, options.compare)
        elif options.accept:
            _accept(plan, options.partition)
        elif options.export or options.taken:
            _move(plan, options)
        elif options.today:
            day = int(time.time()) // 86_400
            asyncio.run(change_shard(plan, options.partition, lambda ledger: ledger.begin_day_at(day)))
        else:
            start_log(formatter=JsonLines()) if plan.settings.log.format == "json" else start_log()
            asyncio.run(_run(plan, options.partition, options.metrics_port))
    except ConfigError as error:
        raise ConfigError(f"{options.config}: {error}") from None


def _compare(plan: Plan, partition: int, folders: list[Path]) -> None:
    accept = f"eyestream shard --config FILE --partition {partition} --accept"
    print_comparison(*asyncio.run(copies_of_shard(plan, partition, folders)), accept)


def _accept(plan: Plan, partition: int) -> None:
    folder, had, has = asyncio.run(accept_shard(plan, partition))
    print_accepted("the second place", folder, had.ledger, has.ledger)


def _move(plan: Plan, options: argparse.Namespace) -> None:
    """Export a device, or import one."""
    partition, fleet = options.partition, fleet_of(plan.settings)
    if options.export:
        device, target = options.export[0], Path(options.export[1])
        if target.exists():  # before the device is gone
            raise LedgerError(f"{target} exists already")
        if (own := partition_of(device, fleet.partitions)) != partition:
            raise ConfigError(f"--partition {partition}: {device} is of partition {own}")
        made = asyncio.run(
            change_shard(plan, partition, lambda ledger: ledger.export_device(device, options.to, must_be_known=False))
        )
        write_export(target, made)
        print(f"partition {partition}: {device} is gone from here; --import {target} moves it into the other ledger")
        return
    moved = read_export(options.taken)
    device = moved.line.device
    if (own := partition_of(device, fleet.partitions)) != partition:
        raise ConfigError(f"--partition {partition}: {device} is of partition {own}")
    asyncio.run(change_shard(plan, partition, lambda ledger: ledger.import_device(moved)))
    options.taken.unlink()
    print(f"partition {partition}: {device} is here, with everything that it has spent; {options.taken} is removed")


async def _run(plan: Plan, partition: int, port: int | None) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    window = plan.settings.metrics

    @contextlib.asynccontextmanager
    async def served(worker: ShardWorker) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            if window is not None:
                from eyestream.ops.metrics import serve  # noqa: PLC0415  for who asks for the window
                from eyestream_fleet.command import worker_pages  # noqa: PLC0415

                await stack.enter_async_context(serve(port or window.port, worker_pages(worker), window.address))
            yield

    worker = await run_shard(plan, partition, lambda: int(time.time()) // 86_400, stop, served)
    _LOG.info("stopped: %d chunks published", worker.published)
