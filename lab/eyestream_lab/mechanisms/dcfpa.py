"""The laboratory's part of DCFPA."""

from functools import partial

from eyestream.core.additive.signals import DIFFERENCES
from eyestream.core.mechanisms.fourier import DCFPA
from eyestream_lab.audit.trials import AuditPart
from eyestream_lab.mechanisms.additive import FourierTrial, long_draws, short_draws, synthetic_additive
from eyestream_lab.study.ways import StudyPart, plain

__all__ = ["AUDIT", "STUDY"]

AUDIT = AuditPart(
    trial=partial(FourierTrial, DIFFERENCES),
    shapes=((2, 1), (4, 2), (4, 3), (8, 4)),
    draws=(short_draws, long_draws),
    synthetic=partial(synthetic_additive, DCFPA.name, DIFFERENCES),
    long_shapes=tuple((n, k) for k in (1, 2, 3, 4) for n in (16, 32)),
)

STUDY = StudyPart(
    ways={DCFPA.name: plain(DCFPA.name, "#009E73", "P", place=5)},
    statistic=lambda chunks: chunks[..., -1],  # its first coefficient is the sum of the differences: the last row
    signals=DIFFERENCES,
    white_box="eyestream_lab.mechanisms.noise_likelihood:WHITE_BOX",
)
