"""Attackers who know the law of a mechanism: the part that differs from mechanism to mechanism."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.study.people.galleries import Gallery


@dataclass(frozen=True)
class WhiteBox:
    """Scores (P, P) of the unknown sessions of a gallery, larger is likelier, by one who knows the mechanism.

    Attributes
    ----------
    labelled : who has, of every candidate, these released chunks of the labelled session.
    seen_raw : who has seen one minute of each candidate's *unreleased* rows.
    """

    labelled: Callable[[Gallery, Sequence[NDArray[np.float32]]], NDArray[np.float64]]
    seen_raw: Callable[[Gallery], NDArray[np.float64]]
