"""How much a study does."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Settings of a study.

    Attributes
    ----------
    epsilons : of a chunk (of a recording for FPA), all features together; the grid of the papers.
    wall : larger ones, to see at which epsilon knowledge of the corpus begins to recover chunks.
    chunks : rows a chunk.
    attack_chunks : those that are linked, classified and recovered.
    runs : noisy releases of each chunk for the utility.
    splits : random halves of the people where asked features are compared, which takes more of them.
    stride : rows between the windows that classifiers see, 10 as published for this rate.
    states : numbers of states of the Markov models.
    repeats : largest number of repeated releases that are averaged.
    per_minute : epsilon a minute at which mechanisms are compared on labels; the papers' smallest, middle and largest
        for chunks of 32 rows.
    minutes : epsilons a minute of the stream, at which utility stands against identity.
    verdict_chunk, verdict_minute : rows a chunk and epsilon a minute that the verdict is about.
    frontier_chunks : rows a chunk there.
    frontier_splits : random halves of the people there, each in both roles.
    """

    epsilons: tuple[float, ...]
    wall: tuple[float, ...]
    chunks: tuple[int, ...]
    attack_chunks: tuple[int, ...]
    runs: int
    splits: int
    stride: int
    states: tuple[int, ...]
    repeats: int
    per_minute: tuple[float, ...]
    minutes: tuple[float, ...]
    verdict_chunk: int
    verdict_minute: float
    frontier_chunks: tuple[int, ...]
    frontier_splits: int


FULL = Plan(
    epsilons=(0.48, 2.4, 4.8, 24.0, 48.0),
    wall=(480.0, 4800.0, 48_000.0),
    chunks=(32, 64, 128),
    attack_chunks=(32,),
    runs=20,
    splits=6,
    stride=10,
    states=(2, 4, 8),
    repeats=300,
    per_minute=(1.8, 18.0, 180.0),
    minutes=(9.0, 18.0, 36.0, 90.0),
    verdict_chunk=64,
    verdict_minute=18.0,
    frontier_chunks=(32, 64),
    frontier_splits=2,
)
"""Plan of the report of a corpus: about half an hour of one core for 30 people.
"""

QUICK = Plan(
    epsilons=(0.48, 48.0),
    wall=(48_000.0,),
    chunks=(32,),
    attack_chunks=(32,),
    runs=3,
    splits=1,
    stride=10,
    states=(2, 4),
    repeats=10,
    per_minute=(18.0,),
    minutes=(18.0,),
    verdict_chunk=32,
    verdict_minute=18.0,
    frontier_chunks=(32,),
    frontier_splits=1,
)
"""To see that everything runs; its figures mean little."""
