"""The laboratory's part of CFPA."""

from functools import partial

from eyestream.lab.audit.trials import AuditPart
from eyestream.lab.mechanisms.additive import FourierTrial, long_draws, short_draws, synthetic_additive
from eyestream.lab.study.ways import StudyPart, plain
from eyestream.privacy.additive.signals import CHUNKS
from eyestream.privacy.mechanisms.cfpa import CFPA

__all__ = ["AUDIT", "STUDY"]

AUDIT = AuditPart(
    trial=partial(FourierTrial, CHUNKS),
    shapes=((2, 1), (4, 2), (4, 3), (8, 4)),
    draws=(short_draws, long_draws),
    synthetic=partial(synthetic_additive, CFPA.name, CHUNKS),
    long_shapes=tuple((n, k) for k in (1, 2, 3, 4) for n in (16, 32)),
)

STUDY = StudyPart(
    ways={CFPA.name: plain(CFPA.name, "#0072B2", "v", place=4, traced=True)},
    statistic=lambda chunks: chunks.mean(axis=-1),
    signals=CHUNKS,
    white_box="eyestream.lab.mechanisms.noise_white_box:WHITE_BOX",
)
