"""Chunks that bring out the worst: neighbours are any two chunks inside the range, so very different ones are tried."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit.subject import Subject

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Neighbours:
    """Two chunks (F, n) and what is said of them."""

    name: str
    first: Array
    second: Array


def _scaled(subject: Subject, share: Array) -> Array:
    """(F, n) the chunk whose values lie at the `share`, 0 to 1, of each feature's range."""
    low, high = subject.bounds()
    inside = low + (high - low) * share
    chunk: Array = np.clip(np.where(share >= 1.0, high, np.where(share <= 0.0, low, inside)), low, high)
    return chunk * np.ones((subject.features, subject.n))


def generic(subject: Subject, seed: int = 1) -> Array:
    """(F, n) a chunk with nothing special about it; every value has a full mantissa."""
    return _scaled(subject, np.random.default_rng(seed).uniform(0.15, 0.85, (subject.features, subject.n)))


def shapes(subject: Subject) -> dict[str, Array]:
    """Chunks of every kind by name, for what must not depend on the chunk: form, time and failure."""
    rows, columns = np.arange(subject.features)[:, None], np.arange(subject.n)[None, :]
    spike = ((rows == 0) & (columns == 0)).astype(float)
    shares = {
        "lowest": np.zeros((1, 1)),
        "middle": np.full((1, 1), 0.5),
        "highest": np.ones((1, 1)),
        "alternating": ((rows + columns) % 2).astype(float),
        "ramp": (columns + 0.5 * (subject.n == 1)) / max(subject.n - 1, 1) * np.ones((subject.features, 1)),
        "spike": 0.5 + 0.5 * spike,
    }
    found = {name: _scaled(subject, share) for name, share in shares.items()}
    found["generic"] = generic(subject)
    low, high = subject.bounds()
    if (low <= 0).all() and (high >= 0).all():
        found["zero"] = np.zeros((subject.features, subject.n))
    if subject.missing:
        found["missing"] = np.full((subject.features, subject.n), np.nan)
        found["half missing"] = np.where((rows + columns) % 2, np.nan, found["middle"])
    return found


def neighbours(subject: Subject) -> list[Neighbours]:
    """Pairs of chunks inside the range."""
    features, n = subject.features, subject.n
    rows, columns = np.arange(features)[:, None], np.arange(n)[None, :]
    everywhere = np.ones((features, n))
    known = shapes(subject)
    angle = 2 * np.pi * columns / n
    found = [
        Neighbours("constants at both ends", known["lowest"], known["highest"]),
        Neighbours("a constant and an alternating chunk", known["middle"], known["alternating"]),
        Neighbours("a constant and any chunk", known["middle"], known["generic"]),
        Neighbours("an end and any chunk", known["lowest"], known["generic"]),
        Neighbours("two small steps", *(_scaled(subject, np.full((1, 1), share)) for share in (0.5, 0.51))),
    ]

    def opposite(name: str, sign: NDArray[Any]) -> None:
        found.append(Neighbours(name, *(_scaled(subject, (1 + way * sign * everywhere) / 2) for way in (1, -1))))

    opposite("one value changed", (rows == 0) & (columns == 0))
    opposite("the last value changed", (rows == features - 1) & (columns == n - 1))
    if n > 1:
        opposite("alternating", 1.0 - 2.0 * (columns % 2))
        opposite("ramps", 2 * columns / (n - 1) - 1)
        opposite("one row changed", columns == n // 2)
        opposite("one sine", np.sin(angle))
        opposite("one square wave", np.where(columns < n / 2, 1.0, -1.0))
    if n > 3:
        opposite("a fast sine", np.sin(angle * max(n // 4, 1)))
        opposite("one cosine", np.cos(angle))
    if features > 1:
        opposite("one feature changed", (rows == 0) * 1.0)
        opposite("features against each other", 1.0 - 2.0 * (rows % 2))
    for seed in (2, 3):
        opposite(f"signs {seed - 1}", np.random.default_rng(seed).choice([-1.0, 1.0], (features, n)))
    if subject.missing:
        found.append(Neighbours("all missing and a constant", known["missing"], known["highest"]))
        found.append(Neighbours("half missing and an end", known["half missing"], known["lowest"]))
    return found
