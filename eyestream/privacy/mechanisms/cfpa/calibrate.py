"""Calibration of CFPA, from a corpus or from a declared range."""

from functools import partial

from eyestream.privacy.additive.calibrate import calibrate_per_feature
from eyestream.privacy.additive.declared import declared_per_feature
from eyestream.privacy.additive.signals import CHUNKS
from eyestream.privacy.mechanisms.cfpa.mechanism import CFPA

__all__ = ["calibrate", "declare"]

calibrate = partial(calibrate_per_feature, mechanism=CFPA.name, signals=CHUNKS)
declare = partial(declared_per_feature, CHUNKS)
