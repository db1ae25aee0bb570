"""What the printed noise of the exponential mechanism gives away, and what its repair does."""

import numpy as np

from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.sources import World
from eyestream_lab.study.steil import Scale, log_density_published, published, repaired

__all__ = ["cells", "measure"]

_DRAWS = 200_000
_LONGEST = 600
"""Vectors of the longest recording, as in the smaller of the published data sets."""


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell: the loss of one value does not depend on anybody's data."""
    epsilons = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    return [Cell("baseline", {"epsilon": epsilon, "seed": 1}) for epsilon in epsilons]


def measure(world: World, *, epsilon: float, seed: int) -> list[Record]:
    """Privacy loss of one value of a feature of range 1 against a neighbour one range away; `epsilon` of one feature.

    `claimed` is the share of one value in a claim of epsilon for a recording; the losses of a recording's values add.
    """
    scale = Scale(np.ones(1), _LONGEST, epsilon)
    rate = float(scale.rate[0])
    records: list[Record] = []
    for form, noise in (("published", published), ("repaired", repaired)):
        drawn = noise(scale, _DRAWS, np.random.default_rng(seed))[:, 0]
        drawn = np.concatenate([drawn, -drawn])  # the laws are symmetric; small mean losses need it
        if form == "published":
            loss = log_density_published(drawn, rate, _LONGEST) - log_density_published(drawn + 1, rate, _LONGEST)
        else:
            loss = rate * (np.abs(drawn + 1) - np.abs(drawn))
        record: Record = {"form": form, "longest": _LONGEST, "noise_sd": float(drawn.std())}
        record |= {"mean_loss": float(loss.mean()), "loss_99_9": float(np.quantile(loss, 0.999))}
        records.append(record | {"claimed": epsilon / _LONGEST, "recording_loss": float(loss.mean() * _LONGEST)})
    return records
