"""Every public name stands in an example of `docs/api.md`, and all examples of that page are run, beside a broker."""

import asyncio
import contextlib
import doctest
import importlib
import pkgutil
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import eyestream_lab.datasets
import eyestream_lab.testing
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.spoken import speaking_to

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
TESTING = [f"eyestream_lab.testing.{found.name}" for found in pkgutil.iter_modules(eyestream_lab.testing.__path__)]
PUBLIC = [
    (module, name)
    for module in ("eyestream", "eyestream_lab.datasets", *TESTING)
    for name in importlib.import_module(module).__all__
]


def examples(page: str) -> doctest.DocTest:
    """All of a page, as one session."""
    blocks = re.findall(r"^```pycon\n(.*?)^```", page, re.S | re.M)
    return doctest.DocTestParser().get_doctest("\n\n".join(blocks), {}, PAGE.name, str(PAGE), 0)


def without_example(page: str) -> list[tuple[str, str]]:
    """Public names that no line of an example has."""
    code = "".join(example.source for example in examples(page).examples)
    return [(module, name) for module, name in PUBLIC if not re.search(rf"\b{name}\b", code)]


def test_every_public_name_stands_in_an_example() -> None:
    assert len(PUBLIC) > 60
    assert without_example(PAGE.read_text(encoding="utf-8")) == []


def test_control_a_name_without_an_example_is_found() -> None:
    page = PAGE.read_text(encoding="utf-8").replace("eyestream.discover(", "eyestream.listen(")
    assert without_example(page) == [("eyestream", "discover")]


@contextlib.contextmanager
def speaking(url: str) -> Iterator[None]:
    """A stream beside the body that says a chunk every 50 ms, and leaves each third one out."""
    over = threading.Event()

    async def speak() -> None:
        async with speaking_to(url) as stream:
            for index in range(10_000):
                if over.is_set():
                    return
                if index % 3 != 2:
                    await stream.chunk(index)
                await asyncio.sleep(0.05)

    beside = threading.Thread(target=asyncio.run, args=(speak(),))
    beside.start()
    try:
        yield
    finally:
        over.set()
        beside.join()


def make_corpus(folder: Path) -> None:
    """Five simulated people who read and play."""
    folder.mkdir()
    parts = [(f"P{person}", task) for person in range(5) for task in ("READ", "PLAY")]
    lines = ["participant_id\trecording\ttask\tsex"]
    for (person, task), rows in zip(parts, simulate(load_statistics(), len(parts), 35.0, 3), strict=True):
        name = f"{person}_{task}.npz"
        recordings.save(Recording(np.arange(len(rows)) / 2, rows.astype(np.float64), NAMES), folder / name)
        lines.append(f"{person}\t{name}\t{task}\t{'mf'[int(person[1]) % 2]}")
    (folder / "participants.tsv").write_text("\n".join([*lines, ""]))


@pytest.mark.long
def test_the_examples_do_what_they_say(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_corpus(tmp_path / "people")
    page = PAGE.read_text(encoding="utf-8").replace('"mqtt://localhost"', f'"{mosquitto.url}"')
    with speaking(mosquitto.url):
        failed, attempted = doctest.DocTestRunner(verbose=False).run(examples(page))
    assert attempted > 60
    assert failed == 0, capsys.readouterr().out
