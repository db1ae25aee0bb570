"""The embedded broker: amqtt on the loopback, for the demo, tests and a laptop; never exposed further."""

import asyncio
import contextlib
import logging
import socket
import weakref
from collections.abc import AsyncIterator

from eyestream.errors import LinkError

STOP_SECONDS = 3.0
"""amqtt's shutdown hangs on some Pythons; every stop is bounded."""


@contextlib.asynccontextmanager
async def embedded_broker(port: int | None = None) -> AsyncIterator[str]:
    """Run a broker in this event loop; gives its URL.

    Parameters
    ----------
    port
        TCP port of 127.0.0.1; a free one when None.

    Raises
    ------
    LinkError
        The port is taken.
    """
    from amqtt.broker import Broker  # noqa: PLC0415  heavy
    from amqtt.errors import BrokerError  # noqa: PLC0415

    for name in ("amqtt", "transitions"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # its lines name topics and sizes
    chosen = free_port() if port is None else _bindable(port)
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{chosen}", "max_connections": 32}},
            "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
        }
    )
    take, writers = broker.stream_connected, weakref.WeakSet[asyncio.StreamWriter]()

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listener_name: str) -> None:
        writers.add(writer)
        try:
            await take(reader, writer, listener_name)
        except OSError:  # amqtt shuts the socket of a client that has already gone
            writer.transport.abort()

    broker.stream_connected = taken
    try:
        await broker.start()
    except BrokerError:
        raise LinkError(f"port {chosen} of 127.0.0.1 cannot be opened for the embedded broker") from None
    try:
        yield f"mqtt://127.0.0.1:{chosen}"
    finally:
        for server in broker._servers.values():  # amqtt lets the port go last, and may not come so far
            server.instance.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await broker.shutdown()
        for writer in writers:  # amqtt leaves some open whose clients have just gone
            writer.transport.abort()
        await asyncio.sleep(0)  # a transport lets its socket go in the next turn of the loop


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on, and that nobody else is given for the next minute.

    A connection of its own is closed there first. The system then keeps the port from whoever asks for any, and gives
    it to a server that asks for this one, with ``SO_REUSEADDR``.
    """
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        server.accept()[0].close()
        return int(server.getsockname()[1])


def _bindable(port: int) -> int:
    """`port`, which can be bound now; amqtt itself reports a taken port at length."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            raise LinkError(f"port {port} of 127.0.0.1 is taken, or not ours to open") from None
        return port
