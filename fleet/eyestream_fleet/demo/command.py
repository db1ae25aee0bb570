"""``eyestream fleet-demo``: a fleet on this machine, and a screen that shows it."""

import argparse
import asyncio
import signal
import tempfile
from pathlib import Path
from typing import Any

from eyestream.cli.options import positive
from eyestream.errors import ConfigError
from eyestream_fleet.demo.playing import Demo
from eyestream_fleet.demo.screen import KEYS, Screen

_MOST_DEVICES = 2000


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "fleet-demo",
        help="a fleet on this machine: three servers, workers, simulated devices, and kills on demand",
        description="Start three NATS servers, a worker for each partition, and devices that do not exist, all on "
        "127.0.0.1 and in a temporary folder. Show which worker and which server has each partition, the chunks that "
        f"applications hear, gaps, and what is spent. {KEYS} Needs 'eyestream-fleet[nats-server]'.",
    )
    parser.add_argument("--devices", type=int, default=40, metavar="N", help="simulated devices (default 40)")
    parser.add_argument("--partitions", type=int, default=4, metavar="N", help="as many workers (default 4)")
    parser.add_argument(
        "--kill-every",
        type=positive,
        metavar="S",
        help="kill a worker every S seconds, and every fifth time a server (default: who types kills)",
    )
    parser.add_argument("--seconds", type=positive, metavar="S", help="end by itself after S seconds")


def main(options: argparse.Namespace) -> None:
    """Run until Ctrl-C, SIGTERM, or the time is over; then say what was heard and what was charged.

    Raises
    ------
    ConfigError
        There are no devices, more of something than a demo can have, or no nats-server.
    LinkError
        The servers do not come to terms.
    """
    for name, most in (("devices", _MOST_DEVICES), ("partitions", 64)):
        if not 1 <= getattr(options, name) <= most:
            raise ConfigError(f"--{name} {getattr(options, name)}: expected 1 to {most}")
    with tempfile.TemporaryDirectory(prefix="eyestream-fleet-demo-") as folder:
        asyncio.run(_run(options, Path(folder)))


async def _run(options: argparse.Namespace, folder: Path) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if options.seconds is not None:
        loop.call_later(options.seconds, stop.set)
    demo = Demo(folder, options.devices, options.partitions)
    with Screen(demo) as screen:
        await demo.run(stop, screen.show, options.kill_every)
    print("\n".join(demo.summary()))
