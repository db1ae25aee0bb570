"""Figures of recognition against a count by hand, and a control that must see and must not."""

from pathlib import Path

import numpy as np
import pytest

from eyestream.gaze.features import NAMES
from eyestream.rim.files.gaze import GazeRecording, load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.benchmark.attackers import ATTACKERS, RecognitionTrial, attack_all
from eyestream_lab.benchmark.figures import area_of, figures_of, rank1_of, seen_from
from eyestream_lab.benchmark.seen import cut_alike, halves_of


def scores_of(people: int, lift: float, seed: int, trials: int = 2) -> np.ndarray:
    """Noise, and `lift` on scores of the same person."""
    noise = np.random.default_rng(seed).normal(size=(trials, people, people))
    return noise + lift * np.eye(people)


def test_area_is_the_share_of_pairs_that_are_ordered_rightly_and_ties_count_half() -> None:
    scores = np.round(scores_of(12, 1.0, 1), 1)
    own = np.diagonal(scores, axis1=1, axis2=2).ravel()
    other = scores[:, ~np.eye(12, dtype=bool)].ravel()
    by_hand = (own[:, None] > other).mean() + 0.5 * (own[:, None] == other).mean()
    assert area_of(scores) == pytest.approx(by_hand, abs=1e-12)


def test_errors_are_those_of_the_best_threshold_that_keeps_to_the_rate() -> None:
    scores = scores_of(20, 1.5, 2)
    own = np.diagonal(scores, axis1=1, axis2=2).ravel()
    other = scores[:, ~np.eye(20, dtype=bool)].ravel()
    thresholds = np.append(np.unique(scores), np.inf)
    kept = [t for t in thresholds if (other >= t).mean() <= 0.01]
    found = figures_of(scores, 0)
    assert found.frr_at_far["0.01"].value == pytest.approx(min((own < t).mean() for t in kept), abs=1e-4)
    both = min(max((own < t).mean(), (other >= t).mean()) for t in thresholds)
    assert found.eer.value == pytest.approx(both, abs=1e-4)
    assert found.frr_at_far["0.01"].value > found.eer.value > 0.1
    assert set(found.frr_at_far) == {"0.01"}
    assert set(figures_of(scores_of(250, 1.5, 2), 0).frr_at_far) == {"0.01", "0.001"}


def test_those_who_are_as_likely_share_the_guess() -> None:
    np.testing.assert_allclose(rank1_of(np.zeros((1, 4, 4))), 0.25)
    np.testing.assert_allclose(rank1_of(np.eye(4)[None]), 1.0)


def test_an_interval_over_people_is_as_wide_as_figures_of_other_people_lie_apart() -> None:
    areas = [area_of(scores_of(30, 0.5, seed, 1)) for seed in range(200)]
    widths = [figures_of(scores_of(30, 0.5, seed, 1), 0).auc for seed in range(20)]
    found = np.mean([one.high - one.low for one in widths])
    expected = np.quantile(areas, 0.975) - np.quantile(areas, 0.025)
    assert 0.75 * expected < found < 1.4 * expected


def test_what_could_be_seen_stays_below_what_is_there_and_above_what_is_not() -> None:
    nothing = {str(seed): scores_of(40, 0.0, seed) for seed in range(12)}
    seen = seen_from(nothing, 0)
    strongest = max(max(area_of(one), 1 - area_of(one)) for one in nothing.values())
    alone = seen_from({"0": nothing["0"]}, 0)
    assert alone["auc"] < seen["auc"]  # the more attackers, the more chance finds
    assert strongest < seen["auc"] + 0.02
    there = nothing | {"there": scores_of(40, 1.0, 99)}
    assert area_of(there["there"]) > seen_from(there, 0)["auc"] > 0.5


def test_noise_on_rows_tells_nobody_and_not_how_long_a_recording_was() -> None:
    rng, attacker, areas = np.random.default_rng(0), "other people on rows", []
    for _ in range(5):
        released: dict[tuple[str, str], GazeRecording | Recording] = {}
        for person in range(24):
            rows = 100 + 9 * person  # in both sessions
            for task in "ab":
                noise = np.repeat(rng.laplace(size=(rows // 32 + 1, len(NAMES))), 32, axis=0)[:rows]
                released[f"{person:02}", task] = Recording(np.arange(1, rows + 1) / 2.0, noise, NAMES)
        for side in (released, cut_alike(released)):
            known, unknown = ([[halves_of(side[f"{n:02}", task])[0]] for n in range(24)] for task in "ab")
            areas.append(area_of(attack_all(RecognitionTrial(known, unknown), 0, [attacker])[attacker][None]))
    assert np.mean(areas[::2]) > 0.75
    assert abs(np.mean(areas[1::2]) - 0.5) < 0.07


@pytest.mark.parametrize("place", [",", "0.0,0.0"], ids=["lost", "still"])
def test_a_system_that_has_lost_everything_is_judged_by_all_attackers(place: str, tmp_path: Path) -> None:
    path = tmp_path / "gaze.csv"
    path.write_text("t_s,x_deg,y_deg\n" + "".join(f"{i / 30:.4f},{place}\n" for i in range(2700)))
    recording = load_gaze(path, load_profile("degrees").at_rate(30.0))
    known, unknown = ([[half] for _ in range(3)] for half in halves_of(recording)[1:])
    found = attack_all(RecognitionTrial(known, unknown), 0)
    assert set(ATTACKERS) < set(found)
    assert {name: area_of(scores[None]) for name, scores in found.items()} == dict.fromkeys(found, 0.5)
