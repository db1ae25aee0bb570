"""Sixteen trackers that send wrongly: `run` and `check` name each within ten seconds, the monitor claims no chunk.

    python -m tools.verification.wrong_senders [NAME ...]

For each one a broker, a fresh sidecar that reads gaze over MQTT at 90 Hz (or rows), and a sender. The table has the
seconds from the first sample, or from the moment that something went wrong, to the line of `eyestream run` that names
it, the line of `eyestream check`, and the headline of the monitor. The exit code is 1 where one of them is missing or
late. Gaze that hardly moves is named after 60 s: somebody may look at one place for so long.
"""

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.monitor.watch import Watch
from eyestream.rim.config import BrokerSettings
from eyestream.sdk.publisher import Publisher
from tests.rigs.mosquitto import Mosquitto

EYESTREAM = str(Path(sys.executable).with_name("eyestream"))
RATE_HZ = 90.0
NAMED_S = 10.0
CHECK_S = 2.0
"""From the first sample to the start of `check`."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sender:
    """What it does to good gaze, and what has to be said of it.

    Attributes
    ----------
    said : of the line of `run`, a pattern; `check` has to print it too, unless `checked` is another one.
    times, points : of seconds since the start (n,) and gaze with the pupil (n, 3).
    rate_hz, device, rows, twice, ends_s : another rate; another device; rows for gaze; two of them; when it ends.
    within_s : when `run` has to name it.
    """

    said: str
    times: Callable[[Array], Array] = lambda t: 1e4 + t
    points: Callable[[Array], Array] = lambda gaze: gaze
    rate_hz: float = RATE_HZ
    device: str = ""
    rows: bool = False
    twice: bool = False
    ends_s: float = np.inf
    within_s: float = NAMED_S
    checked: str | None = None


_NOISE = np.random.default_rng(1)


def _pupils(factor: float) -> Callable[[Array], Array]:
    return lambda gaze: gaze * np.array([1.0, 1.0, factor])


def _gaze(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda gaze: np.column_stack([change(gaze[:, :2]), gaze[:, 2]])


SENDERS = {
    "clock in milliseconds": Sender("in milliseconds.*divide", lambda t: 1e7 + 1e3 * t),
    "clock in nanoseconds": Sender("in nanoseconds.*divide", lambda t: 1e15 + 1e9 * t),
    "clock stands still": Sender("stand still.*send the time", lambda t: 0.0 * t + 1e4),
    "clock jumps": Sender("jumped.*monotonic", lambda t: 1e4 + t + 500.0 * np.floor(t / 3.0)),
    "clock is NaN": Sender("times are not numbers", lambda t: np.nan * t),
    "pupil in metres": Sender("pupils are in metres.*pupil_unit", points=_pupils(1e-3)),
    "pupil in pixels": Sender("pupils lie outside.*pupil_unit", points=_pupils(15.0)),
    "gaze in pixels": Sender("outside of what the profile allows.*unit", points=_gaze(lambda xy: 960 + 40 * xy)),
    "gaze in radians": Sender("hardly moved.*radians", points=_gaze(np.radians), within_s=70.0, checked=""),
    "zeros": Sender("every sample was the same", points=_gaze(np.zeros_like)),
    "noise": Sender("jumped from sample to sample", points=_gaze(lambda xy: _NOISE.uniform(-20, 20, xy.shape))),
    "half of the rate": Sender("fewer samples.*rate_hz", rate_hz=RATE_HZ / 3),
    "another device": Sender("dropped, because the configuration does not name it.*did you mean", device="hmd-l"),
    "rows for gaze": Sender("dropped, because the configuration does not name it.*did you mean", rows=True),
    "two senders": Sender("two senders.*Stop one", twice=True),
    "stops": Sender("stopped|no sample", ends_s=4.0, checked="no gaze of .* comes now"),
}


def _person(seconds: float) -> Array:
    """Gaze at `RATE_HZ` (n, 3): fixations of 0.3 s that drift, and a pupil of 3.5 mm."""
    rng = np.random.default_rng(7)
    count = int(seconds * RATE_HZ) + 1
    places = rng.normal(0.0, 8.0, (count // 27 + 1, 2)).repeat(27, axis=0)[:count]
    return np.column_stack([places + 0.05 * rng.normal(size=(count, 2)), 3.5 + 0.05 * rng.normal(size=count)])


async def _send(sender: Sender, url: str, device: str, begun: asyncio.Event) -> None:
    gaze = _person(120.0)
    start, sent = time.monotonic(), 0
    if sender.rows:
        names = [f"f{i}" for i in range(4)]
        async with Publisher(url, device, names, 2.0) as publisher:
            begun.set()
            while True:
                await publisher.send(np.ones((1, 4)))
                await asyncio.sleep(0.5)
    async with Publisher(url, device) as publisher:
        begun.set()
        while (now := time.monotonic() - start) < sender.ends_s:
            due = int(now * sender.rate_hz)
            which = np.arange(sent, due)
            if len(which):
                points = sender.points(gaze[(which * RATE_HZ / sender.rate_hz).astype(int)])
                await publisher.send_gaze(sender.times(which / sender.rate_hz), points)
            sent = due
            await asyncio.sleep(0.02)
        await asyncio.Event().wait()


async def _named(process: asyncio.subprocess.Process, pattern: str, seen: list[str]) -> float:
    """When a line of a process has the pattern."""
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        seen.append(line.rstrip())
        if re.search(pattern, line):
            return time.monotonic()
    raise EOFError


async def _command(*words: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(EYESTREAM, *words, stdout=pipe, stderr=pipe)


async def tried(sender: Sender, folder: Path) -> tuple[float, str, str, list[str]]:
    """Seconds until `run` names it, infinite: never; what `check` and the monitor say; the lines of `run`."""
    with Mosquitto(folder) as broker:
        return await _tried(sender, folder, broker.url)


async def _tried(sender: Sender, folder: Path, url: str) -> tuple[float, str, str, list[str]]:
    config = folder / "sidecar" / "sidecar.toml"
    words = ["init", str(config.parent), "--features", "rate_saccades", "--broker", url]
    await asyncio.to_thread(subprocess.run, [EYESTREAM, *words], check=True, stdout=subprocess.DEVNULL)
    config.write_text(config.read_text() + f'\n[source]\nkind = "mqtt"\nrate_hz = {RATE_HZ}\n')
    device = re.search(r'(?m)^id = "(.*)"', config.read_text())[1]  # type: ignore[index]
    run = await _command("run", "--config", str(config))
    lines: list[str] = []
    await _named(run, "waiting for the first row", lines)
    watch, ready, begun = Watch(BrokerSettings(url)), asyncio.Event(), asyncio.Event()
    tasks = [asyncio.create_task(watch.run(5.0, ready))]
    tasks += [asyncio.create_task(_send(sender, url, sender.device or device, begun)) for _ in range(1 + sender.twice)]
    try:
        await begun.wait()
        since = time.monotonic() + (sender.ends_s if np.isfinite(sender.ends_s) else 0.0)
        named = asyncio.create_task(_named(run, sender.said, lines))
        checked = ""
        if sender.checked != "":
            await asyncio.sleep(since - time.monotonic() + CHECK_S)
            check = await _command("check", "--laptop", "--config", str(config))
            out, _ = await check.communicate()
            lines_of = re.sub(r"\s+", " ", out.decode())
            checked = found[0] if (found := re.search(sender.checked or sender.said, lines_of)) else "NOT NAMED"
        with suppress(TimeoutError, EOFError):
            async with asyncio.timeout(since + sender.within_s + 5.0 - time.monotonic()):
                await named
        seconds = named.result() - since if named.done() and not named.cancelled() else np.inf
        [headline] = {one.state(watch._sidecar_of(one)) for one in watch._followed.values()} or {""}
        words_of = re.search(r'"headline":\["([^"]*)', headline)
        return seconds, checked, words_of[1] if words_of else "NO HEADLINE", lines
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        run.terminate()
        await run.wait()


def main() -> int:
    """Try all, or those that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args().names or list(SENDERS)
    failed = 0
    print(f"{'sender':24}{'run, s':>8}  check; monitor")
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            seconds, checked, headline, lines = asyncio.run(tried(SENDERS[name], Path(folder)))
        wrong = seconds > SENDERS[name].within_s or checked == "NOT NAMED" or "chunks come" in headline
        failed += wrong
        print(f"{name:24}{seconds:8.1f}  {checked[:70] or '-'}; {headline}{'   FAILED' * wrong}", flush=True)
        if wrong:
            print("\n".join(f"    {line}" for line in lines[-6:]))
    print(f"{len(chosen) - failed} of {len(chosen)} senders are named in time")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
