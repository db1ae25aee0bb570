"""More that the fuzzer drives: what reads bytes that others wrote, and may raise its own error and nothing else."""

import asyncio
import contextlib
import tempfile
from functools import cache
from pathlib import Path

from eyestream.core.charge import Ceilings
from eyestream.core.reservation import Request
from eyestream.errors import ConfigError, LedgerError, LinkError, PayloadError
from eyestream.rim import config
from eyestream.rim.ledger.book import Book
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.mqtt.carrier import MOST_HELD
from eyestream.rim.mqtt.messages import Message
from eyestream.streams import StreamKey
from eyestream.wire.release import decode_meta, decode_private, encode_meta, encode_private
from eyestream.wire.status import (
    decode_budget,
    decode_reading,
    decode_status,
    encode_budget,
    encode_reading,
    encode_status,
)
from eyestream_lab.testing.clocks import until
from tests.rigs.clients import WELCOME, at_a_pipe
from tests.rigs.hostile.corpus import CHECKOUT
from tests.rigs.rig import CHARGE

FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


_LOOP = asyncio.Runner()
"""A loop for clients that have no socket: none of them waits for anything."""


def read_release(data: bytes) -> None:
    """What a subscriber reads of a stranger: refused by name, or a message that can be written and read again."""
    with contextlib.suppress(PayloadError):
        again = encode_private(decode_private(data))
        assert encode_private(decode_private(again)) == again
    with contextlib.suppress(PayloadError):
        again = encode_meta(decode_meta(data))
        assert encode_meta(decode_meta(again)) == again
    with contextlib.suppress(PayloadError):
        again = encode_status(decode_status(data))
        assert encode_status(decode_status(again)) == again
    with contextlib.suppress(PayloadError):
        again = encode_budget(decode_budget(data))
        assert encode_budget(decode_budget(again)) == again
    with contextlib.suppress(PayloadError):
        again = encode_reading(decode_reading(data))
        assert encode_reading(decode_reading(again)) == again


def _heard(pieces: list[bytes], *, five: bool) -> tuple[list[Message], bytes, bool]:
    """What a client makes of a broker's bytes: messages, and its answers or whether it ended the link."""
    messages: list[Message] = []
    written = bytearray()

    async def hear() -> bool:
        client, pipe, greeting = at_a_pipe(messages.append, written.extend, five=five)
        await asyncio.sleep(0)
        client.data_received(WELCOME[five])
        for piece in pieces:
            if not pipe.closed:
                client.data_received(piece)
                await until(lambda: pipe.closed or not pipe.paused)
                assert len(client._frames._held) <= MOST_HELD, "it holds more than one message of ours"
        closed = pipe.closed
        client.connection_lost(None)
        with contextlib.suppress(LinkError):  # anything else is a find
            await client.ended
        await greeting
        return closed

    ended = _LOOP.run(hear())
    return messages, b"" if ended else bytes(written), ended


def read_packets(data: bytes) -> None:
    """A broker's bytes are messages or a lost link, in whatever pieces they come; the first byte says in which."""
    size, data = data[0] + 1 if data else 1, data[1:]
    for five in (False, True):
        whole = _heard([data], five=five)
        assert whole == _heard([data[at : at + size] for at in range(0, len(data), size)], five=five)


def read_configuration(data: bytes) -> None:
    """A configuration is settings or a `ConfigError`."""
    with tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        file.write(data)
        file.flush()
        with contextlib.suppress(ConfigError):
            assert config.load(Path(file.name)).device, "settings without a device"


@cache
def good_ledger() -> bytes:
    """The bytes of a ledger with two devices and some spends."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path = Path(folder) / "ledger"
        create_ledger(path, created=0)
        with Ledger(path, ceilings=Ceilings.of(2, 4.8)) as ledger:
            for i in range(6):
                requests = [Request(StreamKey(f"d{d}", "features"), 1, 4 * i, 4 * i + 3, 4, CHARGE) for d in range(2)]
                ledger.reserve(requests, 20_000)
        return path.read_bytes()


def spent(data: bytes) -> int:
    """All that a ledger of these bytes says was spent."""
    return sum(account.odometer().epsilon for account in Book([data]).accounts.values())


def read_ledger(data: bytes) -> None:
    """Any bytes are a ledger or a `LedgerError`; behind a good ledger they never make it say that less was spent."""
    with contextlib.suppress(LedgerError):
        Book([data])
    good = good_ledger()
    with contextlib.suppress(LedgerError):
        assert spent(good + data) >= spent(good)
    if data:
        at = 64 + int.from_bytes(data[:2], "big") % (len(good) - 64)
        torn = good[:at] + data[2:] + good[at + len(data[2:]) :]
        with contextlib.suppress(LedgerError):
            assert spent(torn) >= spent(good[: at // 64 * 64]), "a torn tail says that less was spent"


def seeds_of(target: str) -> list[bytes]:
    """Good ones of each kind."""
    if target == "release":
        golden = CHECKOUT / "tests" / "golden"
        return [
            (golden / f"{name}.msgpack").read_bytes()
            for name in ("private", "meta", "status", "status-last-will", "budget-spent", "odometer-moved")
        ]
    if target == "packets":
        topic = b"\0\x1ceyestream/v1/d0/features/raw"
        message = b"\x33\x48" + topic + b"\0\x07" + bytes(40)
        answers = [b"\x90\x04\0\1\1\x80", b"\x40\x02\0\7", b"\xd0\0"]
        properties = b"\x1c\x02\0\0\0\x07\x08\0\3r/t\x09\0\3who\x26\0\5claim\0\1x"
        fifth = b"\x32\x46" + topic + b"\0\x07" + properties + bytes(9)
        others = [b"\x90\x05\0\1\0\1\x87", b"\x40\x08\0\7\x97\4\x1f\0\1a", b"\xe0\x06\x8b\4\x1f\0\1a"]
        five = [b"\x03" + fifth + others[0] + others[1], b"\x09" + others[2]]
        return [
            *five,
            b"\x02" + b"".join([*answers, message]),
            b"\0" + message,
            b"\x05\x30\xff\xff\xff\x7f\0\1t" + bytes(300),
        ]
    if target == "configuration":
        return [path.read_bytes() for path in sorted((CHECKOUT / "config").glob("*.toml"))]
    if target == "ledger":
        good = good_ledger()
        return [good, good[:64], good[:200], good[192:256], good[-64:], b"\x01\x40" + good[256:320]]
    return []
