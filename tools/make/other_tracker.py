"""A population with another tracker: does an adapted calibration state its error honestly, and who is found?

python -m tools.make.other_tracker [--people 150] [--seconds 480] [--minute 18] [--splits 1] [--attackers NAME ...]
                                   [--calibrations NAME|FILE ...]

People of `eyestream_lab.simulation.gaze`, whom the shipped calibrations have never seen, on a tracker with
other optics: 90 samples a second instead of 60, twice the noise, directions that a lens stretches by up to a tenth and
turns off by up to two degrees, person by person, and diameters a third larger. What a person does comes and goes: how
long and how far the eye moves, how much it follows and blinks, and the pupil are multiplied by e^(0.2 z), z of each an
autoregressive process with a memory of a minute. Half of them give their recordings to `eyestream calibrate --adapt`,
the other half is released, and the reverse. Printed first: how far people move, as `moves` has it. Then for each
calibration (`klt-mapped` and `klt-anchored`, n = 64): the median over features of measured error / `noise_sd` (of an
anchored release around the anchored rows, for that is what it estimates), the attackers by area with its interval over
people, and the least area that so many people would have shown. Needs scikit-learn.
"""

import argparse
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import Baseline
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.gaze.samples import Samples
from eyestream.rim.files import calibrations
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.adapt import adapt_joint
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.simulation.gaze import GazePerson, gaze_of, gaze_person
from eyestream_lab.study.people.attackers import USUAL, attack
from eyestream_lab.study.people.galleries import Sight, gallery, roles
from eyestream_lab.study.people.inference import AttackTrial, figures, trial
from eyestream_lab.study.population import Population

Array = NDArray[np.float64]
RATE_HZ, NOISE, STRETCH, TURN_DEG, MAGNIFIED = 90.0, 2.0, 0.1, 2.0, 4 / 3
SEED, N, SETTLED = 2207, 64, 4
SWING, MEMORY_S, STRETCH_S = 0.2, 60.0, 8.0
"""What a person does comes and goes, and is changed every so many seconds."""


def seen_through_other_optics(person: int, seconds: float) -> Recording:
    """Rows of one simulated person on that tracker."""
    rng = np.random.default_rng((SEED, person))
    own = gaze_person(rng)
    samples = coming_and_going(replace(own, noise_deg=NOISE * own.noise_deg), seconds, rng)
    lens, turned = rng.uniform(1 - STRETCH, 1 + STRETCH, 2), rng.uniform(-TURN_DEG, TURN_DEG, 2)
    x, y = lens[0] * samples.x + turned[0], lens[1] * samples.y + turned[1]
    bent = Samples.of(samples.t, x, y, MAGNIFIED * samples.pupil_mm, samples.valid)
    profile = load_profile("degrees").at_rate(RATE_HZ)
    return extract(GazeRecording(bent, None, profile, f"other-{person}"))


def coming_and_going(own: GazePerson, seconds: float, rng: np.random.Generator) -> Samples:
    """Samples of a person who does now more and now less of everything."""
    kept, level, parts = np.exp(-STRETCH_S / MEMORY_S), rng.normal(size=6), []
    for start in np.arange(0.0, seconds, STRETCH_S):
        level = kept * level + np.sqrt(1 - kept**2) * rng.normal(size=6)
        long, far, blinking, following, wide, lively = np.exp(SWING * level - SWING**2 / 2)
        now = replace(
            own,
            fixation_s=own.fixation_s * long,
            amplitude_deg=own.amplitude_deg * far,
            blinks=min(own.blinks * blinking, 0.5),
            pursuits=min(own.pursuits * following, 0.5),
            pupil_mm=float(np.clip(own.pupil_mm * wide**0.15, 1.6, 7.9)),
            pupil_sd_mm=own.pupil_sd_mm * lively,
        )
        parts.append(gaze_of(now, RATE_HZ, min(STRETCH_S, seconds - start), rng, start_s=start)[0])
    return Samples.joined(parts)


def moves(population: Population) -> tuple[float, float]:
    """How far people move: between-person standard deviation of the log spread of chunk means, and its share.

    Halves of the first 900 rows of everybody; per feature the covariance over people of the two halves' logs, and its
    share of their variance; medians over features. The 30 people of the gaze corpus: 0.22 and 0.27.
    """
    halves: list[list[NDArray[np.float64]]] = []
    for i in range(len(population.people)):
        rows = population.recording(i)[:900]
        parts = (whole_chunks(half, N).mean(axis=2) for half in np.array_split(rows, 2))
        halves.append([np.log(np.maximum(part.std(axis=0), 1e-12)) for part in parts])
    logs = np.array(halves)
    varies = (logs > np.log(1e-9)).all(axis=(0, 1))
    first, second = (logs[:, half, varies] - logs[:, half, varies].mean(axis=0) for half in (0, 1))
    shared = (first * second).sum(axis=0) / (len(logs) - 1)
    whole = (first**2 + second**2).sum(axis=0) / (2 * (len(logs) - 1))
    return float(np.sqrt(max(np.median(shared), 0.0))), float(np.median(shared / whole))


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
    parser.add_argument("--people", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--minute", type=float, default=18.0)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--calibrations", nargs="+", default=("everyday-klt-mapped-64", "everyday-klt-anchored-64"))
    parser.add_argument("--attackers", nargs="+", choices=USUAL, default=USUAL)
    options = parser.parse_args()
    people = [seen_through_other_optics(i, options.seconds) for i in range(options.people)]
    population = Population.of(people, None)
    epsilon = options.minute * N / (60 * people[0].rate_hz)
    print(
        f"{len(people)} people, log of how far they move: between people {np.round(moves(population), 2)}", flush=True
    )
    for base in options.calibrations:
        trials: dict[str, list[AttackTrial]] = {name: [] for name in options.attackers}
        ratios = []
        for split in range(options.splits):
            galleries = []
            for sight in roles(population, N, split):
                mechanism = adapted(base, people, sight, epsilon)
                active = ~mechanism.calibration.constant
                errors = [honesty(mechanism, people[i]) for i in sight.released]
                ratio = np.sqrt(np.nanmean(errors, axis=0)) / np.maximum(mechanism.noise_sd, 1e-12)
                ratios.append(float(np.nanmedian(ratio[active])))
                reverse = bool(split % 2)
                released = gallery(population, sight, mechanism, N, reverse=reverse, active=mechanism.frame.active)
                galleries.append(released)
            for name, own in trials.items():
                own.append(trial([(one.people, attack(name, one, seed=split)) for one in galleries], split))
        print(f"{base}: error / noise_sd, median feature {np.round(ratios, 2)}", flush=True)
        for name, own in trials.items():
            found = figures(own, len(people) // 2)
            told = f"area {found.area:.2f} [{found.area_low:.2f}, {found.area_high:.2f}], rate {found.rate:.2f}"
            print(f"  {name:14s} {told} (chance {found.chance:.2f}), least area {found.least_area:.2f}", flush=True)


if __name__ == "__main__":
    main()
