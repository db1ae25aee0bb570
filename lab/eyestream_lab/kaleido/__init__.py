"""Kaleido, corrected: gaze samples with (epsilon, w, r)-privacy."""

from eyestream_lab.kaleido.mechanism import Kaleido, KaleidoSession, Settings
from eyestream_lab.kaleido.planar import PlanarLaw

__all__ = ["Kaleido", "KaleidoSession", "PlanarLaw", "Settings"]
