"""A release's lists name every package that is needed, with its licence, and nothing that is not."""

import importlib.util
import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from eyestream.version import VERSION

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
    assert {"eyestream", "numpy", "pyfftw", "msgspec", "paho-mqtt"} <= names
    assert not names & {"cryptography", "pytest", "amqtt", "rich", "scikit-learn"}
    assert len((tmp_path / "licences.txt").read_text().splitlines()) == len(parts)
    assert (tmp_path / "sidecar.txt").read_bytes() == (ROOT / "locks" / "sidecar.txt").read_bytes()
    assert all(part["licenses"][0]["license"]["name"] for part in parts)


def test_the_distributions_have_one_version_and_no_release_is_built_of_several(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = release.versions()
    assert set(said.values()) == {VERSION}
    assert len(said) == 8
    other = said | {"lab/pyproject.toml": "9.9"}
    monkeypatch.setattr(release, "versions", lambda: other)
    monkeypatch.setattr(release, "packages", lambda out: pytest.fail("built"))
    monkeypatch.setattr(sys, "argv", ["release", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        release.main()
    assert ended.value.code == 1
    assert "9.9 in lab/pyproject.toml" in capsys.readouterr().err


def test_what_the_packages_must_have_is_there(release: ModuleType) -> None:
    wheel = release.in_the_wheel()
    for path in (*wheel.values(), *(ROOT / name for name in release.IN_THE_SOURCES)):
        assert path.is_file(), path
    for name in (
        "golden/index.json",
        "golden/budget.msgpack",
        "examples/sidecar.toml",
        "examples/mosquitto/plain.conf",
    ):
        assert f"eyestream/data/{name}" in wheel


def test_what_goes_into_the_wheel_from_elsewhere_is_in_its_list(release: ModuleType) -> None:
    """hatchling takes only what is listed: a folder in `sources` alone would be left out."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"]["only-include"] == ["eyestream", *build["wheel"]["sources"]]
    tops = {folder.partition("/")[0] for folder in build["wheel"]["only-include"]}
    assert tops <= set(build["sdist"]["include"]), "else no wheel can be built from the sources"
