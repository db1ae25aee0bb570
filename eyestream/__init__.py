"""Privacy sidecar for eye tracking: differentially private release of eye-movement feature streams.

    async with eyestream.subscribe(url, device=...) as chunks:
        async for chunk in chunks:
            chunk.values

    for chunk in eyestream.listen(url, device=...):  # without asyncio
        chunk.to_pandas()

    eyestream.CFPA(eyestream.load_calibration("everyday-cfpa-32"), epsilon=4.8).release(chunk)

Names are loaded when they are first used, so that an application does not pay for what it does not need. What is named
here is the stable interface of the library; every other module may change without notice.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyestream.core.mechanisms import CFPA, DCFPA, KLT, LPA
    from eyestream.core.whole import release_rows
    from eyestream.errors import (
        CalibrationError,
        ConfigError,
        EyestreamError,
        LedgerError,
        LinkError,
        OperatorError,
        PayloadError,
        RecordingError,
    )
    from eyestream.rim.config import BrokerSettings
    from eyestream.rim.files.calibrations import load as load_calibration
    from eyestream.rim.files.recordings import load as load_recording
    from eyestream.sdk.chunk import Chunk
    from eyestream.sdk.chunks import Connection, Gap, Silence
    from eyestream.sdk.discovery import Found, discover
    from eyestream.sdk.odometer import OdometerWatch, OtherLedger, WentBack
    from eyestream.sdk.publisher import Publisher
    from eyestream.sdk.subscriber import listen, subscribe
    from eyestream.wire.status import Budget, Status

__all__ = [
    "CFPA",
    "DCFPA",
    "KLT",
    "LPA",
    "BrokerSettings",
    "Budget",
    "CalibrationError",
    "Chunk",
    "ConfigError",
    "Connection",
    "EyestreamError",
    "Found",
    "Gap",
    "LedgerError",
    "LinkError",
    "OdometerWatch",
    "OperatorError",
    "OtherLedger",
    "PayloadError",
    "Publisher",
    "RecordingError",
    "Silence",
    "Status",
    "WentBack",
    "discover",
    "listen",
    "load_calibration",
    "load_recording",
    "release_rows",
    "subscribe",
]

_NAMES = {
    "core.mechanisms": "CFPA DCFPA KLT LPA",
    "core.whole": "release_rows",
    "errors": "CalibrationError ConfigError EyestreamError LedgerError LinkError OperatorError "
    "PayloadError RecordingError",
    "rim.config": "BrokerSettings",
    "sdk.chunk": "Chunk",
    "sdk.chunks": "Connection Gap Silence",
    "sdk.discovery": "Found discover",
    "sdk.odometer": "OdometerWatch OtherLedger WentBack",
    "sdk.publisher": "Publisher",
    "sdk.subscriber": "listen subscribe",
    "wire.status": "Budget Status",
}
_HOME = {name: (module, name) for module, names in _NAMES.items() for name in names.split()} | {
    "load_calibration": ("rim.files.calibrations", "load"),
    "load_recording": ("rim.files.recordings", "load"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'eyestream' has no attribute {name!r}")
    module, attribute = _HOME[name]
    return getattr(importlib.import_module(f"eyestream.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
