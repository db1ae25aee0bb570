"""Read every golden payload: `python check.py ../../tests/golden`. What is good must be read, what is bad refused."""

import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

from payloads import PayloadError, decode


def plain(message: dict[str, Any]) -> dict[str, Any]:
    """As the index has it: rows of values, null for a missing one, numbers of 64 bits as text."""
    shown = {"v": 1, **message}
    for key in ("t", "noise_sd"):
        if key in shown:
            shown[key] = list(shown[key])
    for key in ("session", "seq", "chunk"):
        if key in shown:
            shown[key] = str(shown[key])
    if "values" in shown:
        finite = [value if math.isfinite(value) else None for value in shown["values"]]
        rows, columns = shown["shape"]
        shown["values"] = [finite[i * columns : (i + 1) * columns] for i in range(rows)]
    return shown


def single(value: float | None) -> float | None:
    """The number of the index as float32 holds it."""
    return None if value is None else struct.unpack("<f", struct.pack("<f", value))[0]


def fault(kind: str, entry: dict[str, Any], payload: bytes, index: dict[str, Any]) -> str | None:
    """What is wrong with how we read it."""
    asked = {"raw": (index["schema"], (index["features"],)), "gaze": (index["schema"], (2, 3))}.get(kind, (None, ()))
    try:
        message = plain(decode(kind, payload, *asked))
    except PayloadError as refusal:
        return None if str(refusal) == entry.get("refused") else f"refused as {refusal}"
    if "holds" not in entry:
        return "not refused"
    holds = entry["holds"]
    if "values" in holds:
        holds["values"] = [[single(value) for value in row] for row in holds["values"]]
    return None if message == holds else "read as something else"


def main(folder: Path) -> int:
    index = json.loads((folder / "index.json").read_text())
    faults = 0
    for name, entry in index["payloads"].items():
        if said := fault(entry["kind"], entry, (folder / name).read_bytes(), index):
            print(f"{name}: {said}")
            faults += 1
    print(f"{len(index['payloads'])} payloads, {faults} faults")
    return 1 if faults or not index["payloads"] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
