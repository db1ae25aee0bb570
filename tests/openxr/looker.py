"""An ordinary program that looks at gaze: `python -m tests.openxr.looker LOADER FRAMES [EXTENSION ...]`.

It prints a line of JSON, and knows nothing of eyestream.
With `EVADE` in its environment it sets that variable to 1 itself, before OpenXR begins.
"""

import ctypes as c
import json
import os
import sys
import time
from typing import Any

from tests.openxr.machine import CLOCK, GAZE, GetProc, InstanceInfo, Looking, Program, RefusedError

__all__: list[str] = []


class Loaded(Program):
    """A program on a loader of the machine."""

    def __init__(self, loader: str, extensions: list[str]) -> None:
        self._kept: list[object] = [c.CDLL(loader)]
        self._functions: dict[str, Any] = {}
        self._get = GetProc(("xrGetInstanceProcAddr", self._kept[0]))  # type: ignore[arg-type]
        self.instance = c.c_uint64()
        names = (c.c_char_p * len(extensions))(*(name.encode() for name in extensions))
        info = InstanceInfo(3)
        info.application.name, info.application.api = b"looker", 1 << 48
        info.extensions, info.extension_names = len(extensions), c.cast(names, c.c_void_p)
        result = self._create(self._get, c.addressof(info), c.pointer(self.instance))
        if result < 0:
            raise RefusedError("xrCreateInstance", result)


def looked(program: Program, frames: int) -> dict[str, Any]:
    """What a program saw in so many frames, a hundred a second."""
    looking = Looking(program)
    flags, poses, ages = set(), set(), []
    for _ in range(frames):
        found, pose, seen = looking.look()
        flags.add(found)
        if found:
            poses.add(pose[:4])
            ages.append((program.now() - seen) * 1e-9)
        time.sleep(0.01)
    return {
        "supports": program.supports_gaze(),
        "flags": sorted(flags),
        "poses": len(poses),
        "age_s": sum(ages) / len(ages) if ages else None,
        "social": program.has("GetEyeGazesFB"),
    }


def main() -> None:
    """Look, and say what was seen."""
    loader, frames, *more = sys.argv[1:]
    if evading := os.environ.get("EVADE"):
        os.environ[evading] = "1"
    program = Loaded(loader, ["XR_MND_headless", GAZE, CLOCK, *more])
    print(json.dumps(looked(program, int(frames))), flush=True)
    program.end()


if __name__ == "__main__":
    main()
