"""The figures of eyestream/core/tiles/TILES.md.

python -m tools.make.tile_figures GAZE_DIR [--release odd|even|chosen] [--slot S] [--epsilon E] [--kaleido] [--seed N]

Gaze of the public corpus in a field of 60 x 40 degrees (an image's share times 60 and 40; samples within half an image
around it count, as in the analysis of Hoppe et al. 2018). People by the number in their name: even ones calibrate and
odd ones are released, or the reverse, or, for choices, every other one of the even ones calibrates and the rest is
released. The error of a sample is its distance from what is released for its slot (live: at the end of the slot; later:
by hindsight); of Kaleido from its output at the sample. Medians over all samples of all people that are released, and
over those inside the field.
"""

import argparse
import gzip
import itertools
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.core.tiles import TileCalibration, slots_touched
from eyestream.gaze.profile import ticks
from eyestream.gaze.samples import Samples
from eyestream_lab.calibration.tiles import calibrate_tiles
from eyestream_lab.kaleido import Kaleido, Settings
from eyestream_lab.samples.tile_response import TileResponse
from eyestream_lab.testing.noise import SeededNoise
from tools.make.make_tiles import FIELD, PRIOR_SLOTS, slots_of

Array = NDArray[np.float64]
EPSILONS = (20.0, 10.0, 5.0, 2.0)
SLOTS_S = (0.5, 1.0, 2.0)
RADII_DEG = (2.0, 10.0)
RATE_HZ = 60.0
AXES = (operator.attrgetter("x"), operator.attrgetter("y"))
WINDOW_S = 2.0


def gaze_in_field(path: Path) -> Samples:
    """A recording of the corpus, its image as 60 x 40 degrees."""
    with gzip.open(path, "rt") as lines:
        next(lines)
        columns = np.array([[float(cell or "nan") for cell in line.split(",")[:3]] for line in lines])
    t, x, y = columns.T
    return Samples.of(t, (x - 0.5) * 60, (0.5 - y) * 40, valid=(np.abs(x - 0.5) <= 1) & (np.abs(y - 0.5) <= 1))


def tile_errors(calibration: TileCalibration, epsilon: float, people: list[Samples], seed: int) -> dict[str, Array]:
    """Of all valid samples: distance live and by hindsight; 1 or 0: within the error told live, inside the field."""
    mechanism = TileResponse(calibration, epsilon, noise=SeededNoise(seed))
    found: dict[str, list[Array]] = {"live": [], "later": [], "within": [], "inside": []}
    for samples in people:
        session = mechanism.session()
        words, live = zip(*map(session.release, slots_of(samples, calibration.slot_s)), strict=True)
        own = ((ticks_of(samples) - ticks_of(samples)[0]) // calibration.slot_us)[samples.valid]
        x, y = samples.x[samples.valid], samples.y[samples.valid]
        for name, gaze in (("live", live), ("later", mechanism.hindsight(list(words)))):
            at = np.array([(one.x_deg, one.y_deg, one.error_deg) for one in gaze])[own]
            apart = np.hypot(x - at[:, 0], y - at[:, 1])
            found[name].append(apart)
            if name == "live":
                found["inside"].append(((np.abs(x) <= 30) & (np.abs(y) <= 20)).astype(np.float64))
                found["within"].append((apart <= at[:, 2]).astype(np.float64))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def kaleido_errors(epsilon: float, r_deg: float, people: list[Samples], seed: int) -> Array:
    """Of all valid samples: distance from the output at that moment, w = 2 s of samples, a test each 50 ms."""
    settings = Settings(w=round(WINDOW_S * RATE_HZ), skip=round(0.05 * RATE_HZ), r_deg=r_deg)
    mechanism = Kaleido(epsilon, settings, noise=SeededNoise(seed))
    found = []
    for samples in people:
        steps = mechanism.session().release(samples.x, samples.y, samples.valid)
        x, y = np.array([(step.x_deg, step.y_deg) for step in steps]).T
        found.append(np.hypot(samples.x - x, samples.y - y)[samples.valid])
    return np.concatenate(found)


def kaleido_lines(released: list[Samples], seed: int) -> Iterator[str]:
    """The table of Kaleido, corrected."""
    yield "| r deg | epsilon in any 2 s, movements within r | whatever changes | error |"
    yield "|---|---|---|---|"
    for r_deg in RADII_DEG:
        for epsilon in EPSILONS:
            worst = float(Kaleido(epsilon, Settings(r_deg=r_deg)).worst.epsilon)
            error = np.median(kaleido_errors(epsilon, r_deg, released, seed))
            yield f"| {r_deg:g} | {epsilon:g} | {worst:.0f} | {error:.1f} |"


def ticks_of(samples: Samples) -> NDArray[np.int64]:
    """Times in whole microseconds."""
    return np.rint(samples.t * 1e6).astype(np.int64)


def halves(folder: Path, release: str) -> tuple[list[Samples], list[Samples]]:
    """Who calibrates, and who is released."""
    people = {int(path.name[1:3]): gaze_in_field(path) for path in sorted(folder.glob("P*.csv.gz"))}
    even, odd = ([people[number] for number in sorted(people) if number % 2 == rest] for rest in (0, 1))
    return {"odd": (even, odd), "even": (odd, even), "chosen": (even[::2], even[1::2])}[release]


def tile_lines(
    known: list[Samples], released: list[Samples], slots_s: Sequence[float], epsilons: Sequence[float], seed: int
) -> Iterator[str]:
    """The table of the tile response."""
    centre = (
        np.median([np.median(one.x[one.valid]) for one in known]),
        np.median([np.median(one.y[one.valid]) for one in known]),
    )
    still = np.concatenate([np.hypot(one.x - centre[0], one.y - centre[1])[one.valid] for one in released])
    yield f"people {len(known)} and {len(released)}; the centre of those who calibrate alone: {np.median(still):.1f}"
    yield "| slot s | epsilon in any 2 s | of a slot | bits | live | later | in the field, later | as was told |"
    yield "|---|---|---|---|---|---|---|---|"
    for slot_s in slots_s:
        counted = [slots_of(one, slot_s) for one in known]
        made = calibrate_tiles(counted, FIELD, ticks(slot_s), prior_slots=PRIOR_SLOTS, source="half of the corpus")
        for epsilon in epsilons:
            own = epsilon / slots_touched(WINDOW_S, made.slot_us)
            errors = tile_errors(made, own, released, seed)
            bits = TileResponse(made, own).code.bits
            inside = errors["inside"] > 0
            figures = [np.median(errors[name]) for name in ("live", "later")] + [np.median(errors["later"][inside])]
            cells = " | ".join(f"{figure:.1f}" for figure in figures)
            yield f"| {slot_s:g} | {epsilon:g} | {own:.2f} | {bits} | {cells} | {errors['within'].mean():.2f} |"


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gaze", type=Path)
    parser.add_argument("--release", choices=("odd", "even", "chosen"), default="odd")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slot", type=float, action="append", help="seconds; by default 0.5, 1 and 2")
    parser.add_argument("--epsilon", type=float, action="append", help="in any 2 s; by default 20, 10, 5 and 2")
    parser.add_argument("--kaleido", action="store_true", help="its table too")
    arguments = parser.parse_args()
    known, released = halves(arguments.gaze, arguments.release)
    tables = [tile_lines(known, released, arguments.slot or SLOTS_S, arguments.epsilon or EPSILONS, arguments.seed)]
    if arguments.kaleido:
        tables.append(kaleido_lines(released, arguments.seed))
    for line in itertools.chain(*tables):
        print(line, flush=True)


if __name__ == "__main__":
    main()
