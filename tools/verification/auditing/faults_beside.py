"""Faults by which something without noise leaves beside the values of a release."""

import asyncio
from typing import Any

import numpy as np

from eyestream.errors import LinkError
from eyestream_lab.calibration.fingerprints import made_from, overlap
from eyestream_lab.recordings.released import Released
from tests.rigs.seams import original
from tools.verification.auditing.planting import Patch, fault

_SILENCE_S = 0.3

# Recordings


class _Telling(Released):
    """With a field that is computed from the rows."""

    share = 0.0
    withheld = False

    def claim(self) -> dict[str, object]:
        told = super().claim()
        return told | ({"claim": None} if self.withheld else {"calibrated_on_itself": self.share})


def _told_by(which: str, tell: Any) -> list[Patch]:
    release = original("privatize releases")

    def telling(recording: Any, mechanism: Any, *given: Any, **named: Any) -> Any:
        made = release(recording, mechanism, *given, **named)
        telling = _Telling(**vars(made))
        object.__setattr__(telling, which, tell(recording, mechanism.calibration))
        return telling

    return [("privatize releases", telling)]


@fault("a noiseless field in a claim", "published")
def _() -> list[Patch]:
    return _told_by("share", lambda recording, calibration: overlap(calibration, recording.features))


@fault("seconds of gaps in a claim", "published")
def _() -> list[Patch]:
    return _told_by("share", lambda recording, calibration: recording.gaps_s)


@fault("a claim that is withheld by what is in the rows", "published")
def _() -> list[Patch]:
    return _told_by("withheld", lambda recording, calibration: made_from(calibration, recording.features))


@fault("what is missing in the rows is missing in the release", "published")
def _() -> list[Patch]:
    release = original("privatize releases")

    def leaving(recording: Any, mechanism: Any, guarantee: Any, rows: Any, **named: Any) -> Any:
        gaps = np.where(np.isnan(recording.features), np.nan, rows)
        return release(recording, mechanism, guarantee, gaps, **named)

    return [("privatize releases", leaving)]


# Times


@fault("`at` that carries latency", "moments")
def _() -> list[Patch]:
    close = original("session closes a chunk")

    def forgetting(self: Any, ends_session: bool = False) -> None:
        close(self, ends_session)
        self._origin = None

    return [("session closes a chunk", forgetting)]


@fault("a moment on the clock that carries latency", "moments")
def _() -> list[Patch]:
    def at_once(self: Any, until: float) -> None:
        self._due = until

    return [("session awaits", at_once)]


# Whether the eye is seen


@fault("a status that sees the eye", "standing")
def _() -> list[Patch]:
    take, keep = original("gaze is handed on"), original("tracker stands")

    def noting(self: Any, records: Any) -> None:
        self.heard = asyncio.get_running_loop().time()
        take(self, records)

    async def watching(self: Any, listening: Any, ask: Any, found: str) -> None:
        loop = asyncio.get_running_loop()
        self.heard = loop.time()

        async def asked() -> None:
            await ask()
            if loop.time() - self.heard > _SILENCE_S:
                raise LinkError("no gaze")

        await keep(self, listening, asked, found)

    return [("gaze is handed on", noting), ("tracker stands", watching)]


@fault("a session that ends when the eye is lost", "standing")
def _() -> list[Patch]:
    return [("front end hears of a tracker", lambda self, now_s: None)]
