"""What applications read beside the chunks of a worker: descriptions and statuses, retained at the log's MQTT listener.

They go by MQTT, as those of a sidecar do, because NATS keeps retained messages for MQTT alone. No chunk waits for them.
"""

import asyncio

from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Will
from eyestream.rim.plan import Plan
from eyestream.rim.sidecar.boards import LAST_WILL, StatusBoard
from eyestream.rim.sidecar.sender import Outbox, Sender
from eyestream.wire.messages import encode_meta
from eyestream.wire.topics import meta_topic
from eyestream_fleet.shard import Shard
from eyestream_fleet.worker import ShardWorker

__all__ = ["ShardStatus"]

_PAUSE_S = 1.0
"""Between two statuses of a stream, at least: a window may withhold every other chunk."""

_AGAIN_S = 10.0
_GOODBYE_S = 3.0


class ShardStatus:
    """Publishes descriptions and statuses of one shard, retained.

    Parameters
    ----------
    plan
        Of a fleet; the shard's own status is that of ``[sidecar] name``, a hyphen and the partition.
    partition, shard
        Which one.
    worker
        Serves it.
    """

    def __init__(self, plan: Plan, partition: int, shard: Shard, worker: ShardWorker) -> None:
        self._shard, self._worker = shard, worker
        self._sender = Sender(Outbox(1, 1.0))  # chunks go by the log
        self._status = StatusBoard(f"{plan.settings.sidecar.name}-{partition}", shard.streams, self._sender.retain)
        for key, meta in plan.metas.items():
            if key in shard.streams:
                self._sender.retain(meta_topic(*key), encode_meta(meta))
        self._link = ReconnectingLink(
            Endpoint.of(plan.settings.private),
            self._serve,
            what="private broker",
            client_id=None,
            deliver=lambda message: None,
            will=Will(self._status.own_topic, LAST_WILL, 0),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Say how each stream is until `stop` is set; then that it has stopped, if the broker can be reached."""
        async with asyncio.TaskGroup() as group:
            link = group.create_task(self._link.run(), name="private link")
            saying = group.create_task(self._say(), name="status")
            await stop.wait()
            saying.cancel()
            self._sender.leave(self._status.goodbye())
            self._link.leave()
            await asyncio.wait([link], timeout=_GOODBYE_S if self._link.links else 0)
            link.cancel()

    async def _serve(self, link: Link) -> None:
        """Serve; state again what the last will of the life before may have overwritten."""
        again = asyncio.get_running_loop().call_later(_AGAIN_S, self._sender.resend, self._status.own_topic)
        try:
            await self._sender.serve(link)
        finally:
            again.cancel()

    async def _say(self) -> None:
        worker, streams = self._worker, self._shard.streams
        while True:
            worker.changed.clear()
            self._status.update(
                stands=lambda key: worker.stands, ledger=True, condition=lambda key: streams[key].condition
            )
            await asyncio.sleep(_PAUSE_S)
            await worker.changed.wait()
