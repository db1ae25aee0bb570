"""Composition at a delta: what pure losses add up to, where a small probability of a larger loss is accepted."""

import math


def composed_epsilon(epsilon: float, count: int, delta: float) -> float:
    """Epsilon at `delta` of `count` adaptive releases, each of pure `epsilon`; their sum at most.

    The worst of such releases is a bit that is right with probability 1 / (1 + e^-epsilon), so this is the hockey-stick
    divergence of those, solved for epsilon. No smaller bound holds for every mechanism (Kairouz, Oh and Viswanath,
    "The composition theorem for differential privacy", ICML 2015, theorem 3.3).
    """
    wrong, right = -epsilon - math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(-epsilon))
    bits = [(k, math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)) for k in range(count + 1)]
    losses = [((count - 2 * k) * epsilon, ways + k * wrong + (count - k) * right) for k, ways in bits]
    low, high = 0.0, count * epsilon
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        beyond = sum(-math.expm1(middle - loss) * math.exp(log) for loss, log in losses if loss > middle)
        low, high = (middle, high) if beyond > delta else (low, middle)
    return high
