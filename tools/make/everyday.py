"""The corpus that everything shipped is made from: 30 people's everyday gaze, through our own front end.

The shipped profile `smi-glasses` says how: degrees, samples outside of the field of view invalid, events of our own
detector, letters centred on the axes, an event in the window in which it is known. No row looks ahead.
"""

from pathlib import Path

from eyestream.rim.files.extraction import load_rows
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording

__all__ = ["DESCRIPTION", "corpus"]

DESCRIPTION = (
    "52 window features (30 s window, 0.5 s step, degrees) of 30 people's everyday gaze, made by eyestream's front end "
    "with the profile smi-glasses from the public data release of Hoppe, Loetscher, Morey, Bulling, Frontiers in Human "
    "Neuroscience 2018 (BSD-3-Clause)"
)


def corpus(folder: Path) -> list[Recording]:
    """Rows of everybody whose gaze is in `folder` (PNN.csv.gz), sorted by name."""
    profile = load_profile("smi-glasses")
    return [load_rows(path, profile) for path in sorted(folder.glob("P*.csv.gz"))]
