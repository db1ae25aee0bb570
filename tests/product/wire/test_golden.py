"""The golden payloads: written by an independent library, read by ours, and the other way round."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import numpy as np
import pytest

from eyestream.core.mechanisms import build
from eyestream.errors import PayloadError
from eyestream.ops.asked_sets import ASKED_CALIBRATION
from eyestream.rim.files import calibrations
from eyestream.wire.envelope import REASONS
from eyestream.wire.gaze import decode_gaze, encode_gaze
from eyestream.wire.raw import decode_raw, encode_raw
from eyestream.wire.release import decode_meta, decode_private, encode_meta, encode_private
from eyestream.wire.status import (
    decode_budget,
    decode_owner,
    decode_reading,
    decode_status,
    encode_budget,
    encode_owner,
    encode_reading,
    encode_status,
)

GOLDEN = Path(__file__).parents[2] / "golden"
INDEX = json.loads((GOLDEN / "index.json").read_text())
GOOD = [name for name, entry in INDEX["payloads"].items() if "holds" in entry]
BAD = [name for name, entry in INDEX["payloads"].items() if "refused" in entry]

GAZE_COLUMNS = (2, 3)


def entry(name: str) -> tuple[dict[str, Any], bytes]:
    return INDEX["payloads"][name], (GOLDEN / name).read_bytes()


def test_files_are_what_the_independent_encoder_writes(tmp_path: Path) -> None:
    maker = GOLDEN.parents[1] / "tools" / "make" / "golden_payloads.py"
    subprocess.run([sys.executable, str(maker), "--out", str(tmp_path)], check=True, timeout=60)
    written, kept = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (tmp_path, GOLDEN))
    assert len(written) > 20
    assert written == kept


def read(kind: str, payload: bytes) -> dict[str, Any]:
    """The payload through our decoder, in the form of the index."""

    def numbers(array: np.ndarray) -> list[Any]:
        return [[float(value) if np.isfinite(value) else None for value in row] for row in array]

    if kind == "raw":
        raw = decode_raw(payload, INDEX["features"], INDEX["schema"])
        shown = {"session": str(raw.session), "seq": str(raw.seq), "shape": list(raw.rows.shape)}
        shown |= {"values": numbers(raw.rows)}
        times = {} if raw.t is None else {"t": raw.t.tolist()}
        optional = times | ({"end": True} if raw.end else {}) | ({"wearer": raw.wearer} if raw.wearer else {})
        return {"v": 1, "schema": INDEX["schema"], **shown, **optional}
    if kind == "gaze":
        t, values = decode_gaze(payload, GAZE_COLUMNS, INDEX["schema"])
        shape = list(values.shape)
        return {"v": 1, "schema": INDEX["schema"], "shape": shape, "values": numbers(values), "t": t.tolist()}
    if kind == "private":
        chunk = decode_private(payload)
        digits = {name: str(getattr(chunk, name)) for name in ("session", "chunk")}
        fields = {name: getattr(chunk, name) for name in ("t0", "dt", "epsilon", "delta")}
        fields |= {} if chunk.at is None else {"at": chunk.at}
        return {"v": 1, **digits, **fields, "shape": list(chunk.values.shape), "values": numbers(chunk.values)}
    if kind in ("owner", "budget", "odometer"):
        decoders = {"owner": decode_owner, "budget": decode_budget, "odometer": decode_reading}
        message = decoders[kind](payload)
        return msgspec.json.decode(msgspec.json.encode(message))
    if kind == "meta":
        meta = decode_meta(payload)
        fields = {name: getattr(meta, name) for name in meta.__slots__}
        plain = {name: list(field) if isinstance(field, tuple) else field for name, field in fields.items()}
        return {"v": 1, **plain, "noise_sd": meta.noise_sd.tolist()}
    status = decode_status(payload)
    return {"v": 1, "state": status.state, "reason": status.reason}


def as_float32(shown: dict[str, Any]) -> dict[str, Any]:
    """The index' decimal numbers as float32 holds them."""
    values = shown.get("values")
    if values is None:
        return shown
    return {**shown, "values": [[None if x is None else float(np.float32(x)) for x in row] for row in values]}


def test_javascript_rounds_no_number_of_the_index() -> None:
    """Its numbers are doubles: an integer of more than 53 bits would become another one."""
    numbers: list[int] = []

    def note(digits: str) -> int:
        numbers.append(int(digits))
        return numbers[-1]

    json.loads((GOLDEN / "index.json").read_text(), parse_int=note)
    assert len(numbers) > 20
    assert max(map(abs, numbers)) < 2**53


@pytest.mark.parametrize("name", GOOD)
def test_our_decoder_finds_what_the_index_says(name: str) -> None:
    described, payload = entry(name)
    assert read(described["kind"], payload) == as_float32(described["holds"])


@pytest.mark.parametrize("name", [name for name in GOOD if name != "raw-wide.msgpack"])
def test_our_encoder_writes_the_same_bytes(name: str) -> None:
    described, payload = entry(name)
    if described["kind"] == "raw":
        raw = decode_raw(payload, INDEX["features"], INDEX["schema"])
        again = encode_raw(raw.session, raw.seq, raw.rows, INDEX["schema"], end=raw.end, t=raw.t, wearer=raw.wearer)
        assert again == payload
    elif described["kind"] == "gaze":
        t, values = decode_gaze(payload, GAZE_COLUMNS, INDEX["schema"])
        assert encode_gaze(t, values, INDEX["schema"]) == payload
    elif described["kind"] == "owner":
        assert encode_owner(decode_owner(payload)) == payload
    elif described["kind"] == "budget":
        assert encode_budget(decode_budget(payload)) == payload
    elif described["kind"] == "odometer":
        assert encode_reading(decode_reading(payload)) == payload
    elif described["kind"] == "private":
        assert encode_private(decode_private(payload)) == payload
    elif described["kind"] == "meta":
        assert encode_meta(decode_meta(payload)) == payload
    else:
        assert encode_status(decode_status(payload)) == payload
    assert next(iter(msgpack.unpackb(payload))) == "v"


@pytest.mark.parametrize("name", BAD)
def test_bad_payloads_are_refused_by_name(name: str) -> None:
    described, payload = entry(name)
    with pytest.raises(PayloadError) as refusal:
        read(described["kind"], payload)
    assert refusal.value.reason == described["refused"]


def test_the_payloads_of_asked_features_are_as_a_stream_of_them_is() -> None:
    """Names, units, shape and steps of `init --features blink_rate,mean_mean_diameter`, through our reader."""
    features = ["blink_rate", "mean_mean_diameter"]
    mechanism = build(calibrations.load(ASKED_CALIBRATION), 4.8, features=features)
    schema, meta = mechanism.schema, decode_meta(entry("meta-asked.msgpack")[1])
    chunk = decode_private(entry("private-asked.msgpack")[1])
    assert (meta.names, meta.units, meta.mechanism, meta.epsilon) == (schema.names, schema.units, "asked", 4.8)
    assert (meta.n, 1 / meta.rate_hz, len(meta.noise_sd)) == (1, schema.step_s, len(features))
    assert (chunk.values.shape, chunk.dt, chunk.t0) == (schema.shape, schema.step_s, 3 * schema.step_s)


def test_every_reason_has_a_golden_payload_or_is_named_here() -> None:
    shown = {INDEX["payloads"][name]["refused"] for name in BAD}
    assert shown == REASONS - {"oversize", "topic"}
