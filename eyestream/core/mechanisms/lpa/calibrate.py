"""Calibration of LPA, from a corpus or from a declared range."""

from functools import partial

from eyestream.core.additive.calibrate import calibrate_per_feature
from eyestream.core.additive.declared import declared_per_feature
from eyestream.core.additive.signals import VALUES
from eyestream.core.mechanisms.lpa.mechanism import LPA

__all__ = ["calibrate", "declare"]

calibrate = partial(calibrate_per_feature, mechanism=LPA.name, signals=VALUES)
declare = partial(declared_per_feature, VALUES)
