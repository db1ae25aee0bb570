"""Write what Unity's package has besides its code: `python -m tools.make.unity_package`.

- A `.meta` file for each file and folder that has none. Unity ignores what has none in a package from git, and knows a
  file by the `guid` in it. So a `.meta` that is there stays, and moves with its file (`git mv`).
- `Tests/Editor/Golden.cs`: the payloads of `tests/golden`, because a project sees the package alone.
"""

import hashlib
from pathlib import Path

from tests.rigs.unity import PACKAGE, assets, golden_text, meta_of

ROOT = Path(__file__).resolve().parents[2]

_IMPORTERS = {".cs": "MonoImporter", ".asmdef": "AssemblyDefinitionImporter", ".md": "TextScriptImporter"}
_SCRIPT = "  serializedVersion: 2\n  defaultReferences: []\n  executionOrder: 0\n  icon: {instanceID: 0}\n"


def meta_text(path: Path) -> str:
    """The text of a new `.meta` file; its guid is a hash of the path."""
    guid = hashlib.sha256(str(path.relative_to(ROOT)).encode()).hexdigest()[:32]
    importer = "PackageManifestImporter" if path.name == "package.json" else _IMPORTERS.get(path.suffix)
    head = "folderAsset: yes\n" if path.is_dir() else ""
    return (
        f"fileFormatVersion: 2\nguid: {guid}\n{head}{importer or 'DefaultImporter'}:\n  externalObjects: {{}}\n"
        f"{_SCRIPT if path.suffix == '.cs' else ''}  userData: \n  assetBundleName: \n  assetBundleVariant: \n"
    )


def main() -> None:
    (PACKAGE / "Tests" / "Editor" / "Golden.cs").write_text(golden_text(), encoding="utf-8")
    there = list(assets(PACKAGE))
    for path in there:
        if not meta_of(path).exists():
            meta_of(path).write_text(meta_text(path), encoding="utf-8")
    for stray in set(PACKAGE.rglob("*.meta")) - {meta_of(path) for path in there}:
        stray.unlink()


if __name__ == "__main__":
    main()
