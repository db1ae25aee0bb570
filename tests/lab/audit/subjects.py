"""What the tests audit: every planted mechanism with the finding it must give, and correct ones, which give none."""

from eyestream_lab.audit.run import AuditPlan
from eyestream_lab.audit.subject import Subject, function, mechanism
from tests.lab.audit.planted import FEATURES, ROWS

SMALL = AuditPlan(seconds=300, screening=200, most=4_000, surface=4_000, reuse=1_500, state=5_000, timing=100)
"""Bounded by draws, so that a busy machine changes nothing but the time it takes."""

SURFACE, EPSILON, REUSE, STATE, TIME = (
    "float surface",
    "epsilon",
    "noise reuse",
    "state across chunks",
    "time",
)
REUSE_AND_EPSILON, FORM = "noise reuse and epsilon", "form"

WRONG = {
    "float_laplace": (SURFACE, "float-surface"),
    "float_normal": (SURFACE, "float-surface"),
    "float_logistic": (SURFACE, "float-surface"),
    "float_student": (SURFACE, "float-surface"),
    "float_inverse": (SURFACE, "float-surface"),
    "float_legacy": (SURFACE, "float-surface"),
    "float_python": (SURFACE, "float-surface"),
    "float_differences": (SURFACE, "float-surface"),
    "float_one_feature": (SURFACE, "float-surface"),
    "float_single_precision": (SURFACE, "float-surface"),
    "fourier_laplace": (SURFACE, "float-surface"),
    "fourier_laplace_two": (SURFACE, "float-surface"),
    "fourier_laplace_one": (SURFACE, "float-surface"),
    "fourier_normal": (SURFACE, "float-surface"),
    "own_last_bit": (EPSILON, "epsilon-exceeded"),
    "own_range": (EPSILON, "epsilon-exceeded"),
    "own_deviation": (EPSILON, "epsilon-exceeded"),
    "own_largest": (EPSILON, "epsilon-exceeded"),
    "real_parts": (EPSILON, "epsilon-exceeded"),
    "magnitudes": (EPSILON, "epsilon-exceeded"),
    "one_noise_for_all": (EPSILON, "epsilon-exceeded"),
    "one_feature_bare": (EPSILON, "epsilon-exceeded"),
    "first_row_bare": (EPSILON, "epsilon-exceeded"),
    "per_value": (EPSILON, "epsilon-exceeded"),
    "sometimes_bare": (EPSILON, "epsilon-exceeded"),
    "rejected": (EPSILON, "epsilon-exceeded"),
    "asked_twice": (EPSILON, "epsilon-exceeded"),
    "asked_borders": (EPSILON, "epsilon-exceeded"),
    "reused_always": (REUSE_AND_EPSILON, "noise-reuse"),
    "reused_by_data": (REUSE_AND_EPSILON, "noise-reuse"),
    "reused_half": (REUSE, "noise-reuse"),
    "reused_twentieth": (REUSE, "noise-reuse"),
    "reused_half_of_a_feature": (REUSE, "noise-reuse"),
    "reused_cycle": (REUSE, "noise-reuse"),
    "reused_seed": (REUSE, "noise-reuse"),
    "reused_after_fork": (REUSE, "noise-reuse"),
    "reused_by_threads": (REUSE, "noise-reuse"),
    "state_running_mean": (STATE, "state-across-chunks"),
    "state_whole_mean": (STATE, "state-across-chunks"),
    "state_last_spread": (STATE, "state-across-chunks"),
    "state_last_row": (STATE, "state-across-chunks"),
    "time_early": (TIME, "data-dependent-time"),
    "time_rejection": (TIME, "data-dependent-time"),
    "size_shape": (FORM, "data-dependent-size"),
    "size_type": (FORM, "data-dependent-size"),
    "form_changes": (FORM, "changing-form"),
    "hangs": (FORM, "hang"),
    "hangs_on_constants": (FORM, "hang"),
    "hangs_later": (REUSE, "hang"),
    "raises": (FORM, "crash"),
    "raises_on_constants": (FORM, "crash"),
    "exits": (FORM, "crash"),
    "dies": (FORM, "crash"),
    "wrong_shape": (FORM, "wrong-shape"),
    "no_array": (FORM, "wrong-shape"),
    "complex_numbers": (FORM, "wrong-shape"),
    "not_finite": (FORM, "not-finite"),
    "sometimes_not_finite": (REUSE, "not-finite"),
    "prints": (FORM, "extra-output"),
    "writes_raw": (FORM, "extra-output"),
}
"""By name: the part of the audit that must see it, and the finding. Each is audited by that part alone."""

BESIDES = {
    "size_shape": {"wrong-shape"},
    "reused_always": {"epsilon-exceeded"},
    "reused_by_data": {"epsilon-exceeded"},
    "not_finite": {"extra-output"},
}
"""Findings that rightly come too: numpy, for one, warns of a division by zero on the standard error."""

CORRECT = (
    "exact",
    "exact_coarse",
    "exact_odd_step",
    "exact_clipped",
    "exact_single_precision",
    "exact_fourier",
    "exact_integer_python",
    "snapping",
    "one_bit",
    "constant",
    "Smoothed",
)
OURS = ("lpa", "cfpa", "dcfpa", "klt")


def planted_subject(name: str, limit_s: float = 20.0) -> Subject:
    """A mechanism of `planted` with its claim."""
    return function(
        f"planted:{name}",
        features=FEATURES,
        chunk=ROWS,
        low=0,
        high=1,
        epsilon=8 if name.startswith("state_") else 1,
        session=name == "Smoothed",
        limit_s=limit_s,
    )


def correct_subject(name: str) -> Subject:
    """A correct mechanism, of others or ours."""
    return mechanism(name, f"everyday-{name}-32", 4.8) if name in OURS else planted_subject(name)
