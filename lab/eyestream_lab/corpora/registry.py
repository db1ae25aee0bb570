"""Systems by name, each with the options that it takes and what it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from eyestream.core.mechanisms.registry import PRODUCT, entry_of
from eyestream.errors import ConfigError, meant
from eyestream.rim.files.calibrations import shipped
from eyestream_lab.corpora.event_synth import EventSynthPD, EventSynthPDCentred, EventSynthPDVAE
from eyestream_lab.corpora.exponential import ExponentialAsPrinted, ExponentialDP
from eyestream_lab.corpora.ksame import KSameOnePartition, KSameSelect
from eyestream_lab.corpora.ksame_synth import KSameSynth, KSameSynthTimed
from eyestream_lab.corpora.marginals import MarginalsNoised, MarginalsPD
from eyestream_lab.corpora.saliency import SaliencyGaussian
from eyestream_lab.corpora.samples import BASELINES, kaleido, kaleido_as_published, tile
from eyestream_lab.corpora.streams import ChunkByChunk, WholeRecordings, chunks_of
from eyestream_lab.corpora.synthesiser import LevelSynth
from eyestream_lab.corpora.system import System


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
    published
        Name of the system as its paper prints it, where that is not what it claims: `as_published` makes that one.
    fixations
        Whether tables of fixations can stand in the place of gaze.
    """

    make: Callable[..., System[Any]]
    reads: Literal["rows", "gaze"]
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    published: str | None = None
    fixations: bool = False


_CALIBRATED = ("calibration", "epsilon")
_POST = ("shrink", "clip", "smooth")
_KALEIDO = ("w", "r_deg", "skip", "threshold_deg", "h", "width_deg", "height_deg")
_WHOLE = {"k", "every", "level", "b", "first", "second", "w", "skip", "h"}


def _of_rows(name: str) -> bool:
    """Whether what a mechanism releases are rows, as they came in."""
    return entry_of(name).mechanism.domain.keeps


SYSTEMS: Mapping[str, SystemEntry] = {
    "k-same-select": SystemEntry(KSameSelect, "rows", ("k",)),
    "k-same-select-one-partition": SystemEntry(KSameOnePartition, "rows", ("k",)),
    "marginals-pd": SystemEntry(MarginalsPD, "rows", ("k",), ("gamma",)),
    "marginals-noised": SystemEntry(MarginalsNoised, "rows", (*_CALIBRATED, "delta")),
    "exponential-dp": SystemEntry(ExponentialDP, "rows", _CALIBRATED, ("every",), "exponential-dp-as-printed"),
    "exponential-dp-as-printed": SystemEntry(ExponentialAsPrinted, "rows", ("epsilon",), ("as_published", "every")),
    "k-same-synth": SystemEntry(KSameSynth, "gaze", ("k",)),
    "k-same-synth-timed": SystemEntry(KSameSynthTimed, "gaze", ("k",)),
    "event-synth-pd": SystemEntry(EventSynthPD, "gaze", ("k", "gamma")),
    "event-synth-pd-centred": SystemEntry(EventSynthPDCentred, "gaze", ("k", "gamma")),
    "event-synth-pd-vae": SystemEntry(EventSynthPDVAE, "gaze", ("k", "gamma")),
    "saliency-gaussian": SystemEntry(
        SaliencyGaussian, "gaze", ("epsilon", "delta"), ("clip", "kernel_deg"), fixations=True
    ),
    "kaleido": SystemEntry(kaleido, "gaze", ("epsilon",), _KALEIDO, "kaleido-as-published"),
    "kaleido-as-published": SystemEntry(kaleido_as_published, "gaze", ("epsilon",), (*_KALEIDO, "as_published")),
    "tile": SystemEntry(tile, "gaze", _CALIBRATED),
    **{name: SystemEntry(make, "gaze", options) for name, (make, options) in BASELINES.items()},
    WholeRecordings.name: SystemEntry(WholeRecordings, "rows", _CALIBRATED),
    **{name: SystemEntry(partial(chunks_of, name), "rows", _CALIBRATED, _POST) for name in PRODUCT if _of_rows(name)},
    "chunks": SystemEntry(ChunkByChunk, "rows", _CALIBRATED, ("given",)),
    "level-synth": SystemEntry(LevelSynth, "rows", _CALIBRATED),
}
"""`chunks` is every mechanism of the sidecar, as its calibration says, also one that lives elsewhere."""


def make_system(name: str, **options: Any) -> System[Any]:
    """The system `name`; with `as_published`, what its paper prints where that is another one.

    Raises
    ------
    ConfigError
        when there is none, or an option is missing, unknown or out of range.
    """
    if name not in SYSTEMS:
        raise ConfigError(f"there is no system {name}; there are {', '.join(SYSTEMS)}{meant(name, SYSTEMS)}")
    entry = SYSTEMS[name]
    if options.get("as_published") and entry.published is not None:
        return make_system(entry.published, **options)
    for option in entry.needed:
        if option not in options:
            known = (one for one in shipped() if one.startswith(f"everyday-{name}-32"))
            example = f", such as {next(known, 'everyday-klt-32')}" if option == "calibration" else ""
            raise ConfigError(f"{name}: needs {option}{example}")
    for option, value in options.items():
        if option not in (*entry.needed, *entry.optional):
            raise ConfigError(f"{name}: takes no {option}{meant(option, (*entry.needed, *entry.optional))}")
        if option in _WHOLE and type(value) is not int:
            raise ConfigError(f"{name}: {option}: expected a whole number, not {value!r}")
        if isinstance(value, str):
            raise ConfigError(f"{name}: {option}: expected a number, not {value!r}")
    return entry.make(**options)
