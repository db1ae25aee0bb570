"""Systems by name, each with the options that it takes and what it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from eyestream.errors import ConfigError, meant
from eyestream.offline.corpora.event_synth import EventSynthPD, EventSynthPDCentred
from eyestream.offline.corpora.exponential import ExponentialAsPrinted, ExponentialDP
from eyestream.offline.corpora.ksame import KSameOnePartition, KSameSelect
from eyestream.offline.corpora.ksame_synth import KSameSynth, KSameSynthTimed
from eyestream.offline.corpora.marginals import MarginalsNoised, MarginalsPD
from eyestream.offline.corpora.saliency import SaliencyGaussian
from eyestream.offline.corpora.streams import ChunkByChunk, WholeRecordings
from eyestream.offline.corpora.synthesiser import LevelSynth
from eyestream.offline.corpora.system import System

__all__ = ["SYSTEMS", "SystemEntry", "make_system"]


@dataclass(frozen=True)
class SystemEntry:
    """How a system is built.

    Attributes
    ----------
    make
        Of its options.
    reads
        Rows of features, or gaze.
    needed, optional
        Names of options. `calibration` is a `Calibration`, all others are numbers, or true.
    """

    make: Callable[..., System[Any]]
    reads: Literal["rows", "gaze"]
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()


_CALIBRATED = ("calibration", "epsilon")

SYSTEMS: Mapping[str, SystemEntry] = {
    "k-same-select": SystemEntry(KSameSelect, "rows", ("k",)),
    "k-same-select-one-partition": SystemEntry(KSameOnePartition, "rows", ("k",)),
    "marginals-pd": SystemEntry(MarginalsPD, "rows", ("k",), ("gamma",)),
    "marginals-noised": SystemEntry(MarginalsNoised, "rows", (*_CALIBRATED, "delta")),
    "exponential-dp": SystemEntry(ExponentialDP, "rows", _CALIBRATED, ("every",)),
    "exponential-dp-as-printed": SystemEntry(ExponentialAsPrinted, "rows", ("epsilon",), ("as_published", "every")),
    "k-same-synth": SystemEntry(KSameSynth, "gaze", ("k",)),
    "k-same-synth-timed": SystemEntry(KSameSynthTimed, "gaze", ("k",)),
    "event-synth-pd": SystemEntry(EventSynthPD, "gaze", ("k", "gamma")),
    "event-synth-pd-centred": SystemEntry(EventSynthPDCentred, "gaze", ("k", "gamma")),
    "saliency-gaussian": SystemEntry(SaliencyGaussian, "gaze", ("epsilon", "delta"), ("clip", "kernel_deg")),
    WholeRecordings.name: SystemEntry(WholeRecordings, "rows", _CALIBRATED),
    "chunks": SystemEntry(ChunkByChunk, "rows", _CALIBRATED, ("given",)),
    "level-synth": SystemEntry(LevelSynth, "rows", _CALIBRATED),
}
"""`chunks` is every mechanism of the sidecar: LPA, CFPA, DCFPA, KLT or another, as its calibration says."""


def make_system(name: str, **options: Any) -> System[Any]:
    """The system `name`.

    Raises
    ------
    ConfigError
        when there is none, or an option is missing, unknown or out of range.
    """
    if name not in SYSTEMS:
        raise ConfigError(f"there is no system {name}; there are {', '.join(SYSTEMS)}{meant(name, SYSTEMS)}")
    entry = SYSTEMS[name]
    for option in entry.needed:
        if option not in options:
            raise ConfigError(f"{name}: needs {option}")
    for option in options:
        if option not in (*entry.needed, *entry.optional):
            raise ConfigError(f"{name}: takes no {option}{meant(option, (*entry.needed, *entry.optional))}")
    return entry.make(**options)
