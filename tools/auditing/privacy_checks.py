"""Checks of one release: what stands before the noise, what the noise is, and what can come out.

`lattice`: no two chunks get integers further apart than epsilon pays for. `radius`: each of the two projections holds by
itself. `imputation`: nothing outside a chunk counts in it. `reachable`: what comes out under one input could have come
out under every other, to the last bit. `sampler`: the noise has its law, digit by digit. `entropy`: no two draws share
their bits. `inverse`: without noise a chunk comes back.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

import eyestream
from auditing.estimate import lower_epsilon
from auditing.findings import Finding, first_failure
from auditing.hostile import FixedNoise, Subject, subjects
from auditing.mechanisms import Array, synthetic
from eyestream.config import Settings
from eyestream.privacy.bits import AesBits
from eyestream.privacy.laws import DIGIT_DEVIATION, LaplaceLaw
from eyestream.privacy.mechanisms import build
from eyestream.privacy.noise import SecureNoise

__all__ = ["entropy", "imputation", "inverse", "lattice", "radius", "reachable", "sampler"]

Part = tuple[bool, str]


def lattice() -> Finding:
    """The largest distance of two integer vectors, times the rate of the noise, against epsilon."""
    parts = []
    for subject in subjects():
        mechanism = subject.mechanism
        noisy = mechanism._noisy(mechanism._admit(subject.chunks))
        integers = np.rint(noisy / mechanism._parts.steps - 0.5)
        distance = max(float(np.abs(integers - row).sum(axis=1).max()) for row in integers)
        rate = float(math.sqrt(2) / mechanism._parts.law.sd.min())
        share = distance * rate / subject.epsilon
        parts.append((0.9 < share <= 1, f"{subject.label}: neighbours at {share:.7f} of epsilon"))
    return first_failure(*parts)


def radius() -> Finding:
    """Hostile chunks through the projection alone; hostile coordinates through the hold alone; and domain before."""
    parts: list[Part] = []
    for subject in subjects(width=1e300):
        mechanism, pieces = subject.mechanism, subject.mechanism._parts
        admitted = mechanism._admit(subject.chunks)
        inside = bool((np.abs(admitted) <= subject.width).all())  # false for NaN
        parts.append((inside, f"{subject.label}: the domain lets {np.abs(admitted).max():g} through"))
        order = 1 if subject.k is None else 2
        residual = pieces.project(pieces.transform.residual(admitted), pieces.radius)
        norm = float(np.linalg.norm(residual, ord=order, axis=1).max())
        parts.append((norm <= 1 + 1e-12, f"{subject.label}: projected to {norm:.6g} of the radius"))
        parts.append(_held(subject))
    return first_failure(*parts)


def _held(subject: Subject) -> Part:
    """Whether integers are in their ball whatever comes: its radius as privacy-core 4.2 has it, computed here again."""
    weights, step = subject.weights.astype(np.float64), subject.step
    worst = np.array([1e300, -1e300, np.inf, np.nan, 3.0, -2.0**70, 1e6, 0.1])
    coordinates = np.stack([np.roll(np.resize(worst, len(weights)), i) for i in range(subject.features)])
    lattice = subject.mechanism._parts.lattice
    with np.errstate(invalid="ignore"):
        integers = np.abs(lattice.snap(coordinates)).astype(np.float64)
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
            mechanism = subject.with_noise(FixedNoise())
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
    """Every output is, to the last bit, made of half-integers that every input can get."""
    parts: list[Part] = []
    for subject in subjects():
        mechanism, what = subject.with_noise(None), subject.label
        released = mechanism.release(subject.chunks)
        pieces = mechanism._parts
        signal = released - pieces.output.offset
        steps = np.broadcast_to(pieces.steps, (subject.features, len(subject.weights)))
        halves = np.rint(_coordinates(subject, signal) / steps - 0.5) + 0.5
        again = mechanism._finish(halves * steps)
        strange = int((again != released).any(axis=1).sum())
        parts.append((strange == 0, f"{what}: {strange} of {len(released)} outputs out of reach of the other input"))
        ends = [subject.with_noise(FixedNoise(end)).release(subject.chunks) for end in _ends(pieces.law)]
        kinds = max(len(np.unique(end, axis=0)) for end in ends)
        parts.append((kinds == 1, f"{what}: the largest noise gives {kinds} outputs, one for each input"))
        largest = float(np.abs(halves).max())
        parts.append((largest <= pieces.law.limit + 0.5, f"{what}: integer {largest:g} past the public interval"))
    return first_failure(*parts)


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
    reach = 1 << len(law._digits.words)
    return reach - 1, -reach


def sampler() -> Finding:
    """Digits against the exact law, in the thresholds and in what is drawn; the steps between neighbouring integers."""
    parts: list[Part] = []
    for rate in (0.5, 2.0**-6, 2.0**-20.5):
        law = LaplaceLaw(np.array([rate]), 400_000, largest=64)
        drawn = SecureNoise().draw(law)[0]
        magnitude = np.where(drawn < 0, ~drawn, drawn)
        count = len(law._digits.words)
        p = [0.5] + [1 / (1 + math.exp(min(rate * 2.0**i, 700))) for i in range(count)]
        bits = np.array([drawn < 0, *(((magnitude >> i) & 1).astype(np.bool_) for i in range(count))])
        parts += _digits(rate, bits, np.array(p))
        if rate > 0.1:
            parts.append(_neighbouring_integers(rate, drawn))
        parts.append(_thresholds(rate, law, count))
    return first_failure(*parts)


def _digits(rate: float, bits: Array, p: Array) -> list[Part]:
    draws, varies = bits.shape[1], p * bits.shape[1] > 1000
    off = np.abs(bits.mean(axis=1) - p) / np.sqrt(p * (1 - p) / draws + 1e-12)
    together = np.abs(np.corrcoef(bits[varies]) - np.eye(varies.sum())).max() * math.sqrt(draws)
    return [
        (off.max() < 6, f"rate {rate:.3g}: digit {int(off.argmax()) - 1} is off by {off.max():.1f} standard errors"),
        (together < 6, f"rate {rate:.3g}: two digits correlate by {together:.1f} standard errors"),
    ]


def _neighbouring_integers(rate: float, drawn: Array) -> Part:
    """One step moves the log-probability by at most the rate."""
    low, high = -8, 8
    counts = np.bincount((drawn - low).clip(0, high - low), minlength=high - low + 1)
    steps = [(int(counts[i]), int(counts[j])) for i in range(1, high - low) for j in (i - 1, i + 1) if j < high - low]
    worst = max(lower_epsilon(step, (len(drawn), len(drawn)), 1e-5) for step in steps)
    return worst <= rate, f"one step of {rate:g} changes the log-probability by at least {worst:.3f}"


def _thresholds(rate: float, law: LaplaceLaw, count: int) -> Part:
    """Largest deviation of a digit's logarithms, from the thresholds, in units of what is accounted."""
    thresholds, words = law._digits.thresholds[0, 0], law._digits.words
    worst = 0.0
    for digit in range(count):
        own = [(int(thresholds[word]) + 1) / 2**32 for word in words[digit]]
        log_p = sum(map(math.log, own))
        ideal = -math.log1p(math.exp(rate * 2.0**digit)) if rate * 2.0**digit < 700 else -rate * 2.0**digit
        worst = max(worst, abs(log_p - ideal))
        if ideal > -30:
            worst = max(worst, abs(math.log1p(-math.exp(log_p)) - math.log1p(-math.exp(ideal))))
    share = worst / DIGIT_DEVIATION
    return share <= 1 + 1e-3, f"rate {rate:.3g}: a digit deviates by {share:.3g} of what is accounted"


def entropy() -> Finding:
    """Two sources, two forks of one, two releases, and both sides of a renewal: all differ. Nobody can give a seed."""
    source = AesBits()
    words = [source.words(8).tobytes(), source.words(8).tobytes(), AesBits().words(8).tobytes()]
    words += [_in_child(lambda: source.words(8).tobytes()) for _ in (0, 1)]
    words += [_in_child(lambda: AesBits().words(8).tobytes()) for _ in (0, 1)]
    source.renew()
    words.append(source.words(8).tobytes())
    noise, calibration = SecureNoise(), synthetic("cfpa", 2, 4)
    mechanism = build(calibration, 4.0, k=1, noise=noise)
    zeros = np.zeros((4, 2))
    released = []
    for _ in range(3):
        mechanism.prepare()
        released.append(mechanism.release(zeros).tobytes())
    mechanism.prepare()
    released += [_in_child(lambda: mechanism.release(zeros).tobytes()) for _ in (0, 1)]
    released.append(mechanism.release(zeros).tobytes())
    mechanism.prepare()
    drawn_ahead = _in_child_without_hooks(noise, mechanism, zeros)
    return first_failure(
        (len(set(words)) == len(words), f"{len(words) - len(set(words))} of {len(words)} sources repeat another"),
        (len(set(released)) == len(released), f"{len(released) - len(set(released))} releases repeat another's noise"),
        (len(set(drawn_ahead)) == 2, "noise drawn ahead outlives a renewal"),
        _no_seed(),
    )


def _in_child(produce: Callable[[], bytes]) -> bytes:
    """What a forked child produces."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, produce())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, "rb") as pipe:
        return pipe.read()


def _in_child_without_hooks(noise: SecureNoise, mechanism: object, chunk: Array) -> list[bytes]:
    """Releases of two restored snapshots of one process: the same memory, each renewed before its release."""
    snapshot = dict(noise._pool)
    results = []
    for _ in (0, 1):
        noise._pool.update(snapshot)
        noise.renew()
        results.append(mechanism.release(chunk).tobytes())
    return results


def _no_seed() -> Part:
    """No key of the configuration and no line that makes noise knows a seed or the environment."""
    root = Path(eyestream.__file__).parent
    sources = [*(root / "privacy").glob("*.py"), *(root / "service").glob("*.py"), root / "config.py"]
    told = [path.name for path in sources for word in ("os.environ", "getenv", "default_rng") if word in path.read_text()]
    schema = msgspec.json.schema(Settings, schema_hook=lambda kind: {"type": kind.__name__})
    keys = {key for table in schema["$defs"].values() for key in table["properties"]}
    told += sorted(keys & {"seed", "noise", "key", "random", "rng", "entropy", "mode"})
    return not told, f"randomness can be chosen: {', '.join(told)}"


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
