"""`private` and `meta`: released chunks, and what an application must know about them."""

import hashlib
import math
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from eyestream.wire.envelope import (
    FLOAT32,
    MAX_RELEASE_BYTES,
    MAX_U64,
    U64,
    Envelope,
    Shape,
    documented,
    from_bin,
    open_envelope,
    refuse,
    to_bin,
)

MAX_SECONDS = 1e15
"""Longest chunk, and latest place in a session: thirty million years. Readers multiply and round it safely."""

CLAIM = "claim"
"""Name of the user property of MQTT 5 that a chunk may carry: the hash of the words under which it was released."""


def claim_hash(guarantee: str) -> str:
    """SHA-256, in hexadecimal digits, of the claim in words, as `meta` says it, in UTF-8."""
    return hashlib.sha256(guarantee.encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class PrivateChunk:
    """One released chunk.

    Attributes
    ----------
    session
        The sidecar's own random u64; says nothing about the tracker's.
    chunk
        Index within the session, from 0.
    t0, dt
        Seconds from the session's start to the first column, and between columns; the nominal grid.
    values
        (F, n).
    epsilon, delta
        What this chunk cost.
    at
        Seconds of the tracker's clock at the first column, where the tracker tells its time: `t0` after the time of the
        session's first row, on the nominal grid.
    """

    session: int
    chunk: int
    t0: float
    dt: float
    values: NDArray[np.float32]
    epsilon: float
    delta: float
    at: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Meta:
    """Description of a stream for applications; public, the same for every chunk.

    Attributes
    ----------
    names, units
        One for each of the F features.
    rate_hz, n
        Rows a second and rows a chunk.
    mechanism
        Its name, as its calibration has it.
    k
        Coefficients kept: one number for each feature (0: a declared constant), a single number where the features are
        coded jointly, empty where nothing is cut.
    epsilon, delta
        Of one chunk.
    noise_sd
        (F,), in the unit of each feature: standard deviation of what the noise adds to a value.
    guarantee
        The claim in words.
    calibration
        Content hash of the calibration.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    rate_hz: float
    n: int
    mechanism: str
    k: tuple[int, ...]
    epsilon: float
    delta: float
    noise_sd: NDArray[np.float32]
    guarantee: str
    calibration: str


_Positive = Annotated[float, documented(exclusiveMinimum=0)]
_Epsilon = Annotated[float, documented(minimum=0)]
_Delta = Annotated[float, documented(minimum=0, maximum=1)]


class _Private(Envelope, frozen=True):
    session: U64
    chunk: U64
    t0: Annotated[float, documented(minimum=0)]
    dt: _Positive
    shape: Shape
    values: bytes
    epsilon: _Epsilon
    delta: _Delta
    at: float | UnsetType = UNSET


class _Meta(Envelope, frozen=True):
    names: tuple[str, ...]
    units: tuple[str, ...]
    rate_hz: _Positive
    n: Annotated[int, documented(minimum=1)]
    mechanism: str
    k: tuple[int, ...]
    epsilon: _Epsilon
    delta: _Delta
    noise_sd: bytes
    guarantee: str
    calibration: str


_encoder = msgspec.msgpack.Encoder()
_private_decoder = msgspec.msgpack.Decoder(_Private)
_meta_decoder = msgspec.msgpack.Decoder(_Meta)


def encode_private(chunk: PrivateChunk) -> bytes:
    """Bytes of a released chunk.

    Raises
    ------
    PayloadError
        ``shape``, ``range`` or ``oversize``.
    """
    shape, values = to_bin(chunk.values)
    wire = _Private(
        int(chunk.session),
        int(chunk.chunk),
        float(chunk.t0),
        float(chunk.dt),
        shape,
        values,
        float(chunk.epsilon),
        float(chunk.delta),
        UNSET if chunk.at is None else float(chunk.at),
    )
    _check_private(wire)
    return _bounded(_encoder.encode(wire))


def decode_private(payload: bytes | bytearray | memoryview) -> PrivateChunk:
    """Released chunk out of a `private` payload of at most `MAX_RELEASE_BYTES`; its values are read-only.

    Raises
    ------
    PayloadError
        With one of `REASONS`.
    """
    wire = open_envelope(payload, _private_decoder, MAX_RELEASE_BYTES)
    values = from_bin(wire.shape, wire.values)
    _check_private(wire)
    at = None if isinstance(wire.at, UnsetType) else wire.at
    return PrivateChunk(wire.session, wire.chunk, wire.t0, wire.dt, values, wire.epsilon, wire.delta, at)


def encode_meta(meta: Meta) -> bytes:
    """Bytes of a stream's description.

    Raises
    ------
    PayloadError
        ``length`` where names, units and noise do not have one entry a feature; ``range`` or ``oversize``.
    """
    wire = _Meta(
        tuple(meta.names),
        tuple(meta.units),
        float(meta.rate_hz),
        int(meta.n),
        meta.mechanism,
        tuple(int(k) for k in meta.k),
        float(meta.epsilon),
        float(meta.delta),
        np.asarray(meta.noise_sd, FLOAT32).tobytes(),
        meta.guarantee,
        meta.calibration,
    )
    _check_meta(wire)
    return _bounded(_encoder.encode(wire))


def decode_meta(payload: bytes | bytearray | memoryview) -> Meta:
    """Description of a stream out of a `meta` payload of at most `MAX_RELEASE_BYTES`.

    Raises
    ------
    PayloadError
        With one of `REASONS`.
    """
    wire = open_envelope(payload, _meta_decoder, MAX_RELEASE_BYTES)
    _check_meta(wire)
    return Meta(**{**msgspec.structs.asdict(wire), "noise_sd": np.frombuffer(wire.noise_sd, FLOAT32)})


def _check_private(wire: _Private) -> None:
    if wire.shape[0] < 1:
        raise refuse("shape")
    if not 0 <= wire.session <= MAX_U64 or not 0 <= wire.chunk <= MAX_U64:
        raise refuse("range")
    if not (0 <= wire.t0 <= MAX_SECONDS and wire.dt > 0 and wire.dt * wire.shape[1] <= MAX_SECONDS):
        raise refuse("range")
    if not isinstance(wire.at, UnsetType) and not math.isfinite(wire.at):
        raise refuse("range")
    _check_loss(wire.epsilon, wire.delta)


def _check_meta(wire: _Meta) -> None:
    features = len(wire.names)
    if len(wire.units) != features or len(wire.noise_sd) != features * FLOAT32.itemsize:
        raise refuse("length")
    if not (0 < wire.rate_hz < math.inf and wire.n > 0 and all(k >= 0 for k in wire.k)):
        raise refuse("range")
    if wire.n / wire.rate_hz > MAX_SECONDS:
        raise refuse("range")
    _check_loss(wire.epsilon, wire.delta)


def _check_loss(epsilon: float, delta: float) -> None:
    """A loss is a finite number and not negative."""
    if not (0 <= epsilon < math.inf and 0 <= delta <= 1):
        raise refuse("range")


def _bounded(payload: bytes) -> bytes:
    if len(payload) > MAX_RELEASE_BYTES:
        raise refuse("oversize")
    return payload
