"""Recognition from gaze samples across sessions: python -m tools.make.sample_attack NLGEM_DIR [--only NAME ...]

People of another tracker with two or more sessions of about a minute: the first session is labelled, the last one is
unknown. Radial basis function networks (`eyestream.lab.study.people.rbfn`) learn from the released first session and
name the last one, raw (the papers' scenario) and released. As a session is a minute, this is the exemplar scenario too.
Intervals are Wilson's, 95 %, over people. The tile response is the shipped calibration; its gaze is held from slot to
slot. The table also has the median distance between raw and released gaze.
"""

import argparse
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.samples import Samples
from eyestream.lab.study.people.gaze_events import Events, events_of
from eyestream.lab.study.people.rbfn import EventNetworks
from eyestream.offline.samples import baselines
from eyestream.privacy.kaleido import Kaleido, Settings
from eyestream.privacy.mechanisms.tile.tables import tiles_of
from eyestream.privacy.tiles import TileResponse
from eyestream.rim.files import calibrations
from eyestream.testing.noise import SeededNoise
from tools.make.make_tiles import slots_of

Array = NDArray[np.float64]
Release = Callable[[Samples], Array]
SEED = 1


def sessions_of(folder: Path) -> Iterator[list[Path]]:
    """Of everybody with two or more."""
    people: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("N*.csv.gz")):
        people.setdefault(path.name.partition("_")[0], []).append(path)
    return (own for own in people.values() if len(own) > 1)


def gaze_of(path: Path) -> Samples:
    """A session."""
    with gzip.open(path, "rt") as lines:
        next(lines)
        columns = np.array([[float(cell or "nan") for cell in line.split(",")] for line in lines])
    return Samples.of(*columns.T)


def raw(samples: Samples) -> Array:
    """(n, 2) as it is."""
    return np.where(samples.valid[:, None], np.stack((samples.x, samples.y), axis=1), np.nan)


def kaleido(r_deg: float) -> Release:
    """Corrected, epsilon 10 in any 2 s at this session's rate."""

    def release(samples: Samples) -> Array:
        rate_hz = 1 / np.median(np.diff(samples.t))
        settings = Settings(w=round(2 * rate_hz), skip=max(1, round(0.05 * rate_hz)), r_deg=r_deg)
        session = Kaleido(10.0, settings, noise=_NOISE).session()
        return np.array([(step.x_deg, step.y_deg) for step in session.release(samples.x, samples.y, samples.valid)])

    return release


def tiles(epsilon: float) -> Release:
    """This epsilon in any 2 s."""
    made = tiles_of(calibrations.load("everyday-tile"))
    mechanism = TileResponse(made, epsilon / 3, noise=_NOISE)

    def release(samples: Samples) -> Array:
        session = mechanism.session()
        at = np.array([(g.x_deg, g.y_deg) for _, g in map(session.release, slots_of(samples, made.slot_s))])
        ticks = np.rint((samples.t - samples.t[0]) * 1e6).astype(np.int64)
        return at[ticks // made.slot_us]

    return release


_NOISE = SeededNoise(SEED)
_RNG = np.random.default_rng(SEED)
RELEASES: dict[str, Release] = {
    "raw": raw,
    "tile, epsilon 10": tiles(10.0),
    "tile, epsilon 20": tiles(20.0),
    "Kaleido, epsilon 10, r 2": kaleido(2.0),
    "Kaleido, epsilon 10, r 10": kaleido(10.0),
    "Gaussian, 10 degrees": lambda samples: baselines.noisy(raw(samples), 10.0, _RNG),
    "spatial, L 64": lambda samples: baselines.coarse(raw(samples), 64),
    "temporal, K 3": lambda samples: baselines.held(raw(samples), 3),
    "weighted, 1 s": lambda samples: baselines.weighted(raw(samples), 60),
    "Kalman, 0.5 degrees, 500 degrees/s2": lambda samples: baselines.kalman(raw(samples), 1 / 60, 0.5, 500.0),
}


def interval(right: int, people: int) -> tuple[float, float]:
    """Wilson, JASA 22 (1927), 95 %."""
    z, share = 1.96, right / people
    middle, width = share + z * z / (2 * people), z * np.sqrt(share * (1 - share) / people + z * z / (4 * people**2))
    return float((middle - width) / (1 + z * z / people)), float((middle + width) / (1 + z * z / people))


def row(name: str, people: list[tuple[Samples, Samples]]) -> str:
    """One line of the table."""
    release, apart = RELEASES[name], []
    known: list[Events] = []
    unknown: list[Events] = []
    plain: list[Events] = []
    for first, last in people:
        for samples, found in ((first, known), (last, unknown)):
            gaze = release(samples)
            found.append(events_of(samples.t, *gaze.T))
            apart.append(np.hypot(*(gaze - raw(samples)).T))
        plain.append(events_of(last.t, *raw(last).T))
    networks = EventNetworks([[own] for own in known], SEED)
    cells = [f"{np.nanmedian(np.concatenate(apart)):.1f}"]
    for tested in (plain, unknown):
        cells.append(_right(networks, tested))
    return f"| {name} | {' | '.join(cells)} |"


def _right(networks: EventNetworks, tested: list[Events]) -> str:
    right = sum(int(networks.scores(own).argmax()) == i for i, own in enumerate(tested))
    low, high = interval(right, len(tested))
    return f"{right / len(tested):.2f} [{low:.2f}, {high:.2f}]"


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sessions", type=Path)
    parser.add_argument("--only", action="append", choices=tuple(RELEASES))
    arguments = parser.parse_args()
    people = [(gaze_of(own[0]), gaze_of(own[-1])) for own in sessions_of(arguments.sessions)]
    print(f"{len(people)} people, chance {1 / len(people):.3f}", flush=True)
    print("| release | median distance, degrees | right names: last session raw | last session released |")
    print("|---|---|---|---|", flush=True)
    for name in arguments.only or RELEASES:
        print(row(name, people), flush=True)


if __name__ == "__main__":
    main()
