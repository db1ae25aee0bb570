"""How a link begins: the address, the socket, which version of MQTT, the greeting.

MQTT 5 is tried first. A broker that answers as one of 3.1.1, refuses the version, hangs up or says nothing is asked
again, on a new connection, in 3.1.1. Nothing of that is remembered: a broker may be replaced by another one while it is
away.

Addresses of a broker's name are found in a thread of their own. A name server that is silent holds a thread for half a
minute and longer, and nothing can call it back. In the threads of the event loop, which are few, it would hold up the
ledger, and with it every device; the loop's end would wait for it too. So each name that is being looked up has one
thread, which nobody waits for, and all who ask share the answer.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future

from eyestream.errors import LinkError
from eyestream.rim.mqtt.client import Client
from eyestream.rim.mqtt.endpoint import Endpoint, tls_fault, trusting_anybody
from eyestream.rim.mqtt.greeting import Greeting, HungUpError, OtherVersionError
from eyestream.rim.mqtt.messages import Message

PROBE_SHARE = 1 / 3
"""Share of our patience for a broker that may not know what to answer in MQTT 5: amqtt waits for more bytes then."""


async def enter(
    endpoint: Endpoint, greeting: Greeting, deliver: Callable[[Message], None], patience_s: float
) -> Client:
    """Connect and be greeted; what `deliver` raises meanwhile comes out as it is.

    Raises
    ------
    LinkError
        Nobody listens, does not answer within `patience_s` seconds, is no broker or refuses us.
    """
    try:
        if endpoint.version != "3.1.1":
            try:
                return await _attempt(endpoint, greeting, deliver, patience_s, five=True)
            except OtherVersionError:
                if endpoint.version == "5":
                    raise
        return await _attempt(endpoint, greeting, deliver, patience_s, five=False)
    except HungUpError as error:
        if endpoint.tls is not None:
            raise LinkError(
                f"{error}: it may want a client certificate, or refuse ours (cert_file, key_file)"
            ) from None
        if not endpoint.unix and await _speaks_tls(endpoint, patience_s * PROBE_SHARE):
            raise LinkError(f"{_cannot(endpoint)}: it speaks TLS at this port: write mqtts://") from None
        raise


def _cannot(endpoint: Endpoint) -> str:
    return f"cannot connect to the broker at {endpoint}"


async def _attempt(
    endpoint: Endpoint, greeting: Greeting, deliver: Callable[[Message], None], patience_s: float, *, five: bool
) -> Client:
    """One connection in one version; closed again when it does not come to a link."""
    cannot = _cannot(endpoint)
    try:
        client = Client(deliver, greeting, five=five)
    except ValueError as error:
        raise LinkError(f"{cannot}: {error}") from None
    entered = asked = False
    try:
        async with asyncio.timeout(patience_s):
            await _open(client, endpoint, patience_s)
        asked = True
        probing = five and endpoint.version == "auto"
        async with asyncio.timeout(patience_s * (PROBE_SHARE if probing else 1)):
            await client.greet(endpoint.username, endpoint.password)
        entered = True
    except TimeoutError:
        if not asked and endpoint.tls is not None:
            raise LinkError(f"{cannot}: no answer: does it speak TLS at this port?") from None
        raise (OtherVersionError if asked and five else LinkError)(f"{cannot}: no answer") from None
    except (OSError, ValueError) as error:
        if client.reason is error:
            raise
        raise LinkError(f"{cannot}: {error}") from None
    except LinkError as error:
        raise type(error)(f"{cannot}: {error}") from None
    finally:
        if not entered:
            await client.leave(patience_s, in_order=True)
    return client


async def _open(client: Client, endpoint: Endpoint, patience_s: float) -> None:
    """The socket, and TLS where it is asked for."""
    if endpoint.unix:
        await asyncio.get_running_loop().create_unix_connection(lambda: client, endpoint.host)
        return
    trouble = OSError("its name has no address")
    for address in await addresses(endpoint.host):
        try:
            return await _open_at(client, endpoint, address, patience_s)
        except ssl.SSLError as error:  # somebody is there, and not the one we look for
            raise OSError(tls_fault(error)) from None
        except OSError as error:
            in_handshake = endpoint.tls is not None and isinstance(error, ConnectionResetError)
            trouble = OSError(tls_fault(error)) if in_handshake else error
    raise trouble


async def _speaks_tls(endpoint: Endpoint, wait_s: float) -> bool:
    """Whether a port that hung up on plain words speaks TLS. It is told nothing else."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(wait_s):
            for address in await addresses(endpoint.host):
                _, writer = await asyncio.open_connection(address, endpoint.port, ssl=trusting_anybody())
                writer.transport.abort()
                return True
    return False


async def _open_at(client: Client, endpoint: Endpoint, address: str, patience_s: float) -> None:
    loop = asyncio.get_running_loop()
    if endpoint.tls is None:
        await loop.create_connection(lambda: client, address, endpoint.port)
    else:
        await loop.create_connection(
            lambda: client,
            address,
            endpoint.port,
            ssl=endpoint.tls,
            server_hostname=endpoint.host,
            ssl_handshake_timeout=patience_s,
            ssl_shutdown_timeout=patience_s,
        )


_under_way: dict[str, "Future[list[str]]"] = {}


async def addresses(host: str) -> list[str]:
    """The addresses of `host`, each once, in the order of preference; one that is an address already is its own.

    Raises
    ------
    OSError
        There is no such name, or no name server.
    UnicodeError
        It cannot be a name.
    """
    answer = _under_way.get(host)
    if answer is None:
        answer = _under_way[host] = Future()
        answer.set_running_or_notify_cancel()  # who stops waiting cancels his own waiting, not the answer
        threading.Thread(target=_look_up, args=(host, answer), name="look-up", daemon=True).start()
    return await asyncio.wrap_future(answer)


def _look_up(host: str, answer: "Future[list[str]]") -> None:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        del _under_way[host]
        answer.set_exception(error)
    else:
        del _under_way[host]
        answer.set_result(list(dict.fromkeys(str(address[0]) for *_, address in found)))
