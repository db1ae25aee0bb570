"""Make `docs/minute.svg`, the picture of the README: a minute of raw rows and what is released of it.

python -m tools.make.readme_picture

The first person of `eyestream simulate` with seed 0, as `eyestream init` configures a release; the noise has a seed, so
that the picture is the same each time. Shaded: the error to expect of a feature, one standard deviation to each side.
"""

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from numpy.typing import NDArray

from eyestream.core.mechanisms import KLT
from eyestream.gaze.features import NAMES
from eyestream.rim.config import load
from eyestream.rim.files import calibrations
from eyestream_lab.simulation.people import RATE_HZ, load_statistics, simulate
from eyestream_lab.study.figures import legend_below, panels
from eyestream_lab.testing.noise import SeededNoise

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs/minute.svg"
FEATURES = {
    "rate_saccades": "saccades a second",
    "mean_fixation_duration": "length of a fixation, s",
    "mean_mean_diameter": "pupil, mm",
}
SEED, BEFORE = 0, 8
"""Chunks of the session before the minute that is shown."""

Array = NDArray[np.float64]


def released(chunks: list[Array]) -> tuple[list[Array], Array]:
    """What the usual configuration releases of the chunks (F, n) of a session, and the error to expect (F,)."""
    (stream,) = load(ROOT / "config/sidecar.toml").stream
    calibration = calibrations.load(stream.privacy.calibration)
    mechanism = KLT(calibration, epsilon=stream.privacy.epsilon, noise=SeededNoise(SEED))
    session, out = mechanism.session(), []
    for chunk in chunks:
        if session.awaits_baseline:
            session.anchor(chunk)
        else:
            out.append(session.release(chunk))
    return out, mechanism.noise_sd


def main() -> None:
    """Draw it."""
    n = 64
    rows = next(iter(simulate(load_statistics(), 1, (BEFORE + 2) * n / RATE_HZ, SEED))).astype(np.float64)
    chunks = [rows[start : start + n].T for start in range(0, len(rows) - n + 1, n)]
    private, error = released(chunks)
    raw, shown = np.concatenate(chunks[-2:], axis=1), np.concatenate(private[-2:], axis=1)
    seconds = np.arange(2 * n) / RATE_HZ
    with rc_context({"svg.hashsalt": "minute", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = panels(len(FEATURES), height=2.4, share_y=False)
        for axis, (name, title) in zip(axes, FEATURES.items(), strict=True):
            feature = NAMES.index(name)
            value, spread = shown[feature], error[feature]
            axis.plot(seconds, raw[feature], color="0.35", linewidth=1.2, label="raw, stays in the process")
            axis.plot(seconds, value, color="#0b6fb8", linewidth=1.8, label="private, what applications receive")
            axis.fill_between(seconds, value - spread, value + spread, color="#0b6fb8", alpha=0.15, linewidth=0)
            axis.axvline(n / RATE_HZ, color="0.7", linewidth=0.8, linestyle=":")
            axis.set_title(title, fontsize=9)
            axis.set_xlabel("s", fontsize=8)
        legend_below(figure, axes)
        figure.savefig(TARGET, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
