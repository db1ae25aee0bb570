"""Hostile payloads in files, one JSON object a line: `name`, `reason`, and the bytes as `hex` or as `parts`.

`parts` is a list of [hex, count]: pieces repeated so often, one after the other; payloads too large to write down. A
`reason` of null is a payload that is to be taken, whose `missing` lists [row, feature] of the values that are not
there. In `topics.jsonl` a case has a `topic` instead of bytes. `found.jsonl` has the payloads that a fuzzer found, and
`kept.jsonl` inputs of the fuzz targets, which are no cases.
"""

import json
from pathlib import Path
from typing import Any

__all__ = ["CHECKOUT", "FEATURES", "FOLDER", "SCHEMA", "every", "payload", "read", "write"]

CHECKOUT = Path(__file__).resolve().parents[3]
FOLDER = CHECKOUT / "tests" / "product" / "hostile"
"""Where the files are: they are no part of the package."""

FEATURES, SCHEMA = 3, 7

_OTHERS = ("gaze", "kept", "topics")
"""Files of that folder whose cases are no payloads."""


def read(name: str) -> list[dict[str, Any]]:
    """The cases of one file."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def write(name: str, cases: list[dict[str, Any]], folder: Path = FOLDER) -> None:
    """Replace one file of `folder`."""
    lines = [json.dumps(case, ensure_ascii=True, allow_nan=False) for case in cases]
    (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def payload(case: dict[str, Any]) -> bytes:
    """The bytes of a case."""
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    return b"".join(bytes.fromhex(piece) * count for piece, count in case["parts"])


def every() -> list[dict[str, Any]]:
    """All cases with bytes."""
    files = [read(path.stem) for path in sorted(FOLDER.glob("*.jsonl")) if path.stem not in _OTHERS]
    return [case for cases in files for case in cases]
