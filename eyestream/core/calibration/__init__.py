"""Public figures that mechanisms are built from: what they are, and the corpus that they are learned from. Pure.

`Corpus` is imported when somebody asks for it: what releases needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eyestream.core.calibration.calibration import (
    SCHEMA_VERSION,
    Calibration,
    Provenance,
    recording_hash,
    row_fingerprints,
)
from eyestream.core.calibration.tables import JointTables, PerFeatureTables, Tables

if TYPE_CHECKING:
    from eyestream.core.calibration.corpus import Corpus

__all__ = [
    "SCHEMA_VERSION",
    "Calibration",
    "Corpus",
    "JointTables",
    "PerFeatureTables",
    "Provenance",
    "Tables",
    "recording_hash",
    "row_fingerprints",
]


def __getattr__(name: str) -> Any:
    if name != "Corpus":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.corpus").Corpus
