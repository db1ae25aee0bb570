"""The monitor in a process of its own, as `eyestream monitor` has it: python -m tools.verification.moments.page URL."""

import asyncio
import signal
import sys

from eyestream.cli.monitor import monitoring
from eyestream.rim.config import BrokerSettings


async def _serve(url: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with monitoring(BrokerSettings(url)) as address:
        print(address, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
