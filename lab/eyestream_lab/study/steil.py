"""The exponential mechanism of Steil et al. (ETRA 2019) as David-John et al. (ETRA 2022) print it, and its repair.

As printed, noise is r = +- ln(y) / (lambda t_max) with y exponential of scale 1 / lambda, lambda = epsilon / (2 t_max
delta). The logarithm of an exponential draw has a doubly exponential flank, so that a shift by the range delta changes
the density by more than any factor that epsilon would allow: **no guarantee**. Repaired, the exponential mechanism with
utility -|x - r| draws Laplace noise of scale 2 t_max delta / epsilon. In exact arithmetic that is epsilon / 2 for each
feature and person; here it is drawn in floating point, with a seed, as a baseline: no guarantee either.

Epsilon is that of one feature of one person's recording in the source; the study calls it by the *total* over the
features, as everywhere.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scale:
    """The figure that the noise is scaled to.

    Attributes
    ----------
    delta : (F,) range of each feature; 0 for a constant, which gets no noise.
    longest : t_max, vectors of the longest recording.
    epsilon : total over the features that are not constant.
    """

    delta: Array
    longest: int
    epsilon: float

    @property
    def rate(self) -> Array:
        """Lambda (F,), per unit of the feature; infinite for a constant."""
        share = self.epsilon / max(int(np.count_nonzero(self.delta)), 1)
        with np.errstate(divide="ignore"):
            rate: Array = share / (2 * self.longest * self.delta)
        return rate


def published(scale: Scale, rows: int, rng: np.random.Generator) -> Array:
    """Noise (rows, F) as printed. No guarantee."""
    free = scale.delta > 0
    rate = scale.rate[free]
    noise = np.zeros((rows, len(scale.delta)))
    drawn = rng.exponential(1 / rate, (rows, len(rate)))
    noise[:, free] = rng.choice((-1.0, 1.0), drawn.shape) * np.log(drawn) / (rate * scale.longest)
    return noise


def repaired(scale: Scale, rows: int, rng: np.random.Generator) -> Array:
    """Noise (rows, F) of the exponential mechanism with utility -|x - r|: Laplace of scale 1 / lambda."""
    free = scale.delta > 0
    noise = np.zeros((rows, len(scale.delta)))
    noise[:, free] = rng.laplace(0.0, 1 / scale.rate[free], (rows, np.count_nonzero(free)))
    return noise
