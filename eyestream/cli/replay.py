"""``eyestream replay``: a recording as if live."""

import argparse
import asyncio
import logging
from pathlib import Path
from typing import Any

from eyestream.cli.log import one_line_faults, start_log
from eyestream.cli.options import RECORDING, add_broker, add_profile, add_stream, broker_settings, speed
from eyestream.cli.progress import Progress, load_all
from eyestream.errors import RecordingError
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.replay import replay
from eyestream.streams import same_rate


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "replay",
        help="publish a recording as a live tracker would",
        description="Publish recordings on the raw topic of a device, each as a session of its own, row by row at the "
        "times of the recording. Rows that the recording lacks stay missing.",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help=RECORDING)
    add_profile(parser)
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
    ConfigError
        There is no such profile.
    RecordingError
        A file is no recording, or they do not have the same features and rate.
    LinkError
        The broker cannot be reached.
    """
    profile = load_profile(options.profile) if options.profile else None
    loaded = load_all(options.recordings, profile)
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
                rows = len(recording.t)
                progress = Progress(recording.path, rows, "rows")
                await replay(publisher, recording, speed=options.speed, progress=progress)
                lost = f", {publisher.lost} lost so far" if publisher.lost else ""
                progress.finish(f"{rows} rows sent{lost}")
            if not options.loop:
                return
