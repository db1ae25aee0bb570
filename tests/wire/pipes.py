"""A socket of the tests, at whose other end a judge listens."""

import asyncio
from typing import Any

__all__ = ["Pipe", "said"]


class Pipe(asyncio.Transport):
    """What is written goes to a judge."""

    def __init__(self, judge: Any) -> None:
        super().__init__()
        self.judge = judge
        self.closed = False
        self.written = b""

    def write(self, data: Any) -> None:
        assert not self.closed
        self.written += bytes(data)
        self.judge.hear(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0


def said(kind: int, body: bytes) -> bytes:
    """A packet of fewer than 128 bytes."""
    return bytes([kind, len(body)]) + body
