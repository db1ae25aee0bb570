"""Subjects of an audit: a function, a mechanism of eyestream, or a program, and the claim about it."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.registry import names
from eyestream.errors import ConfigError
from eyestream.ops.asked_sets import asked_features
from eyestream.rim.elsewhere import mechanism_named
from eyestream.rim.files import calibrations

Array = NDArray[np.float64]

_MOST_VALUES = 1 << 20
_LARGEST = 1e60


@dataclass(frozen=True)
class Subject:
    """A mechanism seen from outside, and its claim: epsilon for any two chunks inside the range.

    Attributes
    ----------
    kind : ``function``, ``session``, ``mechanism`` or ``program``.
    target : what to load: ``module:function``, or the mechanism, its calibration and what is asked of it, or the
        command line.
    features, n : shape (F, n) of a chunk.
    lo, hi : (F,) range of each feature, its ends included.
    epsilon : stated loss of one chunk, all features together.
    missing : whether NaN is a value that a chunk may hold.
    limit_s : longest time of one release, and of loading, in seconds.
    """

    kind: str
    target: tuple[str, ...]
    features: int
    n: int
    lo: tuple[float, ...] = field(repr=False)
    hi: tuple[float, ...] = field(repr=False)
    epsilon: float = 1.0
    missing: bool = False
    limit_s: float = 5.0

    def __post_init__(self) -> None:
        if self.features < 1 or self.n < 1:
            raise ConfigError(f"a chunk has at least one feature and one row, not {self.features} and {self.n}")
        if self.features * self.n > _MOST_VALUES:
            raise ConfigError(f"a chunk of {self.features} x {self.n} values is more than the {_MOST_VALUES} audited")
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise ConfigError(f"epsilon must be a positive, finite number, not {self.epsilon}")
        if not (math.isfinite(self.limit_s) and self.limit_s > 0):
            raise ConfigError(f"the time limit must be a positive, finite number of seconds, not {self.limit_s}")
        if len(self.lo) != self.features or len(self.hi) != self.features:
            raise ConfigError(f"the range must have {self.features} ends on either side, one for each feature")
        if not all(math.isfinite(low) and math.isfinite(high) for low, high in zip(self.lo, self.hi, strict=True)):
            raise ConfigError("the range must have finite ends")
        if max(map(abs, (*self.lo, *self.hi))) > _LARGEST:
            raise ConfigError(f"the range must lie within -{_LARGEST:g} and {_LARGEST:g}")
        if not all(low <= high for low, high in zip(self.lo, self.hi, strict=True)) or self.lo == self.hi:
            raise ConfigError("the range must begin below its end: LO,HI with LO < HI")

    @property
    def name(self) -> str:
        """Name of the subject, for people."""
        return " ".join(self.target)

    def bounds(self) -> tuple[Array, Array]:
        """(F, 1) lower and upper ends of the range."""
        return np.array(self.lo)[:, None], np.array(self.hi)[:, None]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, from which `Subject(**values)` makes an equal one after JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Subject":
        """The inverse of `as_dict`, lists taken for tuples."""
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**plain)


def function(
    spec: str,
    *,
    features: int,
    chunk: int,
    low: float,
    high: float,
    epsilon: float,
    session: bool = False,
    missing: bool = False,
    limit_s: float = 5.0,
) -> Subject:
    """A Python function ``module:function`` that takes and returns (F, n) arrays.

    Parameters
    ----------
    session
        The function takes nothing and returns such a function, good for the chunks of one session; every draw gets a
        new one. For mechanisms that filter what they released before.

    Raises
    ------
    ConfigError
        An argument is out of range.
    """
    module, colon, name = spec.partition(":")
    if not (colon and module and name):
        raise ConfigError(f"{spec}: a function is named module:function")
    return Subject(
        "session" if session else "function",
        (spec,),
        features,
        chunk,
        (low,) * max(features, 0),
        (high,) * max(features, 0),
        epsilon,
        missing,
        limit_s,
    )


def program(
    command: tuple[str, ...],
    *,
    features: int,
    chunk: int,
    low: float,
    high: float,
    epsilon: float,
    missing: bool = False,
    limit_s: float = 5.0,
) -> Subject:
    """A program that reads framed chunks from its standard input and writes framed chunks to its standard output.

    Raises
    ------
    ConfigError
        An argument is out of range.
    """
    if not command:
        raise ConfigError("a program needs a command line")
    ends = (low,) * max(features, 0), (high,) * max(features, 0)
    return Subject("program", command, features, chunk, *ends, epsilon, missing, limit_s)


def mechanism(
    name: str, calibration: str, epsilon: float, *, features: str | None = None, limit_s: float = 5.0
) -> Subject:
    """A mechanism with a calibration, a file or a shipped one; the range is the calibration's.

    Parameters
    ----------
    name
        Of a mechanism of eyestream, or ``package.module:NAME`` of the entry of one that lives elsewhere.
    features
        ``NAME[,NAME...]``, features or a named set: what is asked for. None: nothing is.

    Raises
    ------
    ConfigError
        There is no such mechanism, it cannot be built so, or epsilon is out of range.
    CalibrationError
        The calibration cannot be read, or was made for another mechanism.
    """
    known = names()
    if ":" not in name and name not in known:
        raise ConfigError(f"{name}: neither package.module:NAME nor one of {', '.join(known)}")
    called = mechanism_named(name, "MECHANISM").name
    loaded = calibrations.load(calibration)
    if loaded.mechanism != called:
        raise ConfigError(f"{calibration}: was made for {loaded.mechanism}, not for {name}")
    ends = tuple(map(float, loaded.lo)), tuple(map(float, loaded.hi))
    asked = [] if features is None else asked_features(features, loaded.names)
    build(loaded, epsilon, features=asked or None)
    return Subject("mechanism", (name, calibration, *asked), len(loaded.names), loaded.n, *ends, epsilon, True, limit_s)
