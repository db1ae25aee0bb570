"""``[fleet]`` and the commands of the product: guarantee, check, budget and run know it, and import nothing of it."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from eyestream.claims.facts import NOT_PROTECTED
from eyestream.claims.guarantee import Guarantee
from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream.rim.config import load
from eyestream.rim.plan import load as planned
from eyestream.rim.plan import resolved
from eyestream_fleet.directory import LEDGER, LIVES, create_shard
from eyestream_fleet.table import FleetSettings, fleet_of
from tests.rigs.fleets import fleet_config
from tests.rigs.sidecar import NO_BROKER, settings_for

NOBODY = "nats://127.0.0.1:1"


def guarantee(tmp_path: Path, server: str) -> Guarantee:
    made = FleetSettings((server,), 4, tmp_path, raw_age_s=120.0)
    settings = msgspec.structs.replace(settings_for(NO_BROKER, tmp_path), added=made)
    return resolved(settings).streams["features"].guarantee


@pytest.mark.parametrize(("server", "said"), [("tls://n:4222", "speak TLS"), ("nats://n:4222", "do not speak TLS")])
def test_a_fleet_says_that_its_log_is_trusted_and_what_of_it(tmp_path: Path, server: str, said: str) -> None:
    made = guarantee(tmp_path, server)
    words = dict(made.sentences())
    assert "NATS, is inside the trusted part" in words["log"]
    assert "in the memory of its servers for 120 s, and on no disk" in words["log"]
    assert f"The links to it {said}" in words["log"]
    assert "the log" in words["attacker"]
    assert made.claim()["log"] == words["log"]
    assert "the noise is added in a worker of the fleet" in made.text()
    assert "the log" in made.claim()["trusted"]  # type: ignore[operator]
    assert "an older copy of the ledger put back" not in made.text()
    assert len(made.standing.not_protected) == len(NOT_PROTECTED)


def said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """How a command ends, and what it prints."""
    try:
        main(list(map(str, words)))
        code = 0
    except SystemExit as error:
        code = int(error.code or 0)
    out, err = capsys.readouterr()
    return code, out + err


def test_guarantee_reads_the_file_of_a_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "guarantee", "--config", fleet_config(tmp_path, [NOBODY], 2, []))
    assert code == 0
    assert "a worker of the fleet" in " ".join(text.split())


def test_budget_shows_the_shards_of_this_host_and_changes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It neither suggests a new ledger nor makes one."""
    config = fleet_config(tmp_path, [NOBODY], 3, [])
    assert said(capsys, "budget", "--config", config) == (0, "no ledger of this configuration is on this host\n")
    folder = tmp_path / "shards" / "shard-1"
    folder.mkdir(parents=True)
    create_shard(folder, 1, 3, created=0)
    code, text = said(capsys, "budget", "--config", config)
    assert (code, text.count("nothing spent"), str(folder / LEDGER) in text) == (0, 1, True)
    code, text = said(capsys, "budget", "--config", config, "--json")
    assert [Path(path).parent.name for path in json.loads(text)] == ["shard-1"]
    for change in (["--new"], ["--accept"], ["--compare"], ["--today"], ["--export", "d", tmp_path / "f", "--to", "x"]):
        code, text = said(capsys, "budget", "--config", config, *change)
        assert code == 2
        assert "has a ledger for each shard: `eyestream shard --config FILE --partition N` changes one" in text
    assert not (tmp_path / "ledger").exists()


def test_budget_changes_no_ledger_of_a_shard_behind_its_second_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy from before the change would go on: lengths do not show it, and only the shard's command sets tokens."""
    create_shard(tmp_path, 0, 1, created=0)
    (tmp_path / LIVES).write_text("eyestream lives 1\n" + "a" * 32 + "\n")
    code, text = said(
        capsys, "budget", "--ledger", tmp_path / LEDGER, "--export", "d", tmp_path / "f", "--to", "0" * 32
    )
    assert (code, "has a second place, which must know of this" in text) == (2, True)


def test_run_is_not_for_a_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "run", "--config", fleet_config(tmp_path, [NOBODY], 3, []))
    assert (code, "`eyestream shard --config FILE --partition N` runs it" in text) == (2, True)


@pytest.mark.needs("nats")
def test_check_looks_at_the_shards_and_their_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = fleet_config(tmp_path, [NOBODY], 3, [])
    os.chmod(config, 0o644)
    code, text = said(capsys, "check", "--config", config)
    assert code == 1
    assert "fail  a shard is on this host" in text
    folder = tmp_path / "shards" / "shard-1"
    folder.mkdir(parents=True, mode=0o755)
    create_shard(folder, 1, 3, created=0)
    code, text = said(capsys, "check", "--config", config)
    assert f"fail  shard-1 is private: {folder} has mode 755. chmod go= {folder}" in text
    assert "pass  the ledger of shard-1 opens" in text
    assert "fail  the second place of shard-1 is there, on another disk: there is no file" in text
    assert "fail  the log and the second place of partition 1 fit: NATS: no answer from nats://127.0.0.1:1" in text
    assert "new ledger" not in text
    code, text = said(capsys, "check", "--config", config, "--config-only")
    assert (code, "fail" in text) == (0, False)


def test_a_file_without_devices_needs_a_table_that_knows_them(tmp_path: Path) -> None:
    config = fleet_config(tmp_path, [NOBODY], 3, [])
    assert fleet_of(load(config)).folder == tmp_path / "shards"
    assert planned(config).served == {}
    text = config.read_text()
    config.write_text(text[: text.index("[fleet]")] + text[text.index("[[stream]]") :])
    with pytest.raises(ConfigError, match=r"\[\[device\]\]: missing"):
        load(config)


def test_where_no_device_is_named_one_may_send_all_streams(tmp_path: Path) -> None:
    """What a session tells is then claimed as if somebody did."""
    config = fleet_config(tmp_path, [NOBODY], 3, [])
    text = config.read_text()
    stream = text[text.index("[[stream]]") : text.index("[budget]")]
    config.write_text(text + stream.replace('name = "features"', 'name = "other"'))
    both = planned(config)
    assert [len(stream.deployment.beside) for stream in both.streams.values()] == [1, 1]
    config.write_text(config.read_text() + '[[device]]\nid = "d"\nstreams = ["features"]\n')
    assert [len(stream.deployment.beside) for stream in planned(config).streams.values()] == [0, 0]


def test_without_the_distribution_the_file_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eyestream.rim.config.installed", lambda group: [])
    with pytest.raises(ConfigError, match=r"\[fleet\]: is a table of eyestream-fleet: pip install eyestream-fleet"):
        load(fleet_config(tmp_path, [NOBODY], 3, ["d"]))
