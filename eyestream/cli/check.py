"""``eyestream check``: is this deployment what the guarantee needs?"""

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from eyestream.cli.options import one_line_faults
from eyestream.rim import config
from eyestream.rim.ops.check_brokers import broker_findings
from eyestream.rim.ops.check_host import host_findings
from eyestream.rim.ops.findings import Finding

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "check",
        help="prove a deployment before anything flows: brokers, secrets, ledger, machine",
        description="Try what must not work (entering without a login, reading raw rows, writing private chunks) and "
        "look at what must be kept (secrets, ledger, memory, clock). One line each, pass or fail with the remedy; exit "
        "code 1 when one fails. Harmless beside a sidecar at work. Run it as the user that runs the sidecar.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the sidecar's configuration")
    logins = "TOML with username and password_file, or cert_file and key_file"
    parser.add_argument("--tracker", type=Path, metavar="FILE", help=f"try the tracker's rights too: {logins}")
    parser.add_argument("--application", type=Path, metavar="FILE", help=f"try an application's rights too: {logins}")


def main(options: argparse.Namespace) -> None:
    """Print a line for each finding.

    Raises
    ------
    ConfigError
        A file is not what it should be.
    SystemExit
        With code 1 when something must be mended.
    """
    settings = config.load(options.config)
    tracker = None if options.tracker is None else config.load_login(options.tracker)
    application = None if options.application is None else config.load_login(options.application)

    async def brokers() -> list[Finding]:
        one_line_faults()
        return await broker_findings(settings, tracker, application)

    found = host_findings(
        settings, options.config, wall=time.time, monotonic=time.monotonic, pause=time.sleep
    ) + asyncio.run(brokers())
    for finding in found:
        print(finding)
    failed = sum(not finding.passed for finding in found)
    if failed:
        print(f"{failed} of {len(found)} fail", file=sys.stderr)
        sys.exit(1)
