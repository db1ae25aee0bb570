"""Under one noise tape task words are the same, on every machine: a judge by hand, of whole numbers, and no BLAS.

The digests were made when the mechanism was added.
"""

import numpy as np
import pytest

from eyestream.core.mechanisms import build
from eyestream_lab.mechanisms.words import synthetic_words
from eyestream_lab.testing.noise import WordNoise
from tests.product.tape.cases import Tape, digest

RECORDED = {0.5: "5282010f0fe93c8186acb8a1", 4.8: "4e2d04f56bbc995f4812285d", 9.6: "4e2d04f56bbc995f4812285d"}
SESSIONS, CHUNKS, N = 12, 5, 8


def released(epsilon: float, label: str) -> np.ndarray:
    """(.., 3) of sessions of one wearer, whose rows are whole numbers of another tape; some values are missing."""
    words = Tape("rows of words").words(SESSIONS * CHUNKS * 2 * N).reshape(SESSIONS, CHUNKS, 2, N)
    mechanism, session, found = build(synthetic_words(N, 2), epsilon, noise=WordNoise(Tape(label))), None, []
    for own in words.astype(np.int64):
        session = mechanism.session_after(session)
        for chunk in own:
            rows = np.where(chunk % 16 == 0, np.nan, (chunk % 401 - 200).astype(np.float64))
            if session.awaits_baseline:
                session.anchor(rows)
            else:
                found.append(session.release(rows)[:, 0].argmax())
    return np.array(found)


@pytest.mark.parametrize("epsilon", RECORDED)
def test_words_are_those_that_were_recorded(epsilon: float) -> None:
    assert digest(released(epsilon, f"words {epsilon:g}")) == RECORDED[epsilon]


def test_another_tape_is_noticed() -> None:
    assert digest(released(0.5, "another")) != RECORDED[0.5]
