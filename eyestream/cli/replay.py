"""``eyestream replay``: a recording as if live."""

import argparse
import asyncio
import logging
import sys
import time
from pathlib import Path
from typing import Any

from eyestream.cli.options import add_broker, add_stream, broker_settings, one_line_faults, speed, start_log
from eyestream.errors import RecordingError
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.sdk.publisher import Publisher
from eyestream.rim.sdk.replay import replay
from eyestream.streams.spec import same_rate

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "replay",
        help="publish a recording as if a tracker sent it live",
        description="Publish recordings on the raw topic of a device, each as a session of its own, row by row at the "
        "times of the recording. Rows that the recording lacks stay missing.",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help=".npz, .csv or .csv.gz")
    parser.add_argument("--device", required=True, metavar="ID", help="pseudonym of the tracker to play")
    add_stream(parser)
    parser.add_argument("--speed", type=speed, default=1.0, metavar="X", help="times real time, or max (default 1)")
    parser.add_argument("--schema", type=int, default=1, metavar="N", help="schema number of the stream (default 1)")
    parser.add_argument("--loop", action="store_true", help="begin again after the last recording, until stopped")
    add_broker(parser)


def main(options: argparse.Namespace) -> None:
    """Publish every recording.

    Raises
    ------
    RecordingError
        A file is no recording, or they do not have the same features and rate.
    LinkError
        The broker cannot be reached.
    """
    loaded = [recordings.load(path) for path in options.recordings]
    _check_alike(loaded)
    asyncio.run(_play(options, loaded))


def _check_alike(loaded: list[Recording]) -> None:
    first = loaded[0]
    for other in loaded[1:]:
        if other.names != first.names:
            raise RecordingError(f"{other.path}: its features are not those of {first.path}")
        if not same_rate(other.rate_hz, first.rate_hz):
            raise RecordingError(f"{other.path}: its rate is not that of {first.path}")


async def _play(options: argparse.Namespace, loaded: list[Recording]) -> None:
    one_line_faults()
    broker, first = broker_settings(options), loaded[0]
    async with Publisher(
        broker,
        options.device,
        first.names,
        first.rate_hz,
        stream=options.stream,
        schema=options.schema,
        wait_s=options.wait,
    ) as publisher:
        start_log(logging.WARNING)
        while True:
            for recording in loaded:
                progress = _Progress(recording.path, len(recording.t))
                await replay(publisher, recording, speed=options.speed, progress=progress)
                progress.finish(publisher.lost)
            if not options.loop:
                return


class _Progress:
    """One line that counts rows: rewritten in a terminal, repeated every few seconds elsewhere."""

    def __init__(self, name: str, rows: int) -> None:
        self._name, self._rows = name, rows
        self._live = sys.stderr.isatty()
        self._next = time.monotonic()

    def __call__(self, sent: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (0.2 if self._live else 5.0)
        self._say(f"{self._name}: {sent} of {self._rows} rows", "\r" if self._live else "\n")

    def finish(self, lost: int) -> None:
        """Say how it ended; `lost` is the number of rows that no broker took since the start."""
        self._say(f"{self._name}: {self._rows} rows sent{f', {lost} lost so far' if lost else ''}", "\n")

    @staticmethod
    def _say(text: str, end: str) -> None:
        print(f"\r{text}" if end == "\r" else text, end=end, file=sys.stderr, flush=True)
