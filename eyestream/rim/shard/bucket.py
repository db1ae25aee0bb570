"""A second place in a key-value bucket of NATS: files on the servers' disks, which are not the shard's."""

from nats.aio.client import Client
from nats.js.api import StorageType
from nats.js.errors import KeyNotFoundError

from eyestream.errors import ShardError
from eyestream.rim.logs.nats import trouble
from eyestream.rim.shard.second_place import Lengths

__all__ = ["Bucket", "make_bucket"]

_NAME = "eyestream_shards"


@trouble
async def make_bucket(client: Client, replicas: int) -> None:
    """Make it where there is none. Raises LinkError."""
    await client.jetstream().create_key_value(bucket=_NAME, storage=StorageType.FILE, replicas=replicas)


class Bucket:
    """A `SecondPlace` for all shards of a fleet."""

    def __init__(self, client: Client) -> None:
        self._jetstream = client.jetstream(timeout=2.0)

    @trouble
    async def read(self, shard: str) -> Lengths | None:
        """As `SecondPlace`."""
        bucket = await self._jetstream.key_value(_NAME)
        try:
            value = (await bucket.get(shard)).value or b""
        except KeyNotFoundError:
            return None
        try:
            ledger, outbox = map(int, value.split())
        except ValueError:
            raise ShardError(f"shard {shard}: the second place holds something else") from None
        return Lengths(ledger, outbox)

    @trouble
    async def write(self, shard: str, lengths: Lengths) -> None:
        """As `SecondPlace`."""
        bucket = await self._jetstream.key_value(_NAME)
        await bucket.put(shard, b"%d %d" % lengths)
