"""The laboratory's part of each mechanism of the product, and of its own. References alone: nothing else is loaded."""

from eyestream_lab.parts import FILTERED, LaboratoryPart, StudyForm

LPA = LaboratoryPart(
    calibrate="eyestream_lab.calibration.per_feature:calibrate_lpa",
    calibration_options=("coverage",),
    declare="eyestream_lab.calibration.per_feature:declare_lpa",
    forms=(StudyForm("LPA", "#E69F00"),),
    audit="eyestream_lab.mechanisms.per_feature:LPA_AUDIT",
    law="eyestream_lab.mechanisms.additive:emission",
    study="eyestream_lab.mechanisms.per_feature:LPA_STUDY",
)


def _fourier(name: str, colour: str) -> LaboratoryPart:
    """The part of CFPA or DCFPA, which differ in their signals alone."""
    low = name.lower()
    return LaboratoryPart(
        calibrate=f"eyestream_lab.calibration.per_feature:calibrate_{low}",
        calibration_options=("coverage", "k"),
        declare=f"eyestream_lab.calibration.per_feature:declare_{low}",
        forms=(
            StudyForm(name, colour),
            StudyForm(f"{name}, shrunk", colour, options={"shrink": True}, attacked=False),
            StudyForm(f"{name}, shrunk, smoothed, clipped", colour, options=FILTERED, best=True),
        ),
        audit=f"eyestream_lab.mechanisms.per_feature:{name}_AUDIT",
        law="eyestream_lab.mechanisms.additive:emission",
        study=f"eyestream_lab.mechanisms.per_feature:{name}_STUDY",
    )


CFPA = _fourier("CFPA", "#0072B2")

DCFPA = _fourier("DCFPA", "#009E73")

KLT = LaboratoryPart(
    calibrate="eyestream_lab.calibration.joint:calibrate_joint",
    calibration_options=("shed_identity", "ranks", "anchored", "books", "shares"),
    adapt="eyestream_lab.calibration.adapt:adapt_joint",
    hindsight="eyestream_lab.hindsight.klt:look_back",
    forms=(
        StudyForm("KLT", "#D55E00"),
        StudyForm("KLT, one score", "#8C2D04", calibration={"shed_identity": 1.0}),
        StudyForm("KLT, anchored", "#882255", calibration={"anchored": True}, best=True),
    ),
    audit="eyestream_lab.mechanisms.klt:AUDIT",
    law="eyestream_lab.mechanisms.klt:emission",
    study="eyestream_lab.mechanisms.klt:STUDY",
)

ASKED = LaboratoryPart(
    calibrate="eyestream_lab.calibration.asked:calibrate_asked",
    adapt="eyestream_lab.calibration.asked:adapt_asked",
    hindsight="eyestream_lab.hindsight.asked:look_back",
    audit="eyestream_lab.mechanisms.asked:AUDIT",
    study="eyestream_lab.mechanisms.asked:STUDY",
)

TILE = LaboratoryPart(
    uncalibrated="tile is calibrated from slots of gaze, not from rows: take everyday-tile",
    hindsight="eyestream_lab.hindsight.tile:look_back",
    expecting="eyestream_lab.gatekeeper.next_tile:NextTileReading",
    audit="eyestream_lab.mechanisms.tile:AUDIT",
)

TASK_WORDS = LaboratoryPart(
    uncalibrated="task-words needs recordings whose tasks are known: eyestream calibrate --labels --task",
    labelled="eyestream_lab.words.calibrate:labelled",
    audit="eyestream_lab.mechanisms.words:AUDIT",
)

KALEIDO = LaboratoryPart(
    uncalibrated="kaleido has public settings alone, and needs no corpus: take kaleido-r2",
    audit="eyestream_lab.mechanisms.kaleido:AUDIT",
)
