"""What the study's tests share: a small population."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def world():
    """Ten simulated people, calibrated for chunks of 32 rows."""
    from eyestream.rim.files.recordings import Recording
    from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
    from eyestream_lab.study.population import Population
    from eyestream_lab.study.sources import prepare

    drawn = simulate(load_statistics(), 10, 300.0, 7)
    recordings = [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES, f"sim-{i}.npz", simulated=True)
        for i, rows in enumerate(drawn)
    ]
    return prepare(Population.of(recordings), (32,), lambda text: None)
