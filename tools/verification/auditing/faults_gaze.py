"""Faults by which an event is left in live rows for longer than is stated: through latencies, or through numbers."""

import dataclasses
from typing import Any

import numpy as np

from tests.rigs.seams import original
from tools.verification.auditing.planting import Patch, fault


@fault("memory of the clock map", "memory")
def _() -> list[Patch]:
    """Samples move as the least delay of the last ten seconds does, which is handed out slowly."""
    take = original("live gaze taken")

    def following(self: Any, samples: Any, arrived: Any) -> None:
        state = self.__dict__.setdefault("following", {"offset": None, "first": 0.0, "least": [], "last": 0.0})
        now, delays = float(arrived[-1]), (arrived - samples.t)[np.isfinite(samples.t)]
        state["least"] = [one for one in state["least"] if one[0] > now - 10.0]
        state["least"] += [(now, float(delays.min()))] if len(delays) else []
        wanted = min((delay for _, delay in state["least"]), default=state["offset"] or 0.0)
        if state["offset"] is None:
            state["offset"] = state["first"] = wanted
        most = 1e-3 * (now - state["last"])
        state["offset"] += min(max(wanted - state["offset"], -most), most)
        state["last"] = now
        moved = samples.t + (state["offset"] - state["first"])
        take(self, dataclasses.replace(samples, t=moved), arrived)

    return [("live gaze taken", following)]


@fault("memory of the rate guard", "memory")
def _() -> list[Patch]:
    """After a second with too many samples the next one is lost."""
    take = original("live gaze taken")

    def counting(self: Any, samples: Any, arrived: Any) -> None:
        seconds = self.__dict__.setdefault("seconds", {})
        lost = np.zeros(len(samples), dtype=np.bool_)
        for index in np.flatnonzero(np.isfinite(samples.t)).tolist():
            second = int(samples.t[index] // 1.0)
            seconds[second] = seconds.get(second, 0) + 1
            lost[index] = seconds.get(second - 1, 0) > 1.25 * self.profile.fixed_rate_hz + 2
        take(self, dataclasses.replace(samples, valid=samples.valid & ~lost), arrived)

    return [("live gaze taken", counting)]


@fault("lateness beside the samples of the last moments", "memory")
def _() -> list[Patch]:
    take = original("ClockMap.take")

    def narrow(self: Any, t: Any, arrived: Any) -> Any:
        believed = take(self, t, arrived)
        least, delay = self.__dict__.get("least", np.inf), (arrived - t)[: len(believed)]
        if believed.any():
            self.__dict__["least"] = min(least + 1e-3, float(delay[believed].min()))
        return believed & ~(delay > least + 0.004)

    return [("ClockMap.take", narrow)]


@fault("moments of rows that follow latencies", "memory")
def _() -> list[Patch]:
    put = original("live gaze put")

    def moving(self: Any, samples: Any, arrived: Any) -> None:
        put(self, samples, arrived)
        delays = (arrived - samples.t)[np.isfinite(samples.t)]
        if len(delays) and self.next_due is not None:
            self._began += 0.05 * (float(delays.min()) + self._origin - self._began)

    return [("live gaze put", moving)]


@fault("of more samples than usual the oldest are dropped", "memory")
def _() -> list[Patch]:
    put = original("Waiting.put")

    def bounded(self: Any, samples: Any) -> None:
        put(self, samples)
        kept = slice(max(0, len(self) - self._places // 2), None)
        self._samples = self._samples[kept]
        self._tick, self._place, self._order = self._tick[kept], self._place[kept], self._order[kept]

    return [("Waiting.put", bounded)]


@fault("Neon's clock follows sender reports", "borders")
def _() -> list[Patch]:
    """One that is more than 2 ms off is remembered until another one is."""

    def following(self: Any, source: int, seconds: float, count: int, arrived_s: float) -> None:
        known = self.seconds(source, count, arrived_s)
        if known is None or abs(known - seconds) > 0.002:
            self._paired = {source: (seconds, count, arrived_s)}

    return [("RtpClock.report", following)]


@fault("a late second of gaze in silence ends a session", "borders")
def _() -> list[Patch]:
    vote = original("ClockMap.vote")

    def hasty(self: Any) -> bool:
        if not self._new and self._others and not self._believed:
            self.forget()
            return False
        return bool(vote(self))

    return [("ClockMap.vote", hasty)]


@fault("samples keep the session of a tracker that does not answer", "borders")
def _() -> list[Patch]:
    put = original("live gaze put")

    def keeping(self: Any, samples: Any, arrived: Any) -> None:
        put(self, samples, arrived)
        self.stand(float(arrived[-1]))

    return [("live gaze put", keeping)]
