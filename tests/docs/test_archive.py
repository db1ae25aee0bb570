"""The frozen archive: the same bytes for the same study, with every file's hash, and never of a tree that differs."""

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.needs("git")


def frozen(study: Path, out: Path, root: Path) -> str:
    """Run the program; what it says where it refuses."""
    command = [sys.executable, str(ROOT / "tools" / "make" / "archive.py"), str(study), "--out", str(out)]
    ended = subprocess.run([*command, "--root", str(root)], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode == 0) == (ended.stderr == "")
    return ended.stderr


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A small repository and a small study."""
    root, study = tmp_path / "code", tmp_path / "study"
    root.mkdir()
    (root / "a.py").write_text("print(1)\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "One"]):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    (study / "cells").mkdir(parents=True)
    (study / "cells" / "utility-1.json").write_text("[]")
    (study / "settings.json").write_text("{}")
    (study / "people.npz").write_text("a recording that somebody left there")
    return root, study


def test_the_same_study_gives_the_same_bytes(places: tuple[Path, Path], tmp_path: Path) -> None:
    root, study = places
    for name in ("one", "two"):
        assert not frozen(study, tmp_path / f"{name}.tar.gz", root)
    first = (tmp_path / "one.tar.gz").read_bytes()
    assert first == (tmp_path / "two.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "one.tar.gz") as opened:
        names = set(opened.getnames())
        manifest = opened.extractfile("MANIFEST.txt").read().decode()
    assert names == {"MANIFEST.txt", "code/a.py", "study/cells/utility-1.json", "study/settings.json"}
    assert f"{hashlib.sha256(b'print(1)' + bytes([10])).hexdigest()}  code/a.py" in manifest
    (study / "cells" / "utility-1.json").write_text("[1]")
    assert not frozen(study, tmp_path / "three.tar.gz", root)
    assert (tmp_path / "three.tar.gz").read_bytes() != first


def test_what_would_not_say_what_was_run_is_refused(places: tuple[Path, Path], tmp_path: Path) -> None:
    root, study = places
    out = tmp_path / "a.tar.gz"
    (root / "a.py").write_text("print(2)\n")
    assert "1 files differ from HEAD" in frozen(study, out, root)
    subprocess.run(["git", "-C", str(root), "checkout", "-q", "a.py"], check=True)
    assert "has no settings.json" in frozen(tmp_path, out, root)
    assert not out.exists()
    out.write_text("")
    assert "never overwritten" in frozen(study, out, root)
