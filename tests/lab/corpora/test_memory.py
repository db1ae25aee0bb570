"""Recordings are in memory one at a time, whatever the number of people is."""

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyestream.rim.files.calibrations import load
from eyestream_lab.datasets import SYSTEMS, Dataset, make_system, privatize_corpus
from tests.lab.corpora.worlds import gaze_corpus, rows_corpus

pytestmark = pytest.mark.long

LPA, KLT = load("everyday-lpa-32"), load("everyday-klt-32")


@pytest.fixture(autouse=True)
def _collected_cheaply() -> Iterator[None]:
    """What is there before a test is none of its recordings: a collection need not look at it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


STUDIED: list[tuple[str, dict[str, Any]]] = [
    ("k-same-select", {"k": 4}),
    ("k-same-select-one-partition", {"k": 4}),
    ("marginals-pd", {"k": 2}),
    ("marginals-noised", {"calibration": LPA, "epsilon": 5.0, "delta": 1e-3}),
    ("exponential-dp", {"calibration": LPA, "epsilon": 5.0}),
    ("exponential-dp-as-printed", {"epsilon": 5.0, "as_published": True}),
    ("fpa", {"calibration": LPA, "epsilon": 5.0}),
    ("chunks", {"calibration": LPA, "epsilon": 5.0}),
    ("level-synth", {"calibration": KLT, "epsilon": 5.0}),
    ("k-same-synth", {"k": 4}),
    ("k-same-synth-timed", {"k": 4}),
    ("event-synth-pd-centred", {"k": 2, "gamma": 3.0}),
    ("saliency-gaussian", {"epsilon": 2.0, "delta": 1e-3}),
    ("kaleido", {"epsilon": 5.0}),
    ("tile", {"calibration": load("everyday-tile"), "epsilon": 2.0}),
    ("kalman", {"sd_deg": 1.0, "push": 500.0}),
]


def watched(corpus: Dataset[Any]) -> tuple[Dataset[Any], list[int]]:
    """The corpus, and how many of its loaded recordings were alive at each loading."""
    alive: list[weakref.ref[Any]] = []
    counts: list[int] = []

    def load_one(path: Path) -> Any:
        gc.collect()
        counts.append(sum(one() is not None for one in alive))
        found = corpus.kind.load(path)
        alive.append(weakref.ref(found))
        return found

    return replace(corpus, kind=replace(corpus.kind, load=load_one)), counts


@pytest.mark.parametrize(("name", "options"), STUDIED, ids=[name for name, _ in STUDIED])
def test_one_recording_at_a_time(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    maker: Callable[..., Dataset[Any]] = gaze_corpus if SYSTEMS[name].reads == "gaze" else rows_corpus
    made = maker(tmp_path / "in", people=8)
    corpus, counts = watched(made)
    privatize_corpus(make_system(name, **options), corpus, tmp_path / "out")
    assert len(counts) >= 2 * len(corpus.parts)  # read once to be judged, and once or twice to be released
    assert max(counts) <= 1  # the one before may still be there when the next is read


def test_control_a_list_of_recordings_is_seen(tmp_path: Path) -> None:
    corpus, counts = watched(rows_corpus(tmp_path / "in", people=8))
    assert len([corpus.load(part) for part in corpus.parts]) == 16
    assert max(counts) == 15
