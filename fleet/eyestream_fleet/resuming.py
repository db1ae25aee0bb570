"""Where the last life of a shard left off: its streams, and what it had reserved."""

import hashlib
import logging
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.release.stream import StreamRelease
from eyestream.core.reservation import Request, RowMark
from eyestream.errors import SnapshotError
from eyestream.rim.ledger.ledger import Ledger
from eyestream.streams import StreamKey
from eyestream_fleet.frames import Border, Contents

_LOG = logging.getLogger("eyestream.shard")

ChunkKey = tuple[StreamKey, int, int]
"""A chunk by its stream, the tracker's session, and its last row."""


class Seal:
    """Encrypts borders that hold a session's baseline, which is raw, so that the disk never has it.

    Each life has a key of its own, derived from that in the log's memory, and counts: no nonce is used twice.

    Parameters
    ----------
    key
        32 bytes that live in the memory of the log alone (`Log.secret`).
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._life, self._count = key, secrets.token_bytes(16), 0

    def close(self, state: bytes, name: str) -> bytes:
        """`state` of the stream `name`, encrypted and authenticated."""
        self._count += 1
        nonce = self._count.to_bytes(12, "big")
        return self._life + nonce + self._cipher(self._life).encrypt(nonce, state, name.encode())

    def open(self, sealed: bytes, name: str) -> bytes:
        """Open what `close` sealed; ValueError: the log has forgotten the key, or it is of another stream."""
        try:
            return self._cipher(sealed[:16]).decrypt(sealed[16:28], sealed[28:], name.encode())
        except InvalidTag:
            raise ValueError("expected a border under the key of this log") from None

    def _cipher(self, life: bytes) -> AESGCM:
        return AESGCM(hashlib.blake2b(life, key=self._key, digest_size=32, person=b"shard border").digest())


def resumed(
    settings: DeviceSettings,
    mechanism: Mechanism,
    border: Border | None,
    ledger: Ledger,
    *,
    unreleased: int,
    seal: Seal | None,
    levels: int,
) -> StreamRelease:
    """A stream where the last life left it; where that cannot be known, the mark of the ledger says what is over.

    A session that takes a baseline then begins again, far enough from all rows before. `unreleased` is epsilon of the
    stream, in the ledger's units, that is reserved and of which nothing has left. Where that is all that it has spent,
    and no record that cannot be read may have been of it, nothing of it has left anywhere.
    """

    def new(refused: RowMark | None) -> StreamRelease:
        return StreamRelease(settings, mechanism, lambda: secrets.randbits(64), refused, levels=levels)

    stream, name = new(None), str(settings.key)
    if border is None:  # nothing of it has left this shard; but it may have come here from another ledger
        spent = ledger.odometer(settings.id)
        own = None if spent is None or spent.unreadable else spent.streams.get(settings.stream)
        fresh = not mechanism.baseline_chunks or spent is None or (own is not None and own.epsilon == unreleased)
        return stream if fresh else new(ledger.mark(settings.key))
    if border.n != settings.n or border.state is None:
        return new(ledger.mark(settings.key))
    try:
        state = border.state
        if mechanism.baseline_chunks:
            state = b"" if seal is None else seal.open(state, name)
        stream.restore(state)
    except (SnapshotError, ValueError):
        _LOG.warning("%s: its session begins again: it is released otherwise than before, or its key is gone", name)
        return new(ledger.mark(settings.key))
    return stream


def reserved(ledger: Ledger, contents: Contents) -> dict[ChunkKey, Request]:
    """Requests that are reserved, have no bytes in the outbox, and may be computed."""
    found: dict[ChunkKey, Request] = {}
    for key in ledger.keys:
        over = contents.given_up.get(str(key), (-1, -1))
        for request in ledger.unsettled(key):
            if (request.session, request.last_row) > over:
                found[key, request.session, request.last_row] = request
    return found


def last_rows(ledger: Ledger) -> dict[str, tuple[int, int]]:
    """By stream: session and row of the last chunk that is reserved."""
    marks = {key: ledger.mark(key) for key in ledger.keys}
    return {str(key): (mark.session, mark.last_row) for key, mark in marks.items() if mark is not None}
