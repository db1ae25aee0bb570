"""``eyestream gatekeeper``: answers questions about released gaze."""

import argparse
import asyncio
import contextlib
import logging
from typing import Any

from eyestream.cli.log import one_line_faults, start_log
from eyestream.cli.options import add_broker, broker_settings
from eyestream.rim.files import calibrations
from eyestream.wire.topics import GAZE_STREAM, answer_topic, ask_topic
from eyestream_lab.gatekeeper.serving import answer_questions
from eyestream_lab.parts import beginning_of_gaze


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "gatekeeper",
        help="answer questions about released gaze",
        description="Subscribe to the coarse gaze of a device, as an application does, and answer questions about it: "
        "fixations and saccades in a rectangle, dwell time, the next tile of a video. Answers come from released gaze "
        "alone. docs/coarse-gaze.md has the form of questions. Ends with Ctrl-C.",
    )
    parser.add_argument("--device", required=True, metavar="ID", help="pseudonym of the tracker")
    parser.add_argument(
        "--stream", default=GAZE_STREAM, metavar="NAME", help=f"name of the stream of gaze (default {GAZE_STREAM})"
    )
    usual = beginning_of_gaze().calibration
    parser.add_argument("--calibration", default=usual, metavar="C", help=f"that of the stream (default {usual})")
    add_broker(parser)


def main(options: argparse.Namespace) -> None:
    """Answer until it is interrupted.

    Raises
    ------
    CalibrationError
        The calibration is none of gaze.
    LinkError
        The broker cannot be reached.
    """
    calibration = calibrations.load(options.calibration)

    async def work() -> None:
        one_line_faults()
        start_log(logging.WARNING)
        asked, answered = ask_topic(options.device, options.stream), answer_topic(options.device, options.stream)
        print(f"questions at {asked}, answers at {answered}; Ctrl-C ends", flush=True)
        broker = broker_settings(options)
        await answer_questions(
            broker, options.device, calibration=calibration, stream=options.stream, wait_s=options.wait
        )

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(work())
