"""Kaleido, corrected: gaze samples with (epsilon, w, r)-privacy."""

from eyestream.privacy.kaleido.mechanism import Kaleido, KaleidoSession, Settings
from eyestream.privacy.kaleido.planar import PlanarLaw

__all__ = ["Kaleido", "KaleidoSession", "PlanarLaw", "Settings"]
