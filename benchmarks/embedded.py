"""Role: the embedded broker. ``python -m benchmarks.embedded PORT``; says a line when it is up, ends with stdin."""

import asyncio
import sys

from eyestream_lab.embedded import embedded_broker


async def main() -> None:
    """Serve until stdin is closed."""
    async with embedded_broker(int(sys.argv[1])):
        print("up", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
