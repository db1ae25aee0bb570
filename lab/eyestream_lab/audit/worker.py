"""The child process that runs what is audited: it gets inputs, makes releases, and sends back outputs and times.

    python -m eyestream_lab.audit.worker '{"kind": "function", ...}'

What the audited code prints goes to a file of its own, whose size is reported; it can reach neither end of the pipe to
the audit by printing. The audit ends this process, with all that it started, by its handle.
"""

import json
import os
import sys
import tempfile
import threading
import time
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit import messages
from eyestream_lab.audit.subject import Subject
from eyestream_lab.audit.targets import LoadError, Release, fault_of, load

__all__ = ["main"]

Array = NDArray[np.float64]
_KINDS = "fiu"


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
