"""Public figures that mechanisms are built from: what they are, and the corpus that they are learned from. Pure."""

from eyestream.privacy.calibration.calibration import SCHEMA_VERSION, Calibration, Provenance
from eyestream.privacy.calibration.corpus import Corpus
from eyestream.privacy.calibration.fingerprints import recording_hash, row_fingerprints
from eyestream.privacy.calibration.tables import JointTables, PerFeatureTables, Tables

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
