"""Which systems are studied, with the parameters of their papers, and ours beside them."""

from collections import Counter
from typing import Any

from eyestream.rim.files.calibrations import load

Wanted = tuple[str, dict[str, Any]]
"""Name and options of a system."""

CHUNK = 32
KALEIDO_EPSILONS = (10.0, 5.0, 2.0, 1.0)
PRINTED_EPSILONS = (10.0, 100.0, 80.0, 60.0, 40.0, 20.0, 5.0, 2.0)
"""Epsilons of a feature, of Exponential-DP as printed."""
GAMMAS = (2.0, 1.5, 3.0, 1.0)
"""The paper's tables have 1 too, which is refused."""
_KS = (2, 4, 6, 8)


def systems() -> list[Wanted]:
    """All of them: the first of each name, which a quick study takes, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    turns = []
    for one in _by_name():
        turns.append((seen[one[0]], one))
        seen[one[0]] += 1
    return [one for _, one in sorted(turns, key=lambda turn: turn[0])]


def _by_name() -> list[Wanted]:
    own = {name: load(f"everyday-{name}-{CHUNK}") for name in ("lpa", "cfpa", "dcfpa", "klt")}
    tiles = load("everyday-tile")
    found: list[Wanted] = [(name, {"k": k}) for name in ("k-same-select", "k-same-select-one-partition") for k in _KS]
    found += [("marginals-pd", {"k": k}) for k in (4, 2, 6, 8)]
    found += [("marginals-noised", {"epsilon": e, "delta": 1e-3, "calibration": own["lpa"]}) for e in (10.0, 40.0)]
    found += [("exponential-dp", {"epsilon": e, "calibration": own["lpa"]}) for e in (10.0, 100.0)]
    found += [("exponential-dp-as-printed", {"epsilon": e, "as_published": True}) for e in PRINTED_EPSILONS]
    found += [("fpa", {"epsilon": 48.0, "calibration": own["cfpa"]})]
    found += [(name, {"epsilon": e, "calibration": one}) for name, one in own.items() for e in (4.8, 48.0)]
    found += [("level-synth", {"epsilon": e, "calibration": own["klt"]}) for e in (10.0, 5.0, 20.0, 40.0)]
    found += [(name, {"k": k}) for name in ("k-same-synth", "k-same-synth-timed") for k in _KS]
    events = [{"k": k, "gamma": g} for k in (2, 4) for g in GAMMAS]
    found += [
        (name, one) for name in ("event-synth-pd", "event-synth-pd-centred", "event-synth-pd-vae") for one in events
    ]
    windows = [{"epsilon": e, "w": w, "r_deg": r} for w in (50, 200) for r in (2.0, 10.0) for e in KALEIDO_EPSILONS]
    found += [("kaleido", one) for one in windows]
    found += [("kaleido-as-published", one | {"as_published": True}) for one in windows]
    found += [("tile", {"epsilon": e, "calibration": tiles}) for e in (10 / 3, 20 / 3, 5 / 3, 2 / 3)]
    found += [("saliency-gaussian", {"epsilon": e, "delta": 1e-4}) for e in (10.0, 1.0, 100.0)]
    found += [("gaussian", {"sd_deg": sd}) for sd in (10.0, 5.0, 1.0)]
    found += [("temporal-held", {"k": k}) for k in (3, 2)]
    found += [("spatial", {"level": level}) for level in (64, 16)]
    return [*found, ("smoothing-twice", {"first": 10, "second": 50}), ("kalman", {"sd_deg": 1.0, "push": 500.0})]


def key_of(name: str, options: dict[str, Any]) -> str:
    """A line of a table, and the name of its cell."""
    shown = {key: value for key, value in options.items() if key not in ("calibration", "as_published")}
    return ", ".join([name, *(f"{key} = {value:.3g}" for key, value in shown.items())])
