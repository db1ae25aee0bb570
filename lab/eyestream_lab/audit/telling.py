"""Numbers that tell outputs of two inputs apart, learned on draws that are used for nothing else.

Linear ones: the difference of the means, weighted by the inverse variance in time and in frequency, by the inverse
covariance (it finds every combination that has no noise: noise on real parts alone, noise shared by coordinates),
single values and single Fourier coefficients. Others: log-likelihood ratios under Laplace laws of learned location and
scale (scales may differ between the inputs: noise that depends on the data), how far an output lies from the middle,
its extremes, which exact output it is (mechanisms with few outputs), and the last bits of the value whose last bits
differ most (what is hidden where no figure shows it).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SINGLES, _ATOMS, _JOINT = 3, 60, 128
_LAST = 8
_LEVELS = np.concatenate([[0.002, 0.01], np.linspace(0.025, 0.975, 39), [0.99, 0.998]])
_LOG_MOST = 60.0


def _fourier(chunks: Array) -> Array:
    """(m, D) orthonormal real coordinates of chunks (m, F, n): cosines, then sines, of every feature."""
    n = chunks.shape[-1]
    spectrum = np.fft.rfft(chunks, axis=-1, norm="ortho")
    both = np.concatenate([spectrum.real, spectrum.imag[..., 1 : (n + 1) // 2]], axis=-1)
    both[..., 1 : (n + 1) // 2] *= np.sqrt(2)
    both[..., n // 2 + 1 :] *= np.sqrt(2)
    return both.reshape(len(chunks), -1)


@dataclass(frozen=True)
class _Law:
    """Independent Laplace laws of the coordinates, under either input."""

    middle: tuple[Array, Array]
    size: tuple[Array, Array]

    @classmethod
    def of(cls, first: Array, second: Array) -> "_Law":
        middles = np.median(first, axis=0), np.median(second, axis=0)
        sizes = tuple(np.abs(y - m).mean(axis=0) for y, m in zip((first, second), middles, strict=True))
        least = 1e-12 * np.maximum(np.abs(first).max(axis=0), np.abs(second).max(axis=0)) + 1e-300
        return cls(middles, (np.maximum(sizes[0], least), np.maximum(sizes[1], least)))

    def ratio(self, y: Array) -> Array:
        """(m,) sum over the coordinates of the log-likelihood ratio, second to first; each is kept finite."""
        own = np.abs(y - self.middle[0])
        own /= self.size[0]
        other = np.abs(y - self.middle[1])
        other /= self.size[1]
        own -= other
        own += np.log(self.size[0] / self.size[1])
        np.clip(own, -_LOG_MOST, _LOG_MOST, out=own)
        total: Array = own.sum(axis=1)
        return total

    def same_size(self) -> "_Law":
        """With one scale for both, which has the better events when the scales do not differ."""
        size = (self.size[0] + self.size[1]) / 2
        return _Law(self.middle, (size, size))


class Telling:
    """The result of `learn`.

    Attributes
    ----------
    cells : number of cells of each partition.
    """

    def __init__(
        self, linear: dict[str, Array], laws: dict[str, _Law], atoms: dict[bytes, int], low: int, learned: Array
    ) -> None:
        self._names = list(linear)
        self._weights = np.stack([linear[name] for name in self._names], axis=1)
        self._laws, self._atoms = laws, atoms
        self._middle = np.median(learned.reshape(len(learned), -1), axis=0)
        self._edges = {name: _edges(values) for name, values in self.numbers(learned).items()}
        self._low, self._ends = low, (f"last bits of value {low}", f"zeros at the end of value {low}")
        self.cells = {name: 2 * len(edges) + 1 for name, edges in self._edges.items()} | {"exact output": _ATOMS + 1}
        self.cells |= dict(zip(self._ends, (_LAST, 65), strict=True))

    def numbers(self, chunks: Array) -> dict[str, Array]:
        """(m,) numbers of chunks (m, F, n), by name."""
        flat = chunks.reshape(len(chunks), -1)
        found = dict(zip(self._names, (flat @ self._weights).T, strict=True))
        for name, law in self._laws.items():
            found[name] = law.ratio(_fourier(chunks) if "frequency" in name else flat)
        away = np.abs(flat - self._middle)
        found["distance from the middle"] = np.log(away.sum(axis=1) + 1e-300)
        found["largest distance"] = np.log(away.max(axis=1) + 1e-300)
        found["highest value"], found["lowest value"] = flat.max(axis=1), flat.min(axis=1)
        return found

    def place(self, chunks: Array) -> Mapping[str, NDArray[np.int64]]:
        """(m,) the cell of each chunk (m, F, n), for every partition; the edges of a cell are cells of their own."""
        placed = {}
        for name, values in self.numbers(chunks).items():
            edges = self._edges[name]
            placed[name] = np.searchsorted(edges, values, "left") + np.searchsorted(edges, values, "right")
        atoms = (
            [self._atoms.get(chunk.tobytes(), _ATOMS) for chunk in chunks] if self._atoms else [_ATOMS] * len(chunks)
        )
        placed["exact output"] = np.array(atoms, dtype=np.int64)
        placed |= dict(zip(self._ends, _ends(chunks.reshape(len(chunks), -1)[:, self._low]), strict=True))
        return placed


def _edges(values: Array) -> Array:
    edges: Array = np.unique(np.quantile(values, _LEVELS, method="nearest"))
    return edges


def learn(first: Array, second: Array) -> Telling:
    """Learn to tell outputs (m, F, n) of two inputs apart."""
    m, features, n = first.shape
    flat = first.reshape(m, -1), second.reshape(len(second), -1)
    waves = _fourier(first), _fourier(second)
    into_time = _fourier(np.eye(features * n).reshape(-1, features, n)) if features * n <= 4 * _JOINT else None
    linear: dict[str, Array] = {"sum": np.ones(features * n)}
    difference: Array = flat[1].mean(axis=0) - flat[0].mean(axis=0)
    linear["difference of the means"] = difference
    linear["in time"] = difference / _variance(flat)
    change, noise = waves[1].mean(axis=0) - waves[0].mean(axis=0), _variance(waves)
    linear["in frequency"] = _back(change / noise, features, n, into_time)
    linear |= _joint(flat, difference, features, n)
    for index in np.argsort(-np.abs(difference) / np.sqrt(_variance(flat)))[:_SINGLES]:
        linear[f"value {index}"] = np.eye(1, features * n, index)[0]
    for index in np.argsort(-np.abs(change) / np.sqrt(noise))[:_SINGLES]:
        linear[f"coefficient {index}"] = _back(np.eye(1, features * n, index)[0], features, n, into_time)
    scaled = {name: weights / (np.abs(weights).max() or 1.0) for name, weights in linear.items()}
    time, frequency = _Law.of(*flat), _Law.of(*waves)
    laws = {"ratio in time": time, "ratio in frequency": frequency}
    if features * n <= _JOINT:
        laws |= {f"{name}, one scale": law.same_size() for name, law in list(laws.items())}
    low = _unlike_ends(*(np.asarray(outputs, dtype=np.float64) for outputs in flat))
    return Telling(scaled, laws, _common(first, second), low, np.concatenate([first, second]))


def _ends(values: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Last bits of float64 numbers as a whole number below `_LAST`, and how many zero bits stand at the end."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    lowest = bits & (~bits + np.uint64(1))
    zeros = np.where(bits == 0, 64, np.log2(np.maximum(lowest, 1).astype(np.float64)).astype(np.int64))
    return (bits % np.uint64(_LAST)).astype(np.int64), zeros


def _unlike_ends(first: Array, second: Array) -> int:
    """Which of D values (m, D) has last bits, or zeros at the end, that differ most between two inputs."""
    size, found = first.shape[1], []
    offset = np.arange(size)
    for ours, theirs, cells in zip(_ends(first), _ends(second), (_LAST, 65), strict=True):
        shares = [
            np.bincount((ends + cells * offset).ravel(), minlength=cells * size).reshape(size, cells) / len(ends)
            for ends in (ours, theirs)
        ]
        found.append(np.abs(shares[0] - shares[1]).sum(axis=1))
    return int(np.argmax(np.maximum(*found)))


def _variance(both: tuple[Array, Array]) -> Array:
    """(D,) variance of the coordinates, at least what rounding makes of it."""
    least = 1e-26 * np.maximum(np.abs(both[0]).max(axis=0), np.abs(both[1]).max(axis=0)) ** 2
    variance: Array = (both[0].var(axis=0) + both[1].var(axis=0)) / 2
    variance += least + 1e-250
    return variance


def _back(weights: Array, features: int, n: int, into_time: Array | None) -> Array:
    """(D,) weights of values for weights of Fourier coordinates; the transform is orthonormal, so its inverse does."""
    if into_time is not None:
        back: Array = into_time @ weights
        return back
    shaped = weights.reshape(features, n)
    cosines = shaped[:, : n // 2 + 1].astype(np.complex128)
    sines = np.zeros_like(cosines)
    sines[:, 1 : (n + 1) // 2] = shaped[:, n // 2 + 1 :]
    spectrum = cosines + 1j * sines
    spectrum[:, 1 : (n + 1) // 2] /= np.sqrt(2)
    return np.fft.irfft(spectrum, n, axis=-1, norm="ortho").ravel()


def _joint(flat: tuple[Array, Array], difference: Array, features: int, n: int) -> dict[str, Array]:
    """Directions by the inverse covariance of all values, or of the feature and the row that differ most."""
    size, share = features * n, np.abs(difference).reshape(features, n)
    blocks = {"all values": np.arange(size)}
    if size > _JOINT:
        places = np.arange(size).reshape(features, n)
        feature, row = places[np.argmax(share.sum(axis=1))], places[:, np.argmax(share.sum(axis=0))]
        blocks = {"one feature": feature[:_JOINT], "one row": row[:_JOINT]}
    found: dict[str, Array] = {}
    largest = np.abs(difference).max() or 1.0
    least = 1e-20 * max(np.abs(flat[0]).max(), np.abs(flat[1]).max()) ** 2 + 1e-250
    for name, where in blocks.items():
        if len(where) < 2:
            continue
        covariance = (np.cov(flat[0][:, where].T) + np.cov(flat[1][:, where].T)) / 2
        for ridge in (1e-13, 1e-2):
            level = ridge * max(np.trace(covariance) / len(where), least)
            weights = np.zeros(size)
            weights[where] = np.linalg.solve(covariance + level * np.eye(len(where)), difference[where] / largest)
            found[f"without noise, {name}, {ridge:g}"] = weights
    return found


def _common(first: Array, second: Array) -> dict[bytes, int]:
    """The most frequent outputs, where any comes twice, and their numbers."""
    counts = Counter(chunk.tobytes() for chunk in first) + Counter(chunk.tobytes() for chunk in second)
    often = [output for output, times in counts.most_common(_ATOMS) if times > 1]
    return {output: number for number, output in enumerate(often)}
