"""What the brokers of a fleet cost for each chunk: `python -m tools.verification.fleet_figures [--write]`.

Three servers of NATS with three copies of each message, one worker and its trackers, all on this machine. Measured are
the processor time of the servers and of the worker, and the bytes that servers send one another, for each chunk that is
released. Other work on the machine changes these hardly. `--write` keeps them in
`docs/scale-figures.json`, and makes the tables of `docs/scale.md` again: what was measured, and what follows from it
for fleets of three sizes.
"""

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import aiomqtt

from eyestream.wire.topics import raw_topic
from eyestream_fleet.nats.log import connected
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import Workers, fleet_config, raw_messages
from tests.rigs.nats import NatsServer, cluster, patiently

__all__ = ["FIGURES", "PAGE", "tables", "with_tables"]

ROOT = Path(__file__).resolve().parents[2]
FIGURES, PAGE = ROOT / "docs" / "scale-figures.json", ROOT / "docs" / "scale.md"

DEVICES = tuple(f"d{number}" for number in range(100))
CHUNKS = {32: 40, 1: 4}
"""Chunks of each device, by rows a message."""

_SIZES = {"10,000": 10_000, "1 million": 1_000_000, "10 million": 10_000_000}
_ROWS_A_S, _ROWS_A_CHUNK, _DAY_S = 2.0, 32, 86_400
_SHARD = 4_000

Figures = dict[str, float]


def processor_s(pid: int) -> float:
    """Seconds of processor of a process until now."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def page(server: NatsServer, name: str) -> Any:
    """A monitoring page."""
    with urllib.request.urlopen(f"{server.page_url}/{name}", timeout=5) as answer:
        return json.load(answer)


class Counters:
    """What servers and worker have cost until now."""

    def __init__(self, servers: list[NatsServer], worker: int) -> None:
        self._servers, self._worker = servers, worker

    def read(self) -> Figures:
        found = {
            "broker_s": sum(processor_s(one.pid) for one in self._servers),
            "worker_s": processor_s(self._worker),
            "route_bytes": 0.0,
        }
        for one in self._servers:
            found["route_bytes"] += sum(route["out_bytes"] for route in page(one, "routez")["routes"] or ())
        return found


async def measured(rows: int, folder: Path) -> Figures:
    """For each chunk."""
    servers = cluster(folder / "nats", 1)
    for server in servers:
        await asyncio.to_thread(server.start, wait=False)
    try:
        urls = [server.url for server in servers]
        async with connected(urls) as client:
            await patiently(client.jetstream().account_info)
        config = fleet_config(
            folder, urls, 1, DEVICES, private=servers[0].mqtt_url, pages=[one.page_url for one in servers]
        )
        with await asyncio.to_thread(Workers, config, 1) as workers:
            return await _traffic(rows, servers, workers)
    finally:
        for server in servers:
            server.kill()


async def _traffic(rows: int, servers: list[NatsServer], workers: Workers) -> Figures:
    heard, messages = set[tuple[str, bytes]](), raw_messages(DEVICES, CHUNKS[rows] + 1, rows)
    first = len(DEVICES) * 32 // rows

    async def hear(client: aiomqtt.Client) -> None:
        async for message in client.messages:
            if isinstance(message.payload, bytes):
                heard.add((str(message.topic), message.payload))

    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                aiomqtt.Client("127.0.0.1", one.mqtt_port, max_queued_incoming_messages=10**6)
            )
            for one in servers
        ]
        application = await stack.enter_async_context(
            aiomqtt.Client("127.0.0.1", servers[1].mqtt_port, max_queued_incoming_messages=10**6)
        )
        await application.subscribe("eyestream/v1/+/+/private")
        hearing, sent = asyncio.create_task(hear(application)), 0

        async def send(some: list[Any], chunks: int) -> None:
            nonlocal sent
            for number, (key, payload) in enumerate(some):
                await clients[number % len(clients)].publish(raw_topic(*key), payload)
                sent += 1
                due = sent * rows // 32 - 4 * len(DEVICES)
                await until(lambda due=due: len(heard) >= due, 120.0)  # type: ignore[misc]
            await until(lambda: len(heard) >= chunks, 120.0)

        counters = Counters(servers, workers.pid(0))
        await send(messages[:first], len(DEVICES))  # sessions have begun
        before = counters.read()
        await send(messages[first:], len(DEVICES) * (CHUNKS[rows] + 1))
        after = counters.read()
        hearing.cancel()
    count = len(DEVICES) * CHUNKS[rows]
    return {name: (after[name] - before[name]) / count for name in after}


def tables(figures: dict[str, Any]) -> str:
    """The two tables of the page: for each chunk as measured, and for fleets as computed."""
    whole, single = figures["32"], figures["1"]
    lines = [
        "| for each chunk of 32 rows, measured | 32 rows a message | one row a message |",
        "|---|---|---|",
        *(
            f"| {what} | {whole[key] * factor:,.{digits}f} {unit} | {single[key] * factor:,.{digits}f} {unit} |"
            for what, key, factor, digits, unit in (
                ("processors of three servers", "broker_s", 1e3, 2, "ms"),
                ("processor of the worker", "worker_s", 1e3, 2, "ms"),
                ("sent from one server to another", "route_bytes", 1e-3, 1, "kB"),
            )
        ),
        "",
        f"| computed for | {' | '.join(_SIZES)} | price of one | sum |",
        f"|---|{'---|' * len(_SIZES)}---|---|",
    ]

    def row(what: str, of: Any, unit: str = "") -> str:
        values = (f"{_short(of(count))}{unit}" for count in _SIZES.values())
        return f"| {what} | {' | '.join(values)} | ... | ... |"

    def chunks_a_s(count: int) -> float:
        return count * _ROWS_A_S / _ROWS_A_CHUNK

    chunk = 4 * 52 * _ROWS_A_CHUNK
    lines += [
        row("chunks a second", chunks_a_s),
        row("shards of 4,000 devices", lambda n: -(-n // _SHARD)),
        row("processors of servers, used by half", lambda n: 2 * chunks_a_s(n) * whole["broker_s"]),
        row("the same, one row a message", lambda n: 2 * chunks_a_s(n) * single["broker_s"]),
        row("processors of workers, used by half", lambda n: 2 * chunks_a_s(n) * whole["worker_s"]),
        row("the same, one row a message", lambda n: 2 * chunks_a_s(n) * single["worker_s"]),
        row("network of clients: raw and released, in and out", lambda n: 4 * chunks_a_s(n) * chunk / 1e9, " GB/s"),
        row("network between servers", lambda n: chunks_a_s(n) * whole["route_bytes"] / 1e9, " GB/s"),
        row("raw rows a day, in memory only", lambda n: _DAY_S * chunks_a_s(n) * chunk / 1e12, " TB"),
        row("written to disks a day, three copies", lambda n: 3 * _DAY_S * chunks_a_s(n) * chunk / 1e12, " TB"),
        row("memory for raw rows of 300 s, three copies", lambda n: 3 * 300 * chunks_a_s(n) * chunk / 1e9, " GB"),
        row(
            "disk for released chunks of an hour, three copies", lambda n: 3 * 3600 * chunks_a_s(n) * chunk / 1e9, " GB"
        ),
        row(
            "records of ledgers a day, 128 bytes a chunk, before they are rewritten",
            lambda n: _DAY_S * chunks_a_s(n) * 128 / 1e9,
            " GB",
        ),
        row("MQTT connections of trackers", lambda n: n),
        row("connections of workers", lambda n: 2 * -(-n // _SHARD)),
        row("streams and buckets of NATS, three copies each", lambda n: 3 * -(-n // _SHARD) + 2),
        row("retained messages, two a device", lambda n: 2 * n),
    ]
    return "\n".join(lines)


def _short(value: float) -> str:
    """Two or three digits.

    >>> _short(1234.5), _short(0.1234), _short(3_000_000)
    ('1,200', '0.12', '3 million')
    """
    if value >= 1e6:
        return f"{float(f'{value:.3g}') / 1e6:g} million"
    return f"{float(f'{value:.2g}'):,.0f}" if value >= 10 else f"{float(f'{value:.2g}'):g}"


_BEGIN, _END = "<!-- fleet figures: begin -->\n", "<!-- fleet figures: end -->\n"


def with_tables(text: str, figures: dict[str, Any]) -> str:
    """The page with its tables made again."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{tables(figures)}\n\n{_END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for rows in CHUNKS:
        with tempfile.TemporaryDirectory() as folder:
            figures[str(rows)] = asyncio.run(measured(rows, Path(folder)))
        print(rows, figures[str(rows)], flush=True)
    if options.write:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), figures))
    else:
        print(tables(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
