"""The picture of the imports is what the command makes of the code, and the command sees an arrow that points up."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "imports.svg"


def draw(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Run the command on the package that is in `folder`."""
    command = [sys.executable, str(ROOT / "tools" / "make" / "imports.py"), "--out", str(out)]
    there = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(command, check=False, cwd=folder, env=there, capture_output=True, text=True, timeout=60)


def rooms(svg: str) -> dict[str, str]:
    return dict(re.findall(r'data-room="(\S+)" data-imports="([^"]*)"', svg))


def test_the_picture_is_that_of_the_code(tmp_path: Path) -> None:
    done = draw(ROOT, tmp_path / "now.svg")
    assert done.returncode == 0, done.stderr
    now, kept = (tmp_path / "now.svg").read_text(), PICTURE.read_text()
    assert rooms(now) == rooms(kept), "run `python -m tools.make.imports`"
    assert now == kept, "run `python -m tools.make.imports`"
    assert {"core.release", "rim.sidecar", "lab.study", "fleet", "errors"} <= set(rooms(kept))


def test_all_its_arrows_point_down() -> None:
    svg = PICTURE.read_text()
    ways = re.findall(r'data-from="\S+" data-to="\S+" d="M[\d.]+,([\d.]+).*? ?[\d.]+,([\d.]+)" fill', svg)
    assert len(ways) == svg.count("data-from=") > 20
    assert all(float(begin) < float(end) for begin, end in ways)


@pytest.mark.parametrize(
    ("where", "line", "arrow"),
    [
        ("wire/topics.py", "import eyestream.rim.config", "wire imports rim.config"),
        ("core/spectrum.py", "import eyestream.core.release", "imports"),
        ("rim/config/__init__.py", "import eyestream_lab.audit", "rim.config imports lab.audit"),
    ],
)
def test_an_arrow_that_points_up_is_named(tmp_path: Path, where: str, line: str, arrow: str) -> None:
    kept = shutil.ignore_patterns("data", "__pycache__", "*.md")
    shutil.copytree(ROOT / "eyestream", tmp_path / "eyestream", ignore=kept)
    module = tmp_path / "eyestream" / where
    module.write_text(module.read_text() + f"\n{line}\n")
    done = draw(tmp_path, tmp_path / "out.svg")
    assert done.returncode == 1
    assert re.search(rf"points up: .*{re.escape(arrow)}", done.stderr)
