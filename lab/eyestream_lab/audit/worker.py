"""The child process that runs what is audited: it gets inputs, makes releases, and sends back outputs and times.

    python -m eyestream_lab.audit.worker '{"kind": "function", ...}'

What the audited code prints goes to a file of its own, whose size is reported; it can reach neither end of the pipe to
the audit by printing. The audit ends this process, with all that it started, by its handle.

The audited thing as a callable, inside the child process.

A program reads and writes chunks on a pipe: u32 F, u32 n, then F * n float64, features by rows; all little-endian.
"""

import importlib
import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from io import BufferedReader, FileIO
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.rim.elsewhere import mechanism_named
from eyestream.rim.files import calibrations
from eyestream_lab.audit import messages
from eyestream_lab.audit.subject import Subject

Array = NDArray[np.float64]
_KINDS = "fiu"


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
        name, calibration, *features = subject.target
        called = mechanism_named(name, "MECHANISM").name
        ours = build(calibrations.load(calibration), subject.epsilon, features=features or None)
        if ours.name != called:
            raise LoadError(f"{calibration} was made for {ours.name}, not for {called}")
        return partial(_first, ours, (subject.features, subject.n))
    if subject.kind == "program":
        return _Program(subject.target)
    found = _find(subject.target[0])
    return found if subject.kind == "function" else _new_sessions(found)


def _first(mechanism: Mechanism, shape: tuple[int, int], chunk: Array) -> Array:
    """Release a session's first chunk, after a baseline of zeros, into the corner of an array (F, n) of zeros."""
    session, whole = mechanism.session(), np.zeros(shape)
    while session.awaits_baseline:
        session.anchor(np.zeros(shape))
    released = session.release(chunk)
    whole[: released.shape[0], : released.shape[1]] = released
    return whole


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


class _Fault(Exception):  # noqa: N818  what is found, not what went wrong here
    """A release that gave no chunk."""

    def __init__(self, finding: str, what: str, at: int) -> None:
        super().__init__(finding, what, at)
        self.finding, self.what, self.at = finding, what, at


class _Worker:
    def __init__(self, subject: Subject, release: Release, printed: BinaryIO) -> None:
        self._shape = (subject.features, subject.n)
        self._release = release
        self._printed = printed
        self._program = subject.kind == "program"

    def draw(self, inputs: Array, order: NDArray[np.int64]) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Releases of `inputs` (K, F, n) in the given order (m,): forms seen, outputs (m, F, n), nanoseconds (m,)."""
        outputs = np.empty((len(order), *self._shape))
        spent = np.empty(len(order), dtype=np.int64)
        forms: dict[str, list[str]] = {}
        for at, which in enumerate(order.tolist()):
            outputs[at], spent[at], form = self._one(inputs[which], at)
            if form not in forms.setdefault(str(which), []):
                forms[str(which)].append(form)
        return {"forms": forms, "printed": self._extra()}, [outputs, spent]

    def _one(self, chunk: Array, at: int) -> tuple[Array, int, str]:
        own = chunk.copy()
        began = time.perf_counter_ns()
        try:
            released = self._release(own)
        except (Exception, SystemExit) as error:  # whatever the audited code raises is what is reported
            raise _Fault(*fault_of(error), at) from None
        ended = time.perf_counter_ns()
        if not isinstance(released, np.ndarray):
            raise _Fault("wrong-shape", f"a {type(released).__name__} instead of an array", at)
        form = f"{released.shape} {released.dtype}"
        if released.shape != self._shape or released.dtype.kind not in _KINDS:
            raise _Fault("wrong-shape", f"{form} instead of {self._shape} of numbers", at)
        return released.astype(np.float64), ended - began, form

    def fork(self, chunk: Array, calls: int) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Releases (2, calls, F, n) of two copies of this process, copied natively at one moment."""
        copies = [self._copy(chunk, calls) for _ in range(2)]
        outputs = np.empty((2, calls, *self._shape))
        for out, (pid, end) in zip(outputs, copies, strict=True):
            with open(end, "rb") as file:
                data = file.read()
            os.waitpid(pid, 0)
            if len(data) != out.nbytes:
                raise _Fault("crash", "a copy of the process (fork) gave no chunks", 0)
            out[:] = np.frombuffer(data).reshape(out.shape)
        return {}, [outputs]

    def _copy(self, chunk: Array, calls: int) -> tuple[int, int]:
        read, write = os.pipe()
        pid = os.fork()
        if pid:
            os.close(write)
            return pid, read
        try:
            with open(write, "wb") as file:
                for at in range(calls):
                    file.write(self._one(chunk, at)[0].tobytes())
        finally:
            os._exit(0)

    def threads(self, chunk: Array, calls: int) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Releases (2, calls, F, n) of two threads at the same time."""
        outputs = np.empty((2, calls, *self._shape))
        faults: list[_Fault] = []
        together = threading.Barrier(2)

        def run(out: Array) -> None:
            together.wait()
            try:
                for at in range(calls):
                    out[at] = self._one(chunk, at)[0]
            except _Fault as fault:
                faults.append(fault)

        both = [threading.Thread(target=run, args=(out,)) for out in outputs]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        if faults:
            raise faults[0]
        return {}, [outputs]

    def _extra(self) -> int:
        """Bytes printed since the last answer, and bytes after an answer of a program."""
        sys.stdout.flush()
        sys.stderr.flush()
        size = self._printed.seek(0, os.SEEK_END)
        _emptied(self._printed)
        return size + (self._release.extra() if self._program else 0)  # type: ignore[attr-defined]

    def answer(self, head: dict[str, Any], arrays: list[NDArray[Any]]) -> bytes:
        """The reply to one request."""
        try:
            if head["do"] == "draw":
                said, result = self.draw(arrays[0], arrays[1])
            elif head["do"] == "fork":
                said, result = self.fork(arrays[0], head["calls"])
            else:
                said, result = self.threads(arrays[0], head["calls"])
        except _Fault as fault:
            return messages.encode({"fault": [fault.finding, fault.what, fault.at]})
        return messages.encode(said, *result)


def _emptied(file: BinaryIO) -> None:
    os.ftruncate(file.fileno(), 0)
    file.seek(0)


def main() -> None:
    """Serve requests until the pipe is closed."""
    subject = Subject.from_dict(json.loads(sys.argv[1]))
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with tempfile.TemporaryFile() as printed, requests, replies:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for end in (1, 2):
            os.dup2(printed.fileno(), end)
        try:
            release = load(subject)
        except LoadError as error:
            replies.write(messages.encode({"missing": str(error)}))
            return
        except (Exception, SystemExit) as error:  # a module that fails while it is imported
            replies.write(messages.encode({"fault": ["crash", f"{type(error).__name__} while it was loaded", 0]}))
            return
        _emptied(printed)
        worker = _Worker(subject, release, printed)
        replies.write(messages.encode({"loaded": True}))
        replies.flush()
        while requests.peek(1):
            replies.write(worker.answer(*messages.read(requests.read)))
            replies.flush()


if __name__ == "__main__":
    main()
