"""A population with another tracker: does an adapted calibration state its error honestly, and who is found?

python tools/make/other_tracker.py [--people 30] [--seconds 480] [--minute 18] [--attackers NAME ...]

People of `eyestream.offline.corpus.gaze_simulation`, whom the shipped calibrations have never seen, on a tracker with
other optics: 90 samples a second instead of 60, twice the noise, directions that a lens stretches by up to a tenth and
turns off by up to two degrees, person by person, and diameters a third larger. Half of them give their recordings to
`eyestream calibrate --adapt`, the other half is released, and the reverse. Printed for `klt-mapped` and `klt-anchored`,
n = 64: the median over features of measured error / `noise_sd` (of an anchored release around the anchored rows, for
that is what it estimates), the strongest of the attackers by area with its interval over people, and the least area
that so many people would have shown. Needs scikit-learn.
"""

import argparse
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.samples import Samples
from eyestream.offline.corpus.gaze_simulation import gaze_of, gaze_person
from eyestream.offline.study.people.attackers import USUAL, attack
from eyestream.offline.study.people.galleries import Sight, gallery, roles
from eyestream.offline.study.people.inference import figures, trial
from eyestream.offline.study.population import Population
from eyestream.privacy.anchor import Baseline
from eyestream.privacy.calibration.corpus import Corpus, whole_chunks
from eyestream.privacy.joint.adapt import adapt_joint
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording

Array = NDArray[np.float64]
RATE_HZ, NOISE, STRETCH, TURN_DEG, MAGNIFIED = 90.0, 2.0, 0.1, 2.0, 4 / 3
SEED, N, SETTLED = 2207, 64, 4


def seen_through_other_optics(person: int, seconds: float) -> Recording:
    """Rows of one simulated person on that tracker."""
    rng = np.random.default_rng((SEED, person))
    own = gaze_person(rng)
    samples, _ = gaze_of(replace(own, noise_deg=NOISE * own.noise_deg), RATE_HZ, seconds, rng)
    lens, turned = rng.uniform(1 - STRETCH, 1 + STRETCH, 2), rng.uniform(-TURN_DEG, TURN_DEG, 2)
    x, y = lens[0] * samples.x + turned[0], lens[1] * samples.y + turned[1]
    bent = Samples.of(samples.t, x, y, MAGNIFIED * samples.pupil_mm, samples.valid)
    profile = load_profile("degrees").at_rate(RATE_HZ)
    return extract(GazeRecording(bent, None, profile, f"other-{person}"))


def adapted(base: str, people: list[Recording], sight: Sight, epsilon: float) -> Mechanism:
    calibration, _ = adapt_joint(calibrations.load(base), Corpus.of([people[i] for i in sight.calibrating], N))
    return build(calibration, epsilon)


def honesty(mechanism: Mechanism, recording: Recording) -> Array:
    """(F,) mean squared error of a session late in it, against what the mechanism was given, clipped."""
    own, squares = mechanism.session(), []
    anchor, calibration = mechanism.calibration.anchor, mechanism.calibration
    baseline = None if anchor is None else Baseline(anchor)
    for chunk in whole_chunks(recording.features, N):
        if baseline is not None and not baseline.complete:
            baseline.take(chunk)
            own.anchor(chunk)
            continue
        given = chunk if baseline is None else baseline.off(chunk)
        wanted = np.clip(given, calibration.lo[:, None], calibration.hi[:, None])
        squares.append(np.square(own.release(chunk) - wanted))
    mean: Array = np.nanmean(np.array(squares[SETTLED:]), axis=(0, 2))
    return mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--minute", type=float, default=18.0)
    parser.add_argument("--attackers", nargs="+", choices=USUAL, default=USUAL)
    options = parser.parse_args()
    people = [seen_through_other_optics(i, options.seconds) for i in range(options.people)]
    population = Population.of(people, None)
    epsilon = options.minute * N / (60 * people[0].rate_hz)
    for base in ("everyday-klt-mapped-64", "everyday-klt-anchored-64"):
        galleries, ratios = [], []
        for sight in roles(population, N, 0):
            mechanism = adapted(base, people, sight, epsilon)
            active = ~mechanism.calibration.constant
            errors = [honesty(mechanism, people[i]) for i in sight.released]
            ratio = np.sqrt(np.nanmean(errors, axis=0)) / np.maximum(mechanism.noise_sd, 1e-12)
            ratios.append(float(np.nanmedian(ratio[active])))
            galleries.append(gallery(population, sight, mechanism, N, reverse=False, active=mechanism.frame.active))
        print(f"{base}: {len(people)} people, error / noise_sd, median feature {np.round(ratios, 2)}", flush=True)
        for name in options.attackers:
            found = figures(
                [trial([(one.people, attack(name, one, seed=0)) for one in galleries], 0)], len(people) // 2
            )
            told = f"area {found.area:.2f} [{found.area_low:.2f}, {found.area_high:.2f}], rate {found.rate:.2f}"
            print(f"  {name:14s} {told} (chance {found.chance:.2f}), least area {found.least_area:.2f}", flush=True)


if __name__ == "__main__":
    main()
