"""The laboratory's part of CFPA."""

from functools import partial

from eyestream.core.additive.signals import CHUNKS
from eyestream.core.mechanisms.fourier import CFPA
from eyestream_lab.audit.trials import AuditPart
from eyestream_lab.mechanisms.additive import FourierTrial, long_draws, short_draws, synthetic_additive
from eyestream_lab.study.ways import StudyPart, plain

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
    white_box="eyestream_lab.mechanisms.noise_likelihood:WHITE_BOX",
)
