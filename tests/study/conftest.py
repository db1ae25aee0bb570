"""The study's tests need its extra; without it only `test_extra.py` is collected, which says so."""

from importlib.util import find_spec

import numpy as np
import pytest

MISSING = [name for name in ("sklearn", "matplotlib", "joblib") if find_spec(name) is None]

collect_ignore_glob = [f"test_{part}*.py" for part in ("study", "attack")] if MISSING else []


@pytest.fixture(scope="session")
def world():
    """Ten simulated people, calibrated for chunks of 32 rows."""
    from eyestream.lab.corpus.simulation import NAMES, load_statistics, simulate
    from eyestream.lab.study.population import Population
    from eyestream.lab.study.sources import prepare
    from eyestream.rim.files.recordings import Recording

    drawn = simulate(load_statistics(), 10, 300.0, 7)
    recordings = [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES, f"sim-{i}.npz", simulated=True)
        for i, rows in enumerate(drawn)
    ]
    return prepare(Population.of(recordings), (32,), lambda text: None)
