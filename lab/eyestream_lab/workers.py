"""Workers for a batch: processes of this machine, or a Dask cluster (extra ``cluster``: distributed).

Both take the same tasks. A cluster may do a task again that it had finished, when the machine that held its answer is
lost: tasks must bear that (`eyestream_lab.workshop`).
"""

import contextlib
import multiprocessing
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import Any, TypeVar

from eyestream.errors import ConfigError, LinkError

Answer = TypeVar("Answer")

_LOSSES = 10
"""So many machines may be lost while they work on one task, before the task is held to be the cause."""


@contextlib.contextmanager
def _connected(cluster: str) -> Iterator[Any]:
    """A client of the Dask scheduler at the URL `cluster`.

    Raises
    ------
    ConfigError
        The extra is not installed.
    LinkError
        There is no scheduler.
    """
    try:
        import dask  # noqa: PLC0415  an extra
        import distributed  # noqa: PLC0415
    except ModuleNotFoundError:
        raise ConfigError("--cluster needs distributed: pip install 'eyestream-lab[cluster]'") from None
    try:
        make: Any = distributed.Client  # it has no types
        client = make(cluster, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise LinkError(f"--cluster {cluster}: no Dask scheduler answers: {error}") from None
    with client, dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
        yield client


@dataclass(frozen=True)
class Workers:
    """Those who do tasks; `workers` makes them.

    Attributes
    ----------
    shared : first arguments of every task that is done here.
    submit : gives a task to another process, with what is shared; None where all are done here.
    """

    shared: tuple[Any, ...]
    submit: Callable[..., Future[Any]] | None = None

    def done(self, task: Callable[..., Answer], given: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Answer]]:
        """Number and answer of each call `task(*shared, *one)` for `one` in `given`, as they are done.

        Raises
        ------
        ConfigError
            A process was ended from outside.
        """
        if self.submit is None:
            for number, one in enumerate(given):
                yield number, task(*self.shared, *one)
            return
        numbers = {self.submit(task, *one): number for number, one in enumerate(given)}
        try:
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        except (BrokenProcessPool, CancelledError):
            raise ConfigError(
                "a process was ended from outside; the same command goes on where this one stopped"
            ) from None
        finally:
            for future in numbers:
                future.cancel()


@contextlib.contextmanager
def workers(cluster: str | None, jobs: int, *shared: Any) -> Iterator[Workers]:
    """The cluster, or so many processes: one is this process itself. Raises as `_connected`.

    Parameters
    ----------
    shared
        First arguments of every task. Each process gets them once, and may keep what it derives from them.
    """
    if cluster is not None:
        with _connected(cluster) as client, client.get_executor(pure=False, retries=_LOSSES) as executor:
            # answers of tasks: what is only scattered is gone when all machines are lost that hold it
            held = [client.submit(_itself, value, pure=False, retries=_LOSSES) for value in shared]
            # each in turn: those of one moment are else done in any order, and what neighbours share is made again
            yield Workers(shared, lambda task, *one: executor.submit(task, *held, *one, fifo_timeout=0))
    elif jobs == 1:
        yield Workers(shared)
    else:
        context = multiprocessing.get_context("spawn")
        given, told = context.Queue(), pickle.dumps(shared)
        given.cancel_join_thread()  # where processes fail, nobody reads it
        for _ in range(jobs):
            given.put(told)  # not as an argument of their start, which blocks where a process fails
        with ProcessPoolExecutor(jobs, context, _keep, (given,)) as pool:
            yield Workers(shared, lambda task, *one: pool.submit(_with_kept, task, *one))


def _itself(value: Answer) -> Answer:
    return value


_kept: tuple[Any, ...] = ()
"""Objects that the tasks of this process share, in a process of `workers`."""


def _keep(given: "Queue[bytes]") -> None:
    global _kept  # noqa: PLW0603  a process of a pool has no other place
    _kept = pickle.loads(given.get())


def _with_kept(task: Callable[..., Answer], *one: Any) -> Answer:
    return task(*_kept, *one)
