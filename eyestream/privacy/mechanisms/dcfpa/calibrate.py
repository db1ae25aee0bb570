"""Calibration of DCFPA, from a corpus or from a declared range."""

from functools import partial

from eyestream.privacy.additive.calibrate import calibrate_per_feature
from eyestream.privacy.additive.declared import declared_per_feature
from eyestream.privacy.additive.signals import DIFFERENCES
from eyestream.privacy.mechanisms.dcfpa.mechanism import DCFPA

__all__ = ["calibrate", "declare"]

calibrate = partial(calibrate_per_feature, mechanism=DCFPA.name, signals=DIFFERENCES)
declare = partial(declared_per_feature, DIFFERENCES)
