"""AsyncAPI and JSON Schemas are those of the code, and tell good payloads from bad ones as far as a schema can."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fastjsonschema
import msgpack
import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS, GOLDEN = ROOT / "docs", ROOT / "tests" / "golden"
INDEX = json.loads((GOLDEN / "index.json").read_text())["payloads"]
UNTOLD = {
    "bad-version-not-first",  # the order of keys
    "bad-duplicate-key",
    "bad-schema",  # numbers of the configuration
    "bad-features",
    "bad-gaze-schema",
    "bad-gaze-columns",
    "bad-gaze-one-column",
    "bad-float64",  # what is in the bytes of an array
    "bad-times",
    "bad-time",
    "bad-gaze-float32-time",
    "bad-wrap",  # a sum
}
"""Bad payloads that no schema can refuse."""


def text_of(folder: Path) -> dict[str, str]:
    files = [folder / "asyncapi.yaml", *(folder / "schemas").iterdir()]
    return {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in files}


def test_they_are_what_the_code_says(tmp_path: Path) -> None:
    made = [sys.executable, "-m", "tools.make.schemas", "--out", str(tmp_path)]
    subprocess.run(made, check=True, timeout=60, cwd=ROOT)
    assert len(text_of(DOCS)) == 12
    assert text_of(tmp_path) == text_of(DOCS)


def json_form(value: Any) -> Any:
    """As the schemas have it: bytes are text in base64."""
    if isinstance(value, dict):
        return {key: json_form(part) for key, part in value.items()}
    if isinstance(value, list):
        return [json_form(part) for part in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def fits(name: str) -> bool:
    """Whether the payload is msgpack that its schema takes."""
    kind = {"gaze": "gaze-raw"}.get(INDEX[name]["kind"], INDEX[name]["kind"])
    try:
        message = json_form(msgpack.unpackb((GOLDEN / name).read_bytes()))
        fastjsonschema.validate(json.loads((DOCS / "schemas" / f"{kind}.json").read_text()), message)
    except (ValueError, msgpack.UnpackException, fastjsonschema.JsonSchemaValueException):
        return False
    return True


def test_good_payloads_fit_their_schema_and_bad_ones_do_not() -> None:
    fitting = {name for name in INDEX if fits(name)}
    good = {name for name, entry in INDEX.items() if "holds" in entry}
    assert fitting - good == {f"{name}.msgpack" for name in UNTOLD}
    assert good <= fitting


@pytest.mark.parametrize("kind", ["private", "meta", "status", "budget", "odometer"])
def test_applications_may_read_a_key_of_a_later_version(kind: str) -> None:
    message = json_form(msgpack.unpackb((GOLDEN / f"{kind}.msgpack").read_bytes())) | {"later": 1}
    fastjsonschema.validate(json.loads((DOCS / "schemas" / f"{kind}.json").read_text()), message)


def resolve(document: Any, reference: str) -> Any:
    """What a `$ref` of the document names."""
    if reference.startswith("#/"):
        for part in reference[2:].split("/"):
            document = document[part]
        return document
    return json.loads((DOCS / reference).read_text())


def test_every_reference_of_the_document_leads_somewhere() -> None:
    document = yaml.safe_load((DOCS / "asyncapi.yaml").read_text())
    found: list[str] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            found.extend([part["$ref"]] if "$ref" in part else [])
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            walk(inner)

    walk(document)
    assert len(found) > 20
    assert all(resolve(document, reference) for reference in found)
    used = {Path(reference).name for reference in found if reference.startswith("./")}
    assert used == {path.name for path in (DOCS / "schemas").iterdir()}
    for operation in document["operations"].values():
        channel = resolve(document, operation["channel"]["$ref"])
        assert set(channel["parameters"]) == {name[1:-1] for name in channel["address"].split("/") if name[0] == "{"}
