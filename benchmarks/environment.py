"""An environment of the benchmark's own for peers that eyestream does not depend on."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

__all__ = ["PEERS", "measured_elsewhere"]

PEERS = ("scipy", "opendp", "diffprivlib")
_REPOSITORY = Path(__file__).resolve().parents[1]


def _folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "eyestream-benchmarks" / f"peers-{sys.version_info.major}.{sys.version_info.minor}"


def _python() -> Path:
    """Python of the environment, which is made when it is not there.

    Raises
    ------
    OSError, subprocess.SubprocessError
        It cannot be made: no network, no room.
    """
    folder = _folder()
    python, done = folder / "bin" / "python", folder / "complete"
    if not done.exists():
        print(f"making {folder} with {', '.join(PEERS)} (pip) ...", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        wanted = [
            "numpy",
            "pyfftw",
            "msgspec",
            "cryptography",
            *PEERS,
            "scikit-learn<1.6",
        ]  # newer ones break diffprivlib
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True, timeout=300, capture_output=True)
        done.touch()
    return python


def measured_elsewhere(seconds: float) -> list[dict[str, Any]] | str:
    """Records of `benchmarks.peer_noise` in that environment, or why there are none."""
    environment = {**os.environ, "PYTHONPATH": str(_REPOSITORY)}
    try:
        command = [str(_python()), "-m", "benchmarks.peer_noise", str(seconds)]
        done = subprocess.run(command, check=True, timeout=120 + 10 * seconds, capture_output=True, env=environment)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
        return f"{', '.join(PEERS)}: left out, their environment fails ({said[-1] if said else type(error).__name__})"
    records: list[dict[str, Any]] = json.loads(done.stdout)
    return records
