"""Paho on asyncio: what the library takes for its socket, and the one private method of it that we replace."""

import asyncio

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

__all__ = ["Carrier", "Paho"]


class Carrier:
    """A socket to the library: it reads one packet at a time, and what it writes goes to a transport of asyncio.

    Parameters
    ----------
    transport
        The open connection.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._packet, self._at = b"", 0
        self._held: bytearray | None = None

    def give(self, packet: bytes) -> None:
        """Let the library read `packet` next."""
        self._packet, self._at = packet, 0

    def hold(self) -> None:
        """Keep what the library writes, until `release` writes it all at once."""
        self._held = bytearray()

    def release(self) -> None:
        """Write what was held."""
        held, self._held = self._held, None
        if held:
            self.send(held)

    def recv(self, size: int) -> bytes:
        """As a socket that does not block."""
        got = self._packet[self._at : self._at + size]
        if not got:
            raise BlockingIOError
        self._at += len(got)
        return got

    def send(self, data: bytes | bytearray) -> int:
        """As a socket; it takes everything. What is written after the end is lost, which the protocol is told."""
        if self._held is not None:
            self._held += data
        elif not self._transport.is_closing():
            self._transport.write(data)
        return len(data)

    def close(self) -> None:
        """Close the connection after what was written."""
        self.release()
        self._transport.close()

    def fileno(self) -> int:
        """There is none."""
        return -1

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""


class Paho(paho.Client):
    """The library's client on a carrier. It reads and writes where it is called, and has no thread.

    `connect` begins on `carrier`, which is set before. The library has no public place for a socket of another making:
    `_create_socket` is the private method that is replaced here.
    """

    carrier: Carrier

    def __init__(self, client_id: str, *, five: bool, clean_session: bool) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=None if five else clean_session,
            protocol=paho.MQTTv5 if five else paho.MQTTv311,
            reconnect_on_failure=False,
        )
        self.five = five
        self.max_inflight_messages_set(0)  # how many may be under way is for `Outgoing` to say: it knows the broker

    def _create_socket(self) -> Carrier:
        return self.carrier
