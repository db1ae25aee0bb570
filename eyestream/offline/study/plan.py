"""How much a study does."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "Plan"]


@dataclass(frozen=True)
class Plan:
    """Settings of a study.

    Attributes
    ----------
    epsilons : of a chunk (of a recording for FPA), all features together; the grid of the papers.
    wall : larger ones, to see at which epsilon attacks begin to recognise people.
    chunks : rows a chunk.
    attack_chunks : those that are attacked and classified.
    runs : noisy releases of each chunk for the utility.
    seeds : releases (and classifiers) for the classification.
    splits, split_batch : random splits of each re-identification attack, and how many make one cell.
    stride : rows between the windows that classifiers see, 10 as published for this rate.
    states : numbers of states of the Markov models.
    repeats : largest number of repeated releases that are averaged.
    per_minute : epsilon a minute at which mechanisms are compared on labels; the papers' smallest, middle and largest
        for chunks of 32 rows.
    """

    epsilons: tuple[float, ...]
    wall: tuple[float, ...]
    chunks: tuple[int, ...]
    attack_chunks: tuple[int, ...]
    runs: int
    seeds: int
    splits: int
    split_batch: int
    stride: int
    states: tuple[int, ...]
    repeats: int
    per_minute: tuple[float, ...]


FULL = Plan(
    epsilons=(0.48, 2.4, 4.8, 24.0, 48.0),
    wall=(480.0, 4800.0, 48_000.0),
    chunks=(32, 64, 128),
    attack_chunks=(32, 128),
    runs=100,
    seeds=5,
    splits=20,
    split_batch=10,
    stride=10,
    states=(2, 4, 8),
    repeats=1000,
    per_minute=(1.8, 18.0, 180.0),
)
"""What the report of a corpus is made with."""

QUICK = Plan(
    epsilons=(0.48, 48.0),
    wall=(48_000.0,),
    chunks=(32,),
    attack_chunks=(32,),
    runs=5,
    seeds=2,
    splits=3,
    split_batch=3,
    stride=10,
    states=(2, 4),
    repeats=30,
    per_minute=(18.0,),
)
"""To see that everything runs; its figures mean little."""
