"""Cost of a release in utility: the published measure, and two that behave."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.measures import explained_variance, nmse, nmse_summary, utility
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.sources import BASELINES, SOURCES, World

Array = NDArray[np.float64]

PUBLISHED_FEATURES = 48
"""Features that the papers compose: their epsilon of a feature times this is the total."""


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each source, chunk length and epsilon."""
    return [
        Cell("utility", {"source": s.label, "mechanism": s.mechanism, "n": n, "epsilon": epsilon, "runs": plan.runs})
        for s in (*SOURCES, *BASELINES)
        for n in (plan.chunks if s.chunked else plan.chunks[:1])
        for epsilon in plan.epsilons
    ]


def measure(world: World, *, source: str, mechanism: str, n: int, epsilon: float, runs: int) -> list[Record]:
    """Release the recordings of the people who did not calibrate `runs` times each.

    NMSE is taken of each chunk, feature and recording (of the whole signal where nothing is chunked), over the runs. A
    signal whose own mean is nothing but rounding, below a millionth of the feature's range, has no NMSE. Values that
    the recordings lack are in no figure (but in the NMSE of a whole recording, which needs a signal without holes):
    what was put in their place is easy to tell. `coverage` is the share that is there.
    """
    release = world.releases(source, n, epsilon, seed=1)
    active, corpus = world.active, world.corpus_rows()
    chunked = next(s for s in (*SOURCES, *BASELINES) if s.label == source).chunked
    least = 1e-6 * np.ptp(corpus[:, active], axis=0)[:, None]
    centre, variance = corpus[:, active].mean(axis=0), corpus[:, active].var(axis=0)
    squares, spread, count, rows_seen = np.zeros(len(active)), np.zeros(len(active)), np.zeros(len(active)), 0
    values = []
    for recording in world.population.released:
        rows = world.rows(recording, n)[:, active]
        there = np.isfinite(world.population.as_recorded(recording)[: len(rows), active])
        signals = _signals(rows, n if chunked else len(rows))
        nothing = np.abs(signals.mean(axis=-1, keepdims=True)) < least
        whole = _signals(there, n if chunked else len(rows)).all(axis=-1, keepdims=True)
        signals = np.where(nothing | (chunked & ~whole), np.nan, signals)
        own = []
        for _ in range(runs):
            released = release(recording)[:, active]
            squares += (there * (released - rows) ** 2).sum(axis=0) / runs
            own.append(nmse(signals, _signals(released, n if chunked else len(rows))).ravel())
        values.append(np.array(own))
        spread += (there * (rows - centre) ** 2).sum(axis=0)
        count += there.sum(axis=0)
        rows_seen += len(rows)
    told = count > 0
    squares, spread, count, variance = squares[told], spread[told], count[told], variance[told]
    summary = nmse_summary(np.concatenate(values, axis=1))
    ratio = squares / count / variance
    return [
        summary
        | {
            "utility": utility(summary["nmse"]),
            "utility_median": utility(summary["nmse_median"]),
            "error_over_variance": float(ratio.mean()),
            "error_over_variance_median": float(np.median(ratio)),
            "coverage": float(count.sum() / (rows_seen * len(active))),
        }
        | explained_variance(squares / count, spread / count)
    ]


def _signals(rows: Array, n: int) -> Array:
    """(C, F, n) whole chunks of rows (m, F)."""
    return rows.reshape(-1, n, rows.shape[1]).transpose(0, 2, 1)


def published_values(path: Path) -> list[Record]:
    """NMSE values of a paper: CSV `dataset,mechanism,chunk,epsilon,NMSE_...`, epsilon of one feature.

    Raises
    ------
    ConfigError
        The file is not such a table.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            columns = [name for name in reader.fieldnames or () if name.startswith("NMSE_")]
            if not columns:
                raise ValueError("expected a column of values")
            return [
                {
                    "dataset": row["dataset"],
                    "source": row["mechanism"],
                    "n": int(row["chunk"]) if row["chunk"] else None,
                    "epsilon": round(float(row["epsilon"]) * PUBLISHED_FEATURES, 6),
                    "recording": name.removeprefix("NMSE_"),
                    "nmse": float(row[name]),
                }
                for row in reader
                for name in columns
            ]
    except (OSError, ValueError, KeyError, AttributeError, csv.Error) as error:
        raise ConfigError(f"{path}: is not a table of published values ({type(error).__name__})") from None
