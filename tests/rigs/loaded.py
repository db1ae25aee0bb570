"""What `eyestream run` has loaded when its default configuration has released a first chunk."""

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eyestream.rim.config import load
from eyestream.rim.files import calibrations
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream.wire.raw import encode_raw
from eyestream.wire.topics import QOS, RAW_QOS, private_topic, raw_topic
from eyestream_lab.embedded import embedded_broker

__all__ = ["Loaded", "loaded_by_default"]

_PATIENCE_S = 60.0
_AGAIN_S = 0.3
_CHUNKS = 4
"""Of each session: of the first ones, the baseline, nothing is released."""

_INITIALISE = "import sys; from eyestream.cli.main import main; main(['init', *sys.argv[1:]])"

_PROGRAM = """
import atexit, json, sys
before = set(sys.modules)
from eyestream.cli.main import main
def tell():
    new = [module for name, module in sys.modules.copy().items() if name not in before]
    files = {module.__name__: module.__file__ for module in new if getattr(module, "__file__", None)}
    print(json.dumps(files))
atexit.register(tell)
main(["run", "--config", sys.argv[1]])
"""
"""`eyestream run` itself, and at its end the modules that it has loaded, with their files, in JSON."""


class Loaded(NamedTuple):
    """Modules of ours with the lines of their files, and the other people's packages beside the standard library."""

    ours: dict[str, int]
    packages: frozenset[str]


def loaded_by_default() -> Loaded:
    """Start the default service, wait for its first released chunk, stop it, and list what it has loaded."""
    return asyncio.run(_loaded())


async def _loaded() -> Loaded:
    with tempfile.TemporaryDirectory() as folder:
        async with asyncio.timeout(_PATIENCE_S), embedded_broker() as url:
            initialise = [sys.executable, "-c", _INITIALISE, folder, "--broker", url]
            await asyncio.to_thread(subprocess.run, initialise, check=True, stdout=subprocess.DEVNULL)
            path = Path(folder, "sidecar.toml")
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _PROGRAM, str(path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            try:
                await _await_first_chunk(path, process)
            finally:
                if process.returncode is None:
                    process.terminate()
                said, _ = await process.communicate()
    assert process.returncode == 0, "the default service ends with a fault"
    files: dict[str, str] = json.loads(said)
    ours = {name: _lines(file) for name, file in files.items() if f"{name}.".startswith("eyestream")}
    installed = {name.partition(".")[0] for name, file in files.items() if "-packages" in file}
    return Loaded(ours, frozenset(installed))


async def _await_first_chunk(path: Path, process: asyncio.subprocess.Process) -> None:
    """Send rows at once, session after session, until the private broker has a chunk."""
    settings = load(path)
    [device], [stream] = settings.device, settings.stream
    calibration = calibrations.load(str(stream.privacy.calibration))
    row = ((calibration.lo + calibration.hi) / 2).astype(np.float32)
    rows = np.repeat(row[None], calibration.n, axis=0)
    came = asyncio.Event()

    def take(message: Message) -> None:
        came.set()

    async with connect(Endpoint.of(settings.private), client_id=None, deliver=take) as link:
        await link.subscribe(private_topic(device.id, stream.name), QOS)
        for session in itertools.count(1):  # what comes before the service listens is lost
            for seq in range(0, _CHUNKS * calibration.n, calibration.n):
                payload = encode_raw(session, seq, rows, stream.schema)
                await link.publish(raw_topic(device.id, stream.name), payload, qos=RAW_QOS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_S):
                    await came.wait()
            if came.is_set() or process.returncode is not None:
                return


def _lines(file: str) -> int:
    return len(Path(file).read_text(encoding="utf-8").splitlines())
