"""Every shipped calibration, at every epsilon: it builds, claims, releases, fades through all levels and looks back.

    python -m tools.verification.every_epsilon [--levels 8] [--step 0.01] [--jobs 2] [CALIBRATION ...]

From one step to 110. On level j a mechanism is that of epsilon / 2^j, so each epsilon that a level comes to is built
once; that a session goes on from level to level is tried at every hundredth epsilon. A failure is one line, and the
exit code is then 1. What the precision of the sampler of added noise does not allow is refused, and counted: that is
no failure, and never happens to `klt`. About 0.15 s of a processor for each of `klt`: 12 calibrations at 11,000
epsilons take 6 hours of one processor, with all levels four times as long.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from eyestream.core.charge import LEVELS, faded
from eyestream.core.mechanism import RAISED
from eyestream.core.mechanisms import build
from eyestream.errors import EyestreamError
from eyestream.rim.files import calibrations
from eyestream_lab.testing.mechanisms import check_life

_HIGHEST = 110.0
_TOGETHER = 100
_TOO_SMALL = "epsilon is too small for the precision of the sampler"


def epsilons(step: float, levels: int) -> list[float]:
    """Those of the grid, and what they come to on further levels, each once."""
    grid = [round(number * step, 10) for number in range(1, round(_HIGHEST / step) + 1)]
    return sorted({faded(epsilon, level) for epsilon in grid for level in range(levels)})


def tried(name: str, own: list[float], levels: int) -> tuple[list[str], int]:
    """What went wrong, one line each, and how many were refused; the first of `own` goes through all levels."""
    calibration, wrong, refused = calibrations.load(name), [], 0
    for number, epsilon in enumerate(own):
        try:
            check_life(build(calibration, epsilon), 1 if number else levels)
        except (EyestreamError, *RAISED) as error:
            if calibration.mechanism != "klt" and _TOO_SMALL in str(error):
                refused += 1
            else:
                wrong.append(f"{name} at epsilon {epsilon!r}: {type(error).__name__}: {error}")
    return wrong, refused


def pieces(names: list[str], step: float, levels: int) -> Iterator[tuple[str, list[float], int]]:
    """Each from one end of the range to the other, so that a run that is stopped has been everywhere."""
    every = epsilons(step, levels)
    count = -(-len(every) // _TOGETHER)
    for first in range(count):
        for name in names:
            yield name, every[first::count], levels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("calibrations", nargs="*", default=calibrations.shipped(), metavar="CALIBRATION")
    parser.add_argument("--levels", type=int, default=LEVELS)
    parser.add_argument("--step", type=float, default=0.01)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    work, began, wrong = list(pieces(options.calibrations, options.step, options.levels)), time.monotonic(), 0
    refused = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for done, (found, small) in enumerate(pool.map(tried, *zip(*work, strict=True)), 1):
            wrong, refused = wrong + len(found), refused + small
            for line in found:
                print(line, flush=True)
            if done % 20 == 0 or done == len(work):
                seconds = time.monotonic() - began
                print(f"{done} of {len(work)} pieces, {wrong} failures, {seconds:.0f} s", file=sys.stderr, flush=True)
    tried_at = sum(len(own) for _, own, _ in work)
    print(f"{tried_at} mechanisms of {len(options.calibrations)} calibrations: {wrong} failures, {refused} refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
