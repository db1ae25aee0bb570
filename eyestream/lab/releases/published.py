"""What the papers report, and a verdict in words on whether it holds here.

Figures as tables and figures of the papers have them: David-John, Hosfelt, Butler, Jain (TVCG 2021) for baselines;
David-John, Butler, Jain (TVCG 2023) for Kaleido, k-same-synth and event-synth-PD on EHTask. Shares of people named
rightly by radial basis function networks on events, trained on released and tested on raw gaze.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["PUBLISHED", "Published", "verdict"]

_KALEIDO = {
    (50, 2): (10.2, 7.3, 7.7, 7.8),
    (50, 10): (5.7, 4.0, 10.5, 9.3),
    (200, 2): (8.0, 6.0, 9.0, 8.3),
    (200, 10): (6.7, 7.2, 10.3, 6.0),
}
_EVENT_SYNTH = {2: (13.5, 11.7, 13.8), 4: (12.2, 15.0, 14.2)}


@dataclass(frozen=True)
class Published:
    """A share of a paper.

    Attributes
    ----------
    line
        System and options, as in the cells.
    corpus
        Whose figure it is.
    share
        Of people.
    """

    line: str
    corpus: str
    share: float


PUBLISHED: tuple[Published, ...] = (
    *(
        Published(f"kaleido-as-published, epsilon = {e:g}, w = {w}, r_deg = {r}", "ehtask", share / 100)
        for (w, r), shares in _KALEIDO.items()
        for e, share in zip((10, 5, 2, 1), shares, strict=True)
    ),
    *(
        Published(f"k-same-synth, k = {k}", "ehtask", share)
        for k, share in ((2, 0.097), (4, 0.087), (6, 0.085), (8, 0.075))
    ),
    *(
        Published(f"event-synth-pd, k = {k}, gamma = {g:g}", "ehtask", share / 100)
        for k, shares in _EVENT_SYNTH.items()
        for g, share in zip((1.5, 2.0, 3.0), shares, strict=True)
    ),
    Published("gaussian, sd_deg = 10", "et-dk2", 0.30),
    Published("gaussian, sd_deg = 5", "et-dk2", 0.35),
    Published("gaussian, sd_deg = 1", "et-dk2", 0.53),
    Published("temporal-held, k = 3", "et-dk2", 0.79),
    Published("spatial, level = 64", "et-dk2", 0.48),
    Published("spatial, level = 16", "et-dk2", 0.62),
)


def verdict(one: Published, corpus: str, shares: list[float] | None, people: int) -> str:
    """Whether a published share holds for ours, the shares of several splits of `people`.

    Reproduced: within two standard errors, of the splits and of so many people together.
    """
    if corpus != one.corpus:
        return f"not judged: the figure is of {one.corpus}; give its folder, with --corpus {one.corpus}"
    if shares is None:
        return "not judged: this cell could not be made"
    own = float(np.mean(shares))
    error = float(np.hypot(np.std(shares) / np.sqrt(len(shares)), np.sqrt(one.share * (1 - one.share) / people)))
    if abs(own - one.share) <= 2 * error:
        return "reproduced"
    return f"not reproduced: ours is {'higher' if own > one.share else 'lower'} by {abs(own - one.share):.2f}"
