"""`eyestream listen` on chunks that somebody has chosen, without a broker."""

import argparse
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from eyestream.cli.listen import _show, _write
from eyestream.rim.files import recordings
from eyestream.sdk.chunk import Chunk


def chunk(session: int, index: int, names: tuple[str, ...], n: int) -> Chunk:
    """Chunk `index` of a session with half a second a row; its values are its number."""
    t = (index * n + np.arange(n)) / 2
    values, errors = np.full((len(names), n), index, np.float32), np.ones(len(names), np.float32)
    return Chunk(session, index, names, t, values, 1.5, 0.0, "words", noise_sd=errors)


class Given:
    """Chunks that come one after the other."""

    meta = SimpleNamespace(mechanism="cfpa", n=4, rate_hz=2.0)

    def __init__(self, *chunks: Chunk) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        for one in self._chunks:
            yield one


async def test_chunks_of_another_description_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who may describe a stream may describe it anew, with fewer features: the command goes on, and writes the rest."""
    few = [chunk(1, index, ("a",), 4) for index in (1, 2)]
    given = Given(chunk(1, 0, ("a", "b"), 4), *few, chunk(1, 3, ("a", "b"), 4))
    received: list[Chunk] = []
    await _show(argparse.Namespace(show="b", out=tmp_path, chunks=2), given, received)  # type: ignore[arg-type]
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()[-2:]] == ["0", "3"]
    assert said.err.count("other features than the first are left out") == 1
    assert [one.index for one in received] == [0, 3]


@pytest.mark.parametrize("n", [1, 4])
def test_a_later_session_goes_on_one_step_later(tmp_path: Path, n: int) -> None:
    """Also of gaze slot by slot, where a chunk has one row."""
    out = tmp_path / "x.npz"
    _write(out, [chunk(1, 0, ("a",), n), chunk(1, 1, ("a",), n), chunk(2, 0, ("a",), n)])
    np.testing.assert_allclose(recordings.load(out).t, np.arange(3 * n) / 2)
    _write(out, [chunk(1, 0, ("a",), 1), chunk(2, 0, ("a",), 1)])
    assert np.load(out)["t"].tolist() == [0.0, 1.0]
