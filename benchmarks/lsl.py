"""Processor time of a whole sidecar with an outlet of LSL, against null relays that only pull, by turns.

python -m benchmarks.lsl [--rates 120 1000] [--seconds 30] [--turns 2]

Everything runs in a network namespace of its own, because LSL's sockets are open to every interface. Both relays drop
what they pull: one takes portions by the clock, as the sidecar does, and one wakes for each sample.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.processes import RUN, Child, broker, watcher, write_config

RELAYS = {
    "relay, portions": "import time\nwhile True:\n    inlet.pull_chunk(timeout=0.0)\n    time.sleep(0.05)",
    "relay, each sample": "while True:\n    inlet.pull_sample(timeout=1.0)",
}
_SETTLE_S = 8.0
_PULLING = (
    "from eyestream.rim.sources.lsl import pylsl_module\npylsl = pylsl_module()\n"
    "inlet = pylsl.StreamInlet(pylsl.resolve_byprop('name', 'gaze', timeout=10.0)[0], max_buflen=10)\n"
)


def share(child: Child, seconds: float) -> float:
    """Of a core, in per cent, after it has settled."""
    time.sleep(_SETTLE_S)
    began, spent = time.monotonic(), child.cpu_seconds()
    time.sleep(seconds)
    return 100.0 * (child.cpu_seconds() - spent) / (time.monotonic() - began)


def of_relay(code: str, seconds: float) -> float:
    """What a relay takes."""
    with Child([sys.executable, "-c", _PULLING + code]) as child:
        return share(child, seconds)


def of_sidecar(rate_hz: float, seconds: float) -> float:
    """What a whole sidecar takes, with its front end and chunks of features."""
    with broker() as port, tempfile.TemporaryDirectory() as folder:
        path = write_config(Path(folder), port, ["foot"])
        source = f'\n[[source]]\nkind = "lsl"\nrate_hz = {rate_hz}\ndevice = "foot"\n[source.options]\nname = "gaze"\n'
        path.write_text(path.read_text() + source)
        with watcher(port) as wait, Child([sys.executable, "-c", RUN, "run", "--config", str(path)]) as child:
            wait()
            return share(child, seconds)


def main() -> None:
    """Print the median of each, over all turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[120.0, 1000.0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    if os.environ.get("EYESTREAM_OWN_NETWORK") is None:
        up = 'ip link set lo up && ip link set lo multicast on && exec "$@"'
        command = ["unshare", "-rn", "sh", "-c", up, "sh", sys.executable, "-m", "benchmarks.lsl", *sys.argv[1:]]
        os.execvpe("unshare", command, os.environ | {"EYESTREAM_OWN_NETWORK": "1", "HOME": "/nonexistent"})
    for rate_hz in arguments.rates:
        found: dict[str, list[float]] = {"sidecar": [], **{name: [] for name in RELAYS}}
        with Child([sys.executable, "-m", "tests.rigs.lsl", "gaze", str(rate_hz), "0", "0", "-1", "1"]):
            for _ in range(arguments.turns):
                found["sidecar"].append(of_sidecar(rate_hz, arguments.seconds))
                for name, code in RELAYS.items():
                    found[name].append(of_relay(code, arguments.seconds))
        own = float(np.median(found["sidecar"]))
        for name, shares in found.items():
            print(
                f"{rate_hz:5g} Hz  {name:20} {np.median(shares):5.2f} % of a core, {own / np.median(shares):.2f} times"
            )


if __name__ == "__main__":
    main()
