"""The readers in other languages: they read what is good and refuse what is bad."""

import json
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from eyestream.errors import PayloadError
from eyestream.wire.gaze import decode_gaze
from eyestream.wire.raw import decode_raw
from tests.examples.programs import EXAMPLES, GOLDEN, Command, c, csharp, node, python

LONGEST_FILE = 200
CHECKERS = [
    pytest.param(python("check.py"), id="python"),
    pytest.param(node("check.mjs"), id="javascript", marks=pytest.mark.needs("node")),
    pytest.param(c("check-program"), id="c", marks=pytest.mark.needs("cc", "make")),
    pytest.param(csharp, id="csharp", marks=pytest.mark.needs("mono")),
]
PRINTERS = CHECKERS[2:]
"""Those that compare the words of refusals alone, and print what they read."""


def check(command: list[str], golden: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, str(golden)], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("build", CHECKERS)
def test_every_golden_payload_is_read_or_refused(build: Command, built: Path) -> None:
    done = check(build(built), GOLDEN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "59 payloads, 0 faults" in done.stdout + done.stderr


@pytest.mark.parametrize("build", CHECKERS)
def test_control_a_payload_in_the_place_of_another_is_a_fault(build: Command, built: Path, tmp_path: Path) -> None:
    command, golden = build(built), shutil.copytree(GOLDEN, tmp_path / "golden")
    for there, other in (
        ("raw-one-row", "bad-cut"),  # a good one is refused
        ("bad-cut", "raw-one-row"),  # a bad one is read
        ("bad-time", "bad-cut"),  # refused, with another word
    ):
        (golden / f"{there}.msgpack").write_bytes((GOLDEN / f"{other}.msgpack").read_bytes())
        done = check(command, golden)
        assert done.returncode == 1, there
        assert "59 payloads, 1 faults" in done.stdout + done.stderr
        (golden / f"{there}.msgpack").write_bytes((GOLDEN / f"{there}.msgpack").read_bytes())


@pytest.mark.parametrize("build", CHECKERS[:2])
def test_control_another_value_is_a_fault(build: Command, tmp_path: Path) -> None:
    command, golden = build(tmp_path), shutil.copytree(GOLDEN, tmp_path / "golden")
    for key, value in (("session", "11400714819323198486"), ("values", [[1.0] * 4] * 3), ("epsilon", 4.9)):
        index = json.loads((GOLDEN / "index.json").read_text())
        index["payloads"]["private.msgpack"]["holds"][key] = value
        (golden / "index.json").write_text(json.dumps(index))
        assert check(command, golden).returncode == 1, key


def told(line: str, keys: set[str]) -> dict[str, list[str]]:
    """Key -> words that a printed line has for it."""
    found: dict[str, list[str]] = {}
    for word in line.split("\t")[1:]:
        if word in keys:
            found[word] = []
            current = found[word]
        else:
            current.append(word)
    return found


def flat(value: Any) -> list[Any]:
    return [one for part in value for one in flat(part)] if isinstance(value, list) else [value]


def same(word: str, value: Any, *, single: bool) -> bool:
    """Whether a printed word is the value of the index."""
    if value is None:
        return word.lower().lstrip("-") in ("nan", "inf", "infinity")
    if isinstance(value, bool):
        return word == "true"
    if isinstance(value, str):
        return word == value
    return float(word) == value or (single and struct.pack("<f", float(word)) == struct.pack("<f", value))


@pytest.mark.parametrize("build", PRINTERS)
def test_what_is_printed_is_what_the_index_says(build: Command, built: Path) -> None:
    index = json.loads((GOLDEN / "index.json").read_text())["payloads"]
    lines = {line.split("\t", 1)[0]: line for line in check(build(built), GOLDEN).stdout.splitlines()}
    assert lines.keys() == index.keys()
    for name, entry in index.items():
        holds = dict(entry.get("holds", {"refused": entry.get("refused")}))
        holds.pop("v", None)
        said = told(lines[name], set(holds))
        assert said.keys() == holds.keys(), name
        for key, value in holds.items():
            expected = flat(value)
            assert len(said[key]) == len(expected), (name, key)
            fitting = [same(word, one, single=key == "values") for word, one in zip(said[key], expected, strict=True)]
            assert all(fitting), (name, key)


def disturbed(rng: random.Random, payload: bytes) -> bytes:
    """With one to three bytes changed, left out or put in."""
    data = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, heads = rng.randrange(len(data) + 1), (0, 1, 0x7F, 0x8F, 0x90, 0xA0, *range(0xC0, 0x100))
        data[at : at + rng.randrange(3)] = bytes(rng.choices(heads, k=rng.randrange(3)))
    return bytes(data)


def is_read(kind: str, payload: bytes, index: dict[str, Any]) -> bool:
    """Whether our decoder takes it."""
    try:
        if kind == "raw":
            decode_raw(payload, index["features"], index["schema"])
        else:
            decode_gaze(payload, (2, 3), index["schema"])
    except PayloadError:
        return False
    return True


@pytest.mark.parametrize("build", CHECKERS)
def test_what_our_decoder_refuses_readers_refuse_and_no_more(build: Command, built: Path, tmp_path: Path) -> None:
    """800 payloads of the two kinds that a sidecar reads; a refusal may have another word."""
    rng, golden = random.Random(5), tmp_path / "golden"
    index = json.loads((GOLDEN / "index.json").read_text())
    whole = [(entry["kind"], (GOLDEN / name).read_bytes()) for name, entry in index["payloads"].items()]
    whole = [(kind, payload) for kind, payload in whole if kind in ("raw", "gaze")]
    golden.mkdir()
    index["payloads"], read = {}, {}
    for number in range(800):
        kind, payload = rng.choice(whole)
        name, payload = f"{number}.msgpack", disturbed(rng, payload)
        (golden / name).write_bytes(payload)
        read[name] = is_read(kind, payload, index)
        verdict: dict[str, Any] = {"holds": {}} if read[name] else {"refused": "somehow"}
        index["payloads"][name] = {"kind": kind} | verdict
    assert sum(read.values()) > 30
    (golden / "index.json").write_text(json.dumps(index, indent=1))
    lines = check(build(built), golden).stdout.splitlines()[:800]
    said = dict(line.replace(": ", "\t", 1).split("\t", 1) for line in lines)
    assert {name: not words.startswith("refused") for name, words in said.items()} == read


def test_files_are_short() -> None:
    suffixes = {".py", ".mjs", ".html", ".c", ".h", ".cs"}
    long = {str(path): len(path.read_text().splitlines()) for path in EXAMPLES.rglob("*") if path.suffix in suffixes}
    assert len(long) > 15
    assert {path for path, lines in long.items() if lines >= LONGEST_FILE} == set()


@pytest.mark.needs("node")
def test_how_bytes_arrive_does_not_matter_to_the_subscriber_in_javascript() -> None:
    harness = Path(__file__).with_name("split_harness.mjs")
    command = ["node", str(harness), str(EXAMPLES / "javascript" / "subscribe.mjs"), str(GOLDEN)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    *same, refused, rights, large, endless = done.stdout.splitlines()
    assert len(same) > 400
    assert len(set(same)) == 1
    said, _, written = same[0].rpartition(" ")
    assert said == "subscribed  meta  status  private 11400714819323198485 budget "
    assert written.startswith("82")  # a subscription, and then an acknowledgement for each message
    assert written.endswith("".join(f"4002{number:04x}" for number in range(6)))
    assert refused == "the broker refuses the connection: code 5"
    assert rights == "the broker does not let us read eyestream/v1/hmd-1/features/status"
    assert large == endless == "the broker sends a packet that is too large"
