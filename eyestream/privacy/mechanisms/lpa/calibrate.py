"""Calibration of LPA, from a corpus or from a declared range."""

from functools import partial

from eyestream.privacy.additive.calibrate import calibrate_per_feature
from eyestream.privacy.additive.declared import declared_per_feature
from eyestream.privacy.additive.signals import VALUES
from eyestream.privacy.mechanisms.lpa.mechanism import LPA

__all__ = ["calibrate", "declare"]

calibrate = partial(calibrate_per_feature, mechanism=LPA.name, signals=VALUES)
declare = partial(declared_per_feature, VALUES)
