"""The deep attacker, where its extra is installed; minutes of learning, so it is not in the ordinary run."""

import numpy as np
import pytest

from eyestream_lab.study.people.galleries import Gallery

pytestmark = [pytest.mark.slow, pytest.mark.needs("jax")]


def gallery(distance, seed):
    """Eight people of five features, who differ in level by less than what one row varies, or do not."""
    rng = np.random.default_rng(seed)
    level = 0.7 * np.random.default_rng(1).normal(size=(8, 5)) * distance

    def session(person):
        t = np.arange(320)[:, None] / 15.0 + rng.uniform(size=5)
        rows = level[person] + np.sin(2 * np.pi * t) + 0.3 * rng.normal(size=(320, 5))
        return rows.reshape(10, 32, 5).transpose(0, 2, 1).astype(np.float32)

    people = range(8)
    return Gallery(
        mechanism=None,
        people=tuple(map(str, people)),
        known=[session(i) for i in people],
        unknown=[session(i) for i in people],
        minutes=[],
        background=[],
        active=np.arange(5),
        rate_hz=2.0,
    )


def test_it_finds_people_who_differ_and_guesses_when_they_do_not():
    from eyestream_lab.study.people.deep import LearningSettings, deep_scores
    from eyestream_lab.study.people.inference import trial

    class Short(LearningSettings):
        steps = 60

    areas = []
    for distance in (True, False):
        material = gallery(distance, 3)
        scores = deep_scores(material, 0, Short)
        areas.append(float(np.mean(trial([(material.people, scores)], 0).areas)))
    assert areas[0] > 0.9
    assert 0.2 < areas[1] < 0.8


def test_it_has_about_a_hundred_thousand_weights():
    from eyestream_lab.study.people.deep import _start

    weights = _start(np.random.default_rng(0), 48, 1)
    assert 0.8e5 < sum(np.size(w) for name, w in weights.items() if name != "classes") < 1.5e5
