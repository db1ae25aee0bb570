"""Logs that carry, partition and replay rows: what a shard asks of one, and adapters for those there are."""
