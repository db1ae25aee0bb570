"""Calibration of CFPA, from a corpus or from a declared range."""

from functools import partial

from eyestream.core.additive.calibrate import calibrate_per_feature
from eyestream.core.additive.declared import declared_per_feature
from eyestream.core.additive.signals import CHUNKS
from eyestream.core.mechanisms.cfpa.mechanism import CFPA

__all__ = ["calibrate", "declare"]

calibrate = partial(calibrate_per_feature, mechanism=CFPA.name, signals=CHUNKS)
declare = partial(declared_per_feature, CHUNKS)
