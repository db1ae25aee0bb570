"""The laboratory's part of each mechanism of the product, and of its own. References alone: nothing else is loaded."""

from eyestream_lab.parts import FILTERED, Part, StudyForm

__all__ = ["ASKED", "CFPA", "DCFPA", "KALEIDO", "KLT", "LPA", "TASK_WORDS", "TILE"]

LPA = Part(
    calibrate="eyestream_lab.calibration.per_feature:calibrate_lpa",
    calibration_options=("coverage",),
    declare="eyestream_lab.calibration.per_feature:declare_lpa",
    forms=(StudyForm("LPA", "#E69F00"),),
    audit="eyestream_lab.mechanisms.lpa:AUDIT",
    law="eyestream_lab.mechanisms.additive:emission",
    study="eyestream_lab.mechanisms.lpa:STUDY",
)

CFPA = Part(
    calibrate="eyestream_lab.calibration.per_feature:calibrate_cfpa",
    calibration_options=("coverage", "k"),
    declare="eyestream_lab.calibration.per_feature:declare_cfpa",
    forms=(
        StudyForm("CFPA", "#0072B2"),
        StudyForm("CFPA, shrunk", "#0072B2", options={"shrink": True}, attacked=False),
        StudyForm("CFPA, shrunk, smoothed, clipped", "#0072B2", options=FILTERED, estimate=True, best=True),
    ),
    audit="eyestream_lab.mechanisms.cfpa:AUDIT",
    law="eyestream_lab.mechanisms.additive:emission",
    study="eyestream_lab.mechanisms.cfpa:STUDY",
)

DCFPA = Part(
    calibrate="eyestream_lab.calibration.per_feature:calibrate_dcfpa",
    calibration_options=("coverage", "k"),
    declare="eyestream_lab.calibration.per_feature:declare_dcfpa",
    forms=(
        StudyForm("DCFPA", "#009E73"),
        StudyForm("DCFPA, shrunk", "#009E73", options={"shrink": True}, attacked=False),
        StudyForm("DCFPA, shrunk, smoothed, clipped", "#009E73", options=FILTERED, estimate=True, best=True),
    ),
    audit="eyestream_lab.mechanisms.dcfpa:AUDIT",
    law="eyestream_lab.mechanisms.additive:emission",
    study="eyestream_lab.mechanisms.dcfpa:STUDY",
)

KLT = Part(
    calibrate="eyestream_lab.calibration.joint:calibrate_joint",
    calibration_options=("shed_identity", "ranks", "anchored", "books", "shares"),
    adapt="eyestream_lab.calibration.adapt:adapt_joint",
    forms=(
        StudyForm("KLT", "#D55E00", estimate=True),
        StudyForm("KLT, one score", "#8C2D04", calibration={"shed_identity": 1.0}, estimate=True),
        StudyForm("KLT, anchored", "#882255", calibration={"anchored": True}, estimate=True, best=True),
    ),
    audit="eyestream_lab.mechanisms.klt:AUDIT",
    law="eyestream_lab.mechanisms.klt:emission",
    study="eyestream_lab.mechanisms.klt:STUDY",
)

ASKED = Part(
    calibrate="eyestream_lab.calibration.asked:calibrate_asked",
    adapt="eyestream_lab.calibration.asked:adapt_asked",
    audit="eyestream_lab.mechanisms.asked:AUDIT",
)

TILE = Part(
    uncalibrated="tile is calibrated from slots of gaze, not from rows: take everyday-tile",
    audit="eyestream_lab.mechanisms.tile:AUDIT",
)

TASK_WORDS = Part(
    uncalibrated="task-words needs recordings whose tasks are known: eyestream calibrate --labels --task",
    labelled="eyestream_lab.words.calibrate:labelled",
    audit="eyestream_lab.mechanisms.words:AUDIT",
)

KALEIDO = Part(
    uncalibrated="kaleido has public settings alone, and needs no corpus: take kaleido-r2",
    audit="eyestream_lab.mechanisms.kaleido:AUDIT",
)
