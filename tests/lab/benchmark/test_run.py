"""`eyestream benchmark`: systems and attackers of others, in a shell, in C and in Python, judged like ours."""

import json
import subprocess
import sys
from pathlib import Path

import fastjsonschema
import msgspec
import pytest

from eyestream.cli.main import main
from eyestream_lab.benchmark.page import schema
from eyestream_lab.benchmark.run import HELD, OTHER, Run, Setting, load_run
from tests.lab.benchmark.worlds import people

pytestmark = pytest.mark.long

FAST = ["--only", "discriminants", "other people"]
PAGE = (Path(__file__).resolve().parents[3] / "docs/benchmark.md").read_text(encoding="utf-8")
HERE = "tests.lab.benchmark.plugins"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people(tmp_path_factory.mktemp("people") / "in")


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parents[3])


def ran(corpus: Path, out: Path, *words: str) -> Run:
    main(["benchmark", str(corpus), "--out", str(out), *FAST, *words])
    return load_run(out)


def setting(
    run: Run, system: str, sessions: str = OTHER, learned: str = "released", tested: str = "released"
) -> Setting:
    (one,) = [one for one in run.systems if one.name == system]
    assert not one.refused
    (found,) = [s for s in one.settings if (s.sessions, s.learned, s.tested) == (sessions, learned, tested)]
    return found


def test_systems_of_others_are_judged_like_ours(corpus: Path, tmp_path: Path) -> None:
    systems = [f"{HERE}:same", f"{HERE}:alike", "gaussian:sd_deg=30.0", "kalman:sd_deg=1.0,push=500"]
    run = ran(corpus, tmp_path / "run.json", *(word for one in systems for word in ("--system", one)))
    raw = setting(run, "raw", learned="raw", tested="raw")
    same, alike = setting(run, "same"), setting(run, "alike")
    assert raw.figures.auc.value > 0.9
    assert same.attacks == raw.attacks  # what is copied is found as raw gaze is
    assert {one.auc for one in alike.attacks} == {0.5}
    assert setting(run, "same", HELD, "raw").figures.auc.value == 1.0
    by = {one.name: one for one in run.systems}
    assert by["same"].promise == "nothing: recordings are copied"
    assert by["same"].useful["degrees from the raw gaze"].value == 0.0
    assert 20 < by["gaussian:sd_deg=30.0"].useful["degrees from the raw gaze"].value < 60
    assert by["gaussian:sd_deg=30.0"].promise
    assert not by["kalman:sd_deg=1.0,push=500"].refused
    cost = by["same"].cost
    assert cost is not None
    assert cost.peak_mb is not None
    assert 1 < cost.peak_mb < 200  # an interpreter, without what this process holds


def test_the_same_seed_gives_the_same_file_and_an_interrupted_run_goes_on(corpus: Path, tmp_path: Path) -> None:
    words = ["--system", "gaussian:sd_deg=3.0"]
    one = ran(corpus, tmp_path / "one.json", *words)
    other = ran(corpus, tmp_path / "other.json", *words)
    assert [s.settings for s in one.systems] == [s.settings for s in other.systems]
    assert [s.useful for s in one.systems] == [s.useful for s in other.systems]
    assert one.corpus.sha256 == other.corpus.sha256
    more = ran(corpus, tmp_path / "one.json", *words, "--system", f"{HERE}:same")
    assert more.systems[:2] == one.systems
    assert len(more.systems) == 3
    with pytest.raises(SystemExit):
        ran(corpus, tmp_path / "one.json", "--seed", "1")


def test_attackers_of_others_stand_beside_the_list(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(PAGE.partition("```python\n")[2].partition("```")[0])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    run = ran(corpus, tmp_path / "run.json", "--attacker", "mine:nearest", "--system", f"{HERE}:alike")
    raw = {one.name: one for one in setting(run, "raw", learned="raw", tested="raw").attacks}
    assert raw["nearest"].auc > 0.8
    alike = {one.name: one for one in setting(run, "alike").attacks}
    assert alike["nearest"].auc == 0.5
    assert run.others_attackers == ("nearest",)


@pytest.mark.needs("cc")
def test_a_shell_script_and_a_program_in_c(corpus: Path, tmp_path: Path) -> None:
    script, code = tmp_path / "blur.sh", tmp_path / "coarse.c"
    script.write_text(PAGE.partition("```shell\n")[2].partition("```")[0])
    script.chmod(0o755)
    code.write_text(PAGE.partition("```c\n")[2].partition("```")[0])
    subprocess.run(["cc", "-o", tmp_path / "coarse", code, "-lm"], check=True)
    words = ["--system", f"{script} {{in}} {{out}}", "--system", f"{tmp_path}/coarse {{in}} {{out}}"]
    run = ran(corpus, tmp_path / "run.json", *words)
    by = {one.name: one for one in run.systems}
    for name in ("blur", "coarse"):
        assert setting(run, name).figures.auc.value >= 0.5
        assert 0.01 < by[name].useful["degrees from the raw gaze"].value < 8


def test_what_fails_is_told_and_the_run_goes_on(corpus: Path, tmp_path: Path) -> None:
    fails = f"{sys.executable} -c 'import sys; sys.exit(\"no luck\")' {{in}} {{out}}"
    slow = f"slow={sys.executable} -c 'import time; time.sleep(60)' {{in}} {{out}}"
    words = ["--system", f"fails={fails}", "--system", f"{HERE}:lazy", "--system", slow, "--limit", "5"]
    words += ["--system", f"{HERE}:three"]
    by = {one.name: one.refused for one in ran(corpus, tmp_path / "run.json", *words).systems}
    assert by == {
        "raw": "",
        "fails": "fails: ended with 1: no luck",
        "lazy": "lazy: wrote no r0000.csv; expected a file for each of 12 recordings",
        "three": "three: r0000.npz has a, b, c ...; expected all 52 features",
        "slow": "slow: did not end in 5 s; expected that, or a larger --limit",
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--sha256", "0123456789abcdef"], "expected 0123456789abcdef"),
        (["--system", "cp {in}"], "lacks {out}; expected a command with {in}, {out}, or package.module:NAME"),
        (["--system", "no-such-program {in} {out}"], "there is no program no-such-program"),
        (["--attacker", "cp {in} {out}"], "lacks {labelled}"),
        (["--system", "kalman:sd_deg"], "expected NAME=VALUE"),
        (["--system", f"{HERE}:same", "--system", f"{HERE}:same"], "same is the name of two systems"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    words: list[str], told: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        ran(corpus, tmp_path / "run.json", *words)
    assert told in capsys.readouterr().err


def test_one_page_of_many_files_and_a_schema_that_they_keep_to(corpus: Path, tmp_path: Path) -> None:
    ran(corpus, tmp_path / "one.json", "--corpus", "first", "--system", "kalman:sd_deg=1.0,push=500")
    ran(corpus, tmp_path / "two.json", "--corpus", "second")
    check = fastjsonschema.compile(json.loads(schema()))
    for name in ("one", "two"):
        check(json.loads((tmp_path / f"{name}.json").read_text()))
    main(["benchmark", str(tmp_path / "one.json"), str(tmp_path / "two.json"), "--page", str(tmp_path)])
    text = (tmp_path / "benchmark-figures.md").read_text()
    assert "## first" in text
    assert "## second" in text
    assert "| raju-kalman | released, released |" in text
    (tmp_path / "two.json").write_bytes(msgspec.json.encode({"format": "eyestream-benchmark/1"}))
    with pytest.raises(SystemExit):
        main(["benchmark", str(tmp_path / "two.json"), "--page", str(tmp_path)])
