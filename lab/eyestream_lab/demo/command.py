"""``eyestream demo``: everything in one process, over the real wire."""

import argparse
import asyncio
import contextlib
import json
import logging
import tempfile
from pathlib import Path
from typing import Any

from eyestream.cli.log import one_line_faults, start_log
from eyestream.cli.monitor import monitoring
from eyestream.cli.options import positive
from eyestream.core.charge import EPSILON_UNITS
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.entry import Beginning
from eyestream.core.mechanisms.registry import beginnings, entry_of
from eyestream.errors import ConfigError, LinkError
from eyestream.gaze.features import WINDOW_S
from eyestream.monitor.serving import require_extra
from eyestream.ops.asked_sets import ASKED_CALIBRATION, asked_features
from eyestream.ops.new_configuration import default_epsilon
from eyestream.rim.config import Settings
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import read_ledger
from eyestream.sdk.subscriber import Chunks
from eyestream.wire.topics import FEATURE_STREAM, GAZE_STREAM, gaze_topic
from eyestream_lab.demo.figures import SHOWN, DemoState
from eyestream_lab.demo.gaze import WatchedFeeder, WatchedSource, gaze_comes, real_source, simulated_gaze
from eyestream_lab.demo.serving import demo_settings, run_until_stopped, serving
from eyestream_lab.demo.view import View, check_picture, draw, open_view, summary
from eyestream_lab.embedded import embedded_broker
from eyestream_lab.parts import beginning_of_gaze

FAST_SPEED = 60.0
USUAL_FEATURE = "rate_saccades"

PATIENCE_SECONDS = 10.0
"""Wait for the first status, and for the last chunk, at most."""

SENDER_SECONDS = 60.0
"""Wait for the first gaze of a tracker, at most."""


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "demo",
        help="watch it work: broker, gaze, sidecar and application in one terminal",
        description="Start a broker of our own on this machine, play the gaze of a person who does not exist, or of a "
        "tracker, turn it into rows, release them privately chunk by chunk, and show what an application receives. "
        "Nothing is kept: the ledger is a temporary one.",
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--features",
        metavar="NAME[,NAME...]",
        default=USUAL_FEATURE,
        help="the one to three features that the application asks for, or a named set of them, as `init` takes them "
        "(default %(default)s)",
    )
    chosen.add_argument(
        "--mechanism",
        choices=sorted(name for name in beginnings() if entry_of(name).front_end is None),
        help="release all 52 features with it instead; cfpa and dcfpa with their post-processing on, as `init` has "
        "them",
    )
    parser.add_argument(
        "--fast", action="store_true", help=f"the first private chunk within 3 s: {FAST_SPEED:g} times real time"
    )
    parser.add_argument(
        "--stream",
        choices=(FEATURE_STREAM, GAZE_STREAM),
        default=FEATURE_STREAM,
        help="what is released: features (the default), or where the eye looks, slot by slot",
    )
    parser.add_argument(
        "--seconds",
        type=positive,
        metavar="S",
        help="length by the clock (default 20; 8 with --fast; 300 of a tracker)",
    )
    parser.add_argument("--speed", type=positive, metavar="X", help="times real time (default: one chunk a second)")
    parser.add_argument(
        "--source",
        metavar="KIND:WHERE",
        help="a tracker: lsl:NAME, neon:HOST or core:HOST; or mqtt, one that publishes gaze at the demo's broker",
    )
    parser.add_argument("--profile", metavar="P", help="what the tracker's gaze is in (default: the usual one of KIND)")
    parser.add_argument("--rate-hz", type=positive, metavar="R", help="its samples a second, where the profile is open")
    parser.add_argument("--json", action="store_true", help="print one line with one JSON object at the end instead")
    parser.add_argument(
        "--picture", type=Path, metavar="FILE.png", help="draw what stayed inside and what went out, over the same time"
    )
    parser.add_argument(
        "--monitor", action="store_true", help="serve a page with the private chunks, and print its address"
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help="port of the demo's broker on 127.0.0.1 (default: a free one)"
    )


def main(options: argparse.Namespace) -> None:
    """Run the demo.

    Raises
    ------
    ConfigError
        Options do not go together, or nothing would be sent.
    LinkError
        The port is taken.
    """
    if options.picture is not None:
        check_picture(options.picture)
    if options.monitor:
        require_extra()
    start_log(logging.WARNING)
    if options.stream == GAZE_STREAM:
        from eyestream_lab.demo.slots import demo_gaze  # noqa: PLC0415  for who asks

        with tempfile.TemporaryDirectory(prefix="eyestream-demo-") as folder:
            demo_gaze(options, beginning_of_gaze(), Path(folder))
        return
    view = View() if options.json else open_view()
    with tempfile.TemporaryDirectory(prefix="eyestream-demo-") as folder:
        figures = run_until_stopped(_demo(options, Path(folder), view))
    if options.picture is not None and figures.chunk is not None:
        draw(figures, options.picture)
    if options.json:
        print(json.dumps(figures.as_json()))
    elif figures.chunk is not None:
        print(summary(figures))
    else:
        print("the time was over before the first chunk was full: take longer, with --seconds")


async def _demo(options: argparse.Namespace, folder: Path, view: View) -> DemoState:
    one_line_faults()
    if options.source is not None and options.speed is not None:
        raise ConfigError("--speed: a tracker has its own")
    beginning = Beginning(ASKED_CALIBRATION) if options.mechanism is None else beginnings()[options.mechanism]
    calibration, asked = calibrations.load(beginning.calibration), None
    if options.mechanism is None:
        asked = asked_features(options.features, calibration.names)
        build(
            calibration, default_epsilon(), features=asked
        )  # what cannot be released is refused before anything starts
    figures = DemoState(calibration, SHOWN if asked is None else tuple(asked))
    ready = asyncio.Event()
    source: WatchedSource | WatchedFeeder | None = None
    if options.source is None:
        chunk_s = calibration.n / calibration.rate_hz
        speed = options.speed or (FAST_SPEED if options.fast else chunk_s)
        limit = None
        source = _simulated(options.seconds or (8.0 if options.fast else 20.0), speed, figures, ready)
        who = f"a simulated person at {speed:g} times real time"
    else:
        speed, limit = 1.0, options.seconds or 300.0
        if options.source != "mqtt":  # which needs the broker
            source = await _tracker(options, figures, ready)
        who = f"gaze of {options.source}"
    figures.waits = f"{who}: {_pace(figures, calibration.rate_hz * speed, WINDOW_S / speed)}"
    view.announce(figures.waits)
    with view:
        async with asyncio.TaskGroup() as group:
            shown = [group.create_task(_watch(figures, view), name="view")]
            if isinstance(source, WatchedSource):
                shown.append(group.create_task(source.play(), name="gaze"))
            await asyncio.sleep(0)  # gaze first: the rest takes a moment
            try:
                async with embedded_broker(options.port) as url:
                    settings = demo_settings(url, folder, FEATURE_STREAM, beginning, default_epsilon(), features=asked)
                    device = settings.device[0].id
                    view.announce(f"device {device}; join in from another terminal, with")
                    view.announce(f"eyestream listen --broker {url} --device {device}")
                    if source is None:
                        source = await _tracker(options, figures, ready, device=device, broker=url)
                        view.announce(f"publish gaze at {url}, topic {gaze_topic(device)}, within {SENDER_SECONDS:g} s")
                    async with contextlib.AsyncExitStack() as beside:
                        if options.monitor:
                            page = await beside.enter_async_context(
                                monitoring(settings.private, wait_s=PATIENCE_SECONDS)
                            )
                            view.announce(f"page at {page}")
                        await _play(settings, source, figures, view, ready=ready, seconds=limit)
            finally:
                for task in shown:
                    task.cancel()
    odometers = read_ledger(settings.sidecar.ledger).odometers
    figures.epsilon_session = sum(odometer.epsilon for odometer in odometers.values()) / EPSILON_UNITS
    return figures


async def _tracker(
    options: argparse.Namespace, figures: DemoState, ready: asyncio.Event, **where: str
) -> WatchedFeeder:
    """The tracker that the options name; `where` is what `real_source` must know of one that publishes."""
    made = await real_source(options.source, options.profile, options.rate_hz, figures.calibration, **where)
    made.watched_by(figures.gaze.watch, figures.note, ready)
    return made


def _simulated(seconds: float, speed: float, figures: DemoState, ready: asyncio.Event) -> WatchedSource:
    """A person who does not exist, for so many seconds by the clock; raises ConfigError where no chunk would come."""
    player, figures.rows_total = simulated_gaze(seconds * speed, speed, figures.gaze)
    if figures.chunks_total < 1:
        least = (WINDOW_S + figures.withheld * figures.chunk_s) / speed
        why = ": the first minute of a session is withheld" if figures.withheld else ", the gaze of one row"
        raise ConfigError(f"--seconds: expected more than {least:.3g}{why}")
    return WatchedSource(player, figures.note, ready)


def _pace(figures: DemoState, rows_a_second: float, first_s: float) -> str:
    """Timetable of the demo, by the clock."""
    chunk_s = figures.n / rows_a_second
    said = f"the first row after {first_s:.3g} s, then a private chunk of {figures.n} rows every {chunk_s:.3g} s"
    if figures.withheld:
        said += (
            f". The session's first minute ({figures.withheld * chunk_s:.3g} s here) is withheld, and its mean is "
            "subtracted from all later rows"
        )
    return said


async def _play(
    settings: Settings,
    source: WatchedSource | WatchedFeeder,
    figures: DemoState,
    view: View,
    *,
    ready: asyncio.Event,
    seconds: float | None,
) -> None:
    """Show what the application receives: until the last chunk has come, or for so long."""
    async with serving(settings, source) as chunks, asyncio.TaskGroup() as group:
        await _ready(chunks)
        application = group.create_task(_listen(chunks, figures, view), name="application")
        ready.set()
        if seconds is None:
            await _complete(application, figures)
        else:
            await gaze_comes(figures.gaze, SENDER_SECONDS)
            await asyncio.sleep(seconds)
            application.cancel()


async def _watch(figures: DemoState, view: View) -> None:
    """Show the gaze, a few times a second."""
    while True:
        if figures.gaze.samples:
            view.gaze(figures)
        await asyncio.sleep(0.05)


async def _ready(chunks: Chunks) -> None:
    """Wait until the sidecar says that it is online."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while chunks.status is None or chunks.status.state != "online":  # noqa: ASYNC110  a retained message, no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise LinkError("the sidecar did not come online") from None


async def _listen(chunks: Chunks, figures: DemoState, view: View) -> None:
    """The application: takes every chunk, and notes how long it was under way."""
    loop = asyncio.get_running_loop()
    async for chunk in chunks:
        assert chunks.meta is not None
        figures.received(chunk, chunks.meta, loop.time())
        view.update(figures)
        if len(figures.latencies_ms) == figures.chunks_total:
            return


async def _complete(application: "asyncio.Task[None]", figures: DemoState) -> None:
    """Wait for the last chunk, for as long as gaze or chunks come."""
    while not application.done():
        before = (len(figures.latencies_ms), figures.gaze.samples)
        await asyncio.wait({application}, timeout=PATIENCE_SECONDS)
        if not application.done() and before == (len(figures.latencies_ms), figures.gaze.samples):
            missing = figures.chunks_total - len(figures.latencies_ms)
            raise LinkError(f"{missing} of {figures.chunks_total} chunks did not arrive")
    await application
