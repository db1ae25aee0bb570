"""The payloads, bytes to values and back: pure, typed, bounded.

Each is a msgpack map that begins with the version; encoders write the keys in the order of the fields, and check what
decoders check, so that nothing is published that the other side must refuse. This module only gathers the names;
those of samples of gaze, which few send, are in `eyestream.wire.gaze`.
"""

from eyestream.wire.envelope import MAX_PAYLOAD_BYTES, MAX_RELEASE_BYTES, MAX_U64, REASONS, VERSION
from eyestream.wire.raw import MAX_ROWS, MAX_WEARER, ROWS, RawRows, decode_raw, encode_raw, rows_hash, rows_per_message
from eyestream.wire.release import Meta, PrivateChunk, decode_meta, decode_private, encode_meta, encode_private
from eyestream.wire.status import (
    CEILINGS,
    STATES,
    STATUS_REASONS,
    Budget,
    CeilingName,
    State,
    Status,
    StatusReason,
    decode_budget,
    decode_status,
    encode_budget,
    encode_status,
)

__all__ = [
    "CEILINGS",
    "MAX_PAYLOAD_BYTES",
    "MAX_RELEASE_BYTES",
    "MAX_ROWS",
    "MAX_U64",
    "MAX_WEARER",
    "REASONS",
    "ROWS",
    "STATES",
    "STATUS_REASONS",
    "VERSION",
    "Budget",
    "CeilingName",
    "Meta",
    "PrivateChunk",
    "RawRows",
    "State",
    "Status",
    "StatusReason",
    "decode_budget",
    "decode_meta",
    "decode_private",
    "decode_raw",
    "decode_status",
    "encode_budget",
    "encode_meta",
    "encode_private",
    "encode_raw",
    "encode_status",
    "rows_hash",
    "rows_per_message",
]
