"""``eyestream check``: is this deployment what the guarantee needs?"""

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eyestream.cli.log import one_line_faults
from eyestream.cli.progress import busy
from eyestream.errors import ConfigError
from eyestream.ops.check_brokers import Others, addresses_elsewhere, broker_findings, laptop_findings, others_of
from eyestream.ops.check_deployment import deployment_findings, root_of
from eyestream.ops.check_host import configuration_findings, host_findings
from eyestream.ops.check_ports import NO_PORTS, ports_of, web_findings, web_port_of
from eyestream.ops.check_trackers import tracker_findings
from eyestream.ops.deployment.accounts import become_owner
from eyestream.ops.findings import Finding, bad
from eyestream.rim import config
from eyestream.rim.plan import load
from eyestream.version import VERSION


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "check",
        help="test a deployment before data flows: brokers, secrets, ledger, machine",
        description="Try what must not work (entering without a login, reading raw rows, writing private chunks) and "
        "look at what must be kept (secrets, ledger, memory, clock). One line each, pass or fail with the remedy; exit "
        "code 1 when one fails. Harmless beside a sidecar at work. Run it as the owner of the ledger, or as "
        "root: then it goes on as that owner.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the sidecar's configuration")
    parser.add_argument(
        "--laptop", action="store_true",
        help="for trying things out, not for people's data: ask only that no other machine reaches the broker",
    )  # fmt: skip
    parser.add_argument(
        "--config-only", action="store_true",
        help="look at the configuration alone, as before a reload: whether a sidecar can be made of it",
    )  # fmt: skip
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
    if options.config_only and (options.laptop or options.tracker is not None or options.application is not None):
        raise ConfigError("--config-only tries no broker: --laptop, --tracker and --application are not for it")
    if options.laptop and (options.tracker is not None or options.application is not None):
        raise ConfigError("--tracker and --application have no logins with --laptop")
    with busy("looking at the configuration, this machine and its brokers"):
        found = _findings(options)
    for finding in found:
        print(finding)
    failed = sum(not finding.passed for finding in found)
    if failed:
        print(f"{failed} of {len(found)} fail", file=sys.stderr)
        sys.exit(1)
    if options.laptop:
        print("fit for a laptop: any program on this machine may read raw rows. For people's data: eyestream deploy /")


def _findings(options: argparse.Namespace) -> list[Finding]:
    """All of them, as the sidecar's user sees them."""
    reading = config.read_tables(options.config)  # where tables have a mistake, what they name is looked at too
    settings = load(options.config).settings if reading.problems else reading.settings
    if options.config_only:
        return list(configuration_findings(settings, options.config).findings)
    if settings.added is not None:
        if options.laptop or options.tracker is not None or options.application is not None:
            raise ConfigError(
                "--laptop, --tracker and --application try the brokers of a sidecar, and not those of a fleet"
            )
        return host_findings(settings, options.config, configuration_findings(settings, options.config))
    tracker = None if options.tracker is None else config.load_login(options.tracker)
    application = None if options.application is None else config.load_login(options.application)
    root = root_of(options.config)
    found = [] if root is None else deployment_findings(root, settings, VERSION, datetime.now(UTC))
    ports = NO_PORTS if root is None or (tracker is None and application is None) else ports_of(root)
    others: Others = {"raw": {}, "private": {}}
    if not options.laptop:
        try:
            others = others_of(settings, tracker, application, ports)
        except ConfigError as error:
            found.append(bad("the logins given can be used", str(error), "The rights of these people were not tried"))
    web = None if root is None else web_port_of(root)
    become_owner(settings.sidecar.ledger)  # root may read every login above, and must not hide what the sidecar cannot
    made = configuration_findings(settings, options.config)

    async def brokers() -> list[Finding]:
        one_line_faults()
        if options.laptop:
            found = await laptop_findings(settings, made.plan, addresses_elsewhere())
            return found + await tracker_findings(made.plan)
        found = await broker_findings(settings, made.plan, others, ports)
        found += [] if web is None else await web_findings(web)
        return found + await tracker_findings(made.plan)

    return found + host_findings(settings, options.config, made) + asyncio.run(brokers())
