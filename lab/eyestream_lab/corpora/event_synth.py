"""event-synth-PD (David-John, Butler, Jain, TVCG 2023): events drawn again until another person could have made them.

A **fixation** is drawn from its own model, t normal samples. Its log-density under every fixation of the other people
at the task is compared with the one under its own (`eyestream_lab.corpora.deniability`); it is released when k
people, its owner among them, are of one class. The paper takes the probability of boxes of 0.01 degrees; as a product
of densities and of the boxes' sizes, which are the same for every record, it has the same classes up to the boxes'
width.

A **saccade** is drawn in a latent space: a coder gives mean and deviation of its code, a code is drawn, tested by its
density under the codes of other people's saccades, and decoded to a profile. The coder here is the fit of
`eyestream_lab.corpora.events`, with public deviations. `event-synth-pd-vae` takes the variational autoencoder of
the paper in its place (`saccade_vae`), trained on the saccades of the task.

**The published loop has no bound.** Here an event is drawn `TRIES` times at most, and then it is lost in the release.

**Time is linear in hours.** Records are looked at only until k people are alike, which takes about k / p of them, where
p is the share of records that are alike: it does not grow with the corpus. Records whose first mean is too far away to
be alike are never looked at. The answer is that of a comparison with all.

**Whether fixations pass depends on where they are.** Two people hardly ever look at places that are equal within the
spread of a fixation, so the literal test passes seldom. `event-synth-pd-centred` compares spreads only, each fixation
around its own mean: nearly all pass, and where people looked is not protected.

**The test covers less than what leaves.** As published, a saccade ends on its person's own landing point, and every
event has its own number of samples at its own time. No test looks at these, and the landings of one task name everybody
to who holds the raw recordings. The claim says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.claims import EVENTS, LANDINGS, PUBLIC, PlausibleDeniability, Promise
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.deniability import check_deniability, people_alike
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.events import Canvas, Events, events_of
from eyestream_lab.corpora.saccade_vae import SaccadeVAE, check_jax
from eyestream_lab.corpora.system import Unit, tasks_of

Array = NDArray[np.float64]

TRIES = 32
PLACES = "Where a person looked: released fixations are drawn around the person's own means."
_LOG_2PI = float(np.log(2.0 * np.pi))
_FIRST = 256
"""Records that are looked at first, evenly spaced; then four times as many, and so on, and at last all."""
_SLACK = 1.0
"""Part of a log-density, far above what rounding can do to one."""


class SaccadeCoder(Protocol):
    """A latent space for profiles of saccades."""

    def encode(self, events: Events) -> tuple[Array, Array]:
        """Means and deviations (s, d) of the codes of a recording's saccades."""
        ...

    def decode(self, code: Array, events: Events, saccade: int) -> Array:
        """The profile (3,) of a code (d,), in the place of one saccade of a recording."""
        ...


class FitCoder:
    """The code of a profile is (ln a, b, ln c), with deviations that are public figures of the program."""

    deviation = np.array([0.25, 0.1, 0.25])

    def encode(self, events: Events) -> tuple[Array, Array]:
        """See `SaccadeCoder`."""
        a, b, c = events.profile.T
        mean = np.stack((np.log(np.maximum(np.abs(a), 1e-6)), b, np.log(np.maximum(c, 1e-3))), axis=1)
        return mean, np.broadcast_to(self.deviation, mean.shape)

    def decode(self, code: Array, events: Events, saccade: int) -> Array:
        """See `SaccadeCoder`."""
        return np.array([np.exp(code[0]), code[1], np.exp(code[2])])


@dataclass(frozen=True)
class Records:
    """Models of r events, independent normal values with means and deviations (r, d), and whose each is (r,).

    They are sorted by their first means. Those that are equal there are mixed: a few of them are of many people.
    """

    mean: Array
    sd: Array
    person: NDArray[np.intp]

    @classmethod
    def of(cls, models: Sequence[tuple[Array, Array]]) -> "Records":
        """Models of the events of each person."""
        person = np.repeat(np.arange(len(models)), [len(mean) for mean, _ in models])
        mean, sd = (np.concatenate([one[i] for one in models]) for i in (0, 1))
        order = np.lexsort((np.random.default_rng(0).permutation(len(mean)), mean[:, 0]))
        return cls(mean[order], sd[order], person[order])

    def others(self, person: int) -> "Records":
        """Those of all other people."""
        other = self.person != person
        return Records(self.mean[other], self.sd[other], self.person[other])

    @cached_property
    def _coefficients(self) -> Array:
        """(r, 2 d + 1) of sums of squares, sums and number of values in a log-density."""
        weight = 1.0 / self.sd**2
        each = 0.5 * self.mean**2 * weight + np.log(self.sd) + 0.5 * _LOG_2PI
        return np.concatenate((-0.5 * weight, self.mean * weight, -each.sum(axis=1, keepdims=True)), axis=1)

    def log_density(self, values: Array, part: slice = slice(None)) -> Array:
        """Log-density of values (t, d) under each model, or under those of a part."""
        sums = np.array([*(values**2).sum(axis=0), *values.sum(axis=0), len(values)])
        return np.asarray(self._coefficients[part] @ sums)

    @cached_property
    def _least_sd(self) -> Array:
        return np.asarray(self.sd.min(axis=0, initial=np.inf))

    def reach(self, values: Array, log_p: float) -> float:
        """How far from the mean of values (t, d) the first mean of a model can be that gives them `log_p` or more.

        Of t values with mean y and variance v (biased), a model with mean m and deviation s has the log-density -t sum
        [ln s + q / (2 s^2) + ln(2 pi) / 2], q = v + (y - m)^2, summed over d. For s of at least s0, -ln s - q / (2 s^2)
        is largest at s^2 = max(q, s0^2), and falls with q. With m = y in all dimensions but the first, that leaves a
        largest q there.
        """
        v, floor = values.var(axis=0), self._least_sd**2
        best = -0.5 * (np.log(np.maximum(v, floor)) + v / np.maximum(v, floor))
        left = log_p / len(values) + 0.5 * _LOG_2PI * len(v) - float(best[1:].sum())
        q = float(np.exp(np.minimum(-2.0 * left - 1.0, 700.0)))
        if q < floor[0]:
            q = float(floor[0] * (-np.log(floor[0]) - 2.0 * left))
        return float(np.sqrt(max(q - v[0], 0.0)))

    def enough(self, values: Array, own: float, k: int, gamma: float) -> bool:
        """Whether k people have a record of the class of `own`, the seed's owner included."""
        reach, place = self.reach(values, own - float(np.log(gamma)) - _SLACK), values[:, 0].mean()
        begin, end = np.searchsorted(self.mean[:, 0], (place - reach, place + reach)).tolist()
        step = 1
        while end - begin > _FIRST * step:
            step *= 4
        while begin < end and step > 0:
            near, step = slice(begin, end, step), step // 4
            if people_alike(own, self.log_density(values, near), self.person[near], gamma) >= k:
                return True
        return False


@dataclass(frozen=True)
class _Test:
    """Draws until k people could have made what was drawn."""

    k: int
    gamma: float
    draws: Draws

    def drawn(self, mean: Array, sd: Array, count: int, others: Records) -> Array | None:
        """(count, d) values that passed, or None after `TRIES` draws."""
        seed = Records(mean[None], sd[None], np.zeros(1, dtype=np.intp))
        for _ in range(TRIES):
            values = mean + sd * self.draws.normal(count, len(mean))
            own = float(seed.log_density(values)[0])
            if others.enough(values, own, self.k, self.gamma):
                return np.asarray(values)
        return None


@dataclass(frozen=True)
class EventSynthPD:
    """The literal test: fixations are compared by place and spread.

    Attributes
    ----------
    k, gamma
        People of one class that an event needs, and the width of a class; gamma above 1.
    """

    k: int
    gamma: float
    name = "event-synth-pd"
    released_kind = None
    compared = "the place and the spread of each released fixation"
    left: ClassVar[tuple[str, ...]] = ()
    as_it_is: ClassVar[tuple[str, ...]] = ()
    uncovered = (
        "where each saccade landed, which is the person's own raw sample, how many events there were, when each "
        "began, and how many samples it had"
    )
    coded = "fit"

    def __post_init__(self) -> None:
        check_deniability(self.k, self.gamma, self.name)

    @property
    def options(self) -> dict[str, object]:
        """Options as given, and what saccades are coded with."""
        return {"k": self.k, "gamma": self.gamma, "tries": TRIES, "saccades": self.coded}

    def units(self, corpus: Dataset[GazeRecording], survey: Survey) -> list[Unit]:
        """A task each."""
        survey.check_rate()
        corpus.check_cohort(self.k)
        return tasks_of(corpus)

    def promise(self, corpus: Dataset[GazeRecording], survey: Survey) -> Promise:
        """Plausible deniability of the released events."""
        return Promise(
            PlausibleDeniability(
                self.k,
                self.gamma,
                "the people at a task, event by event",
                f"of these: {self.compared}, given how many samples it has, and how the speed of each released saccade "
                "rises and falls",
                self.uncovered,
            ),
            (
                "An event is drawn again until a draw passes. The claim does not describe what that tells.",
                "A lost event says that few others have one like it.",
                "Nothing for all events of a person together: each is tested by itself.",
                "Landings and events name people to an attacker who holds raw recordings of one task.",
                *self.left,
            ),
            (*PUBLIC, EVENTS, LANDINGS, *self.as_it_is),
        )

    def release(
        self, corpus: Dataset[GazeRecording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, GazeRecording]]:
        """Each person's own timeline, lost where no draw passed; the models of a task are in memory."""
        events = [events_of(corpus.load(part)) for part in unit.parts]
        fixations = Records.of([(one.mean - self.around(one.mean), one.sd) for one in events])
        coder = self.coder(events, draws)
        saccades = Records.of([coder.encode(one) for one in events])
        test = _Test(self.k, self.gamma, draws)
        for person, (part, one) in enumerate(zip(unit.parts, events, strict=True)):
            canvas = self._synthesised(one, test, coder, fixations.others(person), saccades.others(person))
            yield part, canvas.recording(survey.rate_hz)

    def _synthesised(
        self, own: Events, test: _Test, coder: SaccadeCoder, fixations: Records, saccades: Records
    ) -> Canvas:
        canvas, code = Canvas(own.timeline), coder.encode(own)
        counts = own.timeline.end - own.timeline.begin
        at_fixation, at_saccade = 0, 0
        for event, fixed in enumerate(own.timeline.is_fixation.tolist()):
            if fixed:
                mean, around = own.mean[at_fixation], self.around(own.mean[at_fixation])
                drawn = test.drawn(mean - around, own.sd[at_fixation], int(counts[event]), fixations)
                at_fixation += 1
                if drawn is not None:
                    canvas.fixation(event, around + drawn)
            else:
                drawn = test.drawn(code[0][at_saccade], code[1][at_saccade], 1, saccades)
                if drawn is not None:
                    profile = coder.decode(drawn[0], own, at_saccade)
                    canvas.saccade(event, profile, own.landing[at_saccade])
                at_saccade += 1
        return canvas

    def coder(self, events: list[Events], draws: Draws) -> SaccadeCoder:
        """The latent space of the saccades of a task."""
        return FitCoder()

    def around(self, mean: Array) -> Array:
        """Offset of fixations with these means before they are compared: nothing."""
        return np.zeros_like(mean)


class EventSynthPDCentred(EventSynthPD):
    """Fixations are compared by spread, each around its own mean."""

    name = "event-synth-pd-centred"
    compared = "the spread of each released fixation"
    as_it_is: ClassVar[tuple[str, ...]] = (PLACES,)
    uncovered = (
        f"{EventSynthPD.uncovered}; and where each fixation was, but for a new draw around the person's own mean"
    )

    def around(self, mean: Array) -> Array:
        """The mean itself."""
        return mean


class EventSynthPDVAE(EventSynthPDCentred):
    """Saccades are coded by a variational autoencoder; fixations are compared by spread."""

    name = "event-synth-pd-vae"
    left: ClassVar[tuple[str, ...]] = (
        "The autoencoder is trained on the saccades of the task, without noise, and is in each draw.",
        "A saccade is decoded with its own amplitude and duration, so its shape tells of them.",
    )
    uncovered = f"{EventSynthPDCentred.uncovered}; and the amplitude and the duration that each saccade is decoded with"
    coded = "variational autoencoder"

    def __post_init__(self) -> None:
        check_jax(self.name)
        super().__post_init__()

    def coder(self, events: list[Events], draws: Draws) -> SaccadeCoder:
        """Trained on the task, with a seed of 256 bits."""
        return SaccadeVAE.of(events, np.random.default_rng(draws.bits.words(8)))
