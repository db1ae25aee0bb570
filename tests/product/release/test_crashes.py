"""A process that ends between any two steps from a row to a publication: docs/crash.md says what is left, and after it.

The process ends by an exception that nothing catches. Then another one begins on its ledger, and the tracker sends the
same rows again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from eyestream.core.release import stream
from eyestream.rim.ledger.file import LedgerFile
from eyestream.rim.ledger.ledger import Ledger
from tests.rigs.rig import Rig

N = 4


class CrashError(BaseException):
    """The process is gone: no `except Exception` sees it."""


def before(function: Callable[..., Any]) -> Callable[..., Any]:
    def crash(*given: Any, **named: Any) -> Any:
        raise CrashError

    return crash


def after(function: Callable[..., Any]) -> Callable[..., Any]:
    def crash(*given: Any, **named: Any) -> Any:
        function(*given, **named)
        raise CrashError

    return crash


def before_the_second(function: Callable[..., Any]) -> Callable[..., Any]:
    calls = 0

    def crash(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise CrashError
        function(*given, **named)

    return crash


STEPS: dict[str, tuple[Any, str, Callable[..., Any], int, int]] = {
    "read, not reserved": (Ledger, "reserve", before, 0, 0),
    "announced, not reserved": (LedgerFile, "sync", before, 0, 0),
    "reserved, not synced": (LedgerFile, "sync", before_the_second, 1, 0),
    "durable, not answered": (Ledger, "reserve", after, 1, 0),
    "answered, no noise drawn": (stream.StreamRelease, "_payload", before, 1, 0),
    "noise drawn, no bytes": (stream, "encode_private", before, 1, 0),
    "bytes, not published": (None, "_publish", before, 1, 0),
    "published": (None, "_publish", after, 1, 1),
}
"""Where the process ends (None: in the pipeline), and how many charges and publications there are when it is gone."""


@contextmanager
def ending(place: object, name: str, when: Callable[..., Any]) -> Iterator[None]:
    with mock.patch.object(place, name, when(getattr(place, name))):
        yield


def rows(first: int) -> np.ndarray:
    values = np.zeros((N, 3), np.float32)
    values[:, 0] = np.arange(first, first + N)
    return values


@pytest.mark.parametrize("step", STEPS)
async def test_a_crash_wastes_one_charge_at_most_and_releases_no_row_twice(tmp_path: Path, step: str) -> None:
    place, name, when, charges, published = STEPS[step]
    with Rig(tmp_path) as rig:
        with ending(place or rig.pipeline, name, when), pytest.raises(CrashError):
            await rig.take(rig.sent(rows(0), 0))
        rig.restart()
        assert (rig.spent(), len(rig.published)) == (charges * rig.charge.epsilon, published)
        await rig.take(rig.sent(rows(0), 0))  # the tracker sends them again
        await rig.take(rig.sent(rows(N), N))  # and goes on
        assert rig.spent() == 2 * rig.charge.epsilon
        assert len(rig.published) == 2 - (charges - published)
        given = [row for release in rig.releases for row in release]
        assert len(given) == len(set(given)), "a mechanism was given a row twice"
        assert set(range(N, 2 * N)) <= set(given)
