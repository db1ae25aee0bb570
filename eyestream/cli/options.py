"""Options that several subcommands share."""

import argparse
import contextlib
import math
from pathlib import Path

from eyestream.rim.config.tables import LOCAL_BROKER, BrokerSettings
from eyestream.wire.topics import FEATURE_STREAM

RECORDING = ".npz, .csv, .tsv or .parquet of rows; with --profile, gaze"


def add_profile(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """``--profile``."""
    shipped = "name of a shipped profile (smi-glasses, degrees and so on) or a TOML file"
    said = f"what the columns of the gaze are: {shipped}" if required else f"the files hold gaze: {shipped}"
    parser.add_argument("--profile", required=required, metavar="P", help=said)


def add_broker(parser: argparse.ArgumentParser) -> None:
    """``--broker`` and what a broker may ask for."""
    group = parser.add_argument_group("broker")
    group.add_argument(
        "--broker",
        metavar="URL",
        default=LOCAL_BROKER,
        help=f"mqtt://host[:port], mqtts://... or unix:///path (default {LOCAL_BROKER}, as `eyestream init` writes it)",
    )
    group.add_argument("--username", help="name to log in with")
    group.add_argument("--password-file", type=Path, metavar="FILE", help="file with the password on its first line")
    group.add_argument("--ca-file", type=Path, metavar="FILE", help="mqtts: certificates to trust, not the system's")
    group.add_argument("--cert-file", type=Path, metavar="FILE", help="mqtts: certificate to show")
    group.add_argument("--key-file", type=Path, metavar="FILE", help="mqtts: its key")
    group.add_argument(
        "--wait", type=positive, default=5.0, metavar="S", help="try for S seconds to reach it (default 5)"
    )


def broker_settings(options: argparse.Namespace) -> BrokerSettings:
    """The options of `add_broker`."""
    return BrokerSettings(
        url=options.broker,
        username=options.username,
        password_file=options.password_file,
        ca_file=options.ca_file,
        cert_file=options.cert_file,
        key_file=options.key_file,
    )


def add_stream(parser: argparse.ArgumentParser) -> None:
    """``--stream``."""
    parser.add_argument(
        "--stream",
        default=FEATURE_STREAM,
        metavar="NAME",
        help=f"name of the stream in the sidecar's configuration (default {FEATURE_STREAM})",
    )


def positive(text: str) -> float:
    """A finite number above 0."""
    with contextlib.suppress(ValueError):
        if 0 < (number := float(text)) < math.inf:
            return number
    raise argparse.ArgumentTypeError(f"expected a number above 0, not {text}")


def speed(text: str) -> float:
    """A factor above 0, or ``max``.

    >>> speed("2.5"), speed("max")
    (2.5, inf)
    """
    return math.inf if text == "max" else positive(text)


def whole(text: str) -> int:
    """A whole number from 0 on."""
    with contextlib.suppress(ValueError):
        if (number := int(text)) >= 0:
            return number
    raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, not {text}")
