"""The command, frames, programs, and what happens with bad arguments and broken mechanisms."""

import io
import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream_lab.audit.child import Child, Fault
from eyestream_lab.audit.report import FINDINGS
from eyestream_lab.audit.run import PARTS, audit
from eyestream_lab.audit.subject import Subject, function, mechanism, program
from eyestream_lab.audit.worker import FrameError, load, pack, unpack
from tests.lab.audit.subjects import SMALL, planted_subject

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
SHAPE = ("--features", "2", "--chunk", "4", "--range", "0,1")

ECHO = """
    import os, struct, sys
    while head := sys.stdin.buffer.read(8):
        features, n = struct.unpack("<II", head)
        body = sys.stdin.buffer.read(8 * features * n)
        sys.stdout.buffer.write({answer})
        sys.stdout.buffer.flush()
"""


def _run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from eyestream.cli.main import main; main()", "audit", *words]
    path = os.pathsep.join([str(Path(__file__).parent), str(ROOT)])
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path},
    )


def _program(command: tuple[str, ...], limit_s: float = 20.0) -> Subject:
    return program(command, features=2, chunk=4, low=0, high=1, epsilon=1, limit_s=limit_s)


def _script(folder: Path, answer: str) -> tuple[str, ...]:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(ECHO).replace("{answer}", answer), encoding="utf-8")
    return (sys.executable, str(path))


def test_frames_come_back_as_they_were() -> None:
    chunks = [np.arange(6.0).reshape(2, 3), np.array([[np.nan, -np.inf]]), np.zeros((1, 1))]
    stream = io.BytesIO(b"".join(map(pack, chunks)))
    for chunk in chunks:
        np.testing.assert_array_equal(unpack(stream), chunk)
    assert unpack(stream) is None
    assert pack(np.array([[1.0, 2.0]])).hex() == "0100000002000000" + "000000000000f03f" + "0000000000000040"


@pytest.mark.parametrize("cut", [1, 7, 8, 20])
def test_a_frame_that_is_cut_is_no_frame(cut: int) -> None:
    with pytest.raises(FrameError, match="expected"):
        unpack(io.BytesIO(pack(np.ones((2, 3)))[:cut]))
    with pytest.raises(FrameError, match="announces"):
        unpack(io.BytesIO(b"\xff" * 8))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.needs("node")
def test_the_example_of_the_page_is_found_out(tmp_path: Path) -> None:
    (example,) = re.findall(r"```js\n(.*?)```", PAGE, re.S)
    assert len(example.splitlines()) <= 40
    (tmp_path / "laplace.js").write_text(example, encoding="utf-8")
    (command,) = re.findall(r"^eyestream (audit --program node .*)$", PAGE, re.M)
    found = _run(*command.split()[1:], "--quick", cwd=tmp_path)
    assert found.returncode == 1, found.stderr
    (line,) = found.stdout.splitlines()
    assert json.loads(line)["findings"] == ["float-surface"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "finding"),
    [
        ("head + body[:-8]", "hang"),
        ("struct.pack('<II', features, n + 1) + body + bytes(8 * features)", "wrong-shape"),
        ("head + body + b'more'", "extra-output"),
        ("os._exit(4)", "crash"),
        ("b'\\xff' * 64", "wrong-shape"),
    ],
)
def test_a_program_that_breaks_the_form_is_reported(tmp_path: Path, answer: str, finding: str) -> None:
    report = audit(_program(_script(tmp_path, answer), 2.0 if finding == "hang" else 20.0), SMALL, parts=())
    assert finding in report.findings


def test_a_program_without_noise_is_found_out(tmp_path: Path) -> None:
    report = audit(_program(_script(tmp_path, "head + body")), SMALL, parts=("noise reuse", "epsilon"))
    assert report.findings == ["epsilon-exceeded", "noise-reuse"]


def test_the_page_names_every_finding() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", PAGE.partition("## How")[0], re.M))
    assert rows == FINDINGS


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("searched")
def test_one_line_of_json_with_everything() -> None:
    found = _run("planted:raises", *SHAPE, "--epsilon", "1", "--json")
    assert (found.returncode, found.stderr) == (1, "")
    (line,) = found.stdout.splitlines()
    said = json.loads(line)
    assert said["findings"] == ["crash"]
    assert said["epsilon_lower_bound"] is None
    assert (said["features"], said["chunk"], said["epsilon"], said["confidence"]) == (2, 4, 1.0, 0.999)
    assert said["not_tested"] == list(PARTS)
    assert {"draws", "seconds", "tested", "evidence", "epsilon_resolution"} <= said.keys()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("planted:exact", "--epsilon", "1"), "--features is needed"),
        (("planted:exact", *SHAPE, "--epsilon", "0"), "above 0"),
        (("planted:exact", *SHAPE[:5], "1,0", "--epsilon", "1"), "LO < HI"),
        (("planted:exact", *SHAPE[:5], "0,nan", "--epsilon", "1"), "finite"),
        (("planted:exact", *SHAPE[:5], "0", "--epsilon", "1"), "expected LO,HI"),
        (("planted:exact", "--features", "0", *SHAPE[2:], "--epsilon", "1"), "at least one feature"),
        (("planted:absent", *SHAPE, "--epsilon", "1"), "has no absent"),
        (("absent:exact", *SHAPE, "--epsilon", "1"), "no module absent"),
        (("planted:not_a_function", *SHAPE, "--epsilon", "1"), "no function"),
        (("planted:", *SHAPE, "--epsilon", "1"), "module:function"),
        (("cfpa", "--epsilon", "1"), "needs --calibration"),
        (("cfpa", *SHAPE, "--epsilon", "1"), "is not for cfpa"),
        (("fpa", "--calibration", "everyday-cfpa-32", "--epsilon", "1"), "neither"),
        (("lpa", "--calibration", "everyday-cfpa-32", "--epsilon", "1"), "not for lpa"),
        (("lpa", "--calibration", "nothing", "--epsilon", "1"), "no such file"),
        (("--epsilon", "1"), "either MECHANISM or --program"),
        (("--program", "/nowhere/at/all", *SHAPE, "--epsilon", "1"), "cannot be started"),
        (("--program", "cat", *SHAPE, "--epsilon", "1", "--session"), "--session"),
    ],
)
def test_bad_arguments_get_one_clear_line(words: tuple[str, ...], said: str) -> None:
    found = _run(*words)
    assert found.returncode == 2
    assert said in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert found.stdout == ""


def test_library_calls_refuse_what_the_command_refuses() -> None:
    claim = {"features": 1, "chunk": 2, "low": 0.0, "high": 1.0, "epsilon": 1.0}
    with pytest.raises(ConfigError, match="module:function"):
        function("nothing", **claim)
    with pytest.raises(ConfigError, match="command line"):
        program((), **claim)
    with pytest.raises(ConfigError, match="positive"):
        function("a:b", **claim | {"epsilon": float("inf")})
    with pytest.raises(ConfigError, match="neither"):
        mechanism("none", "everyday-cfpa-32", 1.0)
    with pytest.raises(ConfigError, match="expected one to 3 names of features"):
        mechanism("asked", "everyday-asked-64", 1.0)
    with pytest.raises(ConfigError, match="did you mean blink_rate"):
        mechanism("asked", "everyday-asked-64", 1.0, features="blink_rat")
    with pytest.raises(ConfigError, match="no option features"):
        mechanism("klt", "everyday-klt-32", 1.0, features="blink_rate")
    subject = function("a:b", **claim)
    assert Subject.from_dict(json.loads(json.dumps(subject.as_dict()))) == subject


def test_what_has_a_baseline_is_released_after_one_of_zeros() -> None:
    subject = mechanism("asked", "everyday-asked-64", 60.0, features="fatigue")
    lowest, highest = (load(subject)(np.array(end)[:, None] * np.ones(64)) for end in (subject.lo, subject.hi))
    assert lowest.shape == highest.shape == (52, 64)
    assert (lowest[:2, 0] < highest[:2, 0]).all()
    assert not np.delete(highest.reshape(-1), [0, 64]).any()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "calibration", "features"), [("asked", "asked", "fatigue"), ("klt", "klt-anchored", None)]
)
def test_what_has_a_baseline_is_not_flagged_and_its_epsilon_is_seen(name: str, calibration: str, features: str) -> None:
    few = replace(SMALL, screening=30, most=500, reuse=100, surface=100, state=40, timing=20)
    report = audit(
        mechanism(name, f"everyday-{calibration}-64", 4.8, features=features), few, parts=("noise reuse", "epsilon")
    )
    assert report.findings == [], report.found
    assert report.epsilon_lower_bound is not None
    assert report.epsilon_lower_bound > (2.0 if features else 0.3)


@pytest.mark.usefixtures("searched")
def test_a_child_that_hangs_is_gone_afterwards() -> None:
    with Child(planted_subject("hangs", 0.5)) as child:
        pid = child._process.pid
        with pytest.raises(Fault, match="no answer"):
            child.draw(np.zeros((1, 2, 4)), np.zeros(1, dtype=np.int64))
        assert not Path(f"/proc/{pid}").exists()
        with pytest.raises(Fault, match="crash"):
            child.draw(np.zeros((1, 2, 4)), np.zeros(1, dtype=np.int64))
