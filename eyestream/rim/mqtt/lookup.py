"""Addresses of a broker's name, found in a thread of their own.

A name server that is silent holds a thread for half a minute and longer, and nothing can call it back. In the threads
of the event loop, which are few, it would hold up the ledger, and with it every device; the loop's end would wait for
it too. So each name that is being looked up has one thread, which nobody waits for, and all who ask share the answer.
"""

import asyncio
import socket
import threading
from concurrent.futures import Future

__all__ = ["addresses"]

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
