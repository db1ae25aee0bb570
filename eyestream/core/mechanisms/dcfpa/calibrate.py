"""Calibration of DCFPA, from a corpus or from a declared range."""

from functools import partial

from eyestream.core.additive.calibrate import calibrate_per_feature
from eyestream.core.additive.declared import declared_per_feature
from eyestream.core.additive.signals import DIFFERENCES
from eyestream.core.mechanisms.dcfpa.mechanism import DCFPA

__all__ = ["calibrate", "declare"]

calibrate = partial(calibrate_per_feature, mechanism=DCFPA.name, signals=DIFFERENCES)
declare = partial(declared_per_feature, DIFFERENCES)
