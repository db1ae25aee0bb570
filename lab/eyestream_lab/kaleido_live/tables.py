"""Settings of Kaleido for a stream, as a calibration: all are public. There is nothing to learn from a corpus."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, Provenance, product
from eyestream.errors import CalibrationError, ConfigError
from eyestream.streams import FrontEndMark
from eyestream_lab.kaleido import Settings

NAME = "kaleido"
"""Name of the mechanism."""

_VERSION = 1
"""Goes up with every change by which the same gaze gives other samples."""
_PARTS = ("x", "y", "seen")


@dataclass(frozen=True, eq=False, repr=False)
class KaleidoTables:
    """Settings of `eyestream_lab.kaleido.Settings`."""

    figures: NDArray[np.float64]
    """(7,) w, r_deg, skip, threshold_deg, h, width_deg, height_deg."""

    @property
    def scale(self) -> NDArray[np.float64]:
        """(F,) ones: all of a slot is input."""
        return np.ones(len(_PARTS) * self.settings().w)

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the settings are none, or not of so many numbers of one slot."""
        if self.figures.shape != (7,) or (features, n) != (len(self.scale), 1):
            raise CalibrationError("calibration of kaleido: expected seven settings, and three numbers for each sample")

    def settings(self) -> Settings:
        """The settings as the mechanism takes them; raises CalibrationError when they are none."""
        w, r_deg, skip, threshold_deg, h, width_deg, height_deg = self.figures.tolist()
        try:
            return Settings(int(w), r_deg, int(skip), threshold_deg, int(h), width_deg, height_deg)
        except ConfigError as error:
            raise CalibrationError(f"calibration of {error}") from None


def settings_of(calibration: Calibration) -> Settings:
    """The settings of a calibration; raises CalibrationError when it is another mechanism's."""
    if not isinstance(calibration.tables, KaleidoTables):
        raise CalibrationError(f"expected a calibration of {NAME}, not one of {calibration.mechanism}")
    return calibration.tables.settings()


def calibration_of(settings: Settings, rate_hz: float) -> Calibration:
    """A calibration for so many samples a second; a slot is a window of w of them."""
    w, (across, upright) = settings.w, (settings.width_deg / 2, settings.height_deg / 2)
    figures = [w, settings.r_deg, settings.skip, settings.threshold_deg, settings.h, 2 * across, 2 * upright]
    names = tuple(f"{part} {place}" for part in _PARTS for place in range(w))
    high = np.repeat([across, upright, 1.0], w)
    return Calibration(
        mechanism=NAME,
        names=names,
        units=("deg",) * (2 * w) + ("1",) * w,
        rate_hz=rate_hz / w,
        n=1,
        k=None,
        declared=np.zeros(len(names), dtype=np.bool_),
        lo=np.repeat([-across, -upright, 0.0], w),
        hi=high,
        fill=np.zeros(len(names)),
        tables=KaleidoTables(np.array(figures, dtype=np.float64)),
        provenance=Provenance("public settings; no recording is in them", 0, 0, None, (), product()),
        front_end=mark_of(w, rate_hz),
    )


def mark_of(w: int, rate_hz: float) -> FrontEndMark:
    """The provenance of such samples: gaze in degrees, of whatever tracker."""
    version = f"places {_VERSION}, {w} of {rate_hz:g} Hz"
    return FrontEndMark("degrees", version, version)
