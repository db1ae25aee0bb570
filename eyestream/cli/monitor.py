"""``eyestream monitor``: a page that shows what an application receives."""

import argparse
import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator
from typing import Any

from eyestream.cli.log import one_line_faults, start_log
from eyestream.cli.options import add_broker, broker_settings
from eyestream.monitor.serving import serve
from eyestream.monitor.watch import Watch
from eyestream.rim.config import BrokerSettings


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "monitor",
        help="show in a browser what an application receives",
        description="Follow the streams of a private broker as an application does, and serve a page on this machine "
        "alone: private traces with their error, what is left of the budget, how the streams are. The address has a "
        "random token: who has the address sees the page. Ends with Ctrl-C.",
    )
    parser.add_argument("--device", metavar="ID", help="follow this device alone (default: all)")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (default: a free one)")
    add_broker(parser)


def main(options: argparse.Namespace) -> None:
    """Serve until Ctrl-C.

    Raises
    ------
    ConfigError
        aiohttp is not installed, or the broker's settings cannot be used.
    LinkError
        The broker cannot be reached, or the port is taken.
    """
    asyncio.run(_serve(options))


async def _serve(options: argparse.Namespace) -> None:
    one_line_faults()
    start_log(logging.WARNING)
    broker = broker_settings(options)
    async with monitoring(broker, device=options.device, port=options.port, wait_s=options.wait) as address:
        print(f"page at {address}   Ctrl-C ends", flush=True)
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def monitoring(
    broker: BrokerSettings, *, device: str | None = None, port: int = 0, wait_s: float = 5.0
) -> AsyncIterator[str]:
    """Watch `broker` and serve the page beside the body; gives its address."""
    watch, ready = Watch(broker, device), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch.run(wait_s, ready), name="watch")
        await ready.wait()
        try:
            async with serve(watch, port, secrets.token_urlsafe(16)) as address:
                yield address
        finally:
            watching.cancel()
