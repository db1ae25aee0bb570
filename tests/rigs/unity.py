"""Unity's package as files: which of them Unity imports, and the golden payloads as the package has them."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

__all__ = ["GOLDEN", "PACKAGE", "assets", "golden_text", "meta_of"]

_ROOT = Path(__file__).resolve().parents[2]
PACKAGE = _ROOT / "unity" / "com.eyestream.client"
GOLDEN = _ROOT / "tests" / "golden"


def assets(package: Path) -> Iterator[Path]:
    """Files and folders that Unity imports: not `.meta` files, and nothing in a folder whose name ends with ~."""
    for path in sorted(package.rglob("*")):
        hidden = any(part.endswith("~") or part.startswith(".") for part in path.relative_to(package).parts)
        if path.suffix != ".meta" and not hidden:
            yield path


def meta_of(path: Path) -> Path:
    """The `.meta` file that belongs to an asset."""
    return path.with_name(f"{path.name}.meta")


def golden_text() -> str:
    """The golden payloads as a C# table: name, kind, the word of a refusal (empty: it is good), bytes in base64."""
    index = json.loads((GOLDEN / "index.json").read_text(encoding="utf-8"))["payloads"]
    rows = "".join(
        f'            {{ "{name.removesuffix(".msgpack")}", "{entry["kind"]}", "{entry.get("refused", "")}",\n'
        f'                "{base64.b64encode((GOLDEN / name).read_bytes()).decode()}" }},\n'
        for name, entry in index.items()
    )
    return (
        "namespace Eyestream.Tests\n{\n"
        "    /// <summary>tests/golden of the repository. Written by tools/make/unity_package.py.</summary>\n"
        "    static class Golden\n    {\n"
        "        /// <summary>Name, kind, word of the refusal (empty: a good one), bytes in base64.</summary>\n"
        f"        public static readonly string[,] Payloads =\n        {{\n{rows}        }};\n    }}\n}}\n"
    )
