"""The mechanisms, a folder each, and the registry that knows them by name. Pure.

The classes below are imported when somebody asks for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eyestream.privacy.frame import Frame
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms.entry import Entry
from eyestream.privacy.mechanisms.registry import build, register
from eyestream.privacy.protection import Protection

if TYPE_CHECKING:
    from eyestream.privacy.mechanisms.cfpa import CFPA
    from eyestream.privacy.mechanisms.dcfpa import DCFPA
    from eyestream.privacy.mechanisms.fpa import FPA
    from eyestream.privacy.mechanisms.klt import KLT
    from eyestream.privacy.mechanisms.lpa import LPA

__all__ = [
    "CFPA",
    "DCFPA",
    "FPA",
    "KLT",
    "LPA",
    "Entry",
    "Frame",
    "Mechanism",
    "Protection",
    "build",
    "register",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.{name.lower()}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
