"""The one face of systems that release a whole corpus."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from eyestream_lab.corpora.claims import Promise
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.kinds import Kind

Data = TypeVar("Data")


class Unit(NamedTuple):
    """Recordings that are released together: interrupted, all are released again, with new random numbers."""

    name: str
    parts: tuple[Part, ...]


class System(Protocol[Data]):
    """A system that releases a corpus."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    @property
    def options(self) -> Mapping[str, object]:
        """Options that it was built with."""
        ...

    @property
    def released_kind(self) -> Kind[Any] | None:
        """Kind of the release, where it is another one than that of the corpus."""
        ...

    def units(self, corpus: Dataset[Data], survey: Survey) -> list[Unit]:
        """Units to release, in order; ConfigError or RecordingError where the corpus cannot be released at all."""
        ...

    def promise(self, corpus: Dataset[Data], survey: Survey) -> Promise:
        """The claim of the release. A function of who took part in what, of numbers of rows, and of the options."""
        ...

    def release(self, corpus: Dataset[Data], survey: Survey, unit: Unit, draws: Draws) -> Iterator[tuple[Part, Any]]:
        """The released recordings of a unit, one at a time."""
        ...


def recordings_alone(corpus: Dataset[Data]) -> list[Unit]:
    """A unit for each recording."""
    return [Unit(part.recording, (part,)) for part in corpus.parts]


def tasks_of(corpus: Dataset[Data]) -> list[Unit]:
    """A unit for each task."""
    return [Unit(task, corpus.of_task(task)) for task in corpus.tasks]
