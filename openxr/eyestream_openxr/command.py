"""``eyestream openxr``: the layer of this user, and the bridge that shows released gaze."""

import argparse
import asyncio
import contextlib
import os
import time
from pathlib import Path
from typing import Any

from eyestream.cli.options import add_broker, broker_settings
from eyestream_openxr.install import DISABLE, LAYER_NAME, install, manifests, remove
from eyestream_openxr.place import PAGE, SOCKET, open_folder, usual_folder
from eyestream_openxr.wire import read_page

_STALE_NS = 1_500_000_000


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "openxr",
        help="gaze of programs that use OpenXR: install the layer, show released gaze",
        description="A layer between programs and the headset's runtime. Programs see no gaze, or what was released. "
        "It is an adapter and a reference policy: a program that wants to evade it can.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("install", help="compile the layer, for all OpenXR programs of this user")
    actions.add_parser("remove", help="take the layer away")
    status = actions.add_parser("status", help="whether it is installed, what else is there, who is at work")
    run = actions.add_parser("run", help="show released gaze to programs; without it they see none")
    for one in (status, run):
        one.add_argument("--folder", type=Path, metavar="DIR", help="where the layer looks (default: as it is built)")
    run.add_argument("--device", required=True, metavar="ID", help="pseudonym of the tracker")
    run.add_argument("--stream", default="gaze", metavar="NAME", help="of coarse gaze (default gaze)")
    add_broker(run)


def main(options: argparse.Namespace) -> None:
    """Do what is asked.

    Raises
    ------
    ConfigError
        The layer cannot be installed, or the page cannot be made.
    LinkError
        The broker cannot be reached.
    """
    {"install": _install, "remove": _remove, "status": _status, "run": _run}[options.action](options)


def _install(options: argparse.Namespace) -> None:
    manifest, library = install()
    print(f"{library}\n{manifest}\nprograms that start from now on see no gaze, until `eyestream openxr run` shows it")


def _remove(options: argparse.Namespace) -> None:
    gone = remove()
    print("\n".join(f"{path} is gone" for path in gone) or "the layer was not installed")


def _status(options: argparse.Namespace) -> None:
    folder = options.folder or usual_folder()
    found = manifests()
    ours = any(one.name == LAYER_NAME for one in found)
    print(f"layer: {'installed' if ours else 'not installed: `eyestream openxr install`'}")
    if DISABLE in os.environ:
        print(f"layer: switched off here, as {DISABLE} is set")
    for one in found:
        print(f"  {one.path}: {one.name or 'no manifest'}, {one.position}")
    if any(not one.implicit for one in found):
        print("  with a layer below, a program has no gaze: that layer would see it raw")
    print(f"sidecar: {'a socket' if (folder / SOCKET).is_socket() else 'no socket'} in {folder}")
    print(f"bridge: {_bridge(folder / PAGE)}")


def _bridge(path: Path) -> str:
    try:
        page = read_page(path.read_bytes())
    except OSError:
        return "no page: programs see no gaze"
    age_ns = time.monotonic_ns() - page.beat_ns if page is not None else -1
    if page is None or not 0 <= age_ns < _STALE_NS:
        return "has ended: programs see no gaze"
    return "at work" + (", and gaze is shown" if page.until_ns > time.monotonic_ns() else ", and nothing is released")


def _run(options: argparse.Namespace) -> None:
    from eyestream_openxr.bridge import bridging  # noqa: PLC0415  the others need no link

    folder = options.folder or usual_folder()
    open_folder(folder)
    print(f"shows released gaze of {options.device} to programs; Ctrl-C ends")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(bridging(broker_settings(options), options.device, options.stream, folder, wait_s=options.wait))
