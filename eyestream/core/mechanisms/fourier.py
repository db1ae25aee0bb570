"""CFPA and DCFPA: noise on the first k one-sided Fourier coefficients of each feature's chunk, or of its differences.

CFPA is the chunked Fourier perturbation algorithm, DCFPA its difference- and chunk-based form (Bozkir, Guenlue, Fuhl,
Schaefer, Kasneci: Differential privacy for eye tracking with temporal correlations, PLOS ONE 16(8), 2021). What differs
from the paper, and why: the sensitivity is enforced by projection onto a calibrated ball instead of being read from the
data; noise goes to the real and the imaginary part of each kept coefficient; k minimises a closed form of public
figures instead of the error on the data. DCFPA's ball holds difference signals (first element kept), so its noise is
scaled to *their* sensitivity. The paper prints the way back from differences as a sum of two terms; only the cumulative
sum inverts them, and it is post-processing. Differences restart in every chunk.

Noise of scale lambda = sqrt(n) sqrt(k) Delta_2 / eps_f on Re F_0 and on Re and Im of F_1 .. F_{k-1} (Re F_{n/2} alone
at the end), Delta_2 = 2 r of the Euclidean ball. By Parseval sum w_i a_i^2 <= n Delta_2^2 with w = 1, 2, 2, ..., by
Cauchy-Schwarz sum |a_i| <= sqrt(k) sqrt(n) Delta_2, attained: exactly eps_f, and no smaller scale would do.

What is released is C[ irfft(kept coefficients of pi(y) + noise) + (I - P_k) b ]: y the signal (the chunk, or its
differences), pi the projection, C the way back to a chunk, b = 0 as published or the corpus mean (`fill_band`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.ball import L2Lattice, l2_factor, steps_for
from eyestream.core.additive.core import (
    SHOWN_BY,
    AdditiveCore,
    Output,
    PostProcessing,
    PrivateStep,
    ReleasedColumns,
    core_of,
    given,
    law_of,
)
from eyestream.core.additive.signals import (
    CHUNKS,
    DIFFERENCES,
    DifferenceFourierTransform,
    FourierTransform,
    Signals,
    Transform,
)
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.frame import Frame
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.entry import Beginning, Entry
from eyestream.core.noise import Noise
from eyestream.core.protection import additive_protection
from eyestream.core.spectrum import Way, coordinate_count, coordinate_weights, most_coefficients
from eyestream.errors import ConfigError

Array = NDArray[np.float64]


class FourierOptions(PostProcessing, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the Fourier mechanisms.

    Attributes
    ----------
    k
        Number of coefficients kept; by default the calibration's, else the one that minimises the expected error.
    fill_band
        Fill the coefficients that are not kept with those of the corpus mean instead of zero: post-processing.
    transform
        How coefficients are computed: "fftw", "basis", or "auto", whichever is faster. What is released differs by
        rounding alone, and the proof does not look at it.

    Raises
    ------
    ConfigError
        when `shrink` or `smooth`, which fill the band, come with `fill_band = false`, or there is no such transform.
    """

    k: int | None = None
    fill_band: bool | None = None
    transform: Way | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.transform not in (None, *get_args(Way)):
            raise ConfigError(f"transform must be one of {', '.join(get_args(Way))}, not {self.transform!r}")
        if (self.shrink or self.smooth) and self.fill_band is False:
            raise ConfigError("shrink and smooth fill the band as well: fill_band = false cannot be given beside them")

    @property
    def fills(self) -> bool:
        """Whether the band is filled although nothing is shrunk by the plain gain."""
        return bool(self.fill_band or self.smooth)


@dataclass(frozen=True)
class Space:
    """The signals whose coefficients are kept.

    Attributes
    ----------
    signals : and their balls.
    transform : for a centre (A, n), k and the way to compute it.
    """

    signals: Signals
    transform: Callable[[Array, int, Way], Transform]


SPACE = Space(CHUNKS, FourierTransform)
"""The signal is the chunk itself."""


def fourier_core(frame: Frame, space: Space, options: FourierOptions) -> AdditiveCore:
    """The core of a mechanism that keeps Fourier coefficients.

    Raises
    ------
    ConfigError
        when k or epsilon cannot be used.
    CalibrationError
        when the calibration holds figures of another kind, or has no corpus where one is needed.
    """
    columns, noise_factors = ReleasedColumns.of(frame), space.signals.noise(frame.n)
    unit = 2 * columns.radius * len(frame.active) / frame.epsilon
    k = options.k if options.k is not None else frame.calibration.k
    kept = _given(k, frame) if k is not None else _best(columns, noise_factors * unit[:, None] ** 2, options)
    noise_power = noise_factors[kept - 1]
    try:
        private = _private(frame, columns, space, kept, noise_power, way=options.transform or "auto")
    except OverflowError as error:
        raise ConfigError(f"epsilon {frame.epsilon:g} is outside what the arithmetic can hold: {error}") from None
    released = (private.steps > 0).astype(np.float64)
    base = _base(columns, space, int(kept.max()), released, fills=options.fills or options.shrinks)
    if not options.shrinks:
        return core_of(frame, private, Output(base, np.ones((len(base), 1))), options)
    gain = columns.gain(noise_power * unit**2, kept)
    return core_of(frame, private, Output(columns.mean + gain * (base - columns.mean), gain), options)


def _given(k: int, frame: Frame) -> NDArray[np.intp]:
    """(A,) the same number of coefficients for each feature."""
    most = most_coefficients(frame.n)
    if type(k) is not int or not 1 <= k <= most:
        raise ConfigError(f"k must lie between 1 and n/2 + 1 = {most}, not {k}")
    return np.full(len(frame.active), k, dtype=np.intp)


def _best(columns: ReleasedColumns, noise: Array, options: FourierOptions) -> NDArray[np.intp]:
    """(A,) number of coefficients of least expected error; `noise` (A, K) is N(k) (2 r / eps_f)^2."""
    overlap, energy = columns.overlap, columns.energy
    if options.shrinks:
        error = columns.spread[:, None] - overlap**2 / (energy + noise)
    elif options.fills:
        error = columns.spread[:, None] - 2 * overlap + energy + noise
    else:
        error = columns.truncation + noise
    best: NDArray[np.intp] = np.argmin(error, axis=1) + 1
    return best


def _private(
    frame: Frame, columns: ReleasedColumns, space: Space, kept: NDArray[np.intp], noise_power: Array, *, way: Way
) -> PrivateStep:
    """The private step for `kept` (A,) coefficients; `noise_power` (A,) is N(k)."""
    n, radius, most = frame.n, columns.radius, int(kept.max())
    unit = 2 * radius * len(frame.active) / frame.epsilon
    weights = np.zeros((len(kept), coordinate_count(n, most)), dtype=np.int64)
    for row, own in enumerate(kept):
        weights[row, : coordinate_count(n, int(own))] = coordinate_weights(n, int(own))
    steps = steps_for(np.sqrt(n * kept) * unit, np.sqrt(n * weights.sum(axis=1)) * radius)
    lattice = L2Lattice(np.sqrt(n) * radius, steps, weights)
    law = law_of(frame, lattice.l1_diameter, weights.shape[1], lattice.largest)
    return PrivateStep(
        transform=lambda: space.transform(columns.centre, most, way),
        factor=l2_factor,
        radius=radius,
        lattice=lattice,
        law=law,
        steps=(weights > 0) * steps[:, None],
        noise_sd=np.sqrt(noise_power / (n * n * kept)) * (law.sd * steps) / np.sqrt(2),
        k=tuple(map(int, kept)),
    )


def _base(columns: ReleasedColumns, space: Space, most: int, released: Array, *, fills: bool) -> Array:
    """(A, n) what the centre contributes by its `released` (A, M) coordinates, and the band that is filled."""
    centre, mean = columns.centre, columns.mean
    transform = space.transform(np.zeros_like(centre), most, "auto")
    base = transform.chunk(released * transform.coordinates(centre)).copy()
    if fills:  # b is the corpus mean: C (I - P) b
        base += mean - transform.chunk(released * transform.coordinates(space.signals.there(mean)))
    return base


class _Fourier(Mechanism):
    """Noise on the first k one-sided Fourier coefficients of `space`, zero the rest.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism.
    k, fill_band, shrink, clip, smooth, transform
        See `FourierOptions`.

    Raises
    ------
    ConfigError
        when epsilon or an option cannot be used.
    CalibrationError
        when the calibration was made for another mechanism.
    """

    space: ClassVar[Space]

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        k: int | None = None,
        noise: Noise | None = None,
        shrink: bool | None = None,
        clip: bool | None = None,
        smooth: bool | None = None,
        fill_band: bool | None = None,
        transform: Way | None = None,
    ) -> None:
        options = FourierOptions(k=k, shrink=shrink, clip=clip, smooth=smooth, fill_band=fill_band, transform=transform)
        frame = Frame.of(self.name, calibration, epsilon)
        super().__init__(frame, fourier_core(frame, self.space, options), noise, given(options))


class CFPA(_Fourier):
    """Noise on the first k one-sided Fourier coefficients of the chunk, zero the rest."""

    name = "cfpa"
    space = SPACE
    protection = additive_protection(
        "noise on the real and imaginary parts of the first k Fourier coefficients of every released feature"
    )


class DCFPA(_Fourier):
    """CFPA of the chunk's difference signal, then the cumulative sum."""

    name = "dcfpa"
    space = Space(DIFFERENCES, DifferenceFourierTransform)
    protection = additive_protection(
        "noise on the real and imaginary parts of the first k Fourier coefficients of the difference signal of every "
        "released feature"
    )


def _entry(mechanism: type[_Fourier], signals: str) -> Entry:
    beginning = Beginning(f"everyday-{mechanism.name}-64", switched_on=("clip", "smooth"), session_bound=True)
    return Entry(
        mechanism=mechanism,
        options=FourierOptions,
        tables=PerFeatureTables,
        beginning=beginning,
        shown_by=SHOWN_BY,
        correlation=f"eyestream.claims.correlation.additive:{signals}",
    )


CFPA_ENTRY, DCFPA_ENTRY = _entry(CFPA, "CHUNKS"), _entry(DCFPA, "DIFFERENCES")
