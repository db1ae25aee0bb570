"""The mechanisms, a folder each, and the registry that knows them by name. Pure.

The classes below are imported when somebody asks for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eyestream.core.frame import Frame
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.entry import Entry
from eyestream.core.mechanisms.registry import build, register
from eyestream.core.protection import Protection

if TYPE_CHECKING:
    from eyestream.core.mechanisms.fourier import CFPA, DCFPA
    from eyestream.core.mechanisms.klt import KLT
    from eyestream.core.mechanisms.lpa import LPA

__all__ = ["CFPA", "DCFPA", "KLT", "LPA", "Entry", "Frame", "Mechanism", "Protection", "build", "register"]


_HOME = {"CFPA": "fourier", "DCFPA": "fourier", "KLT": "klt", "LPA": "lpa"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
