"""The laboratory's parts of LPA, CFPA and DCFPA, which add noise to the signal of each feature."""

from functools import partial

from eyestream.core.additive.signals import CHUNKS, DIFFERENCES, VALUES, Signals
from eyestream.core.mechanisms.fourier import CFPA, DCFPA
from eyestream.core.mechanisms.lpa import LPA
from eyestream_lab.audit.trials import AuditPart
from eyestream_lab.mechanisms.additive import FourierTrial, ValueTrial, long_draws, short_draws, synthetic_additive
from eyestream_lab.study.ways import StudyPart, plain

_WHITE_BOX = "eyestream_lab.mechanisms.noise_likelihood:WHITE_BOX"


def _fourier_audit(name: str, signals: Signals) -> AuditPart:
    return AuditPart(
        trial=partial(FourierTrial, signals),
        shapes=((2, 1), (4, 2), (4, 3), (8, 4)),
        draws=(short_draws, long_draws),
        synthetic=partial(synthetic_additive, name, signals),
        long_shapes=tuple((n, k) for k in (1, 2, 3, 4) for n in (16, 32)),
    )


CFPA_AUDIT = _fourier_audit(CFPA.name, CHUNKS)

CFPA_STUDY = StudyPart(
    ways={CFPA.name: plain(CFPA.name, "#0072B2", "v", place=4, traced=True)},
    statistic=lambda chunks: chunks.mean(axis=-1),
    signals=CHUNKS,
    white_box=_WHITE_BOX,
)

DCFPA_AUDIT = _fourier_audit(DCFPA.name, DIFFERENCES)

DCFPA_STUDY = StudyPart(
    ways={DCFPA.name: plain(DCFPA.name, "#009E73", "P", place=5)},
    statistic=lambda chunks: chunks[..., -1],  # its first coefficient is the sum of the differences: the last row
    signals=DIFFERENCES,
    white_box=_WHITE_BOX,
)

LPA_AUDIT = AuditPart(
    trial=partial(ValueTrial, VALUES),
    shapes=((2, None),),
    draws=(short_draws, long_draws),
    synthetic=partial(synthetic_additive, LPA.name, VALUES),
)

LPA_STUDY = StudyPart(
    ways={LPA.name: plain(LPA.name, "#E69F00", "X", place=6)},
    statistic=lambda chunks: chunks.mean(axis=-1),
    signals=VALUES,
    white_box=_WHITE_BOX,
)
