"""A second place in a key-value bucket of NATS: files on the servers' disks, which are not the shard's."""

import secrets

from nats.aio.client import Client
from nats.js.api import StorageType
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError

from eyestream.errors import LinkError, ShardError
from eyestream.rim.ledger.second_place import Lengths
from eyestream.rim.logs.nats.log import trouble

__all__ = ["Bucket", "make_bucket"]

_NAME = "eyestream_shards"


@trouble
async def make_bucket(client: Client, replicas: int) -> None:
    """Make it where there is none. Raises LinkError."""
    await client.jetstream().create_key_value(bucket=_NAME, storage=StorageType.FILE, replicas=replicas)


class Bucket:
    """A `SecondPlace` for one worker.

    Each writing follows the one before, and names the life that wrote it. When another life has written in between,
    another worker is at work on a copy of the shard, and this one ends before it publishes anything more.
    """

    def __init__(self, client: Client) -> None:
        self._jetstream = client.jetstream(timeout=2.0)
        self._life = secrets.token_hex(8).encode()
        self._revision = 0

    @trouble
    async def read(self, shard: str) -> Lengths | None:
        """As `SecondPlace`."""
        try:
            self._revision, value = await self._held(shard)
        except KeyNotFoundError:
            return None
        try:
            ledger, outbox = map(int, value.split()[:2])
        except ValueError:
            raise ShardError(f"shard {shard}: the second place holds something else") from None
        return Lengths(ledger, outbox)

    @trouble
    async def write(self, shard: str, lengths: Lengths) -> None:
        """As `SecondPlace`. Raises ShardError when another life has written since this worker did."""
        bucket = await self._jetstream.key_value(_NAME)
        try:
            value = b"%d %d %s" % (*lengths, self._life)
            self._revision = await bucket.update(shard, value, last=self._revision)
        except KeyWrongLastSequenceError:
            revision, value = await self._held(shard)
            if revision > self._revision and not value.endswith(self._life):
                raise ShardError(
                    f"shard {shard}: another worker is at work on a copy of it; stop one of them"
                ) from None
            self._revision = max(self._revision, revision)  # ours, whose answer was lost; or a copy that is behind
            raise LinkError("NATS: the answer of the second place was lost") from None

    async def _held(self, shard: str) -> tuple[int, bytes]:
        entry = await (await self._jetstream.key_value(_NAME)).get(shard)
        return entry.revision or 0, entry.value or b""
