"""A pipeline at work in a child process that something is withheld from."""

import asyncio
import faulthandler
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eyestream.core.charge import Charge
from eyestream.core.mechanisms import build
from eyestream.core.noise import SecureNoise
from eyestream.rim.files import calibrations
from eyestream.rim.sidecar.pipeline import Pipeline
from eyestream.streams import StreamKey
from tests.rigs.rig import Rig

CALIBRATION = calibrations.load("everyday-klt-32")
NOISE = SecureNoise()
MECHANISM = build(CALIBRATION, 4.8, noise=NOISE)
EPSILON = Charge.of("4.8").epsilon
CHUNKS = 4
ENDED = 7
SECONDS = 4
"""A child that hangs is ended: it releases nothing."""


@dataclass
class Told:
    """What a child has published and said, and how it ended."""

    published: list[bytes] = field(default_factory=list)
    ended: str = "killed"
    settled: bool = False
    """All chunks due were released, withheld or dropped, and counted."""
    dropped: int = 0
    stderr: bytes = b""


def in_child(body: Callable[[Callable[[bytes], None]], Pipeline | None], folder: Path) -> Told:
    """Run `body(publish)` in a forked child, and tell what came of it.

    What `publish` is given goes into a pipe at once, as to a socket; a `MemoryError` or the like ends the child.
    """
    reader, writer = os.pipe()
    errors = folder / "stderr"
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            faulthandler.disable()  # it would speak on pytest's stderr
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            pipe = body(lambda payload: _write(writer, b"P", payload))
            if pipe is not None:
                counters = pipe.counters
                settled = counters.released + counters.withheld.total() + counters.dropped.total()
                _write(writer, b"C", pickle.dumps((counters.due == settled, counters.dropped.total())))
            status = 0
        except BaseException as error:
            status = ENDED
            _write(writer, b"E", type(error).__name__.encode())
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe_end:
        data = pipe_end.read()
    os.waitpid(child, 0)
    return _understood(data, errors)


def _write(writer: int, kind: bytes, data: bytes) -> None:
    os.write(writer, kind + len(data).to_bytes(4, "little") + data)


def _understood(data: bytes, errors: Path) -> Told:
    told = Told(stderr=errors.read_bytes() if errors.exists() else b"")
    while data:
        kind, size = data[:1], int.from_bytes(data[1:5], "little")
        body, data = data[5 : 5 + size], data[5 + size :]
        if kind == b"P":
            told.published.append(body)
        elif kind == b"E":
            told.ended = body.decode()
        else:
            told.settled, told.dropped = pickle.loads(body)
            told.ended = "completed"
    return told


def work(path: Path, rows: np.ndarray, publish: Callable[[bytes], None], ready: Callable[[], None]) -> Pipeline:
    """Four chunks through a pipeline on the ledger at `path`; `ready` is called when all is built, before the rows."""
    times = {"grace_s": 1.0, "idle_s": 60.0, "jump_chunks": 16, "schema": 1}
    rig = Rig(
        path.parent, devices=("a",), mechanism=MECHANISM, on_publish=lambda topic, payload: publish(payload), **times
    )
    with rig:
        session = 0 if (mark := rig.ledger.mark(StreamKey("a", "features"))) is None else mark.session + 1

        async def life() -> None:
            ready()
            for first in range(0, CHUNKS * 32, 16):
                rig.clock.now = float(first)
                await rig.take(rig.sent(rows[first : first + 16], first, session, device="a"))
            rig.clock.now = float(CHUNKS * 32)
            rig.close()

        asyncio.run(life())
    return rig.pipeline
