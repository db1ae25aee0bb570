"""A release's lists name every package that is needed, with its licence, and nothing that is not."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """`tools/make/release.py`, which nobody imports, from its file."""
    spec = importlib.util.spec_from_file_location("release_lists", ROOT / "tools" / "make" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_lists(release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["release", "--out", str(tmp_path), "--list-only"])
    with pytest.raises(SystemExit) as ended:
        release.main()
    assert ended.value.code == 0
    parts = json.loads((tmp_path / "sbom.cdx.json").read_text())["components"]
    names = {part["name"].lower() for part in parts}
    assert {"eyestream", "numpy", "pyfftw", "msgspec", "cryptography", "cffi"} <= names
    assert not names & {"pytest", "amqtt", "rich", "scikit-learn"}
    assert len((tmp_path / "licences.txt").read_text().splitlines()) == len(parts)
    assert all(part["licenses"][0]["license"]["name"] for part in parts)


def test_what_the_packages_must_have_is_there(release: ModuleType) -> None:
    for name in (*release.IN_THE_WHEEL, *release.IN_THE_SOURCES):
        assert (ROOT / name).is_file(), name
