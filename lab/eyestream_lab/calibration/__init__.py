"""Calibration from recordings of a public or consented corpus, or from a declared range. The product only reads it."""

from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.parts import calibrate, declared_range

__all__ = ["Corpus", "calibrate", "declared_range"]
