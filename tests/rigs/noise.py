"""The doors that refuse the noise of a test, opened for a test."""

import contextlib
from collections.abc import Iterator
from unittest import mock

__all__ = ["any_noise_taken"]


@contextlib.contextmanager
def any_noise_taken() -> Iterator[None]:
    """Let a sidecar and `privatize` take noise of a test. `tests/lab/study/test_study_seed.py` sees them refuse it."""
    with (
        mock.patch("eyestream_lab.recordings.privatize.require_real_noise"),
        mock.patch("eyestream.rim.sidecar.assembly.require_real_noise"),
    ):
        yield
