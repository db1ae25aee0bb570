"""Write `docs/asyncapi.yaml` and `docs/schemas/` again: `python -m tools.make.schemas [--out FOLDER]`.

Types and limits come from `eyestream/wire`, words from the tables of `docs/protocol.md`. A schema describes the JSON
form of a message: what is `bin` on the wire stands there as text in base64.
"""

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from eyestream.wire import gaze, raw, release, status, topics
from eyestream.wire.envelope import VERSION
from eyestream_lab.gatekeeper import desk

DOCS = Path(__file__).resolve().parents[2] / "docs"
MEDIA_TYPE = "application/vnd.msgpack"  # registered with IANA, 2024-05-13


@dataclass(frozen=True)
class Channel:
    """A topic, and what is published there.

    `of` is the section of the page that has the table of its keys, and `kind` the typed map. `qos` is of what is
    sent.
    """

    name: str
    address: str
    of: str
    kind: type[msgspec.Struct]
    what: str
    received: bool = False
    qos: int = topics.QOS

    @property
    def quality(self) -> dict[str, Any]:
        """QoS, and of what is sent whether the broker keeps it."""
        if self.received:
            return {"qos": topics.RAW_QOS}
        return {
            "qos": self.qos,
            "retain": self.name != "presence" and self.address.rsplit("/", 1)[1] in topics.RETAINED,
        }

    @property
    def schema(self) -> str:
        """Name of the file."""
        return f"{self.of.replace('/', '-')}.json"

    @property
    def closed(self) -> bool:
        """Whether a key that is not listed is refused: by sidecars. Applications ignore it."""
        return self.received or self.of in ("owner", "presence")


CHANNELS = (
    Channel("raw", topics.raw_topic("D", "S"), "raw", raw._Raw, "Rows of features.", received=True),
    Channel("gaze", topics.gaze_topic("D"), "gaze/raw", gaze._GazeMessage, "Samples of gaze.", received=True),
    Channel("private", topics.private_topic("D", "S"), "private", release._Private, "One released chunk."),
    Channel("meta", topics.meta_topic("D", "S"), "meta", release._Meta, "Names, units, mechanism, guarantee."),
    Channel("status", topics.status_topic("D", "S"), "status", status.Status, "How the stream is."),
    Channel("budget", topics.budget_topic("D", "S"), "budget", status.Budget, "How many more chunks may come."),
    Channel("odometer", topics.odometer_topic("D", "S"), "odometer", status.Reading, "What the stream has spent."),
    Channel("sidecarStatus", topics.sidecar_status_topic("N"), "status", status.Status, "How the sidecar is."),
    Channel("owner", topics.owner_topic("N"), "owner", status.Owner, "Which devices the sidecar serves."),
    Channel("presence", topics.owner_topic("N"), "presence", status.Presence, "An answer to a question of a sidecar."),
    Channel("ask", topics.ask_topic("D", "S"), "ask", desk._Asked, "A question to a gatekeeper.", received=True),
    Channel("answer", topics.answer_topic("D", "S"), "answer", desk._Reply, "What a gatekeeper answers.", qos=0),
)
PARAMETERS = {
    "device": ("D", "Pseudonym of the tracker."),
    "stream": ("S", f"Name of the stream, by default {topics.FEATURE_STREAM}."),
    "sidecar": ("N", "Name of the sidecar."),
}


def words(page: str, section: str) -> dict[str, str]:
    """What the page says of each key of a message, without the marks of Markdown."""
    text = re.split(r"^#+ ", page.split(f"\n### `{section}`\n", 1)[1], maxsplit=1, flags=re.M)[0]
    rows = re.findall(r"^\| `(\w+)` \| \w+ \| (?:yes|no) \| (.*) \|$", text, re.M)
    return {key: re.sub(r"; \[?see below.*|; one of the \w+ below|`", "", said) for key, said in rows}


def schema(channel: Channel, page: str) -> dict[str, Any]:
    """JSON Schema of a payload, draft 07, which is that of AsyncAPI 3."""
    _, parts = msgspec.json.schema_components([channel.kind])
    [found] = parts.values()
    said = words(page, channel.of)
    keys = {name: {"description": said[name], **ecma(part)} for name, part in found["properties"].items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": "Made from eyestream/wire by tools/make/schemas.py. bin of msgpack stands here as text in base64.",
        "title": f"{channel.of} of eyestream, version {VERSION}",
        "type": "object",
        "properties": keys,
        "required": found["required"],
        "additionalProperties": not channel.closed,
    }


def ecma(part: Any) -> Any:
    """The same schema with its patterns as JSON Schema writes them: `$` is the end of the text there."""
    if isinstance(part, dict):
        return {key: ecma(value) for key, value in part.items()}
    return part.replace(r"\A", "^").replace(r"\Z", "$") if isinstance(part, str) else part


def address(channel: Channel) -> tuple[str, list[str]]:
    """The topic with names of parameters in braces, and these names."""
    parts, named = channel.address.split("/"), []
    for name, (letter, _) in PARAMETERS.items():
        if letter in parts:
            parts[parts.index(letter)] = f"{{{name}}}"
            named.append(name)
    return "/".join(parts), named


def asyncapi() -> dict[str, Any]:
    """The whole interface, as the sidecar sees it: it receives what trackers send, and sends the rest."""
    channels, operations, messages = {}, {}, {}
    for channel in CHANNELS:
        topic, named = address(channel)
        name, message = channel.name, Path(channel.schema).stem
        channels[name] = {
            "address": topic,
            "description": channel.what,
            "parameters": {one: {"$ref": f"#/components/parameters/{one}"} for one in named},
            "messages": {message: {"$ref": f"#/components/messages/{message}"}},
        }
        operations[f"{'receive' if channel.received else 'send'}{name[0].upper()}{name[1:]}"] = {
            "action": "receive" if channel.received else "send",
            "channel": {"$ref": f"#/channels/{name}"},
            "bindings": {"mqtt": {**channel.quality, "bindingVersion": "0.2.0"}},
        }
        messages[message] = {
            "name": message,
            "contentType": MEDIA_TYPE,
            "payload": {"$ref": f"./schemas/{channel.schema}"},
        }
    parameters = {name: {"description": said} for name, (_, said) in PARAMETERS.items()}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "eyestream",
            "version": str(VERSION),
            "description": "Topics and payloads, as the sidecar sees them. A payload is one map of msgpack with the "
            "key v first, but for ask and answer, which are of a gatekeeper beside the sidecar. A schema has its JSON "
            "form: bin stands there as text in base64. protocol.md says the rest.",
        },
        "defaultContentType": MEDIA_TYPE,
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "parameters": parameters},
    }


def files() -> Iterator[tuple[str, str]]:
    """Path under `docs/`, and text."""
    page = (DOCS / "protocol.md").read_text(encoding="utf-8")
    for channel in CHANNELS:
        yield f"schemas/{channel.schema}", json.dumps(schema(channel, page), indent=2, ensure_ascii=False) + "\n"
    made = "# Made by `python -m tools.make.schemas` from eyestream/wire; a test compares.\n"
    yield "asyncapi.yaml", made + yaml.safe_dump(asyncapi(), sort_keys=False, width=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DOCS, metavar="FOLDER", help="default: docs")
    folder = parser.parse_args().out
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    for name, text in files():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
