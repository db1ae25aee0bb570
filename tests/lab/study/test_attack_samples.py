"""The attacker on gaze samples: figures of events, networks, and people who differ or do not."""

import numpy as np
import pytest

from eyestream_lab.study.people.gaze_events import FEATURES, EventFigures, events_of
from eyestream_lab.study.people.rbfn import CENTRES, EventNetworks, Network, first_minute


def gaze(rng: np.random.Generator, size: float, tremor: float, seconds: float = 40.0) -> tuple[np.ndarray, ...]:
    """Somebody's fixations of 0.3 s, saccades of 40 ms with this usual size, and tremor in degrees; 100 Hz."""
    x, y, place = [], [], np.zeros(2)
    while len(x) < seconds * 100:
        target = np.clip(place + rng.normal(0, size, 2), -25, 25)
        for share in np.linspace(0.0, 1.0, 5)[1:]:
            x.append(place[0] + share * (target[0] - place[0]))
            y.append(place[1] + share * (target[1] - place[1]))
        x += (target[0] + rng.normal(0, tremor, 30)).tolist()
        y += (target[1] + rng.normal(0, tremor, 30)).tolist()
        place = target
    return np.arange(len(x)) / 100, np.array(x), np.array(y)


def sessions(people: int, differ: bool, seed: int) -> list[list[EventFigures]]:
    """Two sessions of each."""
    rng = np.random.default_rng(seed)
    own = [(rng.uniform(4, 12), rng.uniform(0.02, 0.1)) if differ else (8.0, 0.05) for _ in range(people)]
    return [[events_of(*gaze(rng, *one)) for _ in range(2)] for one in own]


def rate(differ: bool, seed: int) -> float:
    """Right names in the second session."""
    people = sessions(8, differ, seed)
    networks = EventNetworks([[one[0]] for one in people], seed)
    return float(np.mean([networks.scores(one[1]).argmax() == i for i, one in enumerate(people)]))


def test_it_finds_people_who_differ_and_nobody_who_does_not() -> None:
    """Chance is 1/8: 4 of 8 right happen with probability 0.011 by it, 6 with 8e-5."""
    assert rate(True, 1) >= 6 / 8
    assert rate(False, 2) < 0.5


def test_events_are_what_was_made() -> None:
    t, x, y = gaze(np.random.default_rng(3), 12.0, 0.02, seconds=20.0)
    fixations, saccades = events_of(t, x, y)
    assert fixations.shape[1] == saccades.shape[1] == FEATURES
    assert abs(np.median(fixations[:, 0]) - 0.3) < 0.03
    assert 0.03 < np.median(saccades[:, 0]) < 0.08
    assert len(fixations) <= len(t) / 34 + 1
    straight = saccades[:, 1] / saccades[:, 10]
    assert np.median(straight) < 1.05
    assert np.isfinite(fixations).all()
    assert np.isfinite(saccades).all()


def test_figures_of_one_saccade_by_hand() -> None:
    x = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 5.0, 6.0, 6.0, 6.0])
    _, saccades = events_of(np.arange(10) / 100, x, np.zeros(10))
    (one,) = saccades
    assert one[0] == pytest.approx(0.06)
    assert (one[1], one[10], one[9]) == (6.0, 6.0, 0.0)
    speeds = [0.0, 100.0, 200.0, 200.0, 100.0, 0.0]
    assert one[15:19] == pytest.approx([100.0, 100.0, 200.0, np.std(speeds)])
    assert one[8] == pytest.approx(200.0 / 0.06)


def test_figures_of_an_event_are_the_same_alone_and_among_others() -> None:
    """All events are computed at once; only the way from the event before (figures 13 and 14) may differ."""
    rng = np.random.default_rng(6)
    pieces = []
    for number, size in enumerate((4.0, 8.0, 12.0)):
        way = gaze(rng, size, 0.05, seconds=3.0)[1:]
        x, y = (np.pad(column, 20, "edge") for column in way)  # begins and ends at rest
        pieces.append((100.0 * number + np.arange(len(x)) / 100, x, y))
    whole = events_of(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))
    alone = [events_of(*one) for one in pieces]
    kept = np.delete(np.arange(FEATURES), (12, 13))
    for kind in (0, 1):
        each = np.concatenate([one[kind] for one in alone])
        np.testing.assert_allclose(whole[kind][:, kept], each[:, kept], rtol=1e-6, atol=1e-6)
        assert whole[kind][0, 12:14].tolist() == [0.0, 0.0]


def test_gaps_end_events_and_constant_gaze_is_no_error() -> None:
    t = np.arange(100) / 100
    held = np.where(t < 0.5, 1.0, 4.0)
    held[50] = np.nan
    fixations, saccades = events_of(t, held, np.zeros(100))
    assert len(fixations) == 2
    assert np.isfinite(fixations).all()
    assert len(saccades) <= 1
    later = events_of(np.where(t < 0.5, t, t + 9.0), np.ones(100), np.ones(100))
    assert later.fixations[:, 0].max() < 1.0
    assert len(events_of(t[:3], held[:3], held[:3]).fixations) == 0


def test_a_centre_answers_its_members_mean_distance_with_e_to_minus_a_half() -> None:
    """TVCG 2021's 1 / (2 sigma) would not."""
    rng = np.random.default_rng(5)
    network = Network.trained([rng.normal(0, 1, (200, FEATURES)), rng.normal(1, 1, (20, FEATURES))], 1)
    assert len(network.centres) == CENTRES + 10
    at = network.centres[0] + np.eye(FEATURES)[0] * network.widths[0]
    own = network.activations((at * network.sd + network.mean)[None])[0, 0]
    assert own == pytest.approx(np.exp(-0.5))


def test_an_exemplar_is_the_first_minute() -> None:
    t, x, y = gaze(np.random.default_rng(3), 8.0, 0.05, seconds=90.0)
    part = first_minute(t + 7.0, x, y)
    assert len(part) == 3
    assert {len(column) for column in part} == {6000}


def test_somebody_without_events_is_never_named() -> None:
    people = sessions(3, True, 4)
    nothing = EventFigures(np.zeros((0, FEATURES)), np.zeros((0, FEATURES)))
    networks = EventNetworks([[people[0][0]], [nothing], [people[2][0]]], 1)
    assert networks.scores(people[0][1]).argmax() != 1
    assert not networks.scores(nothing).any()
