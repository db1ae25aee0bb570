"""Linkage: right links, what is learned through wrong ones, and who is hidden."""

from dataclasses import replace

import numpy as np
import pytest

from eyestream_lab.study import linkage
from eyestream_lab.study.pages import linkage_page, linkage_verdict
from eyestream_lab.study.plan import QUICK
from eyestream_lab.study.sources import World


@pytest.fixture(scope="module")
def labelled(world):
    """The people of `world`, half of them men; `document` says nothing of a person."""
    population = world.population
    gender = tuple("fm"[i // 2 % 2] for i in range(len(population.people)))
    return World(replace(population, labels={"gender": gender}), world.calibrations)


def test_links_of_a_hand_made_score():
    scores = np.array([[3.0, 2.0, 1.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    groups = [("f",), ("f",), ("m",)]
    gaze = linkage.linked(scores, groups, "gaze")
    assert gaze["right"] == pytest.approx((1 + 0 + 1 / 3) / 3)
    assert gaze["learned"] == pytest.approx((1 + 1 + 1 / 3) / 3)
    assert gaze["chance_learned"] == pytest.approx(5 / 9)
    both = linkage.linked(scores, groups, "both")
    assert both["right"] == pytest.approx((1 + 0 + 1) / 3)
    alone = linkage.linked(scores, groups, "demographics")
    assert alone["right"] == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert both["learned"] == alone["learned"] == 1.0


@pytest.mark.long
def test_raw_gaze_links_people_and_noise_hides_them(labelled, world):
    assert linkage.cells(QUICK, world) == []
    assert linkage.demographics(labelled.population) == ("gender",)
    told = {"n": 32, "stride": 10, "seed": 0}
    raw = linkage.measure(labelled, source="raw", mechanism="raw", per_minute=0.0, **told)
    private = linkage.measure(labelled, source="CFPA", mechanism="cfpa", per_minute=0.5, **told)
    assert max(r["right"] for r in raw if r["uses"] == "gaze") >= 0.5  # of halves of 86 s; chance is 0.2
    assert np.mean([r["right"] for r in private if r["uses"] == "gaze"]) < 0.45  # chance is 0.2
    assert {r["known"] for r in private} == {"none", *linkage.KNOWN}
    text = linkage_page(
        [
            r | {"source": s, "n": 32, "per_minute": e}
            for s, e, own in (("raw", 0.0, raw), ("CFPA", 0.5, private))
            for r in own
        ]
    )
    assert "| raw | 32 |  | raw |" in text
    assert "| CFPA | 32 | 0.5 | released anew |" in text


def test_what_is_a_demographic_is_the_same_in_all_recordings_of_a_person(labelled):
    population = replace(labelled.population, people=("a",) * 5 + ("b",) * 5)
    assert linkage.demographics(population) == ()


def test_verdict_in_words():
    alone = {"right": 0.3}
    gaze = {
        "right": 0.9,
        "right_interval": 0.1,
        "chance": 0.1,
        "learned": 0.9,
        "learned_interval": 0.1,
        "chance_learned": 0.5,
    }
    assert linkage_verdict(alone, gaze, gaze, gaze) == "gaze links, adds to demographics, tells demographics"
    weak = gaze | {"right": 0.15, "learned": 0.55}
    assert (
        linkage_verdict(alone, weak, weak, weak)
        == "gaze alone at chance, adds nothing to demographics, tells no demographics"
    )
