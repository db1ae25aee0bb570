"""What a whole session tells under a class of processes: a value and its words; `eyestream.correlation` finds it."""

from dataclasses import dataclass

__all__ = ["NO_CLASS", "Correlated"]

NO_CLASS = (
    "chunks of one person resemble each other, so a whole session tells more about a chunk than its own release does. "
    "The configuration names no class of processes: the sum over the chunks of a session is the only bound"
)
"""What is said where the configuration names no class."""


@dataclass(frozen=True, slots=True)
class Correlated:
    """What a whole session tells if its chunks follow a published class of processes (`eyestream.correlation`).

    Attributes
    ----------
    name, about : of the class: what it is called, and where its margins come from.
    most, time_constant_s : a_max from one chunk to the next, and the time constant that it follows from.
    within : the range that the compared contents lie in, in words.
    chunks : of the session, at most.
    plain : sum of the losses of so many chunks, which holds without the class.
    counted : what `chunks` counts, where that was chosen; None: nothing is said.
    chunk, second : epsilon' of one chunk, and of one second of gaze; never above `plain`. None: nothing is claimed
        of a second, as where it is not known how many chunks it enters.
    """

    name: str
    about: str
    most: float
    time_constant_s: float
    within: str
    chunks: int
    plain: float
    chunk: float
    second: float | None
    counted: str | None = None

    def words(self) -> str:
        """Two sentences: the claim with its class, and what holds outside it."""
        low = f"below the plain sum, {self.plain:g}"
        what = low if self.chunk < self.plain else f"no less than the plain sum, {self.plain:g}"
        counted = "" if self.counted is None else f" ({self.counted})"
        second = shift = ""
        if self.second is not None:
            second = f", and between two contents of one second of gaze by at most e^{self.second:.4g}"
            shift = (
                "; and two contents of a second of gaze shift the means of the chunks that hold it, by no more than "
                "that range, and nothing else"
            )
        return (
            f"if the chunks follow the class {self.name!r}, a whole session of at most {self.chunks} chunks{counted} "
            f"changes the odds between two contents of one chunk by a factor of at most e^{self.chunk:.4g} (epsilon' = "
            f"{self.chunk:.4g}, {what}){second}. The class: about a level of the person's own, which the attacker may "
            "know, chunks are a stationary Gaussian autoregressive process of order one, with a coefficient of at most "
            f"{self.most:.3g} from one chunk to the next (time constant at most {self.time_constant_s:g} s); rows "
            f"are complete; the two contents lie in a range: {self.within}{shift}. "
            f"{self.about}. Outside this class only the plain sum holds, and of the level itself it says nothing"
        )

    def claim(self) -> dict[str, object]:
        """For machines: plain values that JSON knows."""
        return {
            "class": self.name,
            "about": self.about,
            "process": "stationary Gaussian autoregressive of order one, about a level of the person that is known",
            "a_max": self.most,
            "time_constant_s": self.time_constant_s,
            "within": self.within,
            "chunks": self.chunks,
            "counted": self.counted,
            "epsilon_prime": {"chunk": self.chunk, "second_of_gaze": self.second},
            "outside_the_class": {"epsilon": self.plain, "of": "plain sum over the chunks"},
        }
