"""The bindings of OpenXR that somebody else wrote, and the loader that comes with them."""

import os
import sys

__all__ = ["pyopenxr_python"]


def pyopenxr_python() -> str:
    """The Python that has pyopenxr, which is too large for the test extra."""
    return os.environ.get("EYESTREAM_PYOPENXR_PYTHON", sys.executable)
