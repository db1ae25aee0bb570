"""The demo's screen: a table that is drawn again in a terminal, and a line every few seconds elsewhere."""

import asyncio
import sys
import time
from typing import Self

from eyestream_fleet.demo.playing import Demo

KEYS = "Type w and Enter to kill a worker, s and Enter to kill a server, Ctrl-C to end."

_EVERY_S = 5.0


class Screen:
    """Shows a demo, and takes what somebody types; to be used with a running loop."""

    def __init__(self, demo: Demo) -> None:
        self._demo, self._live = demo, sys.stdout.isatty()
        self._typed, self._next = sys.stdin.isatty(), 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        print(f"three servers and {len(self._demo.partitions)} workers start in {self._demo.folder}", flush=True)
        if self._typed:
            asyncio.get_running_loop().add_reader(sys.stdin, self._read)
        return self

    def __exit__(self, *failed: object) -> None:
        if self._typed:
            asyncio.get_running_loop().remove_reader(sys.stdin)
        for task in self._tasks:
            task.cancel()

    def _read(self) -> None:
        word = sys.stdin.readline()
        if not word:  # nobody types any more
            asyncio.get_running_loop().remove_reader(sys.stdin)
        elif word.strip() == "w":
            self._demo.kill_worker()
        elif word.strip() == "s":
            task = asyncio.get_running_loop().create_task(self._demo.kill_server())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def show(self) -> None:
        """What there is now."""
        if self._live:
            print("\033[H\033[J" + "\n".join([*table(self._demo), "", KEYS]), flush=True)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY_S
            print("; ".join(self._demo.summary()), flush=True)


def table(demo: Demo) -> list[str]:
    """A line for each server and each partition, at most 79 columns wide."""
    servers = [
        f"{server.name}: {'there' if server.runs else 'killed'}, leads "
        + (", ".join(str(number) for number, own in enumerate(demo.partitions) if own.leader == server.name) or "none")
        for server in demo.servers
    ]
    head = f"{'':>4}{'devices':>8}{'worker':>9}{'lives':>6}{'leader':>7}{'heard':>8}{'charged':>8}{'missing':>8}"
    rows, now = [head + f"{'last':>6}{'gap':>6}{'epsilon':>9}"], time.monotonic()
    for number, own in enumerate(demo.partitions):
        rows.append(
            f"{number:>4}{own.devices:>8}{own.pid:>9}{own.lives:>6}{own.leader or '-':>7}{own.chunks:>8}"
            f"{own.released:>8}{own.missing:>8}{now - own.heard:>6.1f}{own.gap:>6.1f}{own.epsilon:>9.0f}"
        )
    return [*servers, "", *rows, "", *demo.summary()]
