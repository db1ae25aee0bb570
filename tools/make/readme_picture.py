"""Make `docs/asked.svg`, the picture of the README: one asked feature, what is true and what is released of it.

python -m tools.make.readme_picture

The first person of `eyestream simulate` with seed 0, as `eyestream init --features rate_saccades` configures a release.
The noise has a seed, so that the picture is the same each time. Shaded: the announced error, one standard deviation to
each side. Prints what the caption says of it.
"""

from pathlib import Path

import numpy as np
from matplotlib import rc_context

from eyestream.core.mechanisms import build
from eyestream.gaze.features import NAMES
from eyestream.ops.asked_sets import ASKED_CALIBRATION
from eyestream.rim.config import load
from eyestream.rim.files import calibrations
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.simulation.people import RATE_HZ, load_statistics, simulate
from eyestream_lab.study.figures import legend_below, panels
from eyestream_lab.testing.noise import SeededNoise

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs/asked.svg"
FEATURE, TITLE = "rate_saccades", "saccades a second: change since the first minute"
SEED, CHUNKS = 0, 28


def main() -> None:
    """Draw it."""
    (stream,) = load(ROOT / "config/sidecar.toml").stream
    calibration = calibrations.load(ASKED_CALIBRATION)
    mechanism = build(calibration, stream.privacy.epsilon, noise=SeededNoise(SEED), features=[FEATURE])
    n, session, released = calibration.n, mechanism.session(), []
    rows = next(iter(simulate(load_statistics(), 1, CHUNKS * n / RATE_HZ, SEED))).astype(np.float64)
    chunks = list(whole_chunks(rows, n))
    for chunk in chunks:
        if session.awaits_baseline:
            session.anchor(chunk)
        else:
            released.append(session.release(chunk)[0, 0])
    withheld, feature = len(chunks) - len(released), NAMES.index(FEATURE)
    raw = np.array([chunk[feature] for chunk in chunks])
    raw -= raw[:withheld].mean()
    truth, private, error = raw[withheld:].mean(axis=1), np.array(released), mechanism.noise_sd[0]
    minutes = np.arange(withheld * n, len(chunks) * n) / RATE_HZ / 60
    borders = np.repeat(np.arange(withheld, len(chunks) + 1) * n / RATE_HZ / 60, 2)[1:-1]
    with rc_context({"svg.hashsalt": "asked", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, (axis,) = panels(1, height=2.4)
        figure.set_figwidth(8.0)
        step, after = np.repeat(private, 2), "#0b6fb8"
        axis.plot(minutes, raw[withheld:].ravel(), color="0.8", linewidth=0.8, label="true rows, stay inside")
        axis.plot(
            minutes, np.repeat(truth, n), color="0.25", linewidth=1.2, label="their mean in a chunk, stays inside"
        )
        axis.plot(borders, step, color=after, linewidth=1.8, label="private, what applications receive")
        axis.fill_between(borders, step - error, step + error, color=after, alpha=0.15, linewidth=0, label="its error")
        axis.set_title(TITLE, fontsize=9)
        axis.set_xlabel("minutes of the session", fontsize=8)
        legend_below(figure, [axis])
        figure.savefig(TARGET, format="svg", metadata={"Date": None})
    within = int((np.abs(truth - private) <= error).sum())
    print(f"correlation {np.corrcoef(truth, private)[0, 1]:.2f}, {within} of {len(truth)} chunks within the error")


if __name__ == "__main__":
    main()
