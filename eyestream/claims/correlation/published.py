"""A published class of processes, and what a session tells about one chunk for a real mechanism: epsilon' as claimed.

Chunks are a Gaussian autoregressive process of order one about a level of the person's own, with one |a| <= a_max for
all values of a chunk. For mechanisms that add noise, two runs from two contents of the secret chunk have the same
innovations, so they come together as a^s. For `klt`, `scores` bounds what later code words tell. A chunk that is
withheld lies nearer to a release than a released one, and so does one beside a cut between two files. `CORRELATION.md`
has the class, the derivations and their proofs.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from itertools import pairwise
from typing import Protocol

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.entry import referred
from eyestream.core.mechanisms.registry import entry_of
from eyestream.errors import ConfigError

OUTWARD = 1 + 2.0**-40
"""Factor of every bound, so that rounding makes no bound smaller."""

_SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING, traps=[])
_BLOCKS = 16


@dataclass(frozen=True, slots=True)
class Correlated:
    """Loss of a whole session whose chunks follow a published class of processes (`eyestream.claims.correlation`).

    Attributes
    ----------
    name, about : of the class: what it is called, and where its margins come from.
    most, time_constant_s : a_max from one chunk to the next, and the time constant that it follows from.
    within : the range that the compared contents lie in, in words.
    chunks : of the session, at most.
    plain : sum of the losses of so many chunks, which holds without the class.
    counted : what `chunks` counts, where that was chosen; None: nothing is said.
    chunk, second : epsilon' of one chunk, and of one second of gaze; never above `plain`. None: nothing is claimed
        of a second, as where it is not known how many chunks it enters.
    """

    name: str
    about: str
    most: float
    time_constant_s: float
    within: str
    chunks: int
    plain: float
    chunk: float
    second: float | None
    counted: str | None = None

    def words(self) -> str:
        """Two sentences: the claim with its class, and what holds outside it."""
        low = f"below the plain sum, {self.plain:g}"
        what = low if self.chunk < self.plain else f"no less than the plain sum, {self.plain:g}"
        counted = "" if self.counted is None else f" ({self.counted})"
        second = shift = ""
        if self.second is not None:
            second = f", and between two contents of one second of gaze by at most e^{self.second:.4g}"
            shift = (
                "; and two contents of a second of gaze shift the means of the chunks that hold it, by no more than "
                "that range, and nothing else"
            )
        return (
            f"if the chunks follow the class {self.name!r}, a whole session of at most {self.chunks} chunks{counted} "
            f"changes the odds between two contents of one chunk by a factor of at most e^{self.chunk:.4g} (epsilon' = "
            f"{self.chunk:.4g}, {what}){second}. The class: about a level of the person's own, which the attacker may "
            "know, chunks are a stationary Gaussian autoregressive process of order one, with a coefficient of at most "
            f"{self.most:.3g} from one chunk to the next (time constant at most {self.time_constant_s:g} s); rows "
            f"are complete; the two contents lie in a range: {self.within}{shift}. "
            f"{self.about}. Outside this class only the plain sum holds, and of the level itself it says nothing"
        )

    def claim(self) -> dict[str, object]:
        """For machines: plain values that JSON knows."""
        return {
            "class": self.name,
            "about": self.about,
            "process": "stationary Gaussian autoregressive of order one, about a level of the person that is known",
            "a_max": self.most,
            "time_constant_s": self.time_constant_s,
            "within": self.within,
            "chunks": self.chunks,
            "counted": self.counted,
            "epsilon_prime": {"chunk": self.chunk, "second_of_gaze": self.second},
            "outside_the_class": {"epsilon": self.plain, "of": "plain sum over the chunks"},
        }


@dataclass(frozen=True)
class PublishedClass:
    """Gaussian autoregressive chunks about a level, with margins.

    Attributes
    ----------
    name : by which configurations and claims call it.
    time_constant_s, score_time_constant_s : tau of the values, and of the scores of `klt`; margins are part of it.
    range_sd : how far from the level a score may lie, in standard deviations.
    about : corpus, number of people, and how the margins were found; a sentence.

    Raises
    ------
    ConfigError
        unless all figures are positive and finite.
    """

    name: str
    time_constant_s: float
    score_time_constant_s: float
    range_sd: float
    about: str

    def __post_init__(self) -> None:
        for field in ("time_constant_s", "score_time_constant_s", "range_sd"):
            value = getattr(self, field)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"class {self.name!r}: {field} must be positive and finite, not {value}")


class CrossChunkBound(Protocol):
    """Bound on what the releases of a mechanism tell of one another; its `Entry` names one."""

    @property
    def saturates(self) -> bool:
        """Whether far chunks tell hardly more, so that both sides may count as if they had all chunks."""
        ...

    def time_constant_s(self, process: PublishedClass) -> float:
        """tau of what the mechanism releases, in seconds."""
        ...

    def within(self, process: PublishedClass) -> str:
        """The range that the two compared contents lie in, in words."""
        ...

    def side(
        self, mechanism: Mechanism, process: PublishedClass, most: float, chunks: int, *, first: int, every: int
    ) -> float:
        """Loss by `chunks` chunks on one side of the secret one, in nats; `most` is a_max, the rest as in `side`."""
        ...


def bound_of(mechanism: Mechanism) -> CrossChunkBound:
    """Figures of a mechanism's releases.

    Raises
    ------
    ConfigError
        when nothing is known: a class of processes then bounds nothing.
    """
    known: CrossChunkBound | None = referred(entry_of(mechanism.name).correlation)
    if known is None:
        raise ConfigError(
            f"no class of processes bounds what releases of {mechanism.name} tell of one another: "
            "leave the class out, and only the plain sum holds"
        )
    return known


def _most(known: CrossChunkBound, process: PublishedClass, seconds: float) -> float:
    """a_max from one chunk to the next, which begins `seconds` later."""
    return math.exp(-seconds / known.time_constant_s(process))


def side(
    mechanism: Mechanism, process: PublishedClass, seconds: float, chunks: int, *, first: int = 1, every: int = 1
) -> float:
    """Loss by `chunks` chunks on one side of the secret one, in nats; infinite where a baseline is subtracted.

    Parameters
    ----------
    mechanism
        That releases them.
    process
        The class.
    seconds
        From one chunk to the next.
    chunks
        N, how many are released on that side.
    first, every
        The nearest of them lies `first` chunks away, and each `every` chunks after the one before.

    Raises
    ------
    ConfigError
        As `bound_of`.
    """
    if mechanism.calibration.takes_off is not None:  # what is taken off enters every release
        return math.inf
    known = bound_of(mechanism)
    return known.side(mechanism, process, _most(known, process, seconds), chunks, first=first, every=every)


def session_claim(
    mechanism: Mechanism,
    process: PublishedClass,
    seconds: float,
    *,
    chunks: int,
    touched: int | None,
    every: int = 1,
    cuts: int = 0,
) -> Correlated:
    """epsilon' of one chunk, and of one second of gaze, for a session of at most `chunks` chunks.

    Parameters
    ----------
    mechanism, process, seconds
        As for `side`.
    chunks
        T, of the whole session: those that are released.
    every
        One chunk in so many is released. One that is not lies between two that are, and is claimed too.
    cuts
        Places where the next release may lie nearer than else: between files that do not end with a whole chunk.
    touched
        How many chunks a second of gaze enters; None: it is not known. Then nothing is claimed of a second, nor where
        chunks are withheld or files are cut: it may enter more of them, or ones that lie nearer to the next release.

    Exponentials and logarithms differ between machines in their last bits. So what is claimed is rounded up to six
    digits: two machines claim the same.

    Raises
    ------
    ConfigError
        when there is no chunk, or as `bound_of`.
    """
    known = bound_of(mechanism)
    if chunks < 1:
        raise ConfigError(f"chunks: a session has at least one, not {chunks}")
    epsilon = float(mechanism.loss.epsilon)
    plain = chunks * epsilon

    def told(inside: int) -> float:
        most = max(inside * epsilon + around, between) + cuts * epsilon
        return min(plain, _rounded_up(most * OUTWARD))

    around = _both_sides(mechanism, process, seconds, chunks - 1, every)
    between = max(
        (_between(mechanism, process, seconds, chunks, apart=j, every=every) for j in range(1, every)), default=0.0
    )
    return Correlated(
        name=process.name,
        about=process.about,
        most=_rounded_up(_most(known, process, seconds)),
        time_constant_s=known.time_constant_s(process),
        within=known.within(process),
        chunks=chunks,
        plain=plain,
        chunk=told(1),
        second=None if touched is None or every > 1 or cuts else told(min(touched, chunks)),
    )


def _rounded_up(figure: float) -> float:
    return float(_SIX_DIGITS.create_decimal(figure))


def _between(
    mechanism: Mechanism, process: PublishedClass, seconds: float, chunks: int, *, apart: int, every: int
) -> float:
    """How much the releases on both sides reveal about a withheld chunk, `apart` chunks after a released one."""

    def told(before: int, behind: int) -> float:
        near = side(mechanism, process, seconds, before, first=apart, every=every)
        return near + side(mechanism, process, seconds, behind, first=every - apart, every=every)

    if bound_of(mechanism).saturates:
        return told(chunks, chunks)
    return max(told(high, chunks - low) for low, high in _blocks(chunks))


def _both_sides(mechanism: Mechanism, process: PublishedClass, seconds: float, others: int, every: int) -> float:
    """The largest sum over where the secret chunk may lie among `others` more; a side grows with its chunks."""

    def told(chunks: int) -> float:
        return side(mechanism, process, seconds, chunks, first=every, every=every)

    if bound_of(mechanism).saturates:  # long sessions tell no more than half as long ones: not worth the time
        return min(2 * told(others), others * float(mechanism.loss.epsilon))
    return max(told(high) + told(others - low) for low, high in _blocks(others))


def _blocks(chunks: int) -> list[tuple[int, int]]:
    """Up to half of `chunks`, from and to: how many of them may lie on the shorter side."""
    borders = sorted({chunks * i // (2 * _BLOCKS) for i in range(_BLOCKS + 1)})
    return list(pairwise(borders)) or [(0, 0)]
