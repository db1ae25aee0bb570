"""Role: a bystander. ``python -m benchmarks.bystander CORE``: says "up"; told a line, says when it was kept waiting.

It does next to nothing on one core: sleeps a millisecond, over and over. Where it wakes up late, whatever else runs at
that time is late for the same reason. Said: a JSON list of [monotonic nanoseconds when it should have woken, how late].
"""

import json
import os
import sys
import threading
import time

LATE_NS = 4_000_000


def main() -> None:
    """Watch until told to stop."""
    os.sched_setaffinity(0, {int(sys.argv[1])})
    told = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), told.set()), daemon=True).start()
    late: list[tuple[int, int]] = []
    print("up", flush=True)
    while not told.is_set():
        due = time.monotonic_ns() + 1_000_000
        time.sleep(0.001)
        waited = time.monotonic_ns() - due
        if waited > LATE_NS:
            late.append((due, waited))
    print(json.dumps(late), flush=True)


if __name__ == "__main__":
    main()
