"""A small corpus for the benchmark: people who differ in where they look, how far they move, and how often."""

from pathlib import Path

import numpy as np


def people(folder: Path, count: int = 6, seconds: float = 40.0, rate_hz: float = 30.0) -> Path:
    """A folder with two sessions of each."""
    folder.mkdir(parents=True)
    lines = ["participant_id\trecording\ttask"]
    for person in range(count):
        for session in ("one", "two"):
            rng = np.random.default_rng([person, len(session), ord(session[0])])
            n = int(seconds * rate_hz)
            jumps = np.cumsum(rng.random(n) < 0.03 + 0.01 * person)
            spots = rng.normal((2 * person, -person), 2 + person, (int(jumps[-1]) + 1, 2))
            xy = spots[jumps] + rng.normal(0, 0.05 * (1 + person), (n, 2))
            table = [f"{i / rate_hz:.6f},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(xy)]
            table[7] = f"{7 / rate_hz:.6f},,"
            name = f"P{person}_{session}.csv"
            (folder / name).write_text("\n".join(["t_s,x_deg,y_deg", *table]) + "\n")
            lines.append(f"P{person}\t{name}\t{session}")
    (folder / "participants.tsv").write_text("\n".join(lines) + "\n")
    return folder
