"""The page of the benchmark: a verdict from figures alone, usefulness sample by sample, figures as in the files."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from msgspec import structs

from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.benchmark.figures import Figures, Interval, area_of, rank1_of, seen_from
from eyestream_lab.benchmark.neighbours import PRESETS
from eyestream_lab.benchmark.ours import spec_of
from eyestream_lab.benchmark.outside import Cost
from eyestream_lab.benchmark.page import schema, write_page
from eyestream_lab.benchmark.run import HELD, OTHER, CorpusFacts, Judged, Run, Setting, load_run
from eyestream_lab.benchmark.useful import useful
from eyestream_lab.benchmark.verdict import is_hidden, verdict, worst
from eyestream_lab.corpora.kinds import on_grid
from eyestream_lab.corpora.registry import make_system

DOCS = Path(__file__).resolve().parents[3] / "docs"


def setting(auc: float, sessions: str = OTHER, rank1: float = 0.02) -> Setting:
    one = Interval(auc, auc - 0.05, min(auc + 0.05, 1.0))
    return Setting(
        sessions=sessions, learned="released", tested="released", trials=2, strongest="forest", inverted=False,
        figures=Figures(one, one, one, {"0.01": one}), most_named="forest", rank1=rank1,
        could_see_auc=0.6, could_see_rank1=0.08, attacks=(),
    )  # fmt: skip


def system(name: str, degrees: float, *settings: Setting) -> Judged:
    useful = {"degrees from the raw gaze": Interval(degrees, degrees, degrees)}
    return Judged(name=name, command=name, settings=settings, useful=useful)


def run_of(*systems: Judged) -> Run:
    return Run(corpus=CorpusFacts("small", "00", 40, 2, "sessions", 80, 1.0, 60.0), systems=systems)


def test_hidden_is_what_mere_noise_shows_in_every_situation() -> None:
    assert is_hidden(
        system("a", 1.0, setting(0.59), setting(1.0, HELD, 1.0))
    )  # the raw recording itself is another question
    assert not is_hidden(system("a", 1.0, setting(0.59), setting(0.65)))
    assert not is_hidden(system("a", 1.0, setting(0.55, rank1=0.2)))
    assert not is_hidden(system("a", 1.0))
    found = worst(system("a", 1.0, setting(0.7), setting(0.9), setting(1.0, HELD)))
    assert found is not None
    assert found.figures.auc.value == 0.9


def judged(leak: float, seed: int, people: int = 20) -> Judged:
    """A release of mere noise that eight attackers score alike in part; `leak` on scores of the same person in one."""
    rng, settings = np.random.default_rng(seed), []
    for trials in (2, 1, 1, 2, 1, 1):
        common = rng.normal(size=(2, trials, people, people))
        scores = {str(i): common[i % 2] + 0.7 * rng.normal(size=common[0].shape) for i in range(8)}
        scores["0"] += leak * np.eye(people) * (not settings)
        seen = seen_from(scores, 0)
        found = setting(
            0.5 + max(abs(area_of(own) - 0.5) for own in scores.values()),
            rank1=round(max(float(rank1_of(own).mean()) for own in scores.values()), 4),
        )
        settings.append(structs.replace(found, could_see_auc=seen["auc"], could_see_rank1=seen["rank1"]))
    return Judged(name="noise", command="", settings=tuple(settings))


def test_95_of_100_releases_of_mere_noise_are_hidden_and_what_leaks_in_one_situation_is_not() -> None:
    noise = [judged(0.0, seed) for seed in range(60)]
    assert sum(map(is_hidden, noise)) >= 54
    each = [
        all(s.figures.auc.value <= s.could_see_auc and s.rank1 <= s.could_see_rank1 for s in one.settings)
        for one in noise
    ]
    assert sum(each) <= 42  # a threshold for each figure by itself: too many false findings
    assert sum(is_hidden(judged(1.2, seed)) for seed in range(60)) <= 6


def test_the_verdict_follows_the_figures() -> None:
    apart = "\n".join(verdict(run_of(system("sharp", 1.0, setting(0.9)), system("coarse", 5.0, setting(0.55)))))
    assert "| pointing at things | degrees from the raw gaze: at most 2 | sharp (0.90) | nothing |" in apart
    assert "at most 6 | coarse (0.55), sharp (0.90) | coarse |" in apart
    assert "Nothing here is both" not in apart
    none = "\n".join(verdict(run_of(system("sharp", 1.0, setting(0.9)), system("blind", 50.0, setting(0.5)))))
    assert "Hidden at all: blind." in none
    assert "**Nothing here is both useful and hidden.**" in none


def test_a_card_shows_promise_cost_and_finding_of_each_system(tmp_path: Path) -> None:
    sharp = structs.replace(system("sharp", 1.0, setting(0.9)), promise="nothing at\nall", cost=Cost(2.0, 1.5, 40.0))
    kalman = system("kalman:sd_deg=1.0,push=500", 2.0, setting(0.55))
    text = write_page(
        [run_of(sharp, kalman, Judged(name="late", command="", refused="too | slow"))], tmp_path
    ).read_text()
    cards = text.partition("\n## Systems\n")[2]
    assert "### sharp\n\n| | |\n|---|---|\n| promises | nothing at all |\n| small | area 0.90 [0.85, 0.95] by" in cards
    assert "0.02 named by forest. 1.5 s, 40 MB. |" in cards
    assert "### raju-kalman\n\n| | |\n|---|---|\n| system | `kalman:sd_deg=1.0,push=500` |\n| source | Raju" in cards
    assert "0.02 named by forest. Hidden:" in cards
    assert "| small | refused: too / slow |" in cards


def gaze(t: np.ndarray, xy: np.ndarray) -> GazeRecording:
    made = on_grid(xy, 60.0)
    return replace(made, samples=replace(made.samples, t=t))


def test_a_release_on_regular_times_is_compared_sample_by_sample() -> None:
    rng = np.random.default_rng(0)
    xy = rng.uniform(-10, 10, (2000, 2))
    dropped = np.cumsum(rng.choice([1 / 60, 5 / 60], 2000))
    raw = {(f"P{i}", "a"): gaze(dropped, xy + i) for i in range(3)}
    same = {key: on_grid(np.column_stack((one.samples.x, one.samples.y)), 60.0) for key, one in raw.items()}
    found = useful(raw, same, 0, None, tasks=False)
    assert found["degrees from the raw gaze"].value == 0.0
    half = {key: gaze(one.samples.t[::2], xy[::2] + i + (3.0, 4.0)) for i, (key, one) in enumerate(raw.items())}
    assert useful(raw, half, 0, None, tasks=False)["degrees from the raw gaze"].value == 5.0


def test_every_preset_is_a_system() -> None:
    for preset in PRESETS.values():
        name, options = spec_of(preset.spec)
        make_system(name, **options)
        assert preset.source


def test_the_page_of_the_documentation_is_that_of_its_files(tmp_path: Path) -> None:
    runs = [load_run(path) for path in sorted(DOCS.glob("benchmark-*.json")) if path.name != "benchmark-schema.json"]
    assert runs
    page = write_page(runs, tmp_path)
    assert page.read_text() == (DOCS / page.name).read_text()
    for picture in tmp_path.glob("*.svg"):
        assert (DOCS / picture.name).exists()
    assert msgspec.json.decode(schema()) == msgspec.json.decode((DOCS / "benchmark-schema.json").read_bytes())
