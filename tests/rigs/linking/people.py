"""Simulated people who do tasks in many sessions: each part by which they might be found again, with a size of its own.

The level of session t is person + drift + task + person-by-task + session. Rows lie about it. All parts are
independent and normal, the same for every feature. A person's spread multiplies the session's part and the rows, each
feature by a factor of its own. Nobody is in it. It says how an attacker fares against a part of that size, never how
large the part is in real people.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError

__all__ = ["Parts", "SimulatedSession", "simulate_tasks", "task_means"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """Sizes of the parts: variances of a feature, the session's own being 1.

    Attributes
    ----------
    person : of the constant level.
    task : of the tasks' means, the same for everybody.
    by_task : of what a person does otherwise in one task than in the others.
    chunk : of a chunk's mean about its session's level.
    spread : standard deviation over people of the logarithm of a feature's spread.
    favourite : share of the sessions that are the person's favourite task; the others are drawn evenly.
    drift : standard deviation of the person's own move from one session to the next.
    """

    person: float = 0.5
    task: float = 1.0
    by_task: float = 0.0
    chunk: float = 1.0
    spread: float = 0.0
    favourite: float = 0.0
    drift: float = 0.0


@dataclass(frozen=True, eq=False)
class SimulatedSession:
    """Number of the task, and rows (m, F)."""

    task: int
    rows: Array


def task_means(parts: Parts, tasks: int, features: int) -> Array:
    """(K, F) means of the tasks, the same in every simulation of that size; they sum to 0 over tasks."""
    means = np.random.default_rng((tasks, features)).standard_normal((tasks, features))
    means -= means.mean(axis=0)
    scaled: Array = np.sqrt(parts.task) * means / np.sqrt((means**2).mean())
    return scaled


def simulate_tasks(  # each number is one of the model
    parts: Parts,
    people: int,
    sessions: int,
    seed: int,
    *,
    tasks: int = 6,
    features: int = 8,
    chunks: int = 8,
    n: int = 4,
) -> list[list[SimulatedSession]]:
    """`sessions` successive sessions of each of `people` people, of `chunks` chunks of `n` rows each.

    Raises
    ------
    ConfigError
        A number is out of range.
    """
    if min(people, sessions, features, chunks, n) < 1 or tasks < 2 or not 0 <= parts.favourite <= 1:
        raise ConfigError("a simulation of tasks needs people, sessions, features, chunks, rows and two tasks or more")
    means = task_means(parts, tasks, features)
    simulated = []
    for person in range(people):
        rng = np.random.default_rng((seed, person))
        level = np.sqrt(parts.person) * rng.standard_normal(features)
        own = np.sqrt(parts.by_task) * rng.standard_normal((tasks, features))
        factor = np.exp(parts.spread * rng.standard_normal(features))
        favourite = rng.integers(tasks)
        mine = []
        for _ in range(sessions):
            task = favourite if rng.random() < parts.favourite else rng.integers(tasks)
            at = level + means[task] + own[task] + factor * rng.standard_normal(features)
            moved = np.sqrt(parts.chunk) * np.repeat(rng.standard_normal((chunks, features)), n, axis=0)
            jitter = 0.1 * rng.standard_normal((chunks * n, features))
            mine.append(SimulatedSession(int(task), at + factor * (moved + jitter)))
            level = level + parts.drift * rng.standard_normal(features)
        simulated.append(mine)
    return simulated
