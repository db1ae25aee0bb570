"""Checks of one release: what stands before the noise, and what can come out.

`lattice`: no two chunks get integers further apart than epsilon pays for; `shipped`: nor with the calibrations that
come with the product. `radius`: each of the two projections holds
by itself. `imputation`: nothing outside a chunk counts in it. `reachable`: what comes out under one input could have
come out under every other, to the last bit. `inverse`: without noise a chunk comes back. `state`: what joint coding
remembers of a session are released values.
"""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import eyestream
from eyestream.core.calibration import JointTables
from eyestream.core.mechanism import Mechanism, Session
from eyestream.core.mechanisms import build
from eyestream.core.noise import Law
from eyestream.core.noise.laws import LaplaceLaw
from eyestream.core.noise.response import ResponseLaw
from eyestream.core.spectrum import integrate
from eyestream.rim.files import calibrations
from eyestream_lab.mechanisms.additive import Array, worst_signal
from eyestream_lab.mechanisms.klt import synthetic_joint
from eyestream_lab.testing.noise import FixedNoise, ZeroNoise
from tools.verification.auditing.findings import Finding, Part, first_failure
from tools.verification.auditing.hostile import Subject, additive_step, admitted, subjects

__all__ = ["imputation", "inverse", "lattice", "radius", "reachable", "shipped", "state"]


def lattice() -> Finding:
    """The largest distance of two integer vectors, times the rate of the noise, against epsilon."""
    shares = []
    for subject in subjects():
        mechanism = subject.mechanism
        step = additive_step(mechanism)
        integers = step.noisy(admitted(mechanism, subject.chunks), mechanism.noise).astype(np.float64)
        distance = max(float(np.abs(integers - row).sum(axis=1).max()) for row in integers)
        rate = float(math.sqrt(2) / step.core.private.law.sd.min())
        shares.append((distance * rate / subject.epsilon, subject.label))
    (least, blind), (most, widest) = min(shares), max(shares)
    return first_failure(
        (most <= 1, f"{widest}: neighbours at {most:.7f} of epsilon"),
        (least > 0.9, f"{blind}: no neighbours beyond {least:.3f} of epsilon"),
    )


def shipped() -> Finding:
    """The features' distances times their rates, summed, for chunks that are extreme in every feature at once."""
    names = sorted(path.stem for path in (Path(eyestream.__file__).parent / "data" / "calibrations").glob("*.npz"))
    shares = []
    for name in names:
        calibration = calibrations.load(name)
        if not isinstance(calibration.tables, JointTables):
            for epsilon in (4.8, 4800.0):
                mechanism = build(calibration, epsilon, noise=ZeroNoise())
                shares.append((_summed(mechanism) / epsilon, f"{name} at {epsilon:g}"))
    most, where = max(shares)
    return Finding(
        len(shares) >= 3 and most <= 1, f"{where}: neighbours at {most:.7f} of epsilon ({len(shares)} figures)"
    )


def _summed(mechanism: Mechanism) -> float:
    """What the farthest of some neighbours costs, all features together."""
    step, rng = additive_step(mechanism), np.random.default_rng(6)
    pieces = step.core.private
    signals = list(rng.choice((-1e6, 1e6), size=(8, mechanism.n)))
    signals += [1e6 * form(worst_signal(mechanism.n, k)[1]) for k in (1, 2, 3) for form in (np.asarray, integrate)]
    integers = []
    for signal in signals:
        for chunk in (signal, -signal):
            noisy = step.noisy(admitted(mechanism, np.repeat(chunk[None], mechanism.features, axis=0)), mechanism.noise)
            integers.append(np.where(pieces.steps > 0, noisy, 0).astype(np.float64))
    rates = math.sqrt(2) / pieces.law.sd
    return max(float((np.abs(a - b).sum(axis=1) * rates).sum()) for a, b in itertools.combinations(integers, 2))


def radius() -> Finding:
    """Hostile chunks through the projection alone; hostile coordinates through the hold alone; and domain before."""
    parts: list[Part] = []
    for subject in subjects(width=1e300):
        step = additive_step(subject.mechanism)
        pieces, taken = step.core.private, admitted(subject.mechanism, subject.chunks)
        inside = bool((np.abs(taken) <= subject.width).all())  # false for NaN
        parts.append((inside, f"{subject.label}: the domain lets {np.abs(taken).max():g} through"))
        order = 1 if subject.k is None else 2
        residual = step.transform.residual(taken)
        with np.errstate(invalid="ignore"):
            residual = residual * pieces.factor(residual, pieces.radius)
        norm = float(np.linalg.norm(residual, ord=order, axis=1).max())
        parts.append((norm <= 1 + 1e-12, f"{subject.label}: projected to {norm:.6g} of the radius"))
        parts.append(_held(subject))
    return first_failure(*parts)


def _held(subject: Subject) -> Part:
    """Whether integers are in their ball whatever comes: its radius as privacy-core 4.2 has it, computed here again."""
    weights, step = subject.weights.astype(np.float64), subject.step
    worst = np.array([1e300, -1e300, np.inf, np.nan, 3.0, -(2.0**70), 1e6, 0.1])
    coordinates = np.stack([np.roll(np.resize(worst, len(weights)), i) for i in range(subject.features)])
    lattice = additive_step(subject.mechanism).core.private.lattice
    with np.errstate(invalid="ignore", over="ignore"):
        integers = np.abs(lattice.snap(coordinates, np.ones((subject.features, 1)))).astype(np.float64)
    if subject.k is None:
        share = float(integers.sum(axis=1).max()) / (1 / step + len(weights) / 2)
    else:
        rho = math.sqrt(subject.n) / step + math.sqrt(weights.sum() / 4)
        share = math.sqrt(float((weights * integers**2).sum(axis=1).max())) / rho
    return share <= 1, f"{subject.label}: integers held to {share:.6g} of the ball"


def imputation() -> Finding:
    """A chunk is imputed from itself alone, as a plain loop does it, whatever came before it."""
    rng = np.random.default_rng(2)
    parts: list[Part] = []
    for subject in subjects():
        chunk = rng.normal(size=(subject.features, subject.n)) / 10
        chunk[rng.random(chunk.shape) < 0.5] = np.nan
        chunk[0] = np.nan
        released, others = [], (np.zeros_like(chunk), np.full_like(chunk, 7.0), -subject.chunks, 1e308 + 0 * chunk)
        for before in others:
            mechanism = subject.with_noise(ZeroNoise())
            mechanism.release(before)
            released.append(mechanism.release(chunk))
        changed = sum(int((np.nan_to_num(other) != np.nan_to_num(released[0])).sum()) for other in released[1:])
        parts.append((changed == 0, f"{subject.label}: {changed} values of a chunk depend on the chunk before"))
        infinite = np.where(np.isnan(chunk), np.inf, chunk)
        for form, what in ((_imputed(chunk), "the plain loop"), (infinite, "infinities")):
            wrong = int((subject.mechanism.release(form) != released[0]).sum())
            parts.append((wrong == 0, f"{subject.label}: {wrong} values differ from those of {what}"))
    return first_failure(*parts)


def _imputed(chunk: Array) -> Array:
    full = chunk.copy()
    for row in full:
        last = 0.0
        for i, value in enumerate(row):
            last = row[i] = value if math.isfinite(value) else last
    return full


def reachable() -> Finding:
    """Every output is, to the last bit, made of integers that every input can get."""
    parts: list[Part] = []
    for subject in subjects():
        mechanism, what = subject.with_noise(None), subject.label
        released = mechanism.release(subject.chunks)
        step = additive_step(mechanism)
        pieces = step.core.private
        signal = released - step.core.offset
        integers = np.rint(_coordinates(subject, signal) / step.core.scale).astype(np.int64)
        again = np.empty_like(released)
        step.plain(integers, again)
        strange = int((again != released).any(axis=1).sum())
        parts.append((strange == 0, f"{what}: {strange} of {len(released)} outputs out of reach of the other input"))
        shown = 0
        for end in _ends(pieces.law):
            loudest = subject.with_noise(FixedNoise(end))
            first = loudest.release(subject.chunks)
            shown += int((loudest.release(np.roll(subject.chunks, 1, axis=0)) != first).any(axis=1).sum())
        parts.append((shown == 0, f"{what}: {shown} inputs show through the largest noise"))
        parts.append(_additive(subject))
        largest = int(np.abs(integers).max())
        parts.append((largest <= pieces.law.limit, f"{what}: integer {largest} past the public interval"))
    return first_failure(*parts)


def _additive(subject: Subject) -> Part:
    """Whether the same noise moves every output by the same, whatever the input."""
    moved = subject.with_noise(FixedNoise(1 << 18)).release(subject.chunks)
    moved -= subject.with_noise(ZeroNoise()).release(subject.chunks)
    unlike = int((np.abs(moved - moved[0]) > 1e-9 * np.abs(moved[0]).max()).any(axis=1).sum())
    return unlike == 0, f"{subject.label}: in {unlike} of {len(moved)} features the noise depends on the input"


def _coordinates(subject: Subject, signal: Array) -> Array:
    """Coordinates from outside, by numpy's transform."""
    if subject.k is None:
        return signal
    if subject.name == "dcfpa":
        signal = np.diff(signal, axis=1, prepend=0.0)
    reals = np.fft.rfft(signal, axis=1).view(np.float64)
    return np.delete(reals, 1, axis=1)[:, : len(subject.weights)]


def _ends(law: LaplaceLaw) -> tuple[int, int]:
    """The largest and the smallest integer that the sampler can draw."""
    reach = 1 << len(law.digits.words)
    return reach - 1, -reach


def inverse() -> Finding:
    """With every coefficient and no noise a chunk inside the ball comes back, to the grid."""
    rng = np.random.default_rng(3)
    parts = []
    for subject in subjects(epsilon=100.0):
        if subject.k not in (None, subject.n // 2 + 1):
            continue
        chunk = rng.uniform(-0.1, 0.1, (subject.features, subject.n)) / subject.n
        error = float(np.abs(subject.mechanism.release(chunk) - chunk).max() / np.abs(chunk).max())
        parts.append((error < 1e-4, f"{subject.label}: a chunk without noise comes back {error:.2g} off"))
    return first_failure(*parts)


class _Words:
    """A noise that replaces every code word by the next of a list, the same in every session."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(4)

    def draw(self, law: Law) -> NDArray[np.int64]:
        """Replaced, and by what."""
        assert isinstance(law, ResponseLaw)
        return np.concatenate([[1], self._rng.integers(0, law._cells)])


def state() -> Finding:
    """Two sessions of joint coding with the same released words are the same, whatever was in their chunks."""
    rng, released = np.random.default_rng(5), []
    for size in (1.0, -1.0, 1e300, np.nan):
        session = build(synthetic_joint(4), 5.0, noise=_Words()).session()
        released.append([session.release(size * (1 + rng.random((3, 4)))).tobytes() for _ in range(12)])
    differ = sum(len(set(outputs)) > 1 for outputs in zip(*released, strict=True))
    words = {session.release(sign * np.ones((3, 4))).tobytes() for sign in (1, -1) for session in _sessions()}
    other = {session.release(sign * np.ones((3, 4))).tobytes() for sign in (1, -1) for session in _sessions()}
    return first_failure(
        (differ == 0, f"{differ} of 12 releases depend on more than the released words"),
        (len(set(released[0])) > 6, "the chunks of a session do not change"),
        (words == other, f"{len(words)} outputs under one input, {len(other)} under the other, not the same"),
    )


def _sessions() -> Iterator[Session]:
    """Enough sessions that every code word comes out."""
    mechanism = build(synthetic_joint(4), 0.5)
    return (mechanism.session() for _ in range(200))
