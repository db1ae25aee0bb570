"""Simulated people with labels: three documents each, a gender and an age, to try the tables of the papers on.

Each person of `eyestream_lab.simulation.people` reads a comic, a newspaper and a textbook, as in the published data
sets. A label moves the scores of some traits by a fixed number of standard deviations of the population; everything
else (differences between people, correlations, slowness) stays that of the corpus.

- Documents: text is read with shorter fixations and saccades than pictures are looked at, and harder text with longer
  fixations and shorter saccades than easy text (Rayner, *Eye movements in reading and information processing*,
  Psychological Bulletin 124, 1998). A comic is pictures and text.
- Age: the pupil becomes smaller with age (Winn et al., *Factors affecting light-adapted pupil size*, Investigative
  Ophthalmology and Visual Science 35, 1994).
- Gender: an arbitrary small difference, the same in nobody's data; nothing is said about women and men.

The directions are those of the literature, the sizes are ours. What a table says about such people is how a mechanism
treats a signal of that size, never how well real documents are told apart. The sizes were fixed before any mechanism
was looked at; `LABELLED` goes up when they change. (Version 1 had no minute before the document. What a session's
baseline is taken from is never released, so that a baseline inside a document takes the document off: seen once, on six
people, and the minute added. The sizes are the same.)

Every recording begins with a minute of nothing in particular, as a session begins before its task.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.simulation.people import RATE_HZ, TRAITS, Statistics, check_extent, draw_person, rows_of

LABELLED = 2
"""Version of the labels' effects: the same version, generator, seed, number of people and length give the same rows."""

LEAD_S = 60.0
"""Before the document begins."""

DOCUMENTS: dict[str, dict[str, float]] = {
    "comic": {
        "rate_fixations": -0.4,
        "mean_fixation_duration": 0.5,
        "mean_saccade_amplitude": 0.8,
        "ratio_small_saccades": -0.8,
        "rightward": -0.6,
        "wb1_nonzero": 0.6,
    },
    "newspaper": {
        "rate_fixations": 0.4,
        "mean_fixation_duration": -0.5,
        "mean_saccade_amplitude": -0.2,
        "ratio_small_saccades": 0.3,
        "rightward": 0.2,
        "wb1_nonzero": -0.3,
    },
    "textbook": {
        "mean_saccade_amplitude": -0.6,
        "ratio_small_saccades": 0.5,
        "rightward": 0.4,
        "wb1_nonzero": -0.3,
    },
}
"""Shift of the scores, in standard deviations of the population; over the documents they sum to 0 for every trait."""

GENDERS: dict[str, dict[str, float]] = {
    "f": {"blink_rate": 0.4, "mean_saccade_amplitude": -0.3, "var_fixation_duration": 0.3},
    "m": {"blink_rate": -0.4, "mean_saccade_amplitude": 0.3, "var_fixation_duration": -0.3},
}

AGES: dict[str, dict[str, float]] = {
    "younger": {"mean_mean_diameter": 0.8},
    "middle": {},
    "older": {"mean_mean_diameter": -0.8},
}


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """One recording.

    Attributes
    ----------
    name : of the recording.
    labels : person, document, gender and age.
    rows : (m, 52) features, columns as in `eyestream_lab.simulation.people.NAMES`.
    """

    name: str
    labels: dict[str, str]
    rows: NDArray[np.float32]


def simulate_labelled(statistics: Statistics, people: int, seconds: float, seed: int) -> Iterator[LabelledRows]:
    """Three recordings, one of each document, of each of `people` simulated people, one after the other.

    Every twelve successive people have each pair of gender and age twice, once at an even and once at an odd position:
    a study calibrates on the people at even positions and releases those at odd ones.

    Parameters
    ----------
    people
        How many; person i is the same whatever the number of people.
    seconds
        Length of each recording; one row each 0.5 s, the part of a row is left out.
    seed
        0 or more; of the simulation only.

    Raises
    ------
    ConfigError
        A number is out of range.
    """
    check_extent(people, seconds, seed)
    for person in range(people):
        rng = np.random.default_rng((LABELLED, 52, seed, person))
        level, has_pupil = draw_person(statistics, rng)
        gender = tuple(GENDERS)[person // 2 % 2]
        age = tuple(AGES)[person // 4 % 3]
        level = level + _shift(GENDERS[gender]) + _shift(AGES[age])
        for document, effects in DOCUMENTS.items():
            count, lead = int(seconds * RATE_HZ), int(LEAD_S * RATE_HZ)
            reading = np.outer(_shift(effects), np.arange(count) >= lead)
            rows = rows_of(statistics, level[:, None] + reading, count, rng, has_pupil=has_pupil)
            labels = {"person": f"p{person:03d}", "document": document, "gender": gender, "age": age}
            yield LabelledRows(f"p{person:03d}-{document}", labels, rows)


def _shift(effects: dict[str, float]) -> NDArray[np.float64]:
    """(T,)."""
    return np.array([effects.get(trait, 0.0) for trait in TRAITS])
