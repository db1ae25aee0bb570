"""Role: trackers. ``python -m benchmarks.tracker``; reads a plan (a line of JSON), says "up", begins after a line.

Then it says a JSON list of [device, chunk index, monotonic nanoseconds at which its last row was sent].

Plans: ``alternate``: one chunk of one device after one of another, its rows at `rate` (up to 5 a second: all but the
last row at once, so that a minute holds many chunks); ``fleet``: every device at `rate`, their chunks out of step;
``burst``: `chunks` chunks of one device, `window` under way at once, timed here, with `batch` rows a message (without:
all but the last in one); its nanoseconds are how long the chunk took, and the moment follows them.
"""

import json
import random
import sys
import time
from typing import Any

import numpy as np

from benchmarks.mqtt import Client
from eyestream.wire.raw import encode_raw
from eyestream.wire.topics import private_topic, raw_topic

Sent = list[tuple[str, int, int] | tuple[str, int, int, int]]


class Trackers:
    """Sends numbered rows of devices."""

    def __init__(self, port: int, features: int) -> None:
        self.client = Client(port, "tracker")
        self._session = time.time_ns()
        self._rows = np.random.default_rng(0).normal(size=(4096, features)).astype(np.float32)
        self._next: dict[str, int] = {}

    def send(self, device: str, rows: int) -> int:
        """Send the device's next rows in one message; gives the number that the next row will have."""
        first = self._next.get(device, 0)
        payload = encode_raw(self._session, first, self._rows[:rows], 1)
        self.client.publish(raw_topic(device), payload)
        self._next[device] = first + rows
        return first + rows


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def alternate(trackers: Trackers, plan: dict[str, Any]) -> Sent:
    """One chunk of one device after one of another."""
    n, period = plan["n"], 1 / plan["rate"]
    sent: Sent = []
    end = time.monotonic() + plan["seconds"]
    index = 0
    due = time.monotonic()
    while time.monotonic() < end:
        for device in plan["devices"]:
            for row in range(n - 1):
                trackers.send(device, 1)
                if plan["rate"] > 5:
                    due += period
                    _sleep_until(due)
                elif row % 8 == 7:
                    time.sleep(0.002)
            if plan["rate"] <= 5:
                due = time.monotonic() + period
                _sleep_until(due)
            sent.append((device, index, time.monotonic_ns()))
            trackers.send(device, 1)
            time.sleep(0.005)  # the chunk is on its way before the other device begins
            due = max(due, time.monotonic())
        index += 1
    return sent


def fleet(trackers: Trackers, plan: dict[str, Any]) -> Sent:
    """Every device at the rate, evenly spread; the first message fills a random part of the first chunk."""
    n, devices, period = plan["n"], plan["devices"], 1 / plan["rate"]
    sent: Sent = []
    chance = random.Random(1)
    start = time.monotonic()
    for device in devices:
        trackers.send(device, chance.randrange(1, n))
        time.sleep(0.0005)
    turn, start = 0, max(start + period, time.monotonic())
    while (now := start + turn * period) < start + plan["seconds"]:
        for place, device in enumerate(devices):
            _sleep_until(now + place * period / len(devices))
            moment = time.monotonic_ns()
            reached = trackers.send(device, 1)
            if reached % n == 0:
                sent.append((device, reached // n - 1, moment))
        turn += 1
    return sent


def burst(trackers: Trackers, plan: dict[str, Any]) -> Sent:
    """Chunks back to back, a window of them under way; here the nanoseconds are how long each took."""
    n, window, device = plan["n"], plan["window"], plan["devices"][0]
    batch: int = plan.get("batch", 0)
    trackers.client.subscribe([private_topic(device)])
    started: list[int] = []
    end = time.monotonic() + plan["seconds"]
    while len(started) < plan["chunks"] and time.monotonic() < end:
        for _ in range(n // batch if batch else 0):
            trackers.send(device, batch)
        if not batch:
            trackers.send(device, n - 1)
            started.append(time.monotonic_ns())
            trackers.send(device, 1)
        else:
            started.append(time.monotonic_ns())
        if not batch and len(started) % window == 0:
            trackers.client.wait(len(started), 10)
        elif batch:
            trackers.client.wait(len(started) - window, 10)
    trackers.client.wait(len(started), 10)
    arrived = [moment for _, moment in trackers.client.arrivals]
    return [(device, i, b - a, a) for i, (a, b) in enumerate(zip(started, arrived, strict=False))]


PLANS = {"alternate": alternate, "fleet": fleet, "burst": burst}


def main() -> None:
    """Carry out the plan."""
    plan = json.loads(sys.stdin.readline())
    trackers = Trackers(plan["port"], plan["features"])
    print("up", flush=True)
    sys.stdin.readline()
    sent = PLANS[plan["mode"]](trackers, plan)
    trackers.client.close()
    print(json.dumps(sent), flush=True)


if __name__ == "__main__":
    main()
