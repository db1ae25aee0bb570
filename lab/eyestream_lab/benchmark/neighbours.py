"""Presets: systems of others as they are published, each with its source and what could not be taken from it.

A preset is given as `--system preset:NAME`, and all as `--system presets`.
"""

from typing import NamedTuple


class Preset(NamedTuple):
    """A system of the laboratory with published parameters."""

    spec: str
    source: str
    missing: str


_SDK = "XR-Privacy SDK (Ibragimov, Wilson, Butler, Jain, TVCG 32(5), 2026; arXiv 2506.13882)"
_NO_CLASS = "the repository that was read has no such class; parameters are those of Wilson et al."
_WILSON = "Wilson et al. 2024, arXiv 2402.07687"
_RAJU = "Raju and Komogortsev 2025, arXiv 2511.09846"
_OWN_PEOPLE = "on everyday its calibration is of the same people"
_DJ = "David-John, Hosfelt, Butler, Jain, TVCG 2021"

PRESETS = {
    "xr-privacy-gaussian": Preset(
        "gaussian:sd_deg=2.86",
        _SDK,
        "its asset has a standard deviation of 0.05 on a point of gaze at 1 m, which is 2.86 degrees. Noise of "
        "depth, which does nothing to a direction, and of the head",
    ),
    "xr-privacy-spatial": Preset(
        "spatial:level=64",
        f"{_SDK}; {_WILSON}",
        _NO_CLASS,
    ),
    "xr-privacy-smoothing": Preset(
        "smoothing-twice:first=10,second=50",
        f"{_SDK}; {_WILSON}",
        _NO_CLASS,
    ),
    "xr-privacy-temporal": Preset(
        "temporal-held:k=3",
        f"{_SDK}; {_WILSON}",
        _NO_CLASS,
    ),
    "raju-kalman": Preset(
        "kalman:sd_deg=1.0,push=500",
        _RAJU,
        "the paper's noise parameters could not be read, so these are ours; made for 1,000 Hz",
    ),
    "raju-gaussian": Preset("gaussian:sd_deg=10.0", f"{_RAJU}; {_DJ}", "standard deviation of David-John et al."),
    "raju-smoothing": Preset("smoothing:b=10", f"{_RAJU}; {_WILSON}", "window of Wilson et al."),
    "kaleido": Preset(
        "kaleido:epsilon=10.0,w=50,r_deg=2.0",
        "Li et al., USENIX Security 2021, with corrections",
        "field and threshold are assumed where the text leaves them open",
    ),
    "k-same-synth": Preset("k-same-synth:k=2", "David-John, Butler, Jain, TVCG 2023", "published without code"),
    "event-synth-pd": Preset(
        "event-synth-pd:k=2,gamma=2.0", "David-John, Butler, Jain, TVCG 2023", "published without code"
    ),
    "k-same-select": Preset("k-same-select:k=2", "David-John, Butler, Jain, TVCG 2023", "rows of our 52 features"),
    "marginals-pd": Preset("marginals-pd:k=4", "David-John, Butler, Jain, TVCG 2023", "rows of our 52 features"),
    "cfpa": Preset(
        "cfpa:epsilon=4.8,calibration=everyday-cfpa-32",
        "Bozkir et al., PLOS ONE 2021",
        f"rows of our 52 features; {_OWN_PEOPLE}",
    ),
    "klt": Preset("klt:epsilon=4.8,calibration=everyday-klt-32", "ours, docs/mechanisms.md", _OWN_PEOPLE),
    "tile-3.3": Preset("tile:epsilon=3.33,calibration=everyday-tile", "ours, docs/coarse-gaze.md", _OWN_PEOPLE),
    "tile-6.7": Preset("tile:epsilon=6.67,calibration=everyday-tile", "ours, docs/coarse-gaze.md", _OWN_PEOPLE),
}
"""The further filters of Raju and Komogortsev, and a deep autoencoder, could not be had as text: they are not here."""

NAMES = {preset.spec: name for name, preset in reversed(PRESETS.items())}


def short_name(spec: str) -> str:
    """Name of the preset that a system is; its own, where there is none."""
    return NAMES.get(spec, spec)


def source_of(spec: str) -> tuple[str, str]:
    """Source of a system of ours, and what could not be taken from it; empty where no preset is like it."""
    return PRESETS[NAMES[spec]][1:] if spec in NAMES else ("", "")
