"""Kill brokers under a sidecar at work, and put every fault on its links for a minute; hours in a nutshell.

    python -m tools.verification.broker_storm --restarts 200
    python -m tools.verification.broker_storm --restarts 200 --version 3.1.1
    python -m tools.verification.broker_storm --faults 60

Restarts go round: SIGKILL of the raw broker, an orderly restart of the private one (which keeps its sessions), SIGKILL
of the private one, a session taken over. After each, the time until all links stand is measured. A persistent
application listens throughout. At the end: no chunk was heard with two different payloads or out of order, the ledger
holds exactly what was released, the conservation law held in every sample at 10 Hz, and nothing that was released is
missing except what a killed private broker had acknowledged and lost (counted). One JSON object on stdout; exit code 1
when anything was wrong. mosquitto must be installed.
"""

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiomqtt

from eyestream.rim.config import LimitSettings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream_lab.testing.clocks import until
from tests.rigs.clients import speaking
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.proxy import TOXICS, Fault, FaultProxy
from tests.rigs.sidecar import client_ids, running, settings_for
from tests.rigs.storms import Ear, Watch, ear, recovery, settled, stands, traffic, watching

KINDS = ("raw killed", "private restarted", "private killed", "session taken over")


@dataclass
class Tally:
    """What a storm did."""

    restarts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    recoveries_s: list[float] = field(default_factory=list)


def brokers(folder: Path) -> tuple[Mosquitto, Mosquitto]:
    """A raw broker that keeps nothing and a private one that keeps sessions."""
    for name in ("raw", "private"):
        (folder / name).mkdir()
    kept = folder / "private"
    return Mosquitto(folder / "raw", "log_type none"), Mosquitto(
        kept, "log_type none", "persistence true", f"persistence_location {kept}/"
    )


def verdict(sidecar: Sidecar, heard: Ear, watch: Watch, ledger: Path) -> dict[str, Any]:
    """Figures, and under ``wrong`` what must not be."""
    counters, outbox = sidecar.pipeline.counters, sidecar.outbox
    spent = read_ledger(ledger).odometers["hmd-1"].released
    missing = outbox.delivered - len(heard.payloads)
    wrong = {
        "conflicts": heard.conflicts,
        "disorder": heard.disorder,
        "broken samples": watch.broken,
        "spent and not released": spent - counters.released,
        "due and not settled": counters.due - settled(sidecar),
    }
    return {
        "chunks released": counters.released,
        "chunks heard": len(heard.payloads),
        "acknowledged by a broker that lost them": max(0, missing),
        "duplicates, identical": heard.duplicates,
        "dropped: overflow": outbox.overflow,
        "dropped: expired": outbox.expired,
        "samples": watch.samples,
        "growth MiB": round(watch.growth_mib, 1),
        "peak MiB": round(watch.peak_kib / 1024, 1),
        "wrong": {name: count for name, count in wrong.items() if count},
    }


async def restart(kind: str, raw: Mosquitto, private: Mosquitto, name: str) -> None:
    """One blow; `name` is the client id of the sidecar's private link."""
    if kind == "session taken over":
        async with aiomqtt.Client("127.0.0.1", private.port, identifier=name):
            await asyncio.sleep(0.05)
        return
    victim = raw if kind.startswith("raw") else private
    victim.stop(kill=kind.endswith("killed"))
    await asyncio.sleep(random.choice((0.0, 0.02, 0.2, 1.0)))
    victim.start()


async def storm(restarts: int, folder: Path) -> dict[str, Any]:
    """`restarts` blows under traffic."""
    tally = Tally()
    raw, private = brokers(folder)
    with raw, private:
        settings = settings_for(private.url, folder, raw_url=raw.url)
        async with ear(private.url) as heard:
            async with running(settings) as sidecar, watching(sidecar) as watch:
                await until(lambda: sidecar.raw_stands and sidecar.private_stands)
                async with traffic(raw.url, rows=32, pause_s=0.03) as load:
                    for number in range(restarts):
                        kind = KINDS[number % len(KINDS)]
                        await restart(kind, raw, private, client_ids(sidecar)[0])
                        await asyncio.sleep(0.05)
                        up = await recovery(lambda: stands(sidecar, load.publisher) and heard.stands, 30)
                        tally.restarts[kind] += 1
                        tally.recoveries_s.append(up + 0.05)
                        await asyncio.sleep(random.uniform(0.1, 0.5))
                await until(lambda: len(sidecar.outbox) == 0, 30)
            await asyncio.sleep(1)
        report = verdict(sidecar, heard, watch, settings.sidecar.ledger)
        report["restarts"] = tally.restarts
        report["longest recovery s"] = round(max(tally.recoveries_s), 2)
        report["rows lost by the tracker"] = load.publisher.lost
        if max(tally.recoveries_s) > 5:
            report["wrong"]["recovery"] = report["longest recovery s"]
        return report


async def faults(seconds: float, folder: Path) -> dict[str, Any]:
    """Every fault on both links for `seconds`, one after the other, under traffic."""
    recoveries: dict[str, float] = {}
    drops: dict[str, int] = {}
    raw, private = brokers(folder)
    with raw, private:
        async with (
            FaultProxy(raw.port) as raw_side,
            FaultProxy(private.port) as private_side,
            ear(private.url) as heard,
        ):
            limits = LimitSettings(released_chunks=64, deadline_s=5.0)
            settings = settings_for(private_side.url, folder, raw_url=raw_side.url, limits=limits)
            async with running(settings) as sidecar, watching(sidecar) as watch, traffic(raw.url) as load:
                await until(lambda: sidecar.outbox.delivered > 3)
                for name, fault in {**TOXICS, "slow and shaky": Fault(latency_s=0.5, jitter_s=0.3)}.items():
                    before = sidecar.outbox.expired + sidecar.outbox.overflow
                    for side in (raw_side, private_side):
                        side.fault = fault
                        if name in {"limited data", "hangs up", "reset", "slow close"}:
                            side.reset()
                        if name == "down":
                            await side.down()
                    await asyncio.sleep(seconds)
                    for side in (raw_side, private_side):
                        if name == "down":
                            await side.up()
                        side.fault = Fault()
                        side.reset()  # what is stuck in the proxy would only measure the proxy
                    drops[name] = sidecar.outbox.expired + sidecar.outbox.overflow - before
                    await asyncio.sleep(0.05)
                    recoveries[name] = round(await recovery(lambda: stands(sidecar, load.publisher), 30), 2)
                    delivered = sidecar.outbox.delivered
                    await until(lambda delivered=delivered: sidecar.outbox.delivered > delivered + 3, 30)
            await asyncio.sleep(1)
        report = verdict(sidecar, heard, watch, settings.sidecar.ledger)
        report["recovery s"], report["drops"] = recoveries, drops
        report["most waiting"] = watch.most_waiting
        report["raw messages dropped"] = sidecar.worker.dropped
        if max(recoveries.values()) > 5:
            report["wrong"]["recovery"] = max(recoveries.values())
        return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restarts", type=int, default=0, metavar="N", help="blows to the brokers")
    parser.add_argument("--faults", type=float, default=0, metavar="S", help="seconds of every fault")
    parser.add_argument("--version", choices=("auto", "5", "3.1.1"), default="auto", help="of MQTT, on our links")
    options = parser.parse_args()
    logging.getLogger("eyestream").setLevel(logging.CRITICAL)
    reports = {}
    for name, amount, run in (("restarts", options.restarts, storm), ("faults", options.faults, faults)):
        if amount:
            with tempfile.TemporaryDirectory(prefix="broker-storm-") as folder, speaking(options.version):
                reports[name] = asyncio.run(run(amount, Path(folder)))
    print(json.dumps(reports, indent=2))
    sys.exit(1 if any(report["wrong"] for report in reports.values()) else 0)


if __name__ == "__main__":
    main()
