"""Systems that release gaze sample by sample: Kaleido, the tile response, and what is done to gaze without a guarantee.

What is released is gaze in degrees on the grid of the declared rate, without pupils. A sample counts by its number,
never by its tracker's time: so no clock of a recording can change how much is spent.

**Kaleido** (`eyestream_lab.kaleido`) has (epsilon, w, r): e^epsilon between recordings that differ in w consecutive
samples, each moved by at most r degrees. A person's recordings differ in more. The claim is the pure worst case over
the clamped field, summed over all windows of w samples of all recordings of one person.

**Tile response** (`eyestream.core.tiles`) spends epsilon on each slot. The claim is the sum over all slots of one
person. Each sample of a slot is released as the slot's gaze, estimated from all released words of the recording.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.kinds import NoClaim
from eyestream.core.mechanisms.tile.tables import tiles_of
from eyestream.core.tiles import TileCalibration
from eyestream.errors import ConfigError
from eyestream.gaze.profile import SHORTEST_RATE_HZ
from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.claims import FIRST, KEPT, MISSING, PUBLIC, WHO, Promise, exact, of_person
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.kinds import on_grid
from eyestream_lab.corpora.system import Unit, recordings_alone
from eyestream_lab.kaleido import Kaleido, Settings
from eyestream_lab.kaleido_live.tables import NAME
from eyestream_lab.samples import baselines
from eyestream_lab.samples.baselines import published_kaleido
from eyestream_lab.samples.tile_response import TileResponse

Array = NDArray[np.float64]
Treatment = Callable[[GazeRecording, Draws], Array]
"""From a recording (n samples) and a source of randomness: (m, 2) gaze in degrees, lost where it is NaN."""


@dataclass(frozen=True)
class Samplewise:
    """A system that treats each recording by itself, by functions that processes can be given.

    Attributes
    ----------
    name, options
        As on the command line.
    treat
        What is done to a recording.
    promised
        What is promised of a corpus, from who took part in what and the numbers of samples.
    keeps
        One sample in so many is released.
    """

    name: str
    options: Mapping[str, object]
    treat: Treatment
    promised: Callable[[Dataset[GazeRecording], Survey], Promise]
    keeps: int = 1
    released_kind = None

    def units(self, corpus: Dataset[GazeRecording], survey: Survey) -> list[Unit]:
        """A recording each."""
        survey.check_rate()
        if survey.rate_hz < SHORTEST_RATE_HZ * self.keeps:
            kept = f"{survey.rate_hz / self.keeps:.3g} samples a second"
            raise ConfigError(f"{self.name}: keeps {kept}, and recordings of gaze need {SHORTEST_RATE_HZ:g}")
        return recordings_alone(corpus)

    def promise(self, corpus: Dataset[GazeRecording], survey: Survey) -> Promise:
        """Promise as declared."""
        return self.promised(corpus, survey)

    def release(
        self, corpus: Dataset[GazeRecording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, GazeRecording]]:
        """One recording."""
        for part in unit.parts:
            own = corpus.load(part)
            public = replace(own, profile=replace(own.profile, rate_hz=survey.rate_hz))  # slots are counted by it
            yield part, on_grid(self.treat(public, draws), survey.rate_hz / self.keeps)


def kaleido(epsilon: float, **given: Any) -> Samplewise:
    """Kaleido, corrected; options of `eyestream_lab.kaleido.Settings`."""
    settings = Settings(**given)
    Kaleido(epsilon, settings)
    return Samplewise(
        NAME,
        {"epsilon": epsilon, **given},
        partial(_by_kaleido, epsilon, settings),
        partial(_promised_by_kaleido, epsilon, settings),
    )


def _by_kaleido(epsilon: float, settings: Settings, recording: GazeRecording, draws: Draws) -> Array:
    samples = recording.samples
    session = Kaleido(epsilon, settings, noise=draws).session()
    steps = session.release(samples.x, samples.y, samples.valid)
    return np.array([(step.x_deg, step.y_deg) for step in steps])


def _promised_by_kaleido(epsilon: float, settings: Settings, corpus: Dataset[GazeRecording], survey: Survey) -> Promise:
    mechanism = Kaleido(epsilon, settings)
    windows = corpus.most(lambda part: -(-survey.extents[part].rows // settings.w))
    return Promise(
        of_person(mechanism.worst, windows, NAME),
        (f"A movement of more than {settings.r_deg:g} degrees is covered by the larger figures only.",),
        PUBLIC,
        (mechanism.loss, mechanism.worst),
    )


def kaleido_as_published(epsilon: float, as_published: bool = False, **given: Any) -> Samplewise:
    """The printed pseudocode, without any guarantee; refused unless `as_published`."""
    name = "kaleido-as-published"
    if not as_published:
        raise ConfigError(f"{name}: spends more than epsilon. Take kaleido, or as_published to compare with the paper")
    settings = Settings(**given)
    Kaleido(epsilon, settings)
    reason = "the printed pseudocode spends more than epsilon on its tests, as their noise is not scaled by r"
    return Samplewise(
        name,
        {"epsilon": epsilon, **given, "as_published": True},
        partial(_by_published_kaleido, epsilon, settings),
        partial(_nothing, NoClaim(reason), PUBLIC),
    )


def _by_published_kaleido(epsilon: float, settings: Settings, recording: GazeRecording, draws: Draws) -> Array:
    moments = recording.samples.t * recording.profile.fixed_rate_hz
    return published_kaleido(moments, _places(recording), epsilon, settings, _generator(draws))


def _nothing(claim: NoClaim, as_it_is: tuple[str, ...], corpus: Dataset[GazeRecording], survey: Survey) -> Promise:
    return Promise(claim, (), as_it_is)


def _places(recording: GazeRecording) -> Array:
    samples = recording.samples
    return np.where(samples.valid, (samples.x, samples.y), np.nan).T


def tile(calibration: Calibration, epsilon: float) -> Samplewise:
    """The tile response; epsilon is of one slot."""
    tiles = tiles_of(calibration)
    TileResponse(tiles, epsilon)
    return Samplewise(
        calibration.mechanism,
        {"calibration": calibration.content_hash, "epsilon": epsilon},
        partial(_by_tiles, tiles, epsilon),
        partial(_promised_by_tiles, tiles, epsilon, calibration.mechanism),
    )


def _by_tiles(tiles: TileCalibration, epsilon: float, recording: GazeRecording, draws: Draws) -> Array:
    samples, field = recording.samples, tiles.field
    mechanism = TileResponse(tiles, epsilon, noise=draws)
    session, slot = mechanism.session(), _slots(tiles, len(samples), recording.profile.fixed_rate_hz)
    own = (samples[part[0] : part[-1] + 1] for part in np.split(np.arange(len(slot)), _edges(slot)))
    words = [session.release(field.occupancy(one.x, one.y, one.valid))[0] for one in own]
    return np.array([(gaze.x_deg, gaze.y_deg) for gaze in mechanism.hindsight(words)])[slot]


def _promised_by_tiles(
    tiles: TileCalibration, epsilon: float, name: str, corpus: Dataset[GazeRecording], survey: Survey
) -> Promise:
    one = exact("slot", epsilon)
    most = corpus.most(lambda part: int(_slots(tiles, survey.extents[part].rows, survey.rate_hz)[-1]) + 1)
    return Promise(of_person(one, most, name), (), PUBLIC, (one,))


def _slots(tiles: TileCalibration, rows: int, rate_hz: float) -> NDArray[np.intp]:
    """The slot of each sample; all slots of a recording of so many samples have one."""
    return np.asarray(np.arange(rows) * 1e6 / rate_hz // tiles.slot_us, dtype=np.intp)


def _edges(slot: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.flatnonzero(np.diff(slot)) + 1


def _generator(draws: Draws) -> np.random.Generator:
    """For what has no guarantee anyway: seeded by 256 bits."""
    return np.random.default_rng(draws.bits.words(8))


Plain = Callable[..., Array]

_PLAIN: Mapping[str, Plain] = {
    "gaussian": lambda gaze, rate_hz, rng, sd_deg: baselines.noisy(gaze, sd_deg, rng),
    "temporal": lambda gaze, rate_hz, rng, k: baselines.every(gaze, k),
    "temporal-held": lambda gaze, rate_hz, rng, k: baselines.held(gaze, k),
    "spatial": lambda gaze, rate_hz, rng, level: baselines.coarse(gaze, level),
    "smoothing": lambda gaze, rate_hz, rng, b: baselines.weighted(gaze, b),
    "smoothing-twice": lambda gaze, rate_hz, rng, first, second: baselines.weighted_twice(gaze, first, second),
    "kalman": lambda gaze, rate_hz, rng, sd_deg, push: baselines.kalman(gaze, 1.0 / rate_hz, sd_deg, push),
}


_AS_IT_IS = {
    "temporal": (WHO, MISSING, KEPT),
    "temporal-held": (*PUBLIC, MISSING, KEPT),
    "smoothing": (*PUBLIC, MISSING, FIRST),
    "smoothing-twice": (*PUBLIC, MISSING, FIRST),
    "kalman": (*PUBLIC, MISSING, FIRST),
}


def _baseline(name: str, **given: Any) -> Samplewise:
    """A baseline; ConfigError where an option makes no sense."""
    try:
        _PLAIN[name](np.zeros((0, 2)), 100.0, np.random.default_rng(0), **given)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None

    keeps = int(given["k"]) if name == "temporal" else 1
    promised = partial(_nothing, NoClaim(), _AS_IT_IS.get(name, (*PUBLIC, MISSING)))
    return Samplewise(name, given, partial(_plainly, name, given), promised, keeps)


def _plainly(name: str, given: Mapping[str, Any], recording: GazeRecording, draws: Draws) -> Array:
    rate_hz = recording.profile.fixed_rate_hz
    return np.asarray(_PLAIN[name](_places(recording), rate_hz, _generator(draws), **given), np.float64)


BASELINES: Mapping[str, tuple[Callable[..., Samplewise], tuple[str, ...]]] = {
    name: (partial(_baseline, name), options)
    for name, options in {
        "gaussian": ("sd_deg",),
        "temporal": ("k",),
        "temporal-held": ("k",),
        "spatial": ("level",),
        "smoothing": ("b",),
        "smoothing-twice": ("first", "second"),
        "kalman": ("sd_deg", "push"),
    }.items()
}
"""Systems without a guarantee: maker and options of each (`eyestream_lab.samples.baselines`)."""
