"""Expected error of a release in closed form, from public figures alone.

For one feature of a chunk of n rows, ball radius r and the feature's share eps_f of epsilon, the expected sum of
squared errors of the released chunk is

    E(k) = T(k) + N(k) (2 r / eps_f)^2

with T(k) the corpus mean of what truncation and projection lose, and N(k) the noise: the squared norm of the synthesis
matrix times the variance 2 lambda^2 of a coordinate at lambda = sqrt(n k) (2 r / eps_f). Toward the corpus mean one can
shrink by a gain g: with S the mean squared distance of the corpus' chunks to their mean m, u the kept part of a chunk
minus that of m, A(k) the corpus mean of <x - m, u> and B(k) that of |u|^2,

    E(k, g) = S - 2 g A + g^2 (B + N (2 r / eps_f)^2),   least at g = A / (B + N (2 r / eps_f)^2):   S - g A.

Derived for this project; checked against the trace of the synthesis matrix and against simulation in the tests.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.portable import quarter_sine
from eyestream.core.spectrum import most_coefficients

__all__ = ["cfpa_noise", "dcfpa_noise", "lpa_noise"]


def lpa_noise(n: int) -> NDArray[np.float64]:
    """N of LPA, (1,): 2 n, with r the radius of the L1 ball."""
    return np.array([2.0 * n])


def cfpa_noise(n: int) -> NDArray[np.float64]:
    """N(k) of CFPA for k = 1 .. n // 2 + 1: 2 k (4 k - 3), and (n + 2)(2 n - 2) at the Nyquist coefficient."""
    k = np.arange(1.0, most_coefficients(n) + 1)
    noise = 2 * k * (4 * k - 3)
    if n % 2 == 0:
        noise[-1] = (n + 2.0) * (2 * n - 2)
    return noise


def dcfpa_noise(n: int) -> NDArray[np.float64]:
    """N(k) of DCFPA for k = 1 .. n // 2 + 1, n even.

    The cumulative sums of the columns of the synthesis matrix have the squared norms (n + 1)(2 n + 1) / (6 n) for the
    constant, 2 / (n sin^2(pi j / n)) for the cosine and sine of frequency j together, and 1 / (2 n) for the Nyquist
    one.
    """
    if n % 2:
        raise ValueError("DCFPA works on chunks of even length")
    k = np.arange(1.0, most_coefficients(n) + 1)
    j = np.arange(1, n // 2)
    sine = quarter_sine(j / n)
    waves = np.concatenate([[0.0], np.cumsum(1.0 / (sine * sine))])
    waves = np.append(waves, waves[-1])  # the Nyquist coefficient adds 1/2, not a pair of waves
    noise = 2 * k * ((n + 1) * (2 * n + 1) / 6 + 2 * waves)
    noise[-1] += k[-1]
    return noise
