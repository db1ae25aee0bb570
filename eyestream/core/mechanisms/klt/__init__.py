"""KLT: joint transform coding. The whole epsilon goes into few bits about what carries a person's data.

CFPA codes 48 strongly correlated features apart, each with epsilon / 48, and releases mostly noise. Here a chunk of all
features is described by a few scores on the Karhunen-Loeve basis of a public corpus; what the released past does not
already tell of the scores is quantised into one code word of b bits; and the code word is released by randomised
response with the whole epsilon. `eyestream/core/KLT.md` has the derivation, the proof and the measurements.

Guarantee: pure epsilon-differential privacy for one chunk, replace-one, local model, for *every* input: two chunks, in
any state that earlier releases have led to, have at most two different code words, and the response bounds the odds of
every output by e^epsilon. The state is a function of released values and public figures alone. What is computed from
the released code word (filter, reconstruction, clip) is post-processing.
"""

from collections.abc import Sequence

import msgspec

from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.frame import Frame
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.entry import Beginning, Entry
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.core.noise import Noise
from eyestream.core.protection import Protection


class JointOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of joint transform coding.

    Attributes
    ----------
    focus
        Names of features whose squared error counts ten times in the choice of directions and bits; public.
    """

    focus: list[str] | None = None


class KLT(Mechanism):
    """Joint transform coding of whole chunks.

    `release` is the first chunk of a session; `session` gives what releases the chunks of one session in order and
    improves while the person is the same. Shrinking, smoothing across chunks and the clip to the range are part of it,
    and the directions follow from epsilon.

    Attributes
    ----------
    k : the number of code-word coordinates of a session's first chunk.
    noise_sd : (F,) expected error of a value late in a session, root mean square, noise and what is not coded together.

    Raises
    ------
    ConfigError
        when epsilon cannot be used, or a feature of the focus is not released.
    CalibrationError
        when the calibration was made for another mechanism.
    """

    name = "klt"
    protection = Protection(
        law="each chunk is one code word out of K, released by k-ary randomised response: with a probability that "
        "epsilon fixes it is replaced by a word drawn uniformly from all K",
        exact="the probability is an integer multiple of 2^-128, rounded toward more privacy, and K is a power of two: "
        "the law is exact integers. Floating point decides which word a chunk has and what a word stands for; neither "
        "is part of the proof, which holds for every word",
        sampler="nothing is charged for the sampler: what is drawn has the law itself",
        floating_point="integers",
        attacker="who cannot break the system's generator, with all other computing power (were the "
        "generator's bits truly uniform and independent, it would hold against any computing power)",
    )

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        noise: Noise | None = None,
        focus: Sequence[str] | None = None,
    ) -> None:
        frame = Frame.of(self.name, calibration, epsilon)
        options = {} if focus is None else {"focus": list(focus)}
        super().__init__(frame, JointCore(frame, focus or ()), noise, options)


ENTRY = Entry(
    mechanism=KLT,
    options=JointOptions,
    tables=JointTables,
    beginning=Beginning("everyday-klt-anchored-64"),
    shown_by={
        "law": (
            "tests/product/core/test_response.py::test_odds_never_exceed_e_to_the_epsilon",
            "tests/product/core/test_klt.py::test_odds_of_every_output_between_two_extreme_chunks",
        ),
        "input": ("tests/product/core/test_klt.py::test_hostile_chunks_are_released_like_any_other",),
        "after": ("tests/product/core/test_klt.py::test_what_is_released_is_a_function_of_the_released_words_alone",),
        "useful": (
            "tests/product/core/test_klt.py::test_the_stated_error_is_the_measured_one",
            "tests/product/core/test_klt.py::test_utility_on_people_outside_the_calibration",
        ),
        "floats": ("tests/product/core/test_response.py::test_a_vanishing_or_enormous_epsilon_stays_in_range",),
        "time": ("tests/lab/audit/test_false_alarms.py::test_a_correct_mechanism_is_not_flagged",),
    },
    correlation="eyestream.claims.correlation.scores:SCORES",
)
