"""A session's baseline: constants cancel to the last bit, and it lives and dies with its session."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.anchor import Anchor, Baseline
from eyestream.core.calibration import Calibration
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanisms import KLT, build
from eyestream.core.release.stream import StreamRelease
from eyestream.core.reservation import Granted, Request
from eyestream.core.whole import release_rows
from eyestream.errors import CalibrationError, SnapshotError
from eyestream.rim.files import calibrations
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from eyestream_lab.calibration.anchors import grid_of
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.recordings.recording import RecordingRelease
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.small_corpus import NAMES, person, recordings

Array = NDArray[np.float64]
N = 32


@pytest.fixture(scope="module")
def anchored() -> Calibration:
    return calibrate_joint(Corpus.of(recordings(), N), anchored=True)


def on_grid(anchor: Anchor, values: Array) -> Array:
    """Values (F, ..) rounded to the grid of their features."""
    shift = anchor.shift.reshape(-1, *[1] * (values.ndim - 1))
    return np.ldexp(np.rint(np.ldexp(values, shift)), -shift)


def session_bytes(calibration: Calibration, chunks: Array, seed: int = 5) -> bytes:
    """Everything that one session releases under one noise tape."""
    session = build(calibration, 9.6, noise=SeededNoise(seed)).session()
    out = b""
    for chunk in chunks:
        if session.awaits_baseline:
            session.anchor(chunk)
        else:
            out += session.release(chunk).tobytes()
    return out


def coded(anchor: Anchor, chunks: Array) -> bytes:
    """What the mechanism is given of the first two chunks behind the baseline."""
    baseline = Baseline(anchor)
    for chunk in chunks[: anchor.chunks]:
        baseline.take(chunk)
    return b"".join(baseline.off(chunk).tobytes() for chunk in chunks[anchor.chunks : anchor.chunks + 2])


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_constants_cancel_to_the_last_bit(anchored: Calibration, count: int) -> None:
    """Every offset gives the mechanism the very same input; of some, whole sessions are released too."""
    anchor = anchored.anchor
    assert anchor is not None
    chunks = on_grid(anchor, whole_chunks(person(99), N).transpose(1, 0, 2)).transpose(1, 0, 2)
    chunks[1, 0, 3:9] = np.nan
    plain, rng = session_bytes(anchored, chunks), np.random.default_rng(1)
    assert len(plain) == (len(chunks) - anchor.chunks) * 5 * N * 8
    still, scale = coded(anchor, chunks), (anchored.hi - anchored.lo + 1.0)[:, None]
    for turn in range(count):
        offset = on_grid(anchor, scale * 10.0 ** rng.uniform(-4, 3) * rng.uniform(-1, 1, (5, 1)))
        assert coded(anchor, chunks + offset) == still
        if turn % 250 == 0:
            assert session_bytes(anchored, chunks + offset) == plain


def test_constants_of_the_grid_cancel_from_values_that_lie_off_it(anchored: Calibration) -> None:
    """Values come as a tracker says them: only the floor of each keeps what rounding left of its sum with a constant.

    Each lies at least a quarter of a step from its grid, which no rounding of the sums here crosses.
    """
    anchor, rng = anchored.anchor, np.random.default_rng(2)
    assert anchor is not None
    chunks = on_grid(anchor, whole_chunks(person(99), N).transpose(1, 0, 2)).transpose(1, 0, 2)
    chunks += np.ldexp(rng.uniform(0.25, 0.75, chunks.shape), -anchor.shift[:, None])
    still, scale = coded(anchor, chunks), (anchored.hi - anchored.lo + 1.0)[:, None]
    for _ in range(50):
        offset = on_grid(anchor, scale * 10.0 ** rng.uniform(-4, 3) * rng.uniform(-1, 1, (5, 1)))
        assert coded(anchor, chunks + offset) == still


def test_a_mean_that_is_not_rounded_down_does_not_cancel(
    anchored: Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: rounded toward zero, an offset that changes the sign of the mean comes out."""
    anchor = anchored.anchor
    assert anchor is not None
    chunks = on_grid(anchor, whole_chunks(person(99), N).transpose(1, 0, 2)).transpose(1, 0, 2)

    def toward_zero(self: Baseline) -> None:
        mean = np.trunc(self._sum / np.maximum(self._count, 1))
        self._shift = (self._anchor.centre - mean)[:, None]

    offsets = [on_grid(anchor, np.full((5, 1), x)) for x in (-100.0, 100.0)]
    assert len({coded(anchor, chunks + offset) for offset in offsets}) == 1
    monkeypatch.setattr(Baseline, "_settle", toward_zero)
    assert len({coded(anchor, chunks + offset) for offset in offsets}) == 2


def test_values_and_means_are_rounded_down_by_hand() -> None:
    """Toward zero, upward or to the nearest, a mean of -1.5 steps is -1, and a value of 0.75 steps is 0 or 1."""
    baseline = Baseline(Anchor(1, np.zeros(3, np.int64), np.array([0, 0, 10])))
    baseline.take(np.array([[-1.0, -2.0], [0.75, 0.75], [0.75, 2.5]]))  # means of -1.5, 0 and 1 steps
    np.testing.assert_array_equal(baseline.off(np.full((3, 1), 0.75)), [[2.0], [0.0], [9.0]])
    np.testing.assert_array_equal(baseline.off(np.full((3, 1), -0.75)), [[1.0], [-1.0], [8.0]])


def test_what_is_not_constant_stays(anchored: Calibration) -> None:
    chunks = whole_chunks(person(99), N)
    other = chunks.copy()
    other[4] += anchored.hi[:, None] - anchored.lo[:, None]
    assert session_bytes(anchored, other) != session_bytes(anchored, chunks)


def test_the_baseline_changes_every_chunk_and_a_later_chunk_only_its_own_input(anchored: Calibration) -> None:
    anchor = anchored.anchor
    assert anchor is not None

    def inputs(chunks: Array) -> list[bytes]:
        baseline = Baseline(anchor)
        for chunk in chunks[: anchor.chunks]:
            baseline.take(chunk)
        return [baseline.off(chunk).tobytes() for chunk in chunks[anchor.chunks :]]

    chunks = whole_chunks(person(99), N)
    first, later = chunks.copy(), chunks.copy()
    first[0, 0] += 5.0
    later[6, 0] += 5.0
    plain = inputs(chunks)
    assert all(a != b for a, b in zip(inputs(first), plain, strict=True))
    assert [a != b for a, b in zip(inputs(later), plain, strict=True)].count(True) == 1


def test_chunks_of_the_baseline_are_never_released(anchored: Calibration) -> None:
    session = build(anchored, 9.6, noise=SeededNoise(1)).session()
    chunks = whole_chunks(person(3), N)
    with pytest.raises(RuntimeError, match="awaits its baseline"):
        session.release(chunks[0])
    with pytest.raises(ValueError, match="shape"):
        session.anchor(chunks[0][:, 1:])
    for chunk in chunks[:4]:
        assert session.awaits_baseline
        session.anchor(chunk)
    assert not session.awaits_baseline
    with pytest.raises(RuntimeError, match="awaits no baseline"):
        session.anchor(chunks[4])
    assert np.isfinite(session.release(chunks[4])).all()
    with pytest.raises(ValueError, match="sessions alone"):
        build(anchored, 9.6).release(chunks[0])


def test_a_feature_that_the_baseline_lacks_is_missing_for_the_session(anchored: Calibration) -> None:
    """Else its offset would come out: whatever it is later, the same bytes."""
    chunks = whole_chunks(person(3), N).copy()
    chunks[:4, 0] = np.nan
    assert anchored.anchor is not None
    baseline = Baseline(anchored.anchor)
    for chunk in chunks[:4]:
        baseline.take(chunk)
    assert np.isnan(baseline.off(chunks[4])[0]).all()
    assert np.isfinite(baseline.off(chunks[4])[1:]).all()
    for level in (-1e3, 0.0, float(anchored.lo[0]), 1e3):  # clamped to either end, and in between
        moved = chunks.copy()
        moved[4:, 0] = level
        assert session_bytes(anchored, chunks) == session_bytes(anchored, moved)


def test_hostile_values_end_inside_the_range(anchored: Calibration) -> None:
    for value in (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324):
        session = build(anchored, 4.8, noise=SeededNoise(2)).session()
        for _ in range(4):
            session.anchor(np.full((5, N), value))
        for later in (value, 0.0, -1e308):
            released = session.release(np.full((5, N), later))
            assert np.isfinite(released).all()
            assert (released >= np.minimum(anchored.lo, anchored.fill)[:, None]).all()
            assert (released <= np.maximum(anchored.hi, anchored.fill)[:, None]).all()


@pytest.mark.parametrize("cut", [0, 2, 4, 7])
def test_a_restored_session_goes_on_with_its_own_baseline(anchored: Calibration, cut: int) -> None:
    chunks = whole_chunks(person(8), N)

    def run(restore: bool) -> bytes:
        mechanism = build(anchored, 9.6, noise=SeededNoise(3))
        session, out = mechanism.session(), b""
        for i, chunk in enumerate(chunks):
            if restore and i == cut:
                session = mechanism.session(session.snapshot())
            if session.awaits_baseline:
                session.anchor(chunk)
            else:
                out += session.release(chunk).tobytes()
        return out

    assert run(True) == run(False)


def test_snapshots_of_another_kind_are_refused(anchored: Calibration) -> None:
    mechanism = build(anchored, 9.6)
    session = mechanism.session()
    plain = build(replace(anchored, takes_off=None), 9.6)
    with pytest.raises(SnapshotError):
        plain.session(session.snapshot())
    with pytest.raises(SnapshotError):
        mechanism.session(plain.session().snapshot())
    anchor = anchored.anchor
    assert anchor is not None
    for wrong in (
        np.full(11, 0.5),
        np.zeros(10),
        np.array([0.0] * 10 + [99.0]),
        np.array([0.0] * 5 + [-1.0] * 5 + [1.0]),
    ):
        with pytest.raises(ValueError, match="numbers of a baseline"):
            Baseline.restored(anchor, wrong)


def test_sessions_of_a_stream_have_baselines_of_their_own(anchored: Calibration) -> None:
    """Two sessions whose rows differ by a constant release the same; the first chunks of both are withheld."""
    anchor = anchored.anchor
    assert anchor is not None
    rows = on_grid(anchor, person(7)[: 8 * N].T).T
    settings = DeviceSettings(
        id="d", stream="features", schema=1, names=NAMES, rate_hz=2.0, n=N, grace_s=1.0, idle_s=60.0, jump_chunks=16
    )
    values = []
    for session, offset in enumerate((0.0, 64.0)):
        stream = StreamRelease(settings, KLT(anchored, 9.6, noise=SeededNoise(4)), lambda: 1)
        outcome = stream.feed(RawRows(session + 1, 0, rows + offset, end=True), 0.0)
        payloads = list(outcome.payloads) + list(stream.answer([Granted(r) for r in outcome.requests]).payloads)
        released = [decode_private(payload) for payload in payloads]
        assert [chunk.chunk for chunk in released] == [4, 5, 6, 7]
        assert stream.counters.withheld["baseline"] == 4
        assert stream.counters.due == stream.counters.released + stream.counters.withheld.total()
        values.append([chunk.values.tobytes() for chunk in released])
    assert values[0] == values[1]


def test_a_new_session_of_one_stream_begins_a_new_baseline(anchored: Calibration) -> None:
    settings = DeviceSettings(
        id="d", stream="features", schema=1, names=NAMES, rate_hz=2.0, n=N, grace_s=1.0, idle_s=60.0, jump_chunks=16
    )
    stream = StreamRelease(settings, KLT(anchored, 9.6, noise=SeededNoise(4)), lambda: 1)
    indices: list[int] = []
    for session in (1, 2, 3):
        outcome = stream.feed(RawRows(session, 0, person(session)[: 6 * N], end=True), float(session))
        answered = stream.answer([Granted(request) for request in outcome.requests])
        indices += [decode_private(p).chunk for p in (*outcome.payloads, *answered.payloads)]
    assert indices == [4, 5] * 3
    assert stream.counters.withheld["baseline"] == 12


def test_recordings_lose_their_first_minute(anchored: Calibration) -> None:
    rows = person(6)
    released = release_rows(build(anchored, 9.6), rows)
    assert np.isnan(released[: 4 * N]).all()
    assert np.isfinite(released[4 * N :]).all()
    settings = DeviceSettings(
        id="d", stream="features", schema=1, names=NAMES, rate_hz=2.0, n=N, grace_s=1.0, idle_s=60.0, jump_chunks=1
    )
    one = RecordingRelease(settings, build(anchored, 9.6), 0, rows)
    requests: list[Request] = one.requests
    looked_back = one.release([Granted(request) for request in requests])
    assert np.isnan(looked_back[: 4 * N]).all()
    assert np.isfinite(looked_back[4 * N :]).all()


def test_files_keep_the_baseline_and_plain_ones_have_none(anchored: Calibration, tmp_path) -> None:  # type: ignore[no-untyped-def]
    calibrations.save(anchored, tmp_path / "mine.npz")
    again = calibrations.load(tmp_path / "mine.npz")
    assert again.content_hash == anchored.content_hash
    assert again.anchor is not None
    assert anchored.anchor is not None
    np.testing.assert_array_equal(again.anchor.centre, anchored.anchor.centre)
    moved = Anchor(4, anchored.anchor.shift, anchored.anchor.centre + 1)
    assert replace(anchored, takes_off=moved).content_hash != anchored.content_hash


def test_bad_figures_are_refused(anchored: Calibration) -> None:
    fine = np.zeros(5, dtype=np.int64)
    for chunks, shift, centre in (
        (0, fine, fine),
        (1, fine, fine[1:]),
        (1, fine.astype(float), fine),
        (1, fine + 2000, fine),
    ):
        with pytest.raises(CalibrationError, match="baseline of the calibration"):
            Anchor(chunks, shift, centre)  # type: ignore[arg-type]
    with pytest.raises(CalibrationError, match="baseline of the calibration"):
        replace(anchored, takes_off=Anchor(1, fine[1:], fine[1:]))
    with pytest.raises(CalibrationError, match="behind the 60 s"):
        calibrate_joint(Corpus.of([replace_rows(r) for r in recordings()], N), anchored=True)


def replace_rows(recording):  # type: ignore[no-untyped-def]
    """A recording that ends with its baseline."""
    return type(recording)(recording.t[: 4 * N], recording.features[: 4 * N], recording.names, recording.path)


def test_the_grid_is_fine_beside_the_range() -> None:
    lo, hi = np.array([0.0, -3.0, 5.0, 0.0]), np.array([1.0, 1e6, 5.0, 1e-9])
    steps = (hi - lo) * 2.0 ** grid_of(lo, hi)
    assert (steps[[0, 1, 3]] >= 2**20).all()
    assert (steps[[0, 1, 3]] <= 2**21).all()
