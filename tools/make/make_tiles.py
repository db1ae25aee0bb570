"""Makes the shipped calibration everyday-tile from the public gaze corpus: python -m tools.make.make_tiles GAZE_DIR

All 30 people, degrees by the profile smi-glasses. What was chosen, and on whom, is in eyestream/core/tiles/TILES.md.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.core.tiles import Field
from eyestream.gaze.profile import ticks
from eyestream.gaze.samples import Samples
from eyestream.gaze.slots import Slots, mark_of
from eyestream.rim.files import DATA, calibrations
from eyestream.rim.files.extraction import LONGEST_PAUSE_S
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.calibration.tiles import calibrate_tiles, tile_calibration

__all__ = ["FIELD", "PRIOR_SLOTS", "SLOT_S", "slots_of"]

FIELD = Field(columns=36, rows=28, cell_deg=2.0)
SLOT_S = 1.0
PRIOR_SLOTS = 10
_SOURCE = (
    "where 30 people's eyes dwelt in slots of 1 s of everyday life, by eyestream's profile smi-glasses from the public "
    "data release of Hoppe, Loetscher, Morey, Bulling, Frontiers in Human Neuroscience 2018 (BSD-3-Clause)"
)


def slots_of(samples: Samples, slot_s: float, field: Field = FIELD) -> NDArray[np.int64]:
    """(slots, cells + 1) of a recording, the first slot beginning at its first sample."""
    slots = Slots(field, ticks(slot_s), LONGEST_PAUSE_S)
    return slots.advance(float(samples.t[-1]) + slot_s, samples).values.astype(np.int64)


def main() -> None:
    """Make it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gaze", type=Path)
    profile = load_profile("smi-glasses")
    paths = sorted(parser.parse_args().gaze.glob("P*.csv.gz"))
    people = [slots_of(load_gaze(path, profile).samples, SLOT_S) for path in paths]
    made = calibrate_tiles(people, FIELD, ticks(SLOT_S), prior_slots=PRIOR_SLOTS, source=_SOURCE)
    target = DATA / "calibrations" / "tile" / "everyday-tile.npz"
    target.parent.mkdir(exist_ok=True)
    whole = tile_calibration(made, len(people), mark_of(made, profile))
    calibrations.save(whole, target)
    print(f"{target.name}: {len(people)} people, {whole.content_hash}")


if __name__ == "__main__":
    main()
