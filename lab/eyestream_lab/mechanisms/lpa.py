"""The laboratory's part of LPA."""

from functools import partial

from eyestream.core.additive.signals import VALUES
from eyestream.core.mechanisms.lpa import LPA
from eyestream_lab.audit.trials import AuditPart
from eyestream_lab.mechanisms.additive import ValueTrial, long_draws, short_draws, synthetic_additive
from eyestream_lab.study.ways import StudyPart, plain

__all__ = ["AUDIT", "STUDY"]

AUDIT = AuditPart(
    trial=partial(ValueTrial, VALUES),
    shapes=((2, None),),
    draws=(short_draws, long_draws),
    synthetic=partial(synthetic_additive, LPA.name, VALUES),
)

STUDY = StudyPart(
    ways={LPA.name: plain(LPA.name, "#E69F00", "X", place=6)},
    statistic=lambda chunks: chunks.mean(axis=-1),
    signals=VALUES,
    white_box="eyestream_lab.mechanisms.noise_likelihood:WHITE_BOX",
)
