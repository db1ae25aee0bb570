"""The words of the verdict follow from figures by stated rules."""

import re
from typing import Any

import pytest

from eyestream_lab.study.verdict import comes_through, useful, verdict, who_is_found


def row(label: str = "klt", **changes: Any) -> dict[str, Any]:
    """A way of which a part comes through, and nobody was seen to be found."""
    usual = {"label": label, "n": 64, "minute": 18.0, "epsilon": 9.6, "second": 28.8, "coverage": 1.0, "people": 30}
    usual |= {"explained": 0.4, "explained_low": 0.3, "explained_high": 0.5}
    usual |= {"explained_middle": 0.45, "own_middle": 0.35}
    usual |= {"own": 0.3, "own_low": 0.25, "own_high": 0.35}
    usual |= {"area": 0.55, "area_low": 0.45, "area_high": 0.65, "p_all": 0.4, "attacker": "forest"}
    usual |= {"rate": 0.1, "rate_low": 0.0, "rate_high": 0.2, "chance": 0.067, "least_area": 0.62}
    return usual | changes


RAW = row("raw", minute=None, epsilon=None, second=None, area=0.99, area_low=0.98, area_high=1.0, p_all=0.014)
FOUND = {"area": 0.9, "area_low": 0.85, "area_high": 0.95, "p_all": 0.014}


@pytest.mark.parametrize(
    ("low", "value", "high", "words"),
    [
        (-0.3, -0.2, -0.01, "worse than the mean"),
        (-0.1, 0.6, 0.9, "nothing seen"),  # a large figure with an interval that holds 0 is not seen
        (0.0, 0.1, 0.2, "nothing seen"),
        (0.01, 0.19, 0.3, "a little"),
        (0.1, 0.2, 0.3, "a part"),
        (0.4, 0.49, 0.6, "a part"),
        (0.4, 0.5, 0.6, "most"),
    ],
)
def test_what_comes_through(low: float, value: float, high: float, words: str) -> None:
    assert comes_through(row(explained_low=low, explained=value, explained_high=high)) == words
    assert comes_through(row(own_low=low, own=value, own_high=high), "own") == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"area": 0.6, "area_low": 0.5, "p_all": 0.06}, "nobody was seen to be found"),
        ({"area": 0.95, "area_low": 0.9, "p_all": 0.06}, "people are perhaps found"),
        ({"area": 0.6, "area_low": 0.5, "p_all": 0.01}, "people are perhaps found"),
        ({"area": 0.79, "area_low": 0.6, "p_all": 0.05}, "people are found in part"),
        ({"area": 0.8, "area_low": 0.6, "p_all": 0.05}, "people are found"),
    ],
)
def test_who_is_found(changes: dict[str, Any], words: str) -> None:
    assert who_is_found(row(**changes)) == words


def test_behaviour_alone_is_useful_too() -> None:
    assert useful(row(explained=-0.2, explained_low=-0.3, explained_high=-0.1))
    assert not useful(row(explained=0.1, own=0.1))


def test_the_verdict_names_what_is_useful_and_hides_and_never_without_its_power() -> None:
    hides, tells = row("klt-anchored", explained=-0.2, explained_low=-0.3, explained_high=-0.1), row("klt", **FOUND)
    little = row("cfpa", explained=0.0, explained_low=-0.1, explained_high=0.1, own=0.0, own_low=-0.1)
    limits = [{"n": 64, "minute": 18.0, "explained": 0.57}]
    said = verdict([RAW, hides, tells, little], limits, 64, 18.0, quick=False)
    text = " ".join(said)
    assert "18 epsilon a minute of the stream (9.6 a chunk of 64 rows, 28.8 for any one second of gaze), of 30" in text
    assert "nobody was seen to be found: klt-anchored" in text
    assert "below 0.62 would often not have been seen" in text
    assert "Useful, and not hidden: klt (people are found, area 0.90 [0.85, 0.95]). Of these klt says most" in text
    assert "Of little or no use: cfpa (nothing seen, nobody was seen to be found)" in text
    assert "more than 0.57; klt explains 0.40" in text
    assert "Raw rows, for comparison: people are found, area 0.99" in text
    assert "quick" not in text
    assert "What to take: klt-anchored. If it is acceptable that people are recognised: klt." in text
    without = " ".join(verdict([RAW, tells], limits, 64, 18.0, quick=True))
    assert "What to take: none of these at this price, if people must not be recognised. If it is acceptable" in without
    assert "No way of releasing is useful and, at the same time, hides people from these attackers." in without
    assert without.startswith("This was a quick run")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        # Six people: everybody is named in raw rows, and so few could not have shown it.
        (
            row("raw", minute=None, people=6, area=1.0, area_low=1.0, area_high=1.0, p_all=0.3, least_area=1.0),
            "6 people are too few. An area below 1.00 would often not have been seen. About 17 people are needed",
        ),
        (
            row("raw", minute=None, area_low=0.45, p_all=0.4),
            "even of raw rows these attackers only say that nobody was seen to be",
        ),
    ],
)
def test_where_raw_rows_show_nothing_nothing_is_said_of_who_is_found(raw: dict[str, Any], words: str) -> None:
    hides, tells = row("klt-anchored"), row("klt", explained=0.45, **FOUND)
    said = verdict([raw, hides, tells, row("cfpa", explained=0.1, own=0.1)], [], 64, 18.0, quick=False)
    assert words in said[1]
    text = " ".join(said[2:])
    assert "Useful: klt-anchored, klt. Of these klt says most" in text
    assert "Of little or no use: cfpa (a little)." in text
    assert "What to take: this study cannot tell." in text
    assert not {"found", "hidden", "hides"} & set(re.findall(r"\w+", text))


@pytest.mark.parametrize("people", [8, 16, 30])
def test_the_number_of_people_that_is_asked_for_is_not_asked_for_again(people: int) -> None:
    """With as many people as were asked for, whose standard error is smaller by the root of their number."""
    few = row("raw", minute=None, people=people, least_area=0.95, **(FOUND | {"area": 0.99}))
    enough = int(re.findall(r"About (\d+) people", verdict([few, row()], [], 64, 18.0, quick=False)[1])[0])
    shown = 0.5 + 0.45 * (people / enough) ** 0.5
    more = row("raw", minute=None, people=enough, least_area=shown, **FOUND)
    assert "cannot be judged" not in " ".join(verdict([more, row()], [], 64, 18.0, quick=False))


def test_a_way_that_left_values_out_gets_no_verdict() -> None:
    text = " ".join(verdict([RAW, row("klt", coverage=0.89)], [], 64, 18.0, quick=False))
    assert "klt: no verdict, 89% of the values are covered." in text
    assert "nobody was seen to be found: klt" not in text


def test_another_price_is_not_in_the_verdict() -> None:
    other = row("klt-one", minute=36.0)
    assert "klt-one" not in " ".join(verdict([RAW, row(), other], [], 64, 18.0, quick=False))
