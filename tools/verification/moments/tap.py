"""What somebody on the way sees of a link under TLS: when its records come, and their sizes. It changes nothing.

python -m tools.verification.moments.tap PORT

Listens on a free port, which it prints, and forwards to PORT. At SIGTERM it prints the records as JSON: the time on the
monotonic clock in seconds, whether it left towards PORT, and its bytes. A process of its own: it must not wait for the
tool that sends.
"""

import contextlib
import json
import signal
import socket
import sys
import threading
from types import FrameType

from tools.verification.moments.wire import received, stamped

__all__ = ["Record", "whole_records"]

_HEAD, _DATA = 5, 23
"""Bytes before a record's body, and the type of those that carry data (RFC 8446, 5.2)."""

Record = tuple[float, bool, int]


def whole_records(held: bytes) -> tuple[list[int], bytes]:
    """Sizes of the whole records of data at the beginning of `held`, and what is left of it."""
    sizes = []
    while len(held) >= _HEAD and len(held) >= (end := _HEAD + int.from_bytes(held[3:_HEAD])):
        if held[0] == _DATA:
            sizes.append(end)
        held = held[end:]
    return sizes, held


def _pump(source: socket.socket, target: socket.socket, outward: bool, records: list[Record]) -> None:
    held = b""
    with contextlib.suppress(OSError):
        while (came := received(source))[1]:
            at, data = came
            target.sendall(data)
            sizes, held = whole_records(held + data)
            records += [(at, outward, size) for size in sizes]
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit


def main(port: int) -> None:
    """Forward until SIGTERM."""
    records: list[Record] = []
    signal.signal(signal.SIGTERM, _end)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        try:
            while True:
                near, _ = listening.accept()
                far = socket.create_connection(("127.0.0.1", port))
                for source, target in ((near, far), (far, near)):
                    stamped(source)
                    threading.Thread(target=_pump, args=(source, target, source is near, records), daemon=True).start()
        finally:
            print(json.dumps(records), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
