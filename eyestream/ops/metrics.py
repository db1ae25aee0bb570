"""Counters of a sidecar as Prometheus text, and whether it is healthy; and how such pages are served.

An allow-list: envelopes, rows by what became of them, chunks, messages, links. All of them follow from when messages
came and how large they were, none from a value in them. Missing values, imputations, projections are counted nowhere.

They are served on the loopback, or where the configuration says: GET /metrics and GET /healthz, nothing else, bounded
in size, number and time.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from eyestream.core.charge import Ceilings, decimal
from eyestream.core.chunking.session import RowCounters
from eyestream.core.meter import Odometer
from eyestream.core.release.stream import ChunkCounters
from eyestream.errors import LinkError

if TYPE_CHECKING:
    from eyestream.rim.sidecar.assembly import Assembly
    from eyestream.rim.sidecar.sidecar import Sidecar

Page = Callable[[], Awaitable[tuple[int, str]]]
"""Gives status and body."""

MOST_VISITORS = 8
MOST_BYTES = 2048
VISIT_SECONDS = 2.0

_WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


@contextlib.asynccontextmanager
async def serve(port: int, pages: Mapping[str, Page], address: str = "127.0.0.1") -> AsyncIterator[int]:
    """Serve `pages` by path beside the body; gives the port (0 chooses one).

    Raises
    ------
    LinkError
        The port is taken.
    """
    visitors: set[asyncio.StreamWriter] = set()

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(visitors) >= MOST_VISITORS:
            writer.close()
            return
        visitors.add(writer)
        try:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(VISIT_SECONDS):
                    writer.write(await _answer(await _head(reader), pages))
                    await writer.drain()
        finally:
            visitors.discard(writer)
            writer.close()

    try:
        server = await asyncio.start_server(visit, address, port, limit=MOST_BYTES)
    except OSError:
        raise LinkError(f"port {port} of {address} cannot be opened for [metrics]") from None
    async with server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for writer in list(visitors):
                writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The head of a request; empty when it is none, or too long."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return b""


async def _answer(head: bytes, pages: Mapping[str, Page]) -> bytes:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        status, body = 400, ""
    elif words[0] != b"GET":
        status, body = 405, ""
    else:
        page = pages.get(words[1].decode("latin-1"))
        status, body = (404, "") if page is None else await page()
    data = body.encode()
    head_lines = (
        f"HTTP/1.1 {status} {_WORDS[status]}",
        "Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(data)}",
        "Cache-Control: no-store",
        "Connection: close",
    )
    return "\r\n".join((*head_lines, "", "")).encode() + data


Sample = tuple[str, int | str]

_WITHHELD = ("owner", "lifetime", "day", "wearer", "session", "change")
"""Conditions in which nothing of a stream is released until something changes: the one that lasts longest first."""

PLANNED = frozenset({"paused", "lifetime", "day", "wearer", "session", "change"})
"""Words of `health` that no restart mends: the wearer said no, or the budget works as it should."""


def page_of_word(word: str) -> tuple[int, str]:
    """Status and body of `/healthz`."""
    return (200 if word == "ok" or word in PLANNED else 503), f"{word}\n"


def pages(made: "Assembly") -> dict[str, Page]:
    """The pages that `serve` serves of a sidecar, by path."""

    async def figures() -> tuple[int, str]:
        odometers = await asyncio.to_thread(made.odometers)  # it waits for the ledger, which may wait for the disk
        return 200, metrics(made.sidecar, odometers, made.plan.ceilings)

    async def healthz() -> tuple[int, str]:
        return page_of_word(health(made.sidecar))

    return {"/metrics": figures, "/healthz": healthz}


def metrics(sidecar: "Sidecar", odometers: Mapping[str, Odometer], ceilings: Ceilings) -> str:
    """All counters, and what devices have spent, in the text format 0.0.4 of Prometheus."""
    return "".join((*_lines(sidecar), *_budgets(odometers, ceilings)))


def _budgets(odometers: Mapping[str, Odometer], ceilings: Ceilings) -> Iterator[str]:
    spent: list[Sample] = [
        (f'{{device="{device}",scope="{scope}"}}', decimal(getattr(odometer, field)))
        for device, odometer in sorted(odometers.items())
        for scope, field in _SCOPES.items()
    ]
    allowed: list[Sample] = [
        (f'{{scope="{scope}"}}', decimal(ceiling))
        for scope in _SCOPES
        if (ceiling := getattr(ceilings, scope)) is not None
    ]
    yield from family("epsilon_spent", "gauge", "epsilon that the ledger has for a device, by scope", spent)
    yield from family("epsilon_ceiling", "gauge", "what it may be at most", allowed)


_SCOPES = {
    "window": "window_epsilon",
    "session": "session_epsilon",
    "day": "day_epsilon",
    "lifetime": "epsilon",
}


def health(sidecar: "Sidecar") -> str:
    """``ok``, or what is wrong, in one word of a fixed list."""
    if sidecar.pipeline.failed:
        return "ledger"
    if not sidecar.raw_stands:
        return "raw_link"
    if not sidecar.private_stands:
        return "private_link"
    if sidecar.pipeline.paused:
        return "paused"
    return withheld_word(sidecar.pipeline.condition(key) for key in sidecar.pipeline.keys)


def withheld_word(conditions: Iterable[str]) -> str:
    """``ok``, or the condition of all streams that lasts longest."""
    found = set(conditions)
    return next((word for word in _WITHHELD if word in found), "ok")


def _lines(sidecar: "Sidecar") -> Iterator[str]:
    counters, outbox = sidecar.pipeline.counters, sidecar.outbox
    yield from counter("raw_messages_received", "raw messages that came in", [("", sidecar.worker.received)])
    yield from counter("raw_messages_dropped", "raw messages dropped: too many waited", [("", sidecar.worker.dropped)])
    yield from counter("raw_messages_paused", "raw messages that a pause dropped unread", [("", sidecar.unread)])
    heard, refused, unbelieved = sidecar.gaze
    yield from counter("gaze_samples_received", "samples of gaze that came in", [("", heard)])
    yield from counter("gaze_messages_rejected", "messages of gaze refused", [("", refused)])
    yield from counter("gaze_samples_untimed", "samples of gaze whose time cannot be true", [("", unbelieved)])
    yield from common_counters(
        counters.taken,
        counters.rejected,
        [sidecar.pipeline.rows(key) for key in sidecar.pipeline.keys],
        counters,
        outbox.delivered,
    )
    stale = {"overflow": outbox.overflow, "expired": outbox.expired, "refused": outbox.refused, "paused": outbox.paused}
    yield from counter("chunks_undelivered", "released chunks no broker took in time", by_label("reason", stale))
    yield from counter("links", "connections made", by_label("side", sidecar.links))
    yield from counter(
        "messages_cut", "messages too large, or with unreadable properties", by_label("side", sidecar.cut)
    )
    up = {"raw": int(sidecar.raw_stands), "private": int(sidecar.private_stands)}
    yield from family("link_up", "gauge", "1 when the link stands", by_label("side", up))
    yield from family("raw_messages_waiting", "gauge", "raw messages that wait", [("", sidecar.worker.held)])
    yield from family("chunks_waiting", "gauge", "released chunks that wait for the broker", [("", len(outbox))])
    yield from family("ledger_failed", "gauge", "1 when nothing is released", [("", int(sidecar.pipeline.failed))])


def common_counters(
    taken: int, rejected: Mapping[str, int], rows: Collection[RowCounters], chunks: ChunkCounters, delivered: int
) -> Iterator[str]:
    """Counters that a sidecar and a worker of a fleet share."""
    yield from counter("raw_messages_taken", "raw messages whose rows went to their device", [("", taken)])
    yield from counter("raw_messages_rejected", "raw messages refused", by_label("reason", rejected))
    kinds = ("accepted", "late", "duplicate", "stale_session", "refused", "jump", "wearer")
    fates = {kind: sum(getattr(own, kind) for own in rows) for kind in kinds}
    yield from counter("rows", "rows by what became of them", by_label("fate", fates))
    yield from counter("chunks_due", "chunks that fell due", [("", chunks.due)])
    yield from counter("chunks_released", "chunks released", [("", chunks.released)])
    yield from counter(
        "chunks_withheld", "chunks the budget did not allow, or of a baseline", by_label("ceiling", chunks.withheld)
    )
    yield from counter("chunks_dropped", "chunks lost to a fault", by_label("reason", chunks.dropped))
    yield from counter("chunks_delivered", "chunks the broker acknowledged", [("", delivered)])


def by_label(label: str, counts: Mapping[str, int]) -> list[Sample]:
    """Samples of a family by one label; all words come from fixed lists of ours."""
    return [(f'{{{label}="{word}"}}', count) for word, count in sorted(counts.items())]


def counter(name: str, text: str, samples: list[Sample]) -> Iterator[str]:
    """One family of counters."""
    yield from family(f"{name}_total", "counter", text, samples)


def family(name: str, kind: str, text: str, samples: list[Sample]) -> Iterator[str]:
    """The lines of one family: help, type, samples."""
    yield f"# HELP eyestream_{name} {text}\n# TYPE eyestream_{name} {kind}\n"
    for labels, count in samples:
        yield f"eyestream_{name}{labels} {count}\n"
