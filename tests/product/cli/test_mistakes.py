"""A person's mistake is one line on stderr and exit code 2, whatever the command: no traceback, nothing left behind."""

import shlex
from pathlib import Path

import pytest

from eyestream.cli.main import main

ARGUMENTS = """
init {file}
init {file}/x
init /proc/x
init {new} --features blink_rat
init {new} --features blink_rate --purpose trends
init {new} --features blink_rate --mechanism klt
privatize {rows} --calibration everyday-asked-64 --epsilon 1 --features fatige --out {new}
privatize {rows} --calibration everyday-asked-64 --epsilon 1 --features load --option features=[] --out {new}
privatize {rows} --calibration everyday-asked-64 --epsilon 1 --features load --whole --out {new}
privatize {rows} --calibration everyday-klt-64 --epsilon 1 --features load --out {new}
privatize {folder} --mechanism k-same-select --features load --out {new}
simulate --people 1 --seconds 10 --seed 1 --out {file}
simulate --people 1 --seconds 10 --seed 1 --out /proc/x
simulate --people 0 --seconds 10 --seed 1 --out {new}
simulate --people 1 --seconds 10 --seed 1 --gaze --rate 0 --out {new}
extract {file} --profile degrees --out {new}
extract {folder} --profile degrees --out {new}
extract nope --profile degrees --out {new}
extract {file} --profile {file} --out {new}
events {folder} --profile degrees
privatize {rows} --calibration everyday-klt-32 --epsilon 1 --out {file}
privatize {rows} --calibration everyday-klt-32 --epsilon 1 --out /proc/x
privatize {rows} --calibration {file} --epsilon 1 --out {new}
privatize {rows} --calibration {folder} --epsilon 1 --out {new}
privatize {rows} --calibration everyday-klt-32 --epsilon nan --out {new}
privatize {folder} --calibration everyday-klt-32 --epsilon 1 --out {new}
calibrate {rows} --mechanism cfpa --chunk 31 --out {new}
calibrate {rows} --mechanism nope --chunk 32 --out {new}
calibrate {folder} --mechanism cfpa --chunk 32 --out {new}
budget --ledger {file}
budget --ledger {folder}
budget --ledger {folder} --new
budget --ledger {file}/x --new
budget --ledger {ledger} --export nope {new}
budget --ledger {ledger} --import {folder}
budget --config {folder}
guarantee --config {file}
check --config {folder}
check
check --config {config} --tracker {folder}
check --config {config} --laptop --tracker {file}
fit {folder}
run --config {file}
run --config nope
listen --device a/b --broker mqtt://localhost:1
listen --device x --broker http://x
listen --device x --broker mqtt://[::1
listen --device x --broker mqtt://localhost:1 --username u --password-file {folder}
listen --device x --broker mqtts://localhost:1 --ca-file {folder}
listen --device x --broker mqtt://localhost:1 --out {folder}/x.foo
devices --broker x
devices --broker mqtt://localhost:1 --seconds nan
replay --device x --broker mqtt://localhost:1 {file}
replay --device x --broker mqtt://localhost:1 --speed 0 {rows}
sources --host a:b:c
demo --source foo:bar
deploy {file}
"""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("mistakes")
    file = base / "file"
    file.write_text("x")
    main(["simulate", "--people", "1", "--seconds", "100", "--seed", "1", "--out", str(base / "rows")])
    main(["init", str(base / "sidecar")])
    return {
        "file": file,
        "folder": base / "rows",
        "rows": base / "rows" / "sim-000.npz",
        "config": base / "sidecar" / "sidecar.toml",
        "ledger": base / "sidecar" / "ledger",
        "new": base / "new",
    }


@pytest.mark.parametrize("line", ARGUMENTS.strip().splitlines())
def test_it_is_one_line(line: str, places: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line.format(**places)))
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert len(said.err.strip().splitlines()) == 1
    assert said.err.startswith(f"eyestream {line.split(maxsplit=1)[0]}")
    assert not places["new"].is_file()
