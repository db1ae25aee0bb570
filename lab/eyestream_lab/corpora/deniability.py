"""The test of plausible deniability (Bindschaedler, Shokri, Gunter, PVLDB 2017), as given by David-John et al. (2022).

A generator M draws y from a seed record d with probability p(d) = Pr[y = M(d)]. For gamma > 1 the class of a record is
the integer i with gamma^-(i + 1) < p(d) <= gamma^-i, that is floor(-ln p / ln gamma). y passes when at least k records,
the seed among them, are of the seed's class. Two probabilities of one class differ by a factor of less than gamma, so
at least k - 1 other records could have made y about as well.

Classes do more than a comparison of ratios would. All records of a class pass or fail together, so that y passed tells
nothing about which of them was the seed.

Everything is in logarithms: a product of 85 small probabilities is 0 in floating point, and zeros are all alike. A
record that cannot make y (log-probability minus infinity) has no class, and equals no other.

**What it does not say.** Drawing again until a draw passes changes the law of what is released, which the definition
does not describe. It bounds no inference: k records of a class may say the same about their owners.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eyestream.errors import ConfigError


def check_deniability(k: int, gamma: float, name: str) -> None:
    """Raise ConfigError unless k is 2 or more and gamma is finite and above 1: at 1 every class is empty."""
    if k < 2:
        raise ConfigError(f"{name}: k must be 2 or more, not {k}")
    if not (math.isfinite(gamma) and gamma > 1.0):
        raise ConfigError(f"{name}: gamma must be more than 1, not {gamma:g}: with 1 no two records are alike")


def classes(log_p: ArrayLike, gamma: float) -> NDArray[np.float64]:
    """Class of each log-probability (or log-density); NaN, which equals nothing, for minus infinity.

    Examples
    --------
    Probabilities of 0.6 and 0.9 are of one class for gamma = 2, one of 0.3 is of the next:

    >>> classes(np.log([0.6, 0.9, 0.3, 1e-300]), 2.0).tolist()
    [0.0, 0.0, 1.0, 996.0]
    """
    values = np.asarray(log_p, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found = np.floor(-values / math.log(gamma))
    return np.where(np.isfinite(values), found, np.nan)


def records_alike(own: float, others: ArrayLike, gamma: float) -> int:
    """Records of the seed's class, the seed included; 0 where the seed itself has none."""
    mine = classes(own, gamma)
    return int(np.isfinite(mine)) + int((classes(others, gamma) == mine).sum())


def people_alike(own: float, others: ArrayLike, person: NDArray[np.intp], gamma: float) -> int:
    """People with a record of the seed's class, the seed's owner included.

    Parameters
    ----------
    own
        Log-probability of the seed.
    others, person
        Of the records of other people, and whose each is: a person counts once, however many records are alike.
    """
    mine = classes(own, gamma)
    return int(np.isfinite(mine)) + len(np.unique(person[classes(others, gamma) == mine]))
