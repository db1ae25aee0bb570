"""Public figures that mechanisms are built from. Pure; the laboratory learns them from a corpus."""

from eyestream.core.calibration.calibration import SCHEMA_VERSION, Calibration, Provenance
from eyestream.core.calibration.tables import JointTables, PerFeatureTables, Tables

__all__ = [
    "SCHEMA_VERSION",
    "Calibration",
    "JointTables",
    "PerFeatureTables",
    "Provenance",
    "Tables",
]
