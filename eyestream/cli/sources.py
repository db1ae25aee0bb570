"""``eyestream sources``: which trackers are on this network."""

import argparse
import asyncio
import dataclasses
import json
import logging
from typing import Any

from eyestream.cli.log import start_log
from eyestream.cli.options import positive
from eyestream.ops.find_sources import USUAL_HOSTS, FoundSource, find_sources


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "sources",
        help="list the trackers on this network, and the configuration for each",
        description="Look for LSL outlets, for phones with Neon or Invisible, and for Pupil Capture. Say of each its "
        "rate and channels, and the [source] table that takes it, or why it is refused. Gaze is counted, and neither "
        "shown nor kept. LSL looks by broadcast on every interface.",
    )
    parser.add_argument(
        "--host",
        action="append",
        metavar="HOST[:PORT]",
        help=f"ask here for a phone and for Pupil Capture; may be repeated (default: {', '.join(USUAL_HOSTS)})",
    )
    parser.add_argument("--wait", type=positive, default=2.0, metavar="S", help="look and count so long (default 2)")
    parser.add_argument("--json", action="store_true", help="one JSON object: what was found, and what is missing")


def main(options: argparse.Namespace) -> None:
    """Print what there is.

    Raises
    ------
    ConfigError
        A host cannot be one.
    """
    start_log(logging.ERROR)  # what a source would say of its tracker stands in what is printed
    found, missing = asyncio.run(find_sources(options.host or USUAL_HOSTS, options.wait))
    if options.json:
        print(json.dumps({"found": [dataclasses.asdict(one) for one in found], "missing": missing}))
        return
    for one in found:
        print(_told(one))
    if not found:
        print("no tracker found")
    for line in missing:
        print(f"not looked for: {line}")


def _told(one: FoundSource) -> str:
    """Some lines about one tracker."""
    rate = "irregular or unknown rate" if one.rate_hz is None else f"{one.rate_hz:g} samples a second"
    lines = [f"{one.kind}  {one.name}  {rate}"]
    if one.channels:
        lines.append(f"  {len(one.channels)} channels: {', '.join(one.channels)}")
    if one.refused:
        return "\n".join([*lines, f"  refused: {one.refused}"])
    plain = {key: value for key, value in one.source.items() if key != "options"}
    for head, table in (("[source]", plain), ("[source.options]", one.source["options"])):
        lines += [f"  {head}", *(f"  {key} = {json.dumps(value)}" for key, value in table.items())]  # as TOML has them
    return "\n".join(lines)
