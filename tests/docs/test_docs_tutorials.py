"""Every block of the tutorials is run, in the order of the page, as a reader would; texts of errors are in the code."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.gaze.features import NAMES
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.embedded import free_port
from tests.rigs.distributions import modules
from tests.rigs.mosquitto import program
from tests.rigs.pages import ROOT, blocks, code_of

DOCS = ROOT / "docs"
TUTORIALS = sorted(DOCS.glob("tutorial-*.md"))


def script(page: Path, folder: Path, port: int) -> str:
    """What a reader types, with the programs of the page saved under the names that the text gives them."""
    text = page.read_text(encoding="utf-8")
    names = iter(re.findall(r"as\s+`(\w+\.py)`", text))
    typed = ["set -eu", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for _, language, block in blocks(text):
        code = block.replace("1883", str(port))
        if language == "python":
            (folder / next(names)).write_text(code)
        else:
            assert language == "sh"
            typed.append(re.sub(r"eyestream init (\w+).*", rf"\g<0>\nsed -i s/1883/{port}/ \1/sidecar.toml", code))
    assert next(names, None) is None
    return "\n".join(typed)


@pytest.mark.long
@pytest.mark.needs("mosquitto")
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_does_what_it_says(page: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    main = "from eyestream.cli.main import main; main()"
    for name, words in (("eyestream", f'-c "{main}"'), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (programs / name).chmod(0o755)
    (programs / "mosquitto").symlink_to(program() or "")
    path = f"{programs}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONUNBUFFERED": "1"}
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", script(page, tmp_path / "work", free_port())],
        cwd=tmp_path / "work",
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = {"application": "chunk 4: saccades ", "tracker": "480 rows sent, 0 lost", "recording": "correlation 0."}
    assert said[page.stem.removeprefix("tutorial-")] in done.stdout, done.stdout + done.stderr


def test_there_are_tutorials() -> None:
    assert len(TUTORIALS) == 3
    assert all(len(blocks(page.read_text(encoding="utf-8"))) >= 3 for page in TUTORIALS)


def test_texts_of_errors_are_those_of_the_code() -> None:
    said = "\n".join(path.read_text(encoding="utf-8") for _, path in modules())
    said = re.sub(r'"\s*\n\s*f?"', "", said)
    table = re.findall(r"^\| `([^`]+)` \|", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.M)
    assert len(table) > 12
    assert [words for words in table if words not in said] == []


def test_rows_that_begin_at_30_s_are_compared_with_their_own_release(tmp_path: Path) -> None:
    """A release that is the true change agrees with it by 1.00, whatever the recording begins with."""
    rows = np.random.default_rng(4).normal(size=(400, len(NAMES)))
    (tmp_path / "people").mkdir()
    recordings.save(Recording(30.0 + np.arange(400) / 2, rows, NAMES), tmp_path / "people" / "sim-000.npz")
    (command,) = re.findall(r"^eyestream (privatize .*)$", (DOCS / "tutorial-recording.md").read_text(), re.MULTILINE)
    target = tmp_path / "released" / "sim-000.npz"
    words = [word.replace("people/*", str(tmp_path / "people" / "sim-000")) for word in command.split()]
    main([str(tmp_path / "released") if word == "released" else word for word in words])
    released = recordings.load(target)
    means = rows[: 6 * 64, NAMES.index("rate_saccades")].reshape(-1, 64).mean(axis=1)
    truth = np.append(means, np.nan)[: len(released.features), None]
    recordings.save(replace(released, features=np.where(np.isnan(released.features), np.nan, truth - 5.0)), target)
    compare = code_of("docs/tutorial-recording.md")
    done = subprocess.run([sys.executable, "-c", compare], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count("correlation 1.00") == 1
