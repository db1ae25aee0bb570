"""The mechanisms, one file each, and the registry that knows them by name. Pure."""

from eyestream.privacy.frame import Frame
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms.cfpa import CFPA
from eyestream.privacy.mechanisms.dcfpa import DCFPA
from eyestream.privacy.mechanisms.entry import Entry
from eyestream.privacy.mechanisms.fpa import FPA
from eyestream.privacy.mechanisms.klt import KLT
from eyestream.privacy.mechanisms.lpa import LPA
from eyestream.privacy.mechanisms.registry import build, register
from eyestream.privacy.protection import Protection

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
