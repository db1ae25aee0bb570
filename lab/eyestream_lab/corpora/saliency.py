"""Saliency maps with Gaussian noise (after Liu et al. 2019), one for each task over all its people.

A person's map counts their fixations on the cells of a declared field. It is scaled down to L2 norm C where it is
longer and rounded towards 0 to whole steps. The released map is the sum over people with rounded Gaussian noise,
smoothed, clipped at 0 and scaled to sum 1: the last three are post-processing.

Neighbouring corpora differ in all of one person's recordings of the task. Two maps without negative numbers, of norm C
at most, are at most sqrt(2) C apart (|a - b|^2 = |a|^2 + |b|^2 - 2 a b). The textbook bound is 2 C.

A person who took part in T tasks has T maps: together they are at most sqrt(2 T) C apart, and the claim says which
epsilon that is at the same delta.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.kinds import DifferentialPrivacy
from eyestream.errors import ConfigError
from eyestream.gaze.events import Fixation
from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.claims import PERSON, Promise, exact, of_person
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.kinds import MAPS, Fixations, Kind, Map
from eyestream_lab.corpora.rounded_gaussian import SIGMA, RoundedGaussian, gaussian_epsilon, gaussian_sigma
from eyestream_lab.corpora.system import Unit, tasks_of
from eyestream_lab.events.labels import detect

Array = NDArray[np.float64]

TASKS = "Which tasks there are."
EVERYBODY = "everybody"
"""The `participant_id` of a map."""
_SHRINK = 1.0 - 2.0**-40
"""So that no rounding of these lines makes a map longer than C."""


@dataclass(frozen=True)
class Field:
    """The declared field: cells of `cell_deg`, from -half to +half of each extent around straight ahead."""

    width_deg: float = 60.0
    height_deg: float = 40.0
    cell_deg: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.cell_deg <= min(self.width_deg, self.height_deg) and max(self.shape) <= 2048):
            raise ConfigError("saliency-gaussian: the field needs 1 to 2048 cells on each side")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return round(self.height_deg / self.cell_deg), round(self.width_deg / self.cell_deg)

    def edges(self) -> tuple[Array, Array]:
        """Edges of columns from the left, and of rows from the top."""
        rows, columns = self.shape
        x = np.linspace(-self.width_deg / 2, self.width_deg / 2, columns + 1)
        return x, np.linspace(self.height_deg / 2, -self.height_deg / 2, rows + 1)

    def counts(self, xy: Array) -> Array:
        """(H, W) how many of the places (n, 2) lie on each cell; those outside count nowhere."""
        x, y = self.edges()
        found: Array = np.histogram2d(xy[:, 1], xy[:, 0], bins=(y[::-1], x))[0]
        return found[::-1]


def fixation_counts(recording: GazeRecording | Fixations, field: Field) -> Array:
    """(H, W) fixations of a recording on each cell."""
    if isinstance(recording, Fixations):
        return field.counts(recording.places[np.isfinite(recording.places).all(axis=1)])
    events, _ = detect(recording.profile, recording.samples)
    places = [(event.x, event.y) for event in events if isinstance(event, Fixation)]
    return field.counts(np.array(places).reshape(-1, 2))


def whole_steps(counts: Array, clip: float, step: float) -> NDArray[np.int64]:
    """A person's map in whole steps, of L2 norm at most `clip` / `step`, whatever the counts are."""
    norm = float(np.sqrt((counts**2).sum()))
    scale = min(1.0, clip / norm) if norm > 0 else 1.0
    return np.trunc(counts * (scale * _SHRINK / step)).astype(np.int64)


def _smoothed(density: Array, sd_cells: float) -> Array:
    """With a Gaussian kernel along both axes; what falls over the edge is lost."""
    if sd_cells <= 0:
        return density
    reach = int(np.ceil(4 * sd_cells))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sd_cells) ** 2)
    kernel /= kernel.sum()
    for axis in (0, 1):
        padded = np.pad(density, [(reach, reach) if i == axis else (0, 0) for i in (0, 1)])
        density = np.apply_along_axis(np.convolve, axis, padded, kernel, "valid")
    return density


@dataclass(frozen=True)
class SaliencyGaussian:
    """A map for each task.

    Attributes
    ----------
    epsilon, delta
        Of one person and one map.
    clip
        C, in fixations.
    field
        Declared, not read from the data.
    kernel_deg
        Standard deviation of the smoothing; 0 for none.
    """

    epsilon: float
    delta: float
    clip: float = 10.0
    field: Field = Field()
    kernel_deg: float = 1.0
    name = "saliency-gaussian"
    released_kind: Kind[Map] = MAPS

    def __post_init__(self) -> None:
        if not 0 < self.clip < 1e6:
            raise ConfigError(f"{self.name}: clip must be positive, not {self.clip:g}")
        self.sigma()

    def sigma(self) -> float:
        """Standard deviation of the noise in a cell of the summed map, in fixations."""
        rows, columns = self.field.shape
        return gaussian_sigma(self.epsilon, self.delta, np.sqrt(2.0) * self.clip, rows * columns)

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        size = f"{self.field.width_deg:g} x {self.field.height_deg:g} degrees, cells of {self.field.cell_deg:g}"
        given = {"epsilon": self.epsilon, "delta": self.delta, "clip": self.clip}
        return given | {"field": size, "kernel_deg": self.kernel_deg}

    def units(self, corpus: Dataset[GazeRecording | Fixations], survey: Survey) -> list[Unit]:
        """A task each."""
        most = 1.0 / len(corpus.people) ** 2
        if self.delta > most:
            raise ConfigError(f"{self.name}: delta must be at most {most:g} for {len(corpus.people)} people")
        return tasks_of(corpus)

    def promise(self, corpus: Dataset[GazeRecording | Fixations], survey: Survey) -> Promise:
        """Approximate differential privacy of a person: of all their maps, by the exact profile where floats hold
        it."""
        tasks, one_map = corpus.most(), exact("map", self.epsilon, self.delta)
        whole = gaussian_epsilon(self.delta, self.sigma() / (np.sqrt(2.0 * tasks) * self.clip))
        summed = of_person(one_map, tasks, self.name)
        claim = DifferentialPrivacy(exact("person", whole, self.delta), PERSON) if np.isfinite(whole) else summed
        return Promise(claim, (), (TASKS,), (one_map,))

    def release(
        self, corpus: Dataset[GazeRecording | Fixations], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Map]]:
        """The map of a task; one recording is in memory at a time."""
        step = self.sigma() / SIGMA
        total = np.zeros(self.field.shape, dtype=np.int64)
        for part in unit.parts:
            total += whole_steps(fixation_counts(corpus.load(part), self.field), self.clip, step)
        noisy = total + draws.draw(RoundedGaussian(total.size)).reshape(total.shape)
        density = np.maximum(
            _smoothed(np.asarray(noisy * step, np.float64), self.kernel_deg / self.field.cell_deg), 0.0
        )
        whole = float(density.sum())
        density = density / whole if whole > 0 else np.full(density.shape, 1.0 / density.size)
        x, y = self.field.edges()
        labels = ("",) * len(corpus.label_names)
        yield Part(EVERYBODY, unit.name, unit.name, labels), Map(density, x, y)
