"""``eyestream devices``: what a private broker says is served."""

import argparse
import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from typing import Any

import msgspec

from eyestream.cli.left import budget_words
from eyestream.cli.log import one_line_faults
from eyestream.cli.options import add_broker, broker_settings, positive
from eyestream.errors import PayloadError
from eyestream.privacy.scopes import duration
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message, RefusedError
from eyestream.wire.messages import Budget, decode_budget, decode_meta, decode_private, decode_status
from eyestream.wire.topics import SIDECAR_STREAM, every_topic, parse_topic

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "devices",
        help="which devices are served on a broker, how they are, and their last chunk",
        description="Listen to a private broker as an application does, and print a line for each stream of each "
        "device: how it is, its mechanism, what is left of its budget, and the last chunk that came while we listened. "
        "Chunks are not kept by the broker: one comes each 16 to 64 s with the shipped calibrations. What a stream "
        "says stays when its sidecar is gone: the line of the sidecar is then `offline, lost`, and a broker says that "
        "5 s after a sidecar was killed. So the usual time tells the state of now. Behind each state stands how old "
        "it is, where it changed while we listened; `kept` is what the broker had before.",
    )
    parser.add_argument(
        "--seconds", type=positive, default=SECONDS, metavar="S", help="listen for S seconds (default %(default)g)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    add_broker(parser)


SECONDS = 6.5
"""So long after a sidecar was killed its broker has said that it is lost (`WILL_DELAY_SECONDS`), with a second to
spare."""


@dataclass(slots=True)
class _Seen:
    """What was heard of one stream."""

    state: str = "silent"
    reason: str = ""
    mechanism: str = ""
    epsilon: float | None = None
    seconds: float = 0.0
    said_at: float | None = None
    """When the state came, on our clock; None: the broker had kept it."""
    budget: Budget | None = None
    chunk: int | None = None
    at: float = 0.0


def main(options: argparse.Namespace) -> None:
    """Print what is there.

    Raises
    ------
    ConfigError
        The broker's settings cannot be used.
    LinkError
        It cannot be reached.
    """
    seen = asyncio.run(_listen(Endpoint.of(broker_settings(options)), options.seconds, options.wait))
    now = time.monotonic()
    for (device, stream), one in sorted(seen.items()):
        print(_as_json(device, stream, one, now) if options.json else _as_words(device, stream, one, now))
    if all(stream == SIDECAR_STREAM for _, stream in seen) and not options.json:
        print("no device is served here: no sidecar has described one to this broker")


async def _listen(endpoint: Endpoint, seconds: float, wait_s: float) -> dict[tuple[str, str], _Seen]:
    one_line_faults()
    seen: dict[tuple[str, str], _Seen] = {}

    async def serve(link: Link) -> None:
        await link.subscribe_all([every_topic("meta"), every_topic("status"), every_topic("private")], 1)
        with contextlib.suppress(RefusedError):  # rights of before there was this topic
            await link.subscribe(every_topic("budget"), 1)
        await asyncio.Event().wait()

    def deliver(message: Message) -> None:
        with contextlib.suppress(PayloadError):  # somebody else's topic
            topic = parse_topic(message.topic)
            one = seen.setdefault((topic.device, topic.stream), _Seen())
            _note(one, topic.leaf, message.payload)
            if topic.leaf == "status":
                one.said_at = None if message.retain else time.monotonic()

    link = ReconnectingLink(endpoint, serve, what="private broker", client_id=None, deliver=deliver)
    async with link.beside(wait_s):
        await asyncio.sleep(seconds)
    return seen


def _note(seen: _Seen, leaf: str, payload: bytes) -> None:
    """Keep what a message says; one that is none of ours says nothing."""
    try:
        if leaf == "status":
            status = decode_status(payload)
            seen.state, seen.reason = status.state, status.reason
        elif leaf == "meta":
            meta = decode_meta(payload)
            seen.mechanism, seen.epsilon, seen.seconds = meta.mechanism, meta.epsilon, meta.n / meta.rate_hz
        elif leaf == "budget":
            seen.budget = decode_budget(payload)
        else:
            chunk = decode_private(payload)
            seen.chunk, seen.at = chunk.chunk, time.monotonic()
    except PayloadError:
        seen.state = "not readable"


def _as_words(device: str, stream: str, one: _Seen, now: float) -> str:
    if stream == SIDECAR_STREAM:
        return f"{device:<20}  sidecar     {one.state}, {one.reason} ({_age(one, now)})"
    parts = [f"{device:<20}  {stream:<10}  {one.state}, {one.reason or 'no word'} ({_age(one, now)})"]
    if one.epsilon is None:
        parts.append("not described")
    else:
        parts.append(f"{one.mechanism}, epsilon {one.epsilon:g} a chunk")
        if one.budget is not None:
            parts.append("left: " + budget_words(one.budget, one.seconds, time.time()))
    rhythm = f": one comes every {duration(one.seconds)}" if one.seconds else ""
    last = f"no chunk while we listened{rhythm}"
    parts.append(last if one.chunk is None else f"chunk {one.chunk} {duration(now - one.at)} ago")
    return "  ".join(parts)


def _age(one: _Seen, now: float) -> str:
    """How old its state is."""
    return "kept" if one.said_at is None else f"{duration(now - one.said_at)} ago"


def _as_json(device: str, stream: str, one: _Seen, now: float) -> str:
    told: dict[str, Any] = {"device": device, "stream": stream}
    told |= {name: getattr(one, name) for name in ("state", "reason", "mechanism", "epsilon", "chunk")}
    told["state_seconds_ago"] = None if one.said_at is None else round(now - one.said_at, 1)
    told["seconds_ago"] = None if one.chunk is None else round(now - one.at, 1)
    told["left"] = one.budget and {
        "chunks": one.budget.chunks,
        "ceiling": one.budget.ceiling,
        "resumes_at": None if one.budget.resumes_at is msgspec.UNSET else one.budget.resumes_at,
    }
    return json.dumps(told)
