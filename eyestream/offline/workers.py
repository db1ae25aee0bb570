"""Who does the work of a batch: processes of this machine, or a Dask cluster (extra ``cluster``: distributed).

Both are executors of the standard library, so what is done on them is the same code. A cluster may do a task again that
it had finished, when the machine that held its answer is lost: tasks must bear that (`eyestream.offline.workshop`).
"""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from eyestream.errors import ConfigError, LinkError

__all__ = ["connected", "done", "workers"]

Answer = TypeVar("Answer")

_LOSSES = 10
"""So many machines may be lost while they work on one task, before the task is held to be the cause."""


@contextlib.contextmanager
def connected(cluster: str) -> Iterator[Any]:
    """A client of the Dask scheduler at the URL `cluster`.

    Raises
    ------
    ConfigError
        The extra is not installed.
    LinkError
        There is no scheduler.
    """
    try:
        import distributed  # noqa: PLC0415  an extra
    except ModuleNotFoundError:
        raise ConfigError("--cluster needs distributed: pip install 'eyestream[cluster]'") from None
    try:
        make: Any = distributed.Client  # it has no types
        client = make(cluster, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise LinkError(f"--cluster {cluster}: no Dask scheduler answers: {error}") from None
    with client:
        yield client


@contextlib.contextmanager
def workers(cluster: str | None, jobs: int) -> Iterator[Executor]:
    """The cluster, or so many processes; raises as `connected`."""
    if cluster is None:
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
            yield pool
        return
    with connected(cluster) as client, client.get_executor(pure=False, retries=_LOSSES) as executor:
        yield executor


def done(
    executor: Executor, task: Callable[..., Answer], given: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Answer]]:
    """Number and answer of each task, as they are done.

    Raises
    ------
    ConfigError
        A process was ended from outside.
    """
    numbers = {executor.submit(task, *one): number for number, one in enumerate(given)}
    try:
        for future in as_completed(numbers):
            yield numbers[future], future.result()
    except BrokenProcessPool:
        raise ConfigError("a process was ended from outside; the same command goes on where this one stopped") from None
    finally:
        for future in numbers:
            future.cancel()
