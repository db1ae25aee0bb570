"""Counters of a worker as Prometheus text, and whether it is healthy: the same allow-list as a sidecar's."""

from eyestream.core.release.stream import ChunkCounters
from eyestream.ops.metrics import Page, by_label, common_counters, counter, family, page_of_word, withheld_word
from eyestream_fleet.worker import ShardWorker

__all__ = ["worker_health", "worker_metrics", "worker_pages"]


def worker_pages(worker: ShardWorker) -> dict[str, Page]:
    """What `serve` serves of a worker of a fleet, by path."""

    async def figures() -> tuple[int, str]:
        return 200, worker_metrics(worker)

    async def healthz() -> tuple[int, str]:
        return page_of_word(worker_health(worker))

    return {"/metrics": figures, "/healthz": healthz}


def worker_health(worker: ShardWorker) -> str:
    """``ok``, ``log``, or why nothing is released. A ledger that fails ends a worker."""
    if not worker.stands:
        return "log"
    return withheld_word(stream.condition for stream in worker.shard.streams.values())


def worker_metrics(worker: ShardWorker) -> str:
    """All counters of a worker. None of them outlives it: rates and sums over a fleet are for Prometheus."""
    shard, log, chunks = worker.shard, worker.shard.position, ChunkCounters()
    for stream in shard.streams.values():
        chunks.add(stream.counters)
    rows = [stream.rows for stream in shard.streams.values()]
    return "".join(
        (
            *common_counters(shard.taken, shard.rejected, rows, chunks, worker.published),
            *counter("log_breaks", "times the log was away, or lost a message on its way", [("", worker.breaks)]),
            *counter("log_losses", "times the log was without messages that it had", by_label("kind", log.losses)),
            *counter("log_offsets_missing", "offsets never read: forgotten before, or left out", [("", log.missing)]),
            *family("link_up", "gauge", "1 when the link stands", by_label("side", {"log": int(worker.stands)})),
            *family("chunks_waiting", "gauge", "released chunks that wait for the log", [("", worker.waiting)]),
        )
    )
