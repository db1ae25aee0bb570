"""What the report says: text, figures and tables of every part, made from its records."""

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from eyestream_lab.study import charts, charts_attacks, classification
from eyestream_lab.study.captions import CAPTIONS
from eyestream_lab.study.cells import Record
from eyestream_lab.study.section import Section, Table

__all__ = ["sections", "sections_of"]

Records = dict[str, list[Record]]


def sections(records: Records, published: Sequence[Record]) -> list[Section]:
    """All but those that the report opens with; `records` hold the summaries too, with prices."""
    return [section for part in _IN_TURN for section in sections_of(part, records, published)]


_IN_TURN = ("identification", "utility", "correlation", "coefficients", "classification", "recovery", "baseline")


def sections_of(part: str, records: Records, published: Sequence[Record]) -> list[Section]:
    """Those of one part of the study; of `recovery` with `timing`."""
    made: dict[str, Callable[[], list[Section]]] = {
        "identification": lambda: [_verdict(records["verdicts"]), _identification(records["identification-summary"])],
        "utility": lambda: [_utility(records["utility"], published)],
        "correlation": lambda: [_correlation(records["correlation"])],
        "coefficients": lambda: [_coefficients(records["coefficients"])],
        "classification": lambda: _classification(records["classification-summary"]),
        "recovery": lambda: [_mechanism(records["recovery"], records["timing"])],
        "baseline": lambda: [_baseline(records["baseline"])],
    }
    return made[part]()


def _captioned(drawn: dict[str, Figure]) -> dict[str, tuple[str, Figure]]:
    return {name: (CAPTIONS[name], figure) for name, figure in drawn.items()}


_KEY = (
    ("source", "mechanism"),
    ("n", "rows a chunk"),
    ("epsilon", "epsilon"),
    ("minute", "epsilon a minute"),
    ("second", "loss of any second of gaze"),
)


def _verdict(table: list[Record]) -> Section:
    columns = (
        *_KEY,
        ("passed", "attacks within 2 s.e. of chance"),
        ("attacks", "of"),
        ("strongest", "strongest attacker"),
        ("protocol", "protocol"),
        ("rate", "rank-1 rate"),
        ("standard_error", "s.e."),
        ("chance", "chance"),
        ("near_chance", "all near chance"),
    )
    return Section(
        "Who is recognised by the published classifiers",
        (
            "The papers' classifiers and protocols; the first part of this page has stronger attackers. Epsilon is of "
            "all features together: of one chunk, and of a whole recording for FPA and the baselines.",
            "An attack passes when its rank-1 rate is at most 2 standard errors above chance, over random splits. "
            "'All near chance' asks that of the strongest of all attacks, with the limit widened for their number "
            "(Bonferroni). It does not say that people are hidden: with few people a real effect lies within these "
            "limits, and other attackers may find more.",
        ),
        tables=(Table("recognised", "Re-identification, all attackers and protocols", columns, table, len(_KEY)),),
    )


def _utility(records: list[Record], published: Sequence[Record]) -> Section:
    mse = "mean squared error / corpus variance"
    drawn = {
        "error": charts.utility_chart(records, "error_over_variance_median", mse),
        "nmse": charts.utility_chart(records, "nmse_median", "|NMSE|, median"),
    }
    if published:
        drawn["published"] = charts.published_chart(records, published)
    columns = (
        *_KEY,
        ("nmse", "NMSE"),
        ("utility", "utility 1/|NMSE|"),
        ("nmse_abs", "mean |NMSE|"),
        ("nmse_median", "median |NMSE|"),
        ("error_over_variance", "MSE / variance"),
        ("error_over_variance_median", "the same, median feature"),
        ("explained_variance", "explained variance"),
        ("explained_variance_median", "the same, median feature"),
        ("coverage", "covered"),
    )
    return Section(
        "Utility: the published measure",
        (
            "NMSE and utility = 1/|NMSE| as published (Bozkir et al. 2021, equations 4 to 6): the denominator holds "
            "the noisy mean, each chunk, feature and recording is averaged over the noisy runs, then over all. The "
            "mean is governed by the few runs in which the noisy mean comes out near zero, so the median is shown "
            "beside it, and two measures that behave: mean squared error over the corpus' variance, and explained "
            "variance, 1 - mean over features of squared error / squared distance to the calibration's mean. 0 is "
            "what releasing the corpus' mean would give.",
        ),
        _captioned(drawn),
        (Table("utility", "Utility", columns, records, len(_KEY)),),
    )


def _correlation(records: list[Record]) -> Section:
    lags = [r for r in records if r["measured"] == "correlation"]
    leaks = [r for r in records if r["measured"] == "leakage"]
    fifths = [r for r in records if r["measured"] == "fifth" and r["row"] in (6, 9, 21, 37, 65, 129, 256)]
    columns = (
        ("n", "rows a chunk"),
        ("states", "states"),
        ("epsilon", "epsilon"),
        ("length", "chunks"),
        ("leakage", "largest leakage of a chunk"),
        ("supremum", "supremum"),
        ("sum", "sum over the chunks"),
    )
    return Section(
        "Correlation over time",
        (
            "Correlation of each feature with itself. Rows half a second apart share 29.5 of 30 seconds of gaze.",
            "Epsilon of a chunk under correlation: temporal privacy leakage (Cao et al. 2017) for a Markov chain "
            "fitted on the calibrating people, the states being quantiles of the leading principal component of the "
            "chunk means. It is what the whole series of releases tells about one chunk to an adversary who knows "
            "that chain: the figure the papers call epsilon' and leave open. It holds for this model; the sum over "
            "the chunks holds for any.",
        ),
        _captioned({"correlation": charts.correlation_chart(lags), "leakage": charts.leakage_chart(leaks)}),
        (
            Table("leakage", "Temporal privacy leakage", columns, [r for r in leaks if r["t"] is None]),
            Table("fifth", "Over recordings, each row with the fifth one", _times("row"), fifths),
            Table("correlation", "Within recordings, against the lag", _times("lag"), lags),
        ),
    )


def _times(name: str) -> tuple[tuple[str, str], ...]:
    quantiles = (("median", "median"), ("low", "10 %"), ("high", "90 %"))
    return (("signal", "signal"), (name, name), (f"{name}_s", "seconds"), *quantiles)


def _coefficients(records: list[Record]) -> Section:
    errors = [r for r in records if r["measured"] == "error"]
    choices = [r for r in records if r["measured"] == "choice"]
    columns = (
        ("epsilon", "epsilon"),
        ("public_median", "error, public k"),
        ("private_median", "error, private k"),
        ("own_median", "error, best k of the chunk"),
        ("differs", "share of chunks whose best k is another"),
        ("bits", "bits in the best k"),
        ("leaked_published", "epsilon leaked by the published choice, a feature, at least"),
        ("leaked_published_sum", "summed over the features"),
    )
    return Section(
        "How many coefficients to keep",
        (
            "Error against k on the calibrating people, in closed form and simulated through the mechanism.",
            "Private choice: the exponential mechanism with a tenth of each feature's epsilon, scored by minus the "
            "root of the expected squared error of the chunk, which moves by at most the ball's diameter. Choosing "
            "the k that is best for the chunk at hand is a function of the data: wherever it differs from the public"
            " k it tells two chunks apart with certainty, whatever epsilon says. For the published rule, least "
            "|NMSE| over noisy runs, the loss is bounded from below, at 99.9 % confidence, from the law of the "
            "choice on two chunks.",
        ),
        _captioned({"error-k": charts.error_chart(errors), "choice": charts.choice_chart(choices)}),
        (Table("choice", "Ways to choose k (CFPA)", columns, choices),),
    )


def _classification(records: list[Record]) -> list[Section]:
    made = []
    for task in charts.distinct(records, "task"):
        own = [r for r in records if r["task"] == task]
        person = task == classification.PERSON
        text = (
            "First half of each recording against its second half, trained and tested on the same private release."
            if person
            else f"Label '{task}': every person is classified by what was learned of all others."
        )
        columns = (
            *_KEY,
            ("classifier", "classifier"),
            ("per_window", "accuracy a window"),
            ("per_window_interval", "+-"),
            ("voted", "majority vote"),
            ("voted_interval", "+-"),
            ("chance", "chance"),
        )
        figures = {
            f"classification-{task}-{measure}": (
                CAPTIONS["classification"],
                charts_attacks.classification_chart(own, task, measure),
            )
            for measure in ("per_window", "voted")
        }
        title = "Classification: who is it" if person else f"Classification: {task}"
        made.append(
            Section(
                title,
                (text,),
                figures,
                (Table(f"classification-{task}", f"Accuracy, {task}", columns, own, len(_KEY)),),
            )
        )
    return made


def _identification(summary: list[Record]) -> Section:
    epsilons = sorted({r["epsilon"] for r in summary if r["epsilon"]})
    shown = [e for e in epsilons if e >= 48] or epsilons
    return Section(
        "Re-identification attacks",
        (
            "The four classifiers, a radial basis function network with 32 centres a person, and a matcher of means "
            "that uses every row. A random contiguous half of every recording is attributed; what lies within 30 s "
            "of it is left out of the training. Protocols: private to raw (the papers'), white box (learned from and"
            " tested on one private release), white box anew (tested on another release of the same rows, as in "
            "another session), raw to private.",
            "FPA spreads one draw of noise over a recording: within one release people are recognised by their noise. "
            "That says nothing about their eyes, and is why the second release is there.",
        ),
        _captioned(
            {
                "identification": charts_attacks.identification_chart(summary),
                "match": charts_attacks.match_chart(summary, "random forest", shown[:4]),
            }
        ),
    )


def _mechanism(recovery: list[Record], timing: list[Record]) -> Section:
    averaging = [r for r in recovery if r["measured"] == "averaging"]
    filtering = [r for r in recovery if r["measured"] == "filtering"]
    columns = (
        ("release", "release"),
        ("event", "event"),
        ("field", "best field"),
        ("area", "area under ROC curve"),
        ("standard_error", "s.e. if nothing is told"),
        ("length_error_s", "error of the session's length, s"),
        ("chunk_s", "length of a chunk, s"),
    )
    moments = (("explained_variance", "explained variance"), ("explained_variance_median", "median feature"))
    return Section(
        "Attacks on the mechanism",
        (
            "Averaging: the same chunk, released again and again; the spends add up, and so does what is learned.",
            "Filtering: one release of every chunk, estimated with the corpus' covariance between features, between "
            "people and over time (Wiener filter, Kalman filter, smoother). 0 is what the corpus' mean alone gives.",
            "Timing and metadata: the attacker sees when a payload is published, its size and every field but the "
            "values, learns on half of the recordings and is tested on the other half. 0.5 is guessing.",
        ),
        _captioned(
            {
                "averaging": charts_attacks.averaging_chart(averaging),
                "filtering": charts_attacks.filtering_chart(filtering),
            }
        ),
        (
            Table("timing", "Timing and metadata", columns, timing),
            Table("filtering", "Filtering", (*_KEY, ("attack", "attacker uses"), *moments), filtering, len(_KEY)),
        ),
    )


def _baseline(records: list[Record]) -> Section:
    columns = (
        ("form", "form"),
        ("epsilon", "epsilon of a feature"),
        ("noise_sd", "noise s.d. / range"),
        ("mean_loss", "mean loss of a value"),
        ("loss_99_9", "99.9 % quantile"),
        ("recording_loss", "mean loss of a recording of 600"),
    )
    return Section(
        "The exponential mechanism of Steil et al.",
        (
            "As published the noise is the logarithm of an exponential draw: no guarantee. Repaired it is Laplace "
            "noise of scale 2 t_max delta / epsilon, epsilon / 2 for a feature of a recording. Both stand in the "
            "tables above, at the same total epsilon of a recording over all features.",
        ),
        _captioned({"baseline": charts_attacks.baseline_chart(records)}),
        (Table("baseline", "Loss of the noise", columns, records),),
    )
