"""Trials of the audit: worst-case neighbours, and cells for the outputs.

A mechanism joins with an `AuditPart`, which its entry refers to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, Provenance, Tables
from eyestream.core.mechanisms.registry import names
from eyestream.core.noise import Noise
from eyestream.core.session import OffsetSpec
from eyestream.errors import ConfigError
from eyestream_lab.audit.estimate import Bound, Counts, lower_bound
from eyestream_lab.parts import part_of

Array = NDArray[np.float64]
Cells = Mapping[str, NDArray[np.int64]]

EPSILONS = (0.1, 1.0, 5.0)
FAR = 1000.0
"""Neighbours are so many radii away from the centre."""

SHARP = 0.9
"""Share of epsilon that the lower bound must reach; below it the audit is blind."""


@dataclass(frozen=True)
class Case:
    """One thing tried: a mechanism at `epsilon`, and how many draws under each neighbour it gets."""

    mechanism: str
    n: int
    k: int | None
    epsilon: float
    draws: int

    def __str__(self) -> str:
        return f"{self.mechanism} n={self.n} k={self.k or '-'} eps={self.epsilon:g}"


class Trial(Protocol):
    """One case at work."""

    @property
    def partitions(self) -> Mapping[str, int]:
        """Number of cells of each partition."""
        ...

    def sharp(self, draws: int) -> bool:
        """Whether the bound from `draws` draws must reach `SHARP` of epsilon when all is well; else it may be blind."""
        ...

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of some independent releases of either neighbour, for each partition."""
        ...


@dataclass(frozen=True)
class AuditPart:
    """How a mechanism is tried.

    Attributes
    ----------
    trial : called with a case and, in tests, another source of noise.
    shapes : chunk length n and, where there is one, k, of the cases at every epsilon.
    draws : how many a case gets, of k and epsilon: in the quick audit, and in the long one.
    bound : what counts of two halves of the draws say; where partitions are steps of a release, their sum.
    long_shapes : the same as `shapes`, at epsilon 1 in the long audit alone.
    synthetic : a calibration made by hand, of n and a number of features.
    """

    trial: Callable[[Case, Noise | None], Trial]
    shapes: tuple[tuple[int, int | None], ...]
    draws: tuple[Callable[[int | None, float], int], Callable[[int | None, float], int]]
    synthetic: Callable[..., Calibration]
    bound: Callable[[Counts, Counts], Bound] = lower_bound
    long_shapes: tuple[tuple[int, int | None], ...] = ()


def audited() -> dict[str, AuditPart]:
    """The mechanisms that the audit tries, by name."""
    found = {name: part_of(name).get("audit", AuditPart) for name in names()}
    return {name: part for name, part in found.items() if part is not None}


def _audit_part(mechanism: str) -> AuditPart:
    """Raises ConfigError when the mechanism has no trial."""
    part = part_of(mechanism).get("audit", AuditPart)
    if part is None:
        raise ConfigError(f"the audit has no trial of {mechanism}")
    return part


def trial_of(case: Case, noise: Noise | None = None) -> Trial:
    """One case at work; raises ConfigError when its mechanism has no trial."""
    return _audit_part(case.mechanism).trial(case, noise)


def bounded(case: Case, trial: Trial) -> float:
    """The lower bound on epsilon that its draws give."""
    return _audit_part(case.mechanism).bound(*count(trial, case.draws)).epsilon


def synthetic(mechanism: str, n: int, features: int, width: float = 1e9) -> Calibration:
    """A calibration made by hand: equal features, and a range of 2 `width` that does not bind.

    One release of many equal features is many independent ones of one feature. Raises ConfigError as `trial_of`.
    """
    return _audit_part(mechanism).synthetic(n, features, width)


def made_by_hand(
    mechanism: str, n: int, features: int, width: float, tables: Tables, *, takes_off: OffsetSpec | None = None
) -> Calibration:
    """A calibration for so many features with the range -`width` .. `width`, of whose recordings there are none."""
    return Calibration(
        mechanism=mechanism,
        names=tuple(f"feature{i}" for i in range(features)),
        units=("1",) * features,
        rate_hz=2.0,
        n=n,
        k=None,
        declared=np.zeros(features, dtype=np.bool_),
        lo=np.full(features, -width),
        hi=np.full(features, width),
        fill=np.zeros(features),
        tables=tables,
        provenance=Provenance("none: made for an audit", 0, 0, None, (), "audit"),
        takes_off=takes_off,
    )


def count(trial: Trial, draws: int) -> tuple[Counts, Counts]:
    """Counts of two halves of `draws` draws under either neighbour."""
    halves = tuple({name: np.zeros((2, size), np.int64) for name, size in trial.partitions.items()} for _ in (0, 1))
    for half in halves:
        done = 0
        while done < draws / 2:
            observed = trial.observe()
            done += len(next(iter(observed[0].values())))
            for neighbour, cells in enumerate(observed):
                for name, where in cells.items():
                    half[name][neighbour] += np.bincount(where, minlength=trial.partitions[name])
    return halves[0], halves[1]


def cases(quick: bool) -> list[Case]:
    """Everything that is tried: every epsilon with the shapes of every mechanism, and in the long form more shapes.

    A small epsilon takes many draws to be seen, and so does a large k, whose most telling event has probability
    2^-(2k-1). The short form draws what a sharp bound takes, where that is done in seconds, and elsewhere enough to see
    a gross fault; the long form ten times a million and more.
    """
    parts = audited()
    found = [
        Case(name, n, k, epsilon, part.draws[0 if quick else 1](k, epsilon))
        for epsilon in EPSILONS
        for name, part in parts.items()
        for n, k in part.shapes
    ]
    if not quick:
        found += [Case(name, n, k, 1.0, 10_000_000) for name, part in parts.items() for n, k in part.long_shapes]
    return found
