"""The audit's handle on the child process that runs the audited code: nothing that happens there ends the audit."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.audit import messages
from eyestream_lab.audit.subject import Subject

Array = NDArray[np.float64]
_LOADING_S = 60.0
_SLOWER = 20.0  # a batch may take so many times what it should, on a machine with other work, before it counts as hung


class Fault(Exception):  # noqa: N818  what is found, not what went wrong here
    """A release that did not give a chunk: the finding's name, what happened, and at which call of the request."""

    def __init__(self, finding: str, what: str, at: int = 0) -> None:
        super().__init__(finding, what)
        self.finding, self.what, self.at = finding, what, at


@dataclass(frozen=True)
class ChildDraws:
    """Result of one request."""

    outputs: Array
    """(m, F, n)"""
    spent_ns: NDArray[np.int64]
    """(m,) time of each release."""
    forms: dict[int, list[str]]
    """By input, the shapes and types that were returned."""
    printed: int
    """Bytes that the audited code wrote beside its answers."""


class Child:
    """One process that runs the audited code.

    Raises
    ------
    ConfigError
        There is nothing under the subject's name.
    Fault
        It cannot be loaded.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        quiet = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "eyestream_lab.audit.worker", json.dumps(subject.as_dict())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | quiet,
        )
        self._call_s = 0.0
        try:
            said, _ = self._answer(_LOADING_S + subject.limit_s)
            if "missing" in said:
                raise ConfigError(said["missing"])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process and all that it started; no harm when it has ended."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # its own session, so its own group
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # what was not yet written
            self._process.stdin.close()
        self._process.stdout.close()

    def draw(self, inputs: Array, order: NDArray[np.int64]) -> ChildDraws:
        """Releases of `inputs` (K, F, n), one after another in the order (m,).

        Raises
        ------
        Fault
            One of them gave no chunk; the process may have been ended, and every further request then fails.
        """
        self._send({"do": "draw"}, inputs, order)
        said, arrays = self._answer(self._patience(len(order)))
        self._call_s = max(self._call_s, float(np.median(arrays[1])) / 1e9)  # one call may have been interrupted
        forms = {int(key): list(value) for key, value in said["forms"].items()}
        return ChildDraws(arrays[0], arrays[1], forms, int(said["printed"]))

    def copies(self, how: str, chunk: Array, calls: int) -> Array:
        """(2, calls, F, n) releases of two copies of the process (``fork``), or of two threads (``threads``)."""
        self._send({"do": how, "calls": calls}, chunk)
        _, arrays = self._answer(self._patience(2 * calls))
        return arrays[0]

    def _patience(self, calls: int) -> float:
        carried = 1e-4 + 2e-8 * self._subject.features * self._subject.n  # of a chunk through the pipe, about
        return self._subject.limit_s + _SLOWER * calls * (self._call_s + carried)

    def _send(self, head: dict[str, Any], *arrays: NDArray[Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(messages.encode(head, *arrays))
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise Fault("crash", self._ended()) from None

    def _answer(self, seconds: float) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        deadline = time.monotonic() + seconds
        try:
            said, arrays = messages.read(lambda size: self._exactly(size, deadline))
        except TimeoutError:
            self.close()
            raise Fault("hang", f"no answer within {seconds:.0f} s") from None
        except EOFError:
            raise Fault("crash", self._ended()) from None
        except (ValueError, KeyError, TypeError):
            self.close()
            raise Fault("crash", "the audited code wrote into the pipe of the audit") from None
        if "fault" in said:
            raise Fault(*said["fault"])
        return said, arrays

    def _exactly(self, size: int, deadline: float) -> bytes:
        assert self._process.stdout is not None
        end, parts = self._process.stdout.fileno(), []
        while size:
            if not select.select([end], [], [], max(deadline - time.monotonic(), 0.0))[0]:
                raise TimeoutError
            part = os.read(end, min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _ended(self) -> str:
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self.close()
            return "the process closed its pipes"
        self.close()
        return (
            f"the process was ended by {signal.Signals(-code).name}" if code < 0 else f"the process ended with {code}"
        )
