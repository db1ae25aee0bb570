"""What Unity reads before it compiles: the manifest, `.meta` files, assembly definitions; and the golden payloads."""

import json
import re
from pathlib import Path

import pytest

from tests.rigs.unity import GOLDEN, PACKAGE, assets, golden_text, meta_of

GUID = re.compile(r"\AfileFormatVersion: 2\nguid: ([0-9a-f]{32})\n", re.M)
ENGINE = {"UnityEngine.TestRunner", "UnityEditor.TestRunner"}
REMEDY = "run `python -m tools.make.unity_package`"


def guids(package: Path) -> dict[str, list[Path]]:
    """Each guid, and the assets that have it; those without a `.meta` file, or with a bad one, have an empty guid."""
    found: dict[str, list[Path]] = {}
    for path in assets(package):
        match = GUID.match(meta_of(path).read_text(encoding="utf-8")) if meta_of(path).exists() else None
        found.setdefault(match[1] if match else "", []).append(path)
    return found


def strays(package: Path) -> set[Path]:
    """The `.meta` files of nothing."""
    return set(package.rglob("*.meta")) - {meta_of(path) for path in assets(package)}


def test_every_asset_has_a_meta_file_with_a_guid_of_its_own() -> None:
    found = guids(PACKAGE)
    assert len(found) > 10
    assert found.get("", []) == [], REMEDY
    assert {guid: paths for guid, paths in found.items() if len(paths) > 1} == {}
    assert strays(PACKAGE) == set(), REMEDY


def test_control_faults_of_meta_files_are_found(tmp_path: Path) -> None:
    for name in ("a.cs", "b.cs", "c.cs", "Samples~/d.cs"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    meta_of(tmp_path / "a.cs").write_text(f"fileFormatVersion: 2\nguid: {'0' * 32}\n")
    meta_of(tmp_path / "b.cs").write_text(f"fileFormatVersion: 2\nguid: {'0' * 32}\n")
    meta_of(tmp_path / "gone.cs").touch()
    assert guids(tmp_path) == {"0" * 32: [tmp_path / "a.cs", tmp_path / "b.cs"], "": [tmp_path / "c.cs"]}
    assert strays(tmp_path) == {tmp_path / "gone.cs.meta"}


def test_the_manifest_names_what_is_there() -> None:
    manifest = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    assert manifest["name"] == PACKAGE.name
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert manifest["dependencies"] == {}
    listed = {sample["path"] for sample in manifest.get("samples", ())}
    assert listed == {f"Samples~/{path.name}" for path in PACKAGE.glob("Samples~/*")}


def test_assemblies_name_each_other() -> None:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.asmdef")]
    names = {one["name"] for one in found}
    assert len(names) == len(found)
    assert {name for one in found for name in one["references"]} <= names | ENGINE
    by_name = {one["name"]: one for one in found}
    assert by_name["Eyestream.Core"]["noEngineReferences"]
    assert by_name["Eyestream.Tests"]["includePlatforms"] == ["Editor"]


def test_the_package_has_the_golden_payloads() -> None:
    assert len(list(GOLDEN.glob("*.msgpack"))) > 50
    assert (PACKAGE / "Tests" / "Editor" / "Golden.cs").read_text(encoding="utf-8") == golden_text(), REMEDY


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("Runtime/**/*.cs")), ids=lambda path: path.name)
def test_nothing_needs_a_compiler_at_run_time(path: Path) -> None:
    """Ahead-of-time compilers have neither reflection nor dynamic code; both would be found on a device only."""
    text = path.read_text(encoding="utf-8")
    words = r"System\.Reflection|\bdynamic\b|GetType\(\)|Activator|Emit\b|Expression<|MakeGeneric|DllImport"
    assert re.findall(words, text) == []
