"""Grounds of a mechanism's guarantee, in its own words: each mechanism has a text of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple


class Fact(NamedTuple):
    """Something that a guarantee says of one mechanism or calibration alone.

    Attributes
    ----------
    topic : in a word or two, as the other topics of a guarantee.
    words : in sentences.
    claim : for machines: keys of the claim, and their values as JSON knows them.
    """

    topic: str
    words: str
    claim: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Protection:
    """How the noise of one mechanism is made, and against whom it holds.

    Attributes
    ----------
    law
        Which law, on what, and how it is drawn; a sentence.
    exact
        Which steps of the proof are exact, and which numbers are not part of it; a sentence.
    sampler
        Whether and where the deviation of the drawn law from the ideal one is charged; a sentence.
    floating_point
        `integers`: what is released is a public function of integers that have the law; `none`: no such argument.
    entropy
        Where the random bits come from; a sentence.
    attacker
        Whom the guarantee holds against, as "an attacker ...".
    use
        What releases are good for, and what not; None: nothing is said.
    """

    law: str
    exact: str
    sampler: str
    floating_point: Literal["integers", "none"]
    entropy: str = "the operating system's generator, asked directly for each release"
    attacker: str = "who cannot break the system's generator, with all other computing power"
    use: str | None = None


def additive_protection(law: str) -> Protection:
    """The protection of mechanisms that add integer noise to coordinates; `law` says to which."""
    return Protection(
        law=f"{law}: independent discrete Laplace noise, integers on a grid of 2^-20 to 2^-21 of the noise's scale "
        "(coarser, up to 2^-10, at a very large epsilon)",
        exact="the sensitivity is read off a ball of integers that every chunk is held to in integer arithmetic; the "
        "thresholds of the sampler and the sum of the losses of all coordinates are verified in exact arithmetic when "
        "the mechanism is built. Floating point decides where in the ball a chunk lies, and turns the noisy integers, "
        "which have the guarantee, into values",
        sampler="the drawn law deviates from the ideal one by a bounded factor, charged inside epsilon",
        floating_point="integers",
    )
