"""The audited thing as a callable, inside the child process.

A program reads and writes chunks on a pipe: u32 F, u32 n, then F * n float64, features by rows; all little-endian.
"""

import importlib
import select
import struct
import subprocess
from collections.abc import Callable
from io import BufferedReader, FileIO
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.rim.elsewhere import mechanism_named
from eyestream.rim.files import calibrations
from eyestream_lab.audit.subject import Subject

__all__ = ["FrameError", "LoadError", "Readable", "Release", "fault_of", "load", "pack", "unpack"]


class Readable(Protocol):
    """Bytes that come in pieces."""

    def read(self, size: int, /) -> bytes | None:
        """At most so many bytes, none at the end."""
        ...


_HEAD = struct.Struct("<II")
_MOST_BYTES = 1 << 27


class FrameError(Exception):
    """The bytes that came are not the frame that was expected."""


def pack(chunk: NDArray[np.float64]) -> bytes:
    """The frame of a chunk (F, n)."""
    return _HEAD.pack(*chunk.shape) + np.ascontiguousarray(chunk, dtype="<f8").tobytes()


def unpack(stream: Readable) -> NDArray[np.float64] | None:
    """The next chunk (F, n) of `stream`; None where it ends between two frames.

    Raises
    ------
    FrameError
        The stream ends inside a frame, or the frame is too large to be meant.
    """
    head = _exactly(stream, _HEAD.size)
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise FrameError(f"{len(head)} bytes where the {_HEAD.size} of a head were expected")
    features, n = _HEAD.unpack(head)
    size = 8 * features * n
    if size > _MOST_BYTES:
        raise FrameError(f"a head that announces {features} x {n} values")
    body = _exactly(stream, size)
    if len(body) < size:
        raise FrameError(f"{len(body)} bytes where {size} of a {features} x {n} chunk were expected")
    return np.frombuffer(body, dtype="<f8").reshape(features, n).astype(np.float64)


def _exactly(stream: Readable, size: int) -> bytes:
    """The next `size` bytes, fewer only at the end."""
    parts, missing = [], size
    while missing:
        part = stream.read(missing)
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


Array = NDArray[np.float64]
Release = Callable[[Array], Any]
"""One release of a chunk (F, n); whatever it returns is judged by the caller."""


class LoadError(Exception):
    """There is nothing to audit under that name."""


def load(subject: Subject) -> Release:
    """A callable that makes one release.

    Raises
    ------
    LoadError
        The module, the function or the program is not there.
    """
    if subject.kind == "mechanism":
        name, calibration = subject.target
        called = mechanism_named(name, "MECHANISM").name
        ours = build(calibrations.load(calibration), subject.epsilon)
        if ours.name != called:
            raise LoadError(f"{calibration} was made for {ours.name}, not for {called}")
        return lambda chunk: ours.session().release(chunk)
    if subject.kind == "program":
        return _Program(subject.target)
    found = _find(subject.target[0])
    return found if subject.kind == "function" else _new_sessions(found)


def _new_sessions(make: Callable[[], Any]) -> Release:
    """Every release by a session of its own, which is a function or an object with `release`."""

    def release(chunk: Array) -> Any:
        session = make()
        return getattr(session, "release", session)(chunk)

    return release


def _find(spec: str) -> Callable[..., Any]:
    module, _, name = spec.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise LoadError(f"{spec}: there is no module {error.name}") from None
    except AttributeError:
        raise LoadError(f"{spec}: module {module} has no {name}") from None
    if not callable(found):
        raise LoadError(f"{spec}: is no function but a {type(found).__name__}")
    return found  # type: ignore[no-any-return]


class _Program:
    """A program at the other end of two pipes."""

    def __init__(self, command: tuple[str, ...]) -> None:
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise LoadError(f"{command[0]}: cannot be started: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to = self._process.stdin
        self._from = cast("FileIO", cast("BufferedReader", self._process.stdout).raw)  # unbuffered: what is extra stays

    def __call__(self, chunk: Array) -> Array:
        """One chunk there, one back."""
        try:
            self._to.write(pack(chunk))
            self._to.flush()
        except BrokenPipeError:
            raise EOFError(self._ended()) from None
        released = unpack(self._from)
        if released is None:
            raise EOFError(self._ended())
        return released

    def _ended(self) -> str:
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "the program closed its output"
        return f"the program ended with exit code {code}"

    def extra(self) -> int:
        """Bytes that came after the last answer and belong to none."""
        ready = bool(select.select([self._from.fileno()], [], [], 0.02)[0])
        return len(self._from.read(1 << 16) or b"") if ready else 0


def fault_of(error: BaseException) -> tuple[str, str]:
    """The finding and the words for what a release raised; never a value."""
    if isinstance(error, FrameError):
        return "wrong-shape", str(error)
    if isinstance(error, EOFError):
        return "crash", str(error) or "EOFError"
    return "crash", type(error).__name__
