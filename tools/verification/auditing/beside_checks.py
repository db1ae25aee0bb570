"""Checks that nothing without noise leaves beside the values of a release.

`published`: of two recordings with as many rows, all but the released values is the same. `moments`: of two lives that
differ in what rows take on their way, all but the moment of an arrival is the same. `standing`: of two trackers, one of
which falls silent because the eye is lost, applications read the same status, and no session ends.
"""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eyestream.core.chunking.settings import Release
from eyestream.core.mechanisms import build
from eyestream.core.release.stream import Outcome, StreamRelease
from eyestream.rim.config import BrokerSettings
from eyestream.rim.files import recordings
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream.rim.sidecar.boards import StatusBoard
from eyestream.rim.sidecar.source_runner import SourceRunner
from eyestream.rim.sources import neon
from eyestream.rim.sources.gaze import GazeFeeder, Place
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows
from eyestream.wire.status import decode_status
from eyestream_lab.calibration.fingerprints import made_from, recording_hash
from eyestream_lab.recordings.privatize import privatize
from tests.rigs.calibrations import synthetic
from tests.rigs.logs import silence
from tests.rigs.memory_ledger import MemoryLedger
from tests.rigs.neon import FakeNeon
from tests.rigs.seams import replaced
from tools.verification.auditing.findings import Finding, first_failure
from tools.verification.auditing.flow_checks import Recorder
from tools.verification.auditing.station import EPSILON, FEATURES, WIDE, device_settings, folder

__all__ = ["moments", "published", "standing"]

Array = NDArray[np.float64]

_ROWS = 37
_LATENCY_S = 0.02
_KEY = StreamKey("d", "features")
_SPEED = 100.0
_LOST_S = 1.2


def published() -> Finding:
    """The recording that the calibration was made from, and one with other rows, with missing ones and a gap."""
    rng = np.random.default_rng(1)
    known, other = rng.uniform(0, 1, (2, _ROWS, FEATURES))
    other[8:20] = np.nan
    bare = synthetic("cfpa", 4, FEATURES)
    provenance = dataclasses.replace(bare.provenance, recordings=(recording_hash(known),))
    calibration = dataclasses.replace(bare, provenance=provenance)
    even = np.arange(_ROWS) / bare.rate_hz
    gap = even + np.where(np.arange(_ROWS) > 9, 40.0, 0.0)
    said: list[tuple[bytes, bytes, bytes]] = []
    for t, rows in ((even, known), (gap, other)):
        recording = Recording(t, rows, bare.names)
        (released,) = privatize([recording], calibration, build(calibration, EPSILON, k=1))
        with folder() as place:
            said.append((json.dumps(released.claim()).encode(), *_written(released.recording, place / "r.npz")))
    claims, times, missing = (_differing(*pair) for pair in zip(*said, strict=True))
    return first_failure(
        (claims == 0, f"{claims} of {len(said[0][0])} bytes of a claim depend on the rows"),
        (times == 0, f"{times} bytes of the times of a release depend on the rows"),
        (missing == 0, f"{missing} values are missing in a release because they were missing in the rows"),
        (made_from(calibration, known) and not made_from(calibration, other), "the recordings do not differ enough"),
    )


def _differing(one: bytes, other: bytes) -> int:
    """How many bytes are not the same."""
    return abs(len(one) - len(other)) + sum(a != b for a, b in zip(one, other, strict=False))


def _written(recording: Recording, path: Path) -> tuple[bytes, bytes]:
    """Of a recording as it is written: its times, and which values are missing."""
    recordings.save(recording, path)
    told = recordings.load(path)
    return told.t.tobytes(), np.isnan(told.features).tobytes()


def moments() -> Finding:
    """Rows at once, and rows that take up to 20 ms on their way, which the tracker's times have in them too."""
    late = np.random.default_rng(1).uniform(0, _LATENCY_S, 64)
    late[0] = 0.0  # the session's first moment is told
    by_row, by_row_late = (_life("on_row", way) for way in (np.zeros(64), late))
    by_clock, by_clock_late = (_life("on_clock", way) for way in (np.zeros(64), late))
    in_bytes = sum(one[1] != other[1] for one, other in zip(by_row, by_row_late, strict=True))
    on_clock = sum(one != other for one, other in zip(by_clock, by_clock_late, strict=True))
    in_moments = sum(one[0] != other[0] for one, other in zip(by_row, by_row_late, strict=True))
    return first_failure(
        (in_bytes == 0, f"{in_bytes} of {len(by_row)} chunks have in their bytes what rows took on their way"),
        (on_clock == 0, f"{on_clock} of {len(by_clock)} chunks on the clock have it in their bytes or their moments"),
        (len(by_row) == 16 and len(by_clock) > 13, f"only {len(by_row)} and {len(by_clock)} chunks were released"),
        (in_moments > 8, "chunks on their rows do not come with them: nothing was tried"),
    )


def _life(release: Release, late: Array) -> list[tuple[float, bytes]]:
    """When each chunk left, and its bytes; its values are its rows, which are always the same."""
    settings = dataclasses.replace(device_settings(4), release=release)
    stream, ledger = StreamRelease(settings, cast(Any, Recorder()), lambda: 1), MemoryLedger(WIDE)
    left: list[tuple[float, bytes]] = []

    def carry_out(outcome: Outcome, now: float) -> None:
        answered = stream.answer(ledger.reserve(outcome.requests, 0))
        left.extend((now, payload) for payload in (*outcome.payloads, *answered.payloads))

    for row, way in enumerate(late):
        arrival = row / settings.rate_hz + float(way)
        while (due := stream.next_due()) is not None and due <= arrival:
            carry_out(stream.tick(due), due)
        rows = RawRows(1, row, np.full((1, FEATURES), float(row)), t=np.array([1000.0 + arrival]))
        carry_out(stream.feed(rows, arrival), arrival)
    return left


def standing() -> Finding:
    """A phone that streams, and one that falls silent for two minutes of gaze; both answer all the time."""
    with silence(), replaced("tracker is asked every", 0.1):
        (seen, rows, ended), (lost, rows_lost, ended_lost) = asyncio.run(_both_phones())
    return first_failure(
        (seen == lost, f"{len(lost)} statuses are said of a phone that is silent, {len(seen)} of one that streams"),
        (ended == ended_lost == 0, f"{ended_lost} sessions end because the eye is lost"),
        (min(rows, rows_lost) > 20, f"only {rows} and {rows_lost} rows were made"),
    )


async def _both_phones() -> Sequence[tuple[list[tuple[str, str]], int, int]]:
    return await asyncio.gather(_phone(loses=False), _phone(loses=True))


async def _phone(*, loses: bool) -> tuple[list[tuple[str, str]], int, int]:
    """States and reasons that an application reads, how many rows were made, and how many sessions ended."""
    phone, profile = FakeNeon(), load_profile("neon")
    phone.clock.speed = _SPEED
    source = neon.NeonSource(neon.NeonOptions("127.0.0.1", phone.port), profile, Place("d", BrokerSettings("mqtt://-")))
    rows: list[RawRows] = []
    said: list[tuple[str, str]] = []

    def say(topic: str, payload: bytes) -> None:
        status = decode_status(payload)
        if not said or said[-1] != (status.state, status.reason):
            said.append((status.state, status.reason))

    def changed() -> None:
        board.update(stands=runner.stands, ledger=True, condition=lambda key: "ready")

    feeder = GazeFeeder(source, profile, neon.NEON.answers, _SPEED)
    runner = SourceRunner({_KEY: feeder}, lambda key, made: rows.append(made), changed)
    board = StatusBoard("s", [_KEY], say)
    changed()
    await phone.start()
    work = asyncio.create_task(runner.run())
    await asyncio.sleep(0.6)
    phone.silent = loses
    await asyncio.sleep(_LOST_S)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await phone.stop()
    return said, sum(len(made.rows) for made in rows), sum(made.end for made in rows)
