"""Run in the peers' environment: Laplace noise of 52 x 64 values, and scipy.fft, beside eyestream; JSON on stdout.

All add Laplace noise to zeros: OpenDP by the array, to float64 at scale 1 (its default, on the finest grid) and to
integers at scale 2^20 (what eyestream draws); diffprivlib by the value, as its interface asks; numpy's float noise is
the common measure.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.machine import pinned
from benchmarks.measure import interleaved
from benchmarks.peers import array_peer
from benchmarks.subjects import KEPT, a_chunk, subject
from eyestream.core.noise import SecureNoise
from eyestream.core.noise.laws import LaplaceLaw

FEATURES, N = 52, 64


def _noises() -> dict[str, Callable[[], object]]:
    import diffprivlib.mechanisms as diffprivlib
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    size = FEATURES * N
    rng, secure = np.random.default_rng(), SecureNoise()
    law = LaplaceLaw(np.full(FEATURES, 2.0**-20), N, 2**20)
    space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.l1_distance(T=float)
    laplace = opendp.m.make_laplace(*space, scale=1.0)
    whole = opendp.vector_domain(opendp.atom_domain(T=opendp.i64)), opendp.l1_distance(T=opendp.i64)
    discrete = opendp.m.make_laplace(*whole, scale=2.0**20)
    zeros, integers, one = [0.0] * size, [0] * size, diffprivlib.Laplace(epsilon=1.0, sensitivity=1.0)
    return {
        "numpy": lambda: rng.laplace(size=(FEATURES, N)),
        "eyestream": lambda: secure.draw(law),
        "opendp, float64": lambda: laplace(zeros),
        "opendp, integers": lambda: discrete(integers),
        "diffprivlib": lambda: [one.randomise(0.0) for _ in range(size)],
    }


def _releases() -> dict[str, Callable[[], object]]:
    import scipy.fft

    mechanism = subject("cfpa", FEATURES, N)
    chunk = a_chunk(mechanism)
    by_numpy, by_scipy = array_peer(mechanism, KEPT, np.fft), array_peer(mechanism, KEPT, scipy.fft)
    return {
        "eyestream release": lambda: mechanism.release(chunk),
        "numpy.fft release": lambda: by_numpy(chunk),
        "scipy.fft release": lambda: by_scipy(chunk),
    }


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1])
    records: list[dict[str, Any]] = []
    with pinned():
        for cases in (_noises(), _releases()):
            timings = interleaved(cases, seconds)
            ours = next(timing for name, timing in timings.items() if name.startswith("eyestream"))
            for name, timing in timings.items():
                records.append({"peer": name, "ratio_to_eyestream": timing.over(ours), **timing.record()})
    json.dump(records, sys.stdout)


if __name__ == "__main__":
    main()
