"""FPA: noise on the first Fourier coefficients of a whole recording. Offline only."""

from eyestream.privacy.mechanisms.fpa.mechanism import FPA

__all__ = ["FPA"]
