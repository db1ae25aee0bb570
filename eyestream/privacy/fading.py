"""A lifetime that fades: epsilon of a chunk halves, level by level, as the lifetime's ceiling nears.

Let L be the ceiling of the lifetime, and s what the device has been charged since its ledger began, over all streams.
A chunk that costs e on level 0 costs e / 2^j on level j, and level j may be charged up to the bound

    B_j = L - L / 2^(j+1), rounded up;   of the last level B = L.

A chunk is on the first level j with s + e / 2^j <= B_j; on the last one when there is none. So

(a) no sum of charges passes L, whatever streams ask in whatever order, as the ledger decides about one request at a
    time and knows s exactly; on the last level the ceiling of the lifetime itself stands guard;
(b) a stream never goes back to an earlier level while L stands: s does not fall, and what did not fit does not fit
    later. With a lower L all bounds fall, and levels are only reached sooner;
(c) level j holds (B_j - B_(j-1)) / (e / 2^j) = L / (2 e) chunks of a stream that spends alone, the last one twice as
    many: each level lasts as long as the one before, and tells half as much.

The level is a function of charges in the ledger alone, never of data, nor of the clock. What is released on a level has
the loss of that level; by adaptive composition the losses add up as charged. No code word is kept and sent again: that
would be no differential privacy for a signal that changes, and the words would name the wearer.
"""

from collections.abc import Sequence

from eyestream.privacy.charge import Charge, spendable

__all__ = ["LEVELS", "bounds", "faded", "level_of", "levels_of"]

LEVELS = 8
"""Levels of a lifetime that fades: on the last one a chunk costs a 128th."""


def faded(epsilon: float, level: int) -> float:
    """Epsilon of a chunk on `level`, when it is `epsilon`, a mechanism's own, on level 0.

    That one stays as it is: `spendable` of what is spendable already may be a unit less, and less than a release costs.
    """
    return epsilon if level == 0 else spendable(epsilon / 2**level)


def levels_of(epsilon: float, delta: float, levels: int) -> tuple[Charge, ...]:
    """What a chunk costs on each level; delta, where there is one, is the same on all."""
    return tuple(Charge.of(faded(epsilon, level), delta) for level in range(levels))


def bounds(lifetime: int, levels: int) -> tuple[int, ...]:
    """Up to what sum each level may be charged, in the units of `lifetime`."""
    return (*(lifetime - (lifetime >> (level + 1)) for level in range(levels - 1)), lifetime)


def level_of(spent: int, charges: Sequence[Charge], limits: Sequence[int]) -> int:
    """On which level a chunk is, after `spent`: the first that has room for it, else the last.

    Parameters
    ----------
    spent
        What was charged before, in fixed point.
    charges
        What the chunk costs on each level; where there are fewer than levels, the last of them stays.
    limits
        Up to what sum each level may be charged.
    """
    levels = min(len(charges), len(limits))
    return next((j for j in range(levels - 1) if spent + charges[j].epsilon <= limits[j]), levels - 1)
