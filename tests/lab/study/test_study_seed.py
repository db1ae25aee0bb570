"""A study with a seed gives the same tables wherever its cells are computed. Nothing else takes noise with a seed."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.mechanisms import build
from eyestream.core.noise import SystemBits
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream_fleet.fleet import run_shard
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.datasets import make_system, privatize_corpus
from eyestream_lab.recordings.privatize import privatize
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.study import central, frontier, recovery, utility
from eyestream_lab.study.cells import Cell, compute
from eyestream_lab.study.people.run import SHIPPED, AttackTarget, measure, world_of
from eyestream_lab.study.plan import QUICK
from eyestream_lab.study.run import Study
from eyestream_lab.study.sources import SOURCES, World
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.fleets import fleet_config
from tests.rigs.sidecar import settings_for

SMALL = dataclasses.replace(QUICK, epsilons=(4.8,), wall=(), runs=2, repeats=2)


def people(count: int, seconds: float) -> list[Recording]:
    drawn = simulate(load_statistics(), count, seconds, 7)
    return [
        Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES, f"sim-{i}.npz", simulated=True)
        for i, rows in enumerate(drawn)
    ]


def cells_of(world: World) -> list[Cell]:
    """One of each kind that releases."""
    label, whole = SOURCES[0].label, next(one for one in SOURCES if not one.chunked)
    base = {"n": 32, "epsilon": 4.8}
    return [
        Cell("utility", {"source": label, "mechanism": SOURCES[0].mechanism, "runs": 2} | base),
        Cell("utility", {"source": whole.label, "mechanism": whole.mechanism, "runs": 2} | base),
        Cell(
            "recovery",
            {"measured": "averaging", "source": label, "mechanism": SOURCES[0].mechanism, "repeats": 2} | base,
        ),
        Cell("central", {"mechanism": "cfpa", "seed": 0} | base),
    ]


MEASURES = {"utility": utility.measure, "recovery": recovery.measure, "central": central.measure}


def computed(world: World, cells: list[Cell], folder: Path, seed: int | None, **given: Any) -> dict[str, Any]:
    by_part = compute(
        world,
        cells,
        measures=given.pop("measures", MEASURES),
        folder=folder,
        jobs=1,
        seed=seed,
        progress=lambda done, total, left: None,
    )
    return {part: sorted(map(repr, records)) for part, records in by_part.items()}


def test_a_cell_draws_the_same_in_whatever_order_cells_are_computed(world: World, tmp_path: Path) -> None:
    cells = cells_of(world)
    first = computed(world, cells, tmp_path / "a", 5)
    assert computed(world, cells[::-1], tmp_path / "b", 5) == first
    other = computed(world, cells, tmp_path / "a", 6)
    assert all(other[part] != first[part] for part in MEASURES), "another seed, and cells of the first are not taken"
    assert computed(world, cells[:1], tmp_path / "a", None)["utility"] != first["utility"][:1]


def test_no_part_draws_from_the_system_where_there_is_a_seed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One cell of each that a mechanism releases for."""

    def refuse(self: SystemBits, *given: object) -> None:
        raise AssertionError("the operating system is asked")

    monkeypatch.setattr(SystemBits, "words", refuse)
    cells = cells_of(world)
    cells += [cell for cell in frontier.cells(SMALL, world) if cell.settings["measured"] == "traces"][:1]
    computed(world, cells, tmp_path, 1, measures=MEASURES | {"frontier": frontier.measure})
    name = "everyday-cfpa-32"
    target = AttackTarget(name, "cfpa", 32, (), calibrations.load(name))
    own = {"subject": name, "mechanism": "cfpa", "n": 32, "recipe": {}, "hash": target.hash, "epsilon": 4.8}
    attack = Cell("people", own | {"attacker": "matcher", "how": SHIPPED, "split": 0})
    attacked = world_of(world.population, [target])
    assert computed(attacked, [attack], tmp_path, 1, measures={"people": measure})["people"]
    with pytest.raises(AssertionError, match="the operating system is asked"):
        computed(world, cells[:1], tmp_path, None)


@pytest.mark.needs("dask")
@pytest.mark.long
@pytest.mark.timeout(600)
def test_one_process_several_and_a_cluster_give_the_same_tables(tmp_path: Path) -> None:
    from distributed import LocalCluster

    recordings, parts = people(8, 150.0), ["utility", "recovery", "central"]

    def tables(name: str, seed: int | None = 3, parts: list[str] = parts, **given: Any) -> dict[str, bytes]:
        study = Study(recordings, tmp_path / name, SMALL, seed=seed, **given)
        return {path.name: path.read_bytes() for path in study.parts(parts).glob("*.csv")}

    alone = tables("alone", jobs=1)
    assert len(alone) >= len(parts)
    assert tables("processes", jobs=2) == alone
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        assert tables("cluster", cluster=cluster.scheduler_address) == alone
    for name, seed in (("other", 4), ("none", None)):  # controls, of one part
        assert tables(name, seed, ["utility"], jobs=1)["utility.csv"] != alone["utility.csv"]


SEEDED = "its noise comes from a test source or a seed"


def test_no_service_takes_noise_with_a_seed(tmp_path: Path) -> None:
    plan = resolved(settings_for("mqtt://127.0.0.1:1", tmp_path), noise=lambda: SeededNoise(1))
    with pytest.raises(ConfigError, match=SEEDED), assemble(plan, lambda: 20_000):
        pass


async def test_no_shard_takes_noise_with_a_seed(tmp_path: Path) -> None:
    from eyestream.rim.config import load

    path = fleet_config(tmp_path, ["nats://127.0.0.1:1"], 2, ["d"])
    with pytest.raises(ConfigError, match=SEEDED):
        await run_shard(resolved(load(path), tmp_path, noise=lambda: SeededNoise(1)), 0, lambda: 0, asyncio.Event())


def test_no_release_of_recordings_takes_noise_with_a_seed() -> None:
    calibration = calibrations.load("everyday-cfpa-32")
    (recording,) = people(1, 60.0)
    mechanism = build(calibration, 4.8, noise=SeededNoise(1))
    with pytest.raises(ConfigError, match=SEEDED):
        next(iter(privatize([recording], calibration, mechanism)))


@pytest.mark.parametrize("seed", ["seven", "-1", "1.5"])
def test_a_seed_that_is_none_is_refused(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["study", "x.npz", "--out", "out", "--seed", seed])
    assert f"expected a whole number from 0 on, not {seed}" in capsys.readouterr().err


def test_releases_of_corpora_take_no_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["study", str(tmp_path), "--out", str(tmp_path / "out"), "--datasets", "--seed", "1"])
    assert "--seed: not with --datasets" in capsys.readouterr().err


def test_a_release_of_a_corpus_has_no_door_for_numbers_with_a_seed(tmp_path: Path) -> None:
    corpus: Any = None  # it is not looked at
    given: dict[str, Any] = {"draws": Draws(SeededNoise(1))}
    with pytest.raises(TypeError, match="draws"):
        privatize_corpus(make_system("k-same-select", k=2), corpus, tmp_path / "out", **given)
