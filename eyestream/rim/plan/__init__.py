"""The plan: a configuration with everything that it names, resolved once. All commands read it."""

from eyestream.rim.plan.plan import Plan, load, resolved
from eyestream.rim.plan.resolve import fitting
from eyestream.rim.plan.stream import StreamPlan

__all__ = ["Plan", "StreamPlan", "fitting", "load", "resolved"]
