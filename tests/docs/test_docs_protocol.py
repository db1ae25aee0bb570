"""The page about the wire is compared with the code: keys, types, words, limits, bytes; its programs are run."""

import re
import subprocess
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
import numpy as np
import pytest

from eyestream.gaze.live import DELAY_S, SILENCE_S
from eyestream.rim.config import load
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import widths
from eyestream.wire import gaze, raw, release, status, topics
from eyestream.wire.envelope import MAX_PAYLOAD_BYTES, MAX_RELEASE_BYTES, MAX_U64, REASONS
from eyestream.wire.raw import MAX_ROWS, decode_raw, rows_per_message
from eyestream.wire.status import CEILINGS, STATES, STATUS_REASONS
from eyestream_lab.gatekeeper import desk
from eyestream_lab.gatekeeper.questions import LARGEST_QUESTION

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
STRUCTS: dict[str, type[msgspec.Struct]] = {
    "raw": raw._Raw,
    "gaze/raw": gaze._GazeMessage,
    "private": release._Private,
    "meta": release._Meta,
    "status": status.Status,
    "budget": status.Budget,
    "odometer": status.Reading,
}
WORDS = {
    int: "int",
    float: "float",
    bytes: "bytes",
    bool: "bool",
    str: "text",
    tuple[int, ...]: "ints",
    tuple[str, ...]: "texts",
}


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    return re.split(r"^#+ ", PAGE.split(f"\n{title}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def tables(text: str) -> list[list[list[str]]]:
    """Rows of every table in `text`, headings first, each cell without the marks of code."""
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    split = [
        [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in t.splitlines()] for t in found
    ]
    return [[table[0], *table[2:]] for table in split]


def word_of(kind: Any) -> str:
    """The name that the page has for a type of the code."""
    if get_origin(kind) is Annotated:
        return word_of(get_args(kind)[0])
    if kind in WORDS:
        return WORDS[kind]
    members = [word_of(member) for member in get_args(kind) if get_origin(member) is Annotated or member in WORDS]
    return members[0] if members else "text"  # a Literal of words


@pytest.mark.parametrize("leaf", STRUCTS)
def test_keys_types_and_order_are_those_of_the_code(leaf: str) -> None:
    header, *rows = tables(section(f"### `{leaf}`"))[0]
    assert header == ["key", "type", "must be there", "what"]
    fields = msgspec.structs.fields(STRUCTS[leaf])
    expected = [["v", "int", "yes"]]
    expected += [[field.name, word_of(field.type), "yes" if field.required else "no"] for field in fields]
    assert [row[:3] for row in rows] == expected


@pytest.mark.parametrize(("leaf", "kind"), [("ask", desk._Asked), ("answer", desk._Reply)])
def test_keys_of_a_gatekeepers_messages_are_those_of_the_code(leaf: str, kind: type[msgspec.Struct]) -> None:
    """They have no `v`: a gatekeeper stands beside the sidecar."""
    rows = tables(section(f"### `{leaf}`"))[0][1:]
    fields = msgspec.structs.fields(kind)
    assert [[row[0], row[2]] for row in rows] == [[f.encode_name, "yes" if f.required else "no"] for f in fields]
    topic = {"ask": topics.ask_topic, "answer": topics.answer_topic}[leaf]("D", "S")
    assert f"\n    {topic.replace('/D/', '/<device>/').replace('/S/', '/<stream>/')}\n" in PAGE


def test_words_and_limits_of_a_gatekeepers_refusals() -> None:
    """All that the desk ever says, each drawn out of it."""
    rows = tables(section("### `answer`"))[1][1:]
    said, one = set(), desk.Desk()
    seen = {"ask": "dwell", "within": [-1.0, 1.0, -1.0, 1.0], "last_s": 1.0}
    for number in range(desk.MOST_STANDING + 1):
        reply = one.ask(msgspec.msgpack.encode({"id": str(number), "question": seen, "each": True}), float(number))
        said.add(msgspec.msgpack.decode(reply or b"").get("refused"))
    for payload in (bytes(desk.LARGEST + 1), b"\xc1", b"\xc0", b"\x81\xa2id\xa0", b"\x82\xa2id\xa1x\xa4stop\xc3"):
        said.add(msgspec.msgpack.decode(one.ask(payload, 100.0) or b"")["refused"])
    for _ in range(desk.MOST_A_SECOND):
        said.add(msgspec.msgpack.decode(one.ask(b"\xc0", 101.0) or b"")["refused"])
    said.add(msgspec.msgpack.decode(one.ask(b"\xc0", 101.0) or b"")["refused"])
    assert one.ask(b"\xc0", 101.0) is None
    assert said - {None} == {row[0] for row in rows}
    told = {row[0]: [int(n) for n in re.findall(r"\d+", row[1])] for row in rows}
    assert told["oversize"] == [desk.LARGEST, LARGEST_QUESTION]
    assert told["rate"] == [desk.MOST_A_SECOND]
    assert told["standing"] == [desk.MOST_STANDING]
    assert told["id"] == [desk._LONGEST_ID]


def test_topics_and_leaves() -> None:
    leaves = tables(section("## Topics"))[0][1:]
    assert [row[0] for row in leaves] == list(get_args(topics.Leaf))
    build_all = (topics.raw_topic, topics.private_topic, topics.meta_topic, topics.status_topic, topics.budget_topic)
    for build, leaf in zip((*build_all, topics.odometer_topic), leaves, strict=True):
        written = re.search(r"^    (eyestream/\S+)$", PAGE, re.M)
        assert written is not None
        form = written[1].replace("<device>", "hmd").replace("<stream>", "features").replace("<leaf>", leaf[0])
        assert build("hmd", "features") == form
    assert f"`{topics.gaze_topic('D').replace('/D/', '/<device>/')}`" in PAGE
    assert f"`{topics.sidecar_status_topic('S').replace('/S/', '/<sidecar>/')}`" in PAGE
    assert topics.NAME == "[A-Za-z0-9][A-Za-z0-9_-]{0,63}"  # as the page says in words
    assert "1 to 64 characters of `A-Z a-z 0-9 _ -`, the first one a letter or a digit" in PAGE.replace("\n", " ")


def test_words_of_status() -> None:
    rows = tables(section("### `status`"))[1][1:]
    assert {row[0] for row in rows} == STATES
    assert {row[1] for row in rows} == STATUS_REASONS
    assert len(rows) == len(STATUS_REASONS)


def test_words_of_budget() -> None:
    rows = tables(section("### `budget`"))[1][1:]
    assert {row[0] for row in rows} == CEILINGS
    assert len(rows) == len(CEILINGS)


def test_words_of_refusals() -> None:
    rows = next(table for table in tables(section("## For trackers")) if table[0] == ["reason", "what was wrong"])[1:]
    assert {row[0] for row in rows} == REASONS
    assert len(rows) == len(REASONS)


def test_limits() -> None:
    numbers = [[int(n) for n in re.findall(r"\d+", row[1])] for row in tables(section("## Limits"))[0][1:]]
    assert numbers == [
        [MAX_PAYLOAD_BYTES],
        [MAX_RELEASE_BYTES],
        [MAX_ROWS, rows_per_message(52), 52],
        [MAX_U64],
    ]


def test_numbers_in_parentheses_are_those_of_the_example_configuration() -> None:
    settings = load(ROOT / "config" / "sidecar.toml")
    (stream,) = settings.stream
    text = PAGE.replace("\n", " ")
    for words in (
        f"`jump_chunks` ({stream.jump_chunks}) chunks",
        f"`idle_s` ({stream.idle_s:g}) seconds",
        f"`grace_s` ({stream.grace_s:g}) seconds",
        f"`deadline_s` ({settings.limits.deadline_s:g} seconds)",
    ):
        assert words in text


def test_numbers_of_the_page_about_gaze_are_those_of_the_front_end() -> None:
    text = section("### `gaze/raw`").replace("\n", " ")
    assert f"more than {DELAY_S:g} s later" in " ".join(text.split())
    assert f"come for {SILENCE_S:g} seconds" in " ".join(text.split())
    profile = load_profile("mqtt").at_rate(250.0)
    assert [f"C is {' or '.join(map(str, widths(profile)))}" in " ".join(text.split())] == [True]


def block(language: str) -> str:
    """The one that the page has in a language."""
    found = [text for of, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.S | re.M) if of == language]
    assert len(found) == 1
    return found[0]


def test_bytes_of_the_annotated_message() -> None:
    lines = [re.split(r" {3,}(?=\S)", line.strip(), maxsplit=1)[0] for line in block("text").splitlines()]
    written = "".join(line for line in lines if re.fullmatch(r"[0-9a-f]{2}( +[0-9a-f]{2})*", line))
    assert bytes.fromhex(written) == (GOLDEN / "raw-one-row.msgpack").read_bytes()


@pytest.mark.needs("cc")
def test_the_program_in_c_writes_what_the_sidecar_reads(tmp_path: Path) -> None:
    main = """
#include <stdio.h>
int main(void) {
    static uint8_t out[4096];
    float values[6] = {0.5f, 2.25f, -1.0f, 0.75f, 2.0f, 0.0f};
    fwrite(out, 1, raw_message(out, 7, UINT64_C(18446744073709551615), UINT64_C(1) << 53, 2, 3, values), stdout);
    return 0;
}
"""
    source, program = tmp_path / "raw.c", tmp_path / "raw"
    source.write_text(block("c") + main)
    subprocess.run(["cc", "-Wall", "-Werror", "-O1", "-o", program, source], check=True, timeout=60)
    payload = subprocess.run([program], check=True, capture_output=True, timeout=20).stdout
    rows = decode_raw(payload, 3, 7)
    assert (rows.session, rows.seq, rows.end) == (2**64 - 1, 2**53, False)
    np.testing.assert_array_equal(rows.rows, [[0.5, 2.25, -1.0], [0.75, 2.0, 0.0]])


def test_qos_and_what_is_retained() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (tracker|sidecar) \| (0 or 1|1) \| (yes|never) \|", PAGE, re.M)
    leaves = get_args(topics.Leaf)
    assert {leaf: kept == "yes" for leaf, _, _, kept in rows} == {leaf: leaf in topics.RETAINED for leaf in leaves}
    assert {qos for leaf, _, qos, _ in rows if leaf != "raw"} == {str(topics.QOS)}
    assert f"The sidecar subscribes to `raw` at QoS {topics.RAW_QOS}" in " ".join(PAGE.split())
