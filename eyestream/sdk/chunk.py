"""A released chunk as an application holds it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError, meant
from eyestream.streams import GAZE

if TYPE_CHECKING:
    import pandas
    import xarray

_NAMED, _LONGEST = 4, 40
"""Features that a refusal names at most, and characters of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """One released chunk of one device.

    Attributes
    ----------
    session
        The sidecar's random number of the session.
    index
        Number of the chunk in its session, from 0.
    names
        (F,) feature names.
    t
        (n,) seconds from the session's start, float64.
    values
        (F, n) released values, float32.
    epsilon, delta
        What this chunk cost, all features together.
    guarantee
        What is guaranteed, in words.
    at
        Seconds of the tracker's clock at the first column; None where the tracker does not tell its time.
    claim
        SHA-256 of the words under which it was released; None over MQTT 3.1.1. Another one than that of `guarantee`
        means that the sidecar was given other ceilings since.
    units
        (F,) units of the features; ``1`` for a number without a unit.
    noise_sd
        (F,) the error to expect, in the unit of each feature: one standard deviation.
    when
        (n,) moments of the columns, in seconds of the application's clock (`clock` of `subscribe`).
    when_error_s
        How far `when` may be off, beyond the shortest delay on the way; see `eyestream.sdk.chunk_clock`.
    received
        When it arrived, in seconds of the same clock.
    mechanism
        What released it, by name.
    reach_s
        Seconds of gaze before its first column that it may depend on, as its guarantee says; None where that does not.
    """

    session: int
    index: int
    names: tuple[str, ...]
    t: NDArray[np.float64]
    values: NDArray[np.float32]
    epsilon: float
    delta: float
    guarantee: str
    at: float | None = None
    claim: str | None = None
    units: tuple[str, ...] = ()
    noise_sd: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    when: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    when_error_s: float = 0.0
    received: float = 0.0
    mechanism: str = ""
    reach_s: float | None = None

    @property
    def view(self) -> Any:
        """Meaning of the values, as the entry of the mechanism says (`Entry.view`); None where names and units say it.

        Raises
        ------
        CalibrationError
            The mechanism is not known here: one of your own is imported first.
        """
        from eyestream.core.mechanisms.entry import referred  # noqa: PLC0415  for who asks
        from eyestream.core.mechanisms.registry import entry_of  # noqa: PLC0415

        own = entry_of(self.mechanism).view
        return None if own is None else referred(own)(self)

    @property
    def times(self) -> NDArray[np.float64]:
        """(n,) seconds of the tracker's clock; from the session's start where the tracker does not tell its time.

        Of gaze slot by slot: the ends of the slots.
        """
        return self.t if self.at is None else self.at + (self.t - self.t[0])

    @property
    def gaze(self) -> NDArray[np.float32]:
        """(n, 2) where the eye looked in degrees, to the right and up; raises ConfigError for a stream of others."""
        return np.stack([self.feature(name) for name in GAZE], axis=1)

    @property
    def gaze_error(self) -> NDArray[np.float32]:
        """(n,) degrees within which about half of the gaze lies; at 3.3 a slot 0.44 to 0.64 of other people's gaze."""
        return self.feature("gaze_error")

    def feature(self, name: str) -> NDArray[np.float32]:
        """(n,) released values of a feature; raises ConfigError where the stream has none of this name."""
        if name not in self.names:
            more = " and so on" if len(self.names) > _NAMED else ""
            known = [repr(one[:_LONGEST])[1:-1] for one in self.names]  # whoever described the stream chose them
            has = f"{', '.join(known[:_NAMED])}{more}"
            raise ConfigError(f"the stream has no {name}; it has {has}{meant(name, known)}")
        row: NDArray[np.float32] = self.values[self.names.index(name)]
        return row

    @property
    def latency_s(self) -> float:
        """Seconds from its last row to its arrival, beyond the shortest that a chunk of the session took.

        So old was its newest gaze. How old the oldest was says `oldest_gaze_s`.
        """
        return self.received - float(self.when[-1])

    @property
    def age_s(self) -> float:
        """Seconds from its first column to its arrival: the age of the oldest row in it.

        A row describes gaze from before its moment: see `oldest_gaze_s`.
        """
        return self.received - float(self.when[0])

    @property
    def oldest_gaze_s(self) -> float | None:
        """Most seconds from the oldest gaze that its rows describe to its arrival; None where `reach_s` is not known.

        Gaze of a baseline, which is subtracted from all chunks of its session, is older.
        """
        return None if self.reach_s is None else self.age_s + self.reach_s

    def to_pandas(self) -> "pandas.DataFrame":
        """A table with a row for each moment (`t`) and a column for each feature.

        Raises
        ------
        ConfigError
            pandas is not installed.
        """
        try:
            import pandas  # noqa: PLC0415  not ours to ask for
        except ImportError:
            raise ConfigError("pandas is not installed: pip install pandas") from None
        return pandas.DataFrame(self.values.T, index=pandas.Index(self.t, name="t"), columns=list(self.names))

    def to_xarray(self) -> "xarray.DataArray":
        """An array with the dimensions `feature` and `t`, the units as a coordinate, and the price in `attrs`.

        Raises
        ------
        ConfigError
            xarray is not installed.
        """
        try:
            import xarray  # noqa: PLC0415  not ours to ask for
        except ImportError:
            raise ConfigError("xarray is not installed: pip install xarray") from None
        coords = {"feature": list(self.names), "t": self.t, "unit": ("feature", list(self.units))}
        attrs = {"epsilon": self.epsilon, "delta": self.delta, "session": self.session, "chunk": self.index}
        return xarray.DataArray(self.values, coords=coords, dims=("feature", "t"), attrs=attrs, name="private")
