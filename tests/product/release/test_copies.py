"""A copy of the whole process between a reservation and its release: the two never add the same noise."""

import numpy as np
import pytest

from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanisms import build
from eyestream.core.release.stream import StreamRelease
from eyestream.core.reservation import Granted
from eyestream.rim.files import calibrations
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.copies import in_a_copy

N = 32


def reserved(name: str, **options: object) -> StreamRelease:
    """A stream whose open chunk is reserved and lacks its last row."""
    calibration = calibrations.load(f"everyday-{name}-32")
    settings = DeviceSettings("d", "features", 1, calibration.names, 2.0, N, 1.0, 60.0, 16)
    stream = StreamRelease(settings, build(calibration, 0.48, **options), lambda: 7)
    outcome = stream.feed(rows(0, N - 1), 0.0)
    assert stream.answer([Granted(request) for request in outcome.requests]).payloads == []
    return stream


def rows(first: int, count: int) -> RawRows:
    return RawRows(1, first, np.zeros((count, 52), dtype=np.float32))


def finish(stream: StreamRelease) -> bytes:
    """The values that the chunk's last row brings out."""
    (payload,) = stream.feed(rows(N - 1, 1), 1.0).payloads
    return decode_private(payload).values[:4].tobytes()


@pytest.mark.parametrize("name", ["lpa", "cfpa", "dcfpa"])
def test_two_copies_draw_other_noise(name: str) -> None:
    stream = reserved(name)
    seen = {in_a_copy(lambda: finish(stream)) for _ in range(3)} | {finish(stream)}
    assert len(seen) == 4
    assert b"" not in seen


def test_copies_of_klt_draw_other_words() -> None:
    """There are few code words: 40 copies that shared their coins would give one, others nearly never."""
    stream = reserved("klt")
    assert len({in_a_copy(lambda: finish(stream)) for _ in range(40)}) > 1


@pytest.mark.parametrize("name", ["cfpa", "klt"])
def test_the_check_sees_noise_that_lives_in_memory(name: str) -> None:
    """Negative control: a generator in memory is copied with it."""
    stream = reserved(name, noise=SeededNoise(1))
    seen = {in_a_copy(lambda: finish(stream)) for _ in range(5)} | {finish(stream)}
    assert len(seen) == 1
