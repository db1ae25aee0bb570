"""The dense network on samples, where its extra is installed; it learns for a minute or so."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream_lab.corpora.kinds import on_grid
from eyestream_lab.releases.gaze import GazePeople
from tests.lab.releases.test_gaze import RATE_HZ, TASKS, moved

pytestmark = [pytest.mark.slow, pytest.mark.needs("jax")]


def people(alike: bool) -> dict[str, dict[str, object]]:
    """Eight who differ in rhythm and in where the middle of their gaze is, or who do not."""
    return {
        f"P{i}": {
            task: on_grid(moved(10 * i + at, 0.1, 12 if alike else 8 + 4 * i, 0.0 if alike else 2.0 * i), RATE_HZ)
            for at, task in enumerate(TASKS)
        }
        for i in range(8)
    }


def named(known: GazePeople, unknown: GazePeople) -> NDArray[np.float64]:
    """Share of rightly named of eight, after short learning."""
    from eyestream_lab.releases.deep import recognised_by_samples
    from eyestream_lab.study.people.deep import LearningSettings

    class Short(LearningSettings):
        steps = 40

    return recognised_by_samples(known, [unknown], [(["A"], ["B"])], Short)[0]


def test_people_are_recognised_by_their_samples_and_not_where_they_do_not_differ() -> None:
    differing, alike = people(alike=False), people(alike=True)
    assert named(differing, differing).mean() > 0.6
    assert named(alike, alike).mean() < 0.5
    assert named(alike, differing).mean() < 0.5
