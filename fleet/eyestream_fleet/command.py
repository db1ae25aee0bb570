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
from eyestream.errors import ConfigError
from eyestream.ops.process import keep_memory_private
from eyestream.rim.plan import Plan, load
from eyestream_fleet.fleet import accept_shard, copies_of_shard, found_shard, run_shard
from eyestream_fleet.worker import ShardWorker

__all__ = ["add_parser", "main"]

_LOG = logging.getLogger("eyestream.shard")


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
    plan = load(options.config)
    try:
        if options.new:
            asyncio.run(found_shard(plan, options.partition, int(time.time())))
        elif options.compare is not None:
            _compare(plan, options.partition, options.compare)
        elif options.accept:
            _accept(plan, options.partition)
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
                from eyestream_fleet.metrics import worker_pages  # noqa: PLC0415

                await stack.enter_async_context(serve(port or window.port, worker_pages(worker), window.address))
            yield

    worker = await run_shard(plan, partition, lambda: int(time.time()) // 86_400, stop, served)
    _LOG.info("stopped: %d chunks published", worker.published)
