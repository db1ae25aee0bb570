"""``eyestream run``: the sidecar."""

import argparse
import asyncio
import gc
import logging
import signal
import time
from pathlib import Path
from typing import Any

from eyestream import config
from eyestream.cli.options import one_line_faults, start_log
from eyestream.service.assembly import assemble
from eyestream.service.sealing import seal
from eyestream.service.sidecar import Sidecar

__all__ = ["add_parser", "main"]

_LOG = logging.getLogger("eyestream.run")


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="the sidecar: raw rows in, private chunks out",
        description="Take raw rows of the configured devices from the raw broker, and publish private chunks on the "
        "private one, until SIGTERM or Ctrl-C. A broker that is down is waited for.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="see `eyestream init`")


def main(options: argparse.Namespace) -> None:
    """Run until told to stop.

    Raises
    ------
    ConfigError, CalibrationError, LedgerError
        What must be mended before it can start.
    """
    seal()
    settings = config.load(options.config)
    with assemble(settings, today=lambda: int(time.time()) // 86_400) as sidecar:
        start_log()
        _LOG.info("chunks of %s: %s", ", ".join(device.id for device in settings.device), sidecar.guarantee)
        gc.freeze()  # what is here now stays: no collection has to look at it again while a chunk waits
        asyncio.run(_run(sidecar))


async def _run(sidecar: Sidecar) -> None:
    one_line_faults()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await sidecar.run(stop)
