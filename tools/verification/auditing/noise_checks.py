"""Checks of the noise.

`sampler`: it has its law, digit by digit. `entropy`: no two draws share their bits.
"""

import ctypes
import math
import os
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import get_args, get_type_hints
from unittest import mock

import msgspec
import numpy as np
from numpy.typing import NDArray

import eyestream
from eyestream.core.mechanisms import build
from eyestream.core.noise import Law, SecureNoise, SystemBits
from eyestream.core.noise import digits as words_module
from eyestream.core.noise.laws import DIGIT_DEVIATION, LaplaceLaw
from eyestream.core.noise.response import ResponseLaw
from eyestream.rim.config import Settings
from eyestream_lab.audit.estimate import lower_epsilon
from eyestream_lab.audit.trials import Array, synthetic
from tools.verification.auditing.findings import Finding, Part, first_failure

__all__ = ["entropy", "sampler"]

_CELLS = ((2,), (8, 2, 2), (256, 256), (6,), (3, 3), (2, 2, 3))
"""Of code words: those of `klt`, and those of one to three asked features at epsilon 4.8."""


def sampler() -> Finding:
    """Digits against the exact law, in the thresholds and in what is drawn; the steps between neighbouring integers."""
    parts: list[Part] = []
    for rate in (0.5, 2.0**-6, 2.0**-20.5):
        law, source = LaplaceLaw(np.array([rate]), 2000, largest=64), SecureNoise()
        drawn = np.concatenate([source.draw(law)[0] for _ in range(100)])
        magnitude = np.where(drawn < 0, ~drawn, drawn)
        count = len(law.digits.words)
        p = [0.5] + [1 / (1 + math.exp(min(rate * 2.0**i, 700))) for i in range(count)]
        bits = np.array([drawn < 0, *(((magnitude >> i) & 1).astype(np.bool_) for i in range(count))])
        parts += _digits(rate, bits, np.array(p))
        if rate > 0.1:
            parts.append(_neighbouring_integers(rate, drawn))
        parts.append(_thresholds(rate, law, count))
    parts.append(_refused())
    parts += [_odds(epsilon, cells) for epsilon in (0.1, 1.0, 4.8, 48.0) for cells in _CELLS]
    return first_failure(*parts)


def _refused() -> Part:
    """A law whose thresholds are off by a few units of the last word is not made."""
    right = words_module.digit_thresholds

    def off(odds: Sequence[Decimal]) -> list[NDArray[np.uint32]]:
        first, *others = right(odds)
        return [first - np.uint32(8), *others]

    try:
        with mock.patch.object(words_module, "digit_thresholds", off):
            LaplaceLaw(np.array([2.0**-20.5]), 1, largest=64)
    except OverflowError:
        return True, "thresholds that are off are refused"
    return False, "a sampler whose thresholds are off was made"


def _odds(epsilon: float, cells: Sequence[int]) -> Part:
    """The odds that randomised response gives, exactly: of the word that 32-bit integers modulo `cells` draw least."""
    rho = Fraction(ResponseLaw(cells, epsilon)._threshold, 2**128)
    rarest = math.prod(Fraction(len(range(own - 1, 2**32, own)), 2**32) for own in cells)
    odds = 1 + (1 - rho) / (rho * rarest)
    with localcontext() as context:
        context.prec = 100
        share = (Decimal(odds.numerator) / Decimal(odds.denominator)).ln() / Decimal(epsilon)
    return share <= 1, f"response over {math.prod(cells)} words: odds cost {share:.12f} of epsilon {epsilon:g}"


def _digits(rate: float, bits: Array, p: Array) -> list[Part]:
    draws, varies = bits.shape[1], p * bits.shape[1] > 1000
    off = np.abs(bits.mean(axis=1) - p) / np.sqrt(p * (1 - p) / draws + 1e-12)
    standard = (bits[varies] - p[varies, None]) / np.sqrt(p * (1 - p))[varies, None]
    products = np.einsum("id,jd->ij", standard, standard) / draws
    together = np.abs(products - np.diag(np.diag(products))).max() * math.sqrt(draws)
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
    thresholds, words = law.digits.thresholds[0, 0], law.digits.words
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
    """Two sources, copies of one process, releases and threads: no two share noise. Nobody can give a seed."""
    source, noise = SystemBits(), SecureNoise()
    words = [source.words(count).tobytes()[:32] for count in (8, 2000, 2000)]
    words += [SystemBits().words(count).tobytes()[:32] for count in (8, 2000)]
    mechanism = build(synthetic("cfpa", 64, 16), 4.0, k=8, noise=noise)
    zeros = np.zeros((mechanism.features, mechanism.n))
    released = [mechanism.release(zeros).tobytes() for _ in range(3)]
    for fork in (os.fork, ctypes.PyDLL(None).fork):  # the second runs no hook: nothing tells the copy that it is one
        words += [_in_copy(fork, lambda: source.words(2000).tobytes()[:32]) for _ in (0, 1)]
        released += [_in_copy(fork, lambda: mechanism.release(zeros).tobytes()) for _ in (0, 1)]
        released.append(mechanism.release(zeros).tobytes())
    return first_failure(
        (len(set(words)) == len(words), f"{len(words) - len(set(words))} of {len(words)} sources repeat another"),
        (len(set(released)) == len(released), f"{len(released) - len(set(released))} releases repeat another's noise"),
        _threads(),
        _no_seed(),
    )


def _in_copy(fork: Callable[[], int], produce: Callable[[], bytes]) -> bytes:
    """What a copy of this process produces."""
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        try:
            os.write(writer, produce())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, "rb") as pipe:
        return pipe.read()


def _threads() -> Part:
    """Releases of one mechanism in two threads at once: each draws with a law and a source of bits of its own."""
    noise = _MeetingNoise()
    mechanism = build(synthetic("cfpa", 64, 8), 4.0, k=8, noise=noise)
    chunk = np.zeros((mechanism.features, mechanism.n))
    threads = [threading.Thread(target=mechanism.release, args=(chunk,)) for _ in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = len(noise.laws) == len(set(noise.laws)) == 2
    return alone, "two threads are in one mechanism at once and share noise and scratch arrays"


class _MeetingNoise(SecureNoise):
    """Lets two threads draw at once only, and notes which laws, whose buffers they write to, they draw from."""

    def __init__(self) -> None:
        super().__init__()
        self._both = threading.Barrier(2)
        self.laws: list[int] = []

    def draw(self, law: Law) -> NDArray[np.int64]:
        """As it is, when the other thread draws too."""
        self.laws.append(id(law))
        self._both.wait(timeout=10)
        return super().draw(law)


def _no_seed() -> Part:
    """No key of the configuration and no line that makes noise knows a seed or the environment.

    A source of gaze and the seal of the ledger's file, which know nothing of mechanisms, may ask the environment where
    a library or a key is. What makes calibrations, of public people, may try them with a seed: no release imports it.
    """
    root = Path(eyestream.__file__).parent
    sources = [*(root / "core").rglob("*.py"), *(root / "rim").rglob("*.py")]
    told = []
    for path in sources:
        text = path.read_text(encoding="utf-8")
        apart = path.parent.name == "sources" or path.name == "seal.py"
        apart = apart and "eyestream.core" not in text and "default_rng" not in text
        found = [word for word in ("os.environ", "getenv", "default_rng") if word in text]
        if "default_rng" in found and _makes_calibrations(path, root):
            found.remove("default_rng")
        told += [path.name for _ in found if not apart]
    told += sorted(_keys(Settings) & {"seed", "noise", "key", "random", "rng", "entropy", "mode"})
    return not told, f"randomness can be chosen: {', '.join(told)}"


_MAKERS = ("calibrate.py", "adapt.py")
"""Entries refer to them by name, so that they are imported when somebody calibrates, and not before."""


def _makes_calibrations(path: Path, root: Path) -> bool:
    """Whether a file is imported by makers of calibrations alone: by no other one of the product, and not at all."""
    place = f"eyestream.{'.'.join(path.relative_to(root).with_suffix('').parts)}"
    own = [other for other in root.rglob("*.py") if f"from {place} import" in other.read_text(encoding="utf-8")]
    product = [other for other in own if root / "lab" not in other.parents]
    return all(other.name in _MAKERS for other in product) and (bool(product) or path.name in _MAKERS)


def _keys(kind: object) -> set[str]:
    """Every key of a table of the configuration, and of the tables that its values may be."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = get_type_hints(kind)
        return set(fields).union(*map(_keys, fields.values()))
    return set().union(*map(_keys, get_args(kind)))
