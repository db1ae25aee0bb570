"""The dense network as an attacker of others, where its extra is installed."""

from pathlib import Path

import numpy as np
import pytest

from eyestream.rim.files.profiles import load_profile
from eyestream_lab.benchmark.figures import area_of
from eyestream_lab.benchmark.folders import write_side
from eyestream_lab.benchmark.outside import scores_in
from eyestream_lab.corpora.corpus import open_corpus
from eyestream_lab.corpora.kinds import gaze_kind
from tests.lab.benchmark.worlds import people

pytestmark = [pytest.mark.slow, pytest.mark.needs("jax")]


def test_the_dense_network_scores_every_pair_and_finds_the_person(tmp_path: Path) -> None:
    from dense_network import dense_network

    from eyestream_lab.study.people.deep import LearningSettings

    class Short(LearningSettings):
        steps = 40

    corpus = open_corpus(people(tmp_path / "in"), gaze_kind(load_profile("degrees")))
    sides = {
        task: [(part.person, task, corpus.load(part)) for part in corpus.parts if part.task == task]
        for task in corpus.tasks
    }
    write_side(sides["one"], tmp_path / "known", named=True)
    write_side([(f"u{who}", task, one) for who, task, one in reversed(sides["two"])], tmp_path / "other", named=False)
    dense_network(tmp_path / "known", tmp_path / "other", tmp_path / "scores.tsv", Short)
    names = sorted(corpus.people)
    scores = scores_in(tmp_path / "scores.tsv", [f"u{name}" for name in names], names, "dense_network")
    assert area_of(np.array([scores])) > 0.75
