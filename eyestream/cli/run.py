"""``eyestream run``: the sidecar."""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eyestream.cli.log import JsonLines, LogLines, one_line_faults, start_log
from eyestream.errors import ConfigError, OperatorError
from eyestream.rim.config import load as load_tables
from eyestream.rim.plan import Plan, load
from eyestream.rim.process import Notifier, keep_memory_private, not_forbidden
from eyestream.rim.sidecar.assembly import Assembly, assemble

_LOG = logging.getLogger("eyestream.run")


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="run the sidecar: raw rows in, private chunks out",
        description="Take raw rows of the configured devices from the raw broker, and publish private chunks on the "
        "private one, until SIGTERM or Ctrl-C. A broker that is down is waited for.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="see `eyestream init`")


def main(options: argparse.Namespace) -> None:
    """Run until asked to stop.

    Raises
    ------
    ConfigError, CalibrationError, LedgerError
        What must be mended before it can start.
    LinkError
        The port for metrics is taken.
    """
    keep_memory_private()
    plan = load(options.config)
    if plan.settings.added is not None:
        raise ConfigError(f"{options.config}: is not that of a sidecar: {plan.settings.added.instead} runs it")
    with _of(options.config), assemble(plan, lambda: int(time.time()) // 86_400) as made:
        log = start_log(formatter=JsonLines()) if plan.settings.log.format == "json" else start_log()
        for reader in not_forbidden():
            _LOG.warning("this system does not forbid that %s reads the memory, which has raw rows in it", reader)
        _log_streams(plan)
        gc.freeze()  # what is there now stays: a full collection that looks at it takes 13 ms, a stall for all devices
        asyncio.run(_run(made, options.config, log))


def _log_streams(plan: Plan) -> None:
    """Log the promise of each stream, for how long it lasts, and the front ends that make its rows."""
    for name, stream in plan.streams.items():
        sent = ", ".join(key.device for key in plan.served if key.stream == name)
        _LOG.info("%s of %s: %s", name, sent or "no device", stream.mechanism.guarantee)
        _LOG.info("%s: the ceilings allow a device: %s", name, stream.lasting)
        for line in stream.warnings:
            _LOG.warning("%s: %s", name, line)
        for profile, mark in stream.marks:
            _LOG.info("%s: gaze of profile %s by front end %s", name, profile.name, mark.front_end)


@contextlib.contextmanager
def _of(path: Path) -> Iterator[None]:
    """Put the configuration's name into what cannot be used although it can be read."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


async def _run(made: Assembly, path: Path, log: LogLines) -> None:
    from eyestream.rim.sidecar.control import serving  # noqa: PLC0415  for who runs it
    from eyestream.rim.sidecar.operator_log import OperatorLog  # noqa: PLC0415  for who runs it
    from eyestream.rim.sidecar.unserved import watch as watch_unserved  # noqa: PLC0415  for who runs it

    fault = one_line_faults()
    sidecar, window = made.sidecar, made.plan.settings.metrics
    talk = OperatorLog(made.plan, sidecar.pipeline, sidecar.left, log.show, sidecar.feeders, is_read=sidecar.is_read)
    notifier = Notifier(os.environ)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def leave() -> None:
        notifier.send("STOPPING=1")
        stop.set()

    again = asyncio.Event()
    if hasattr(signal, "SIGHUP"):
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, leave)
        loop.add_signal_handler(signal.SIGHUP, again.set)
        loop.add_signal_handler(signal.SIGUSR1, _forget, made)
    else:  # Windows, whose loop takes no handlers
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(leave))
    async with contextlib.AsyncExitStack() as stack:
        if window is not None:
            from eyestream.ops.metrics import pages, serve  # noqa: PLC0415  for who asks for the window

            await stack.enter_async_context(serve(window.port, pages(made), window.address))
        control = await stack.enter_async_context(serving(made.plan.settings, sidecar.off))
        if control is not None:
            control.lines |= {"wearer": sidecar.wearing.answer, "forget": made.forget}
        watch = asyncio.create_task(notifier.watch(sidecar.pulse), name="watchdog")
        notifier.send("READY=1")
        try:
            async with asyncio.TaskGroup() as group:
                beside = (
                    group.create_task(_raised(fault), name="faults of callbacks"),
                    group.create_task(_reload(made, path, again, notifier), name="reload"),
                    group.create_task(talk.run(), name="talk"),
                    group.create_task(watch_unserved(made.plan), name="unserved trackers"),
                )
                await sidecar.run(stop)
                for task in beside:
                    task.cancel()
        finally:
            watch.cancel()


def _forget(made: Assembly) -> None:
    """At SIGUSR1, for whom the control socket is out of reach: histories of all, and no diary."""
    made.sidecar.pipeline.forget()
    _LOG.warning("what earlier sessions revealed of wearers is forgotten: everybody begins a new pseudonym")


async def _raised(fault: "asyncio.Future[None]") -> None:
    """Raise what a callback of the loop failed with: the process ends, and its last will says so."""
    await fault


async def _reload(made: Assembly, path: Path, again: asyncio.Event, notifier: Notifier) -> None:
    """At each SIGHUP: take lower ceilings over, or keep everything as it is and say why; `systemctl status` has it."""
    while True:
        await again.wait()
        again.clear()
        try:
            await made.reload(await asyncio.to_thread(load_tables, path))
        except OperatorError as error:
            why = "; ".join(str(error).splitlines())
            _LOG.error("the old configuration stays: %s", why)
            notifier.send(f"STATUS=the old configuration stays: {why}")
        else:
            _LOG.warning("the ceilings of %s hold from now on", path)
            notifier.send(f"STATUS=the ceilings of {path} hold")
