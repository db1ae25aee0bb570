"""Who reads the noisy values of an additive mechanism, and scores their likelihood for each candidate."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream_lab.mechanisms import noise_likelihood as noise
from eyestream_lab.study.people.galleries import Gallery
from eyestream_lab.study.people.white_box import WhiteBox

__all__ = ["WHITE_BOX"]

Array = NDArray[np.float64]


def _labelled(gallery: Gallery, sessions: Sequence[NDArray[np.float32]]) -> Array:
    mechanism = _known(gallery)
    model = noise.PersonModel.of(mechanism, gallery.background)
    known, unknown = (
        [noise.noisy_session(model, noise.values_of(mechanism, chunks)) for chunks in every]
        for every in (sessions, gallery.unknown)
    )
    return noise.scores_of(model, known, unknown)


def _seen_raw(gallery: Gallery) -> Array:
    mechanism = _known(gallery)
    model = noise.PersonModel.of(mechanism, gallery.background)
    known = [noise.exact_session(model, noise.coordinates_of(mechanism, raw)) for raw in gallery.minutes]
    unknown = [noise.noisy_session(model, noise.values_of(mechanism, chunks)) for chunks in gallery.unknown]
    return noise.scores_of(model, known, unknown)


def _known(gallery: Gallery) -> Mechanism:
    assert gallery.mechanism is not None
    return gallery.mechanism


WHITE_BOX = WhiteBox(_labelled, _seen_raw)
