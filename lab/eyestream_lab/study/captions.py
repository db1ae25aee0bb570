"""Under each figure of the report: what is drawn, and what to conclude from it."""

__all__ = ["CAPTIONS", "FRONTIER"]

FRONTIER = (
    "Utility against identity, at equal epsilon a minute. Higher is more useful, and further left is harder to "
    "recognise: what you want lies in the upper left. Utility is explained variance around the common mean, with "
    "features that follow from each other counted once. Identity is the area under the ROC curve of the strongest "
    "attacker that was tried. Two ways differ where their bars (95 % over people) do not overlap. Dashed: the most "
    "that a release of this epsilon could explain under klt's model (causal rate-distortion). Open marks: shrunk, "
    "smoothed and clipped. An arrow at the lower edge: it explains less than is drawn. A way without levels, such as "
    "the default of `eyestream init`, is to be judged by the picture 'Own means removed'."
)

CAPTIONS = {
    "frontier-own": (
        "Own means removed: the same with each person's own mean removed from both sides. It shows what comes "
        "through of behaviour alone, and is the fair picture of a way without levels. A mark above 0 tells an "
        "application more than somebody's average does."
    ),
    "error": (
        "Mean squared error / corpus variance, median feature. Lower is better. At 1 the release is as wrong as the "
        "corpus' mean, which costs no epsilon. Above 1 it is of no use."
    ),
    "nmse": (
        "Median of |NMSE| over chunks, features, recordings and runs. Lower is better. It ranks mechanisms as the "
        "papers do. No value of it says that a release is useful."
    ),
    "published": (
        "NMSE beside published values. People and recordings are others, so compare orders of magnitude and slopes. "
        "Where they agree, the mechanism here is the published one."
    ),
    "correlation": (
        "Correlation coefficient against lag. Where the signal's line is high, rows at this distance repeat each "
        "other. Noise that is drawn for each row averages out over them, so rows are released in chunks."
    ),
    "leakage": (
        "Temporal privacy leakage relative to epsilon. 1 is what the release of the chunk alone tells. A line above "
        "1 says by how much the other releases of a session raise it, under this model."
    ),
    "error-k": (
        "Squared error over variance, mean over the features. The least of each line is the k to calibrate with."
    ),
    "choice": (
        "Three ways to choose k for CFPA. Where the public k is as good as the other two, nothing speaks for a "
        "choice that looks at the data."
    ),
    "classification": (
        "Accuracy against epsilon. Bars: 95 % confidence intervals over releases and classifier seeds. Below the "
        "line of raw rows something is lost. A bar that reaches the line of chance shows nothing."
    ),
    "identification": (
        "Strongest attacker of each protocol. Bars: 2 standard errors over the splits. A bar that reaches the line "
        "of chance does not show that anybody is recognised, nor that nobody is."
    ),
    "match": (
        "Cumulative match curves of the random forest, learned on one release and tested on another one. The nearer "
        "a curve lies to chance, the less a list of likely people helps an attacker."
    ),
    "averaging": (
        "What averaging recovers. A line that rises shows that several releases of one chunk tell more than one "
        "does, so each of them costs."
    ),
    "filtering": (
        "What knowledge of the corpus recovers. The highest line of a mechanism is what its releases tell whoever "
        "knows the corpus."
    ),
    "baseline": (
        "Privacy loss of one value against a neighbour one range away. A line above the dotted one loses more than "
        "is claimed."
    ),
}
"""Of figures by their names; `traces` says more."""
