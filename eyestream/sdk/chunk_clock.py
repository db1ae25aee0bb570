"""When the columns of a chunk were, on the application's clock.

A chunk is published when its last row has come. So its arrival is the moment of its last column plus a delay, and no
delay is below the shortest one of the way. The session's grid runs on another crystal, so that moments are
``a + (1 + b) t`` for grid seconds t, with |b| up to 100 ppm.

The line lies below all arrivals. Its slope is that of the edge of their lower convex hull above which the mean t lies
(S. Moon, P. Skelly and D. Towsley, "Estimation and removal of clock skew from network delay measurements", INFOCOM
1999). A late chunk lies above the line and does not move it. An edge steeper than `MOST_DRIFT` ends in a late chunk and
tells nothing about the drift, which then counts as 0. Only arrivals until now count, so a chunk that has been handed
out keeps its moments.

**Error.** The shortest delay cannot be told from a difference of the clocks, so moments are late by it: sidecar and
broker on one machine take about 2 ms. What is left is jitter and drift: with 100 ppm, jitter of 0.5 ms and an outage of
2 s it stays below 5 ms (`tests/product/sdk/test_chunk_clock.py`). Three cases are worse. An outage
at the second chunk costs the drift over it, 3.2 ms with chunks of 32 s, and the jitter. Of a session that one joins
while chunks wait in the broker, the first ones are late by their wait. With ``release = "on_clock"`` the sidecar moves
its schedule by half of `grace_s` at a time, and moments are off by as much until `MOST_POINTS` chunks have come.
"""

import itertools
from collections import deque

import numpy as np
from numpy.typing import NDArray

MOST_DRIFT = 200e-6
"""Two crystals of 100 ppm."""

MOST_POINTS = 64
"""Latest chunks that decide the line: temperature changes the drift within half an hour."""

_LEAST_JITTER_S = 1e-3

Point = tuple[float, float]


class ChunkClock:
    """The clock of one session; fed with each chunk once, as it arrives."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=MOST_POINTS)

    def take(self, t: NDArray[np.float64], arrived: float) -> tuple[NDArray[np.float64], float]:
        """Moments of the columns of a chunk, and how far they may be off beyond the shortest delay.

        Parameters
        ----------
        t
            (n,) grid seconds of its columns, increasing.
        arrived
            Seconds of the application's clock.
        """
        end = float(t[-1])
        self._points.append((end, arrived))
        grid, moments = np.array(self._points).T
        drift = _drift(_hull(sorted(self._points)), float(grid.mean()))
        rest = moments - (1.0 + drift) * grid
        touch = int(np.argmin(rest))
        jitter = max(float(np.median(rest - rest[touch])), _LEAST_JITTER_S)
        unknown = min(MOST_DRIFT, jitter / max(float(np.ptp(grid)), 1e-9))
        return rest[touch] + (1.0 + drift) * t, jitter + unknown * abs(end - grid[touch])


def _hull(points: list[Point]) -> list[Point]:
    """The lower convex hull of points in the order of their first coordinate (A. M. Andrew, 1979)."""
    hull: list[Point] = []
    for point in points:
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) <= 0:
            hull.pop()
        hull.append(point)
    return hull


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _drift(hull: list[Point], middle: float) -> float:
    """Slope less 1 of the edge above which `middle` lies; 0 where it tells nothing."""
    for (x, y), (right, height) in itertools.pairwise(hull):
        if right >= middle and right > x:
            slope = (height - y) / (right - x) - 1.0
            return slope if abs(slope) <= MOST_DRIFT else 0.0
    return 0.0
