"""A second place in a key-value bucket of NATS: files on the servers' disks, which are not the shard's."""

from nats.aio.client import Client
from nats.js.api import StorageType
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError

from eyestream.errors import ShardError
from eyestream.rim.ledger.second_place import Lengths
from eyestream.rim.logs.nats import trouble

__all__ = ["Bucket", "make_bucket"]

_NAME = "eyestream_shards"


@trouble
async def make_bucket(client: Client, replicas: int) -> None:
    """Make it where there is none. Raises LinkError."""
    await client.jetstream().create_key_value(bucket=_NAME, storage=StorageType.FILE, replicas=replicas)


class Bucket:
    """A `SecondPlace` for one worker.

    Each writing follows the one before: when somebody else has written in between, another worker is at work on a copy
    of the shard, and this one ends before it publishes anything more.
    """

    def __init__(self, client: Client) -> None:
        self._jetstream = client.jetstream(timeout=2.0)
        self._revision = 0

    @trouble
    async def read(self, shard: str) -> Lengths | None:
        """As `SecondPlace`."""
        bucket = await self._jetstream.key_value(_NAME)
        try:
            entry = await bucket.get(shard)
        except KeyNotFoundError:
            return None
        self._revision = entry.revision or 0
        try:
            ledger, outbox = map(int, (entry.value or b"").split())
        except ValueError:
            raise ShardError(f"shard {shard}: the second place holds something else") from None
        return Lengths(ledger, outbox)

    @trouble
    async def write(self, shard: str, lengths: Lengths) -> None:
        """As `SecondPlace`. Raises ShardError when somebody else has written since this worker did."""
        bucket = await self._jetstream.key_value(_NAME)
        try:
            self._revision = await bucket.update(shard, b"%d %d" % lengths, last=self._revision)
        except KeyWrongLastSequenceError:
            if await self.read(shard) != lengths:  # else it was written, and the answer was lost
                raise ShardError(
                    f"shard {shard}: another worker is at work on a copy of it; stop one of them"
                ) from None
