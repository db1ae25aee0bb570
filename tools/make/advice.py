"""Make `eyestream/data/advice.json`, which `eyestream advise` answers from: utility and identity of what ships.

python -m tools.make.advice GAZE_DIR --cells DIR [--splits 3]

GAZE_DIR holds PNN.csv.gz. For each way of calibrating, chunk length and epsilon a minute: a random half of the 30
people calibrates and the other half is released, then the roles change; the first minute of a recording is never
released.
Utility is `eyestream_lab.study.fidelity`, causal and with all of a recording known. Identity: every attacker of
`eyestream study --attack` but the deep one, on halves of recordings released apart; the strongest by area is kept, and
named. Finished cells lie in DIR and are not computed again. Needs scikit-learn.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.core.mechanisms import build
from eyestream_lab.study.fidelity import Fidelity, Yardstick, fidelity
from eyestream_lab.study.people.attackers import USUAL, applies, attack
from eyestream_lab.study.people.galleries import gallery, recalibrated, roles
from eyestream_lab.study.people.inference import figures, trial
from eyestream_lab.study.population import Population
from eyestream_lab.study.sessions import released_session
from tools.make import everyday

TARGET = Path(__file__).resolve().parents[2] / "eyestream" / "data" / "advice.json"
WAYS: dict[str, dict[str, Any]] = {
    "everyday-klt-mapped": {},
    "everyday-klt-anchored": {"anchored": True},
}
ATTACK_SPLITS = {"everyday-klt-mapped": 5, "everyday-klt-anchored": 10}
"""Near chance it takes more of them to tell."""
CHUNKS = (32, 64, 128)
MINUTES = (9.0, 18.0, 36.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gaze", type=Path)
    parser.add_argument("--cells", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    people = everyday.corpus(options.gaze)
    population = Population.of(people, None)
    options.cells.mkdir(parents=True, exist_ok=True)
    rows = []
    for way, n, minute in ((w, n, m) for n in CHUNKS for w in WAYS for m in MINUTES):
        epsilon = minute * n / (60 * people[0].rate_hz)
        row: dict[str, Any] = {"calibration": f"{way}-{n}", "n": n, "minute": minute, "epsilon": epsilon}
        useful = f"utility-{way}-{n}-{minute:g}-{options.splits}"
        row |= kept(
            options.cells,
            useful,
            lambda w=way, n=n, e=epsilon: utility(population, WAYS[w], n, e, options.splits),
        )
        hidden = f"identity-{len(USUAL)}-{way}-{n}-{minute:g}-{ATTACK_SPLITS[way]}"
        row |= kept(
            options.cells,
            hidden,
            lambda w=way, n=n, e=epsilon: identity(population, WAYS[w], n, e, ATTACK_SPLITS[w]),
        )
        rows.append(row)
        print({key: value for key, value in row.items() if key != "features"}, flush=True)
    told = {
        "corpus": everyday.DESCRIPTION,
        "people": len(people),
        "recordings": list(population.hashes),
        "splits": options.splits,
        "attack_splits": ATTACK_SPLITS,
        "attackers": list(USUAL),
        "rows": rows,
    }
    TARGET.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def kept(folder: Path, name: str, make: Any) -> dict[str, Any]:
    path = folder / f"{name}.json"
    if not path.is_file():
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(make()))
        partial.replace(path)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def sights(population: Population, n: int, splits: int) -> Iterator[Any]:
    for split in range(splits):
        yield from ((split, sight) for sight in roles(population, n, split))


def utility(population: Population, way: dict[str, Any], n: int, epsilon: float, splits: int) -> dict[str, Any]:
    names = population.names
    every = np.concatenate([population.as_recorded(i) for i in range(len(population.people))])
    live: list[Fidelity] = []
    later: list[Fidelity] = []
    for _, sight in sights(population, n, splits):
        calibration = recalibrated(population, sight.calibrating, n, "klt", way)
        mechanism = build(calibration, epsilon)
        yardstick = Yardstick.of(every, names, mechanism.frame.active)
        released = [released_session(mechanism, population.as_recorded(i), n) for i in sight.released]
        raw = [r[0] for r in released]
        live.append(fidelity(yardstick, raw, [r[1] for r in released], n))
        better = [r[2] for r in released if r[2] is not None]  # klt has hindsight
        later.append(fidelity(yardstick, raw, better, n))
    each = {
        name: {key: mean([getattr(f, key)[i] for f in live]) for key in ("explained", "own", "correlation", "partial")}
        for i, name in enumerate(names)
        if np.isfinite(live[0].explained[i])
    }
    shares = {
        key: np.array([each.get(name, {}).get(key, np.nan) for name in names], np.float64)
        for key in ("explained", "own")
    }
    return {
        "distinct": mean([f.distinct for f in live]),
        "middle": yardstick.middle(shares["explained"]),
        "middle_own": yardstick.middle(shares["own"]),
        "distinct_sd": float(np.std([f.distinct for f in live], ddof=1)),
        "distinct_own": mean([f.distinct_own for f in live]),
        "distinct_offline": mean([f.distinct for f in later]),
        "distinct_own_offline": mean([f.distinct_own for f in later]),
        "coverage": mean([f.coverage for f in live]),
        "guess_factor": None if mechanism.gain is None else float(mechanism.gain),
        "features": each,
    }


def identity(population: Population, way: dict[str, Any], n: int, epsilon: float, splits: int) -> dict[str, Any]:
    trials: dict[str, list[Any]] = {name: [] for name in USUAL}
    for split in range(splits):
        galleries = []
        for sight in roles(population, n, split):
            mechanism = build(recalibrated(population, sight.calibrating, n, "klt", way), epsilon)
            made = gallery(population, sight, mechanism, n, reverse=bool(split % 2), active=mechanism.frame.active)
            galleries.append(made)
        for name in USUAL:
            assert all(applies(name, one.mechanism) for one in galleries)
            trials[name].append(trial([(one.people, attack(name, one, seed=split)) for one in galleries], split))
    found = {name: asdict(figures(own, len(galleries[0].people))) for name, own in trials.items()}
    strongest = max(found, key=lambda name: float(found[name]["area"]))
    keep = ("rate", "rate_low", "rate_high", "chance", "area", "area_low", "area_high", "least_area", "people")
    return {"attacker": strongest} | {key: found[strongest][key] for key in keep}


def mean(values: list[float]) -> float | None:
    known = [float(v) for v in values if np.isfinite(v)]
    return float(np.mean(known)) if known else None


if __name__ == "__main__":
    main()
