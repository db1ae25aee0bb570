"""What ran it: the facts without which a number says nothing."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["cores", "facts", "pinned"]

_PACKAGES = ("eyestream", "numpy", "pyfftw", "msgspec", "cryptography", "paho-mqtt")


def facts() -> dict[str, str]:
    """Machine, clock, load and versions."""
    found = {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "clock": _clock(),
        "load": "/".join(f"{x:.1f}" for x in os.getloadavg()) + " over 1/5/15 minutes before the run",
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
    }
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def cores() -> list[int]:
    """Cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


@contextmanager
def pinned() -> Iterator[str]:
    """Keep this process on one core where the system allows it; gives that in words."""
    if not hasattr(os, "sched_setaffinity"):
        yield "not pinned: the system has no such call"
        return
    before = os.sched_getaffinity(0)
    core = max(before)
    try:
        os.sched_setaffinity(0, {core})
    except OSError as error:
        yield f"not pinned: {error.strerror}"
        return
    try:
        yield f"pinned to core {core}"
    finally:
        os.sched_setaffinity(0, before)


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _clock() -> str:
    mhz = [float(line.split(":")[1]) for line in _lines("/proc/cpuinfo") if line.startswith("cpu MHz")]
    governor = "".join(_lines("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")).strip()
    return f"{max(mhz):.0f} MHz" * bool(mhz) + f", governor {governor or 'not visible'}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
