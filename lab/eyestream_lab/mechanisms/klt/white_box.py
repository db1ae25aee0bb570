"""Who decodes the code words of KLT, and scores their likelihood for each candidate under the public law."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream_lab.mechanisms.klt.word_likelihood import Beliefs, believe, prior, tell_scores, word_scores
from eyestream_lab.mechanisms.klt.words import decode
from eyestream_lab.study.people.galleries import Gallery
from eyestream_lab.study.people.white_box import WhiteBox

__all__ = ["WHITE_BOX"]

Array = NDArray[np.float64]


def _labelled(gallery: Gallery, sessions: Sequence[NDArray[np.float32]]) -> Array:
    mechanism, core = _known(gallery)
    told = [decode(mechanism, chunks) for chunks in sessions]
    candidates, _ = believe(core, prior(core, len(told)), told)
    return word_scores(core, candidates, [decode(mechanism, chunks) for chunks in gallery.unknown])


def _seen_raw(gallery: Gallery) -> Array:
    mechanism, core = _known(gallery)
    step, frame = core.step(), mechanism.frame
    scores = [[step.scores(np.clip(chunk[frame.active], *frame.range)) for chunk in raw] for raw in gallery.minutes]
    nobody = prior(core, 1)
    told = [tell_scores(core, nobody, np.array(own)) for own in scores]
    candidates = Beliefs(np.concatenate([b.mean for b in told]), np.concatenate([b.covariance for b in told]))
    return word_scores(core, candidates, [decode(mechanism, chunks) for chunks in gallery.unknown])


def _known(gallery: Gallery) -> tuple[Mechanism, JointCore]:
    assert gallery.mechanism is not None
    core = gallery.mechanism.core
    assert isinstance(core, JointCore)
    return gallery.mechanism, core


WHITE_BOX = WhiteBox(_labelled, _seen_raw)
