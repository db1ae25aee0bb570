"""Building a mechanism, ours or anyone's: whatever a library raises meanwhile is one error that says what to change."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from eyestream.errors import MechanismError

RAISED = (
    ArithmeticError,  # FloatingPointError, OverflowError, ZeroDivisionError, those of decimal
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    ImportError,
    LookupError,  # IndexError, KeyError
    MemoryError,
    NameError,
    OSError,
    RuntimeError,  # NotImplementedError, RecursionError
    TypeError,
    ValueError,  # numpy's LinAlgError, UnicodeError
    Warning,  # where warnings are errors
    msgspec.MsgspecError,
)
"""Errors of Python, numpy and most libraries for their arguments, or for what they cannot do. What is derived from
`Exception` alone, and what ends a program, goes on as it is."""


@contextmanager
def building(name: str, epsilon: float) -> Iterator[None]:
    """Around whatever makes a mechanism `name` for `epsilon`, or says what it guarantees.

    Raises
    ------
    MechanismError
        In place of anything of `RAISED`, which is its cause; our own errors stay what they are.
    """
    try:
        yield
    except RAISED as error:
        said = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":. ")
        raise MechanismError(
            f"mechanism {name} cannot be built at epsilon {epsilon}: {said}. Take another epsilon, calibration or "
            "option, or mend the mechanism"
        ) from error
