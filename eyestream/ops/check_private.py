"""Whether the private broker takes what a sidecar will publish, and has no other sidecar of the same devices.

What it takes is seen by publishing as much and reading it back.

The probe goes to the status topic of a sidecar that does not exist: a sidecar's login may write there and an
application's may read there, and zeros are no status, so that nobody takes it for one, nor for a chunk. Nothing of it
is retained.

A broker breaks the link over what is too large for it, or drops that and acknowledges it all the same: MQTT 3.1.1 has
no word for it. So a small message goes after the probe, on the same topic, whose messages keep their order
(4.6.0-6): where it arrives alone, the probe was dropped.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

import numpy as np

from eyestream.errors import LedgerError, LinkError, PayloadError
from eyestream.ops.findings import Finding, bad, good
from eyestream.rim.config import Settings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.ledger.seal import seal_by
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, RefusedError, connect
from eyestream.rim.plan import Plan
from eyestream.rim.sidecar.ownership import Ownership, UnseenError
from eyestream.wire.envelope import MAX_U64
from eyestream.wire.release import PrivateChunk, encode_meta, encode_private
from eyestream.wire.topics import meta_topic, private_topic, sidecar_status_topic

PROBE_SECONDS = 10.0
"""Wait for a probe to come back: half a megabyte a second is slower than any link that chunks of that size are for."""

ECHO_SECONDS = 1.0
"""Wait for a small message, to learn whether anybody here may read what the sidecar writes."""

_MARK = b"\0"
_DROPPED = "nothing is said, and it is dropped"


def probe_id() -> str:
    """A client of its own, and a device that does not exist: neither a sidecar at work nor an application meets it."""
    return f"check-{secrets.token_hex(4)}"


async def size_finding(sidecar: Endpoint, readers: Iterable[Endpoint], plan: Plan | None) -> Finding:
    """Try the largest message of the configuration.

    Parameters
    ----------
    sidecar
        Publishes the probe.
    readers
        All who may get in; whoever of them may read a status reads it back.
    plan
        The configuration, resolved; None where it cannot be.
    """
    what = "private broker: it takes a chunk of this configuration"
    topic = sidecar_status_topic(probe_id())
    if plan is None:
        return bad(what, "what it must take is not known", "Correct the configuration first, as said above")
    try:
        size = _probe_bytes(plan, topic)
    except PayloadError as error:
        return bad(what, f"there can be none: {error}", "Correct [[stream]]")
    echo = _Echo()
    async with listening([(reader, echo.hear) for reader in readers], [topic]):
        if await _fate(sidecar, topic, len(_MARK), echo) not in {None, _DROPPED}:
            return bad(
                what,
                "not even a small message is taken",
                "Give the listener the acl_file that `eyestream deploy` writes",
            )
        echo.is_there = echo.marked.is_set()
        fate = await _fate(sidecar, topic, size, echo)
        if fate is None and echo.is_there:
            return good(f"{what}, and hands it on")
        if fate is None:
            return good(f"{what}; with --application FILE we see whether it hands it on")
        taken, refused = len(_MARK), size
        while refused - taken > max(64, refused // 64):  # some six probes
            middle = (taken + refused) // 2
            if await _fate(sidecar, topic, middle, echo) is None:
                taken = middle
            else:
                refused = middle
    fault = f"over one of {size} bytes {fate}; it takes {taken} bytes and not {refused}"
    return bad(what, fault, f"Raise message_size_limit and max_packet_size (mosquitto's names) above {size + 1024}")


def _probe_bytes(plan: Plan, topic: str) -> int:
    """Payload on `topic` whose packet is not smaller than any that the sidecar will publish of a stream.

    Raises
    ------
    PayloadError
        A chunk or the description is longer than a message of ours may be.
    """
    sizes = [(meta_topic(*key), len(encode_meta(meta))) for key, meta in plan.metas.items()]
    for served, stream in plan.served.values():
        mechanism, values = stream.mechanism, np.zeros((len(served.names), served.n), np.float32)
        numbers = (MAX_U64, 2**32 - 1, 1.0, 1.0, values, mechanism.epsilon, mechanism.delta)  # at their full width
        sizes.append((private_topic(*served.key), len(encode_private(PrivateChunk(*numbers)))))
    return max(size + max(0, len(name) - len(topic)) for name, size in sizes)


class _Echo:
    """The probes that come back."""

    def __init__(self) -> None:
        self.is_there = True
        """Whether somebody hears what is published; taken to be so until it is known."""
        self.sizes: set[int] = set()
        self.marked = asyncio.Event()

    def hear(self, message: Message) -> None:
        """Note one message."""
        self.sizes.add(len(message.payload))
        if message.payload == _MARK:
            self.marked.set()


@contextlib.asynccontextmanager
async def listening(
    listeners: Iterable[tuple[Endpoint, Callable[[Message], None]]], filters: Iterable[str]
) -> AsyncIterator[None]:
    """Listen beside the body as each of these, who is given what comes; who is not let in hears nothing."""

    async def listen(who: Endpoint, deliver: Callable[[Message], None], ready: asyncio.Event) -> None:
        try:
            async with connect(who, client_id=probe_id(), deliver=deliver) as link:
                for topic_filter in filters:
                    with contextlib.suppress(LinkError):  # refused: the others may be granted
                        await link.subscribe(topic_filter, 1)
                ready.set()
                await asyncio.Event().wait()
        except LinkError:
            ready.set()  # the others must not wait for this one

    async with asyncio.TaskGroup() as group:
        started = [(group.create_task(listen(*one, ready)), ready) for one in listeners for ready in [asyncio.Event()]]
        for _, ready in started:
            await ready.wait()
        yield
        for task, _ in started:
            task.cancel()


async def _fate(sidecar: Endpoint, topic: str, size: int, echo: _Echo) -> str | None:
    """Publish a probe of `size` bytes and the mark after it: what became of it; None: nothing is wrong with it."""
    echo.sizes.clear()
    echo.marked.clear()
    try:
        async with asyncio.timeout(PROBE_SECONDS), connect(sidecar, client_id=probe_id(), deliver=echo.hear) as link:
            await link.publish(topic, bytes(size), qos=1)
            await link.publish(topic, _MARK, qos=1)
    except RefusedError as error:
        return f"it is refused: {str(error).partition(f'{topic}: ')[2]}"
    except LinkError as error:
        return str(error)
    except TimeoutError:
        return "there is no answer"
    if echo.is_there:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ECHO_SECONDS if size == len(_MARK) else PROBE_SECONDS):
                await echo.marked.wait()
        if size not in echo.sizes:
            return _DROPPED
    return None


async def owner_finding(sidecar: Endpoint, settings: Settings) -> Finding:
    """Look as the sidecar does before it starts.

    Parameters
    ----------
    sidecar
        Its login at the private broker.
    settings
        The configuration; its ledger says which statements are its own.
    """
    what = "private broker: no other sidecar states these devices, or has this name"
    former: Mapping[str, tuple[str, ...]] = {}
    name, ledger_id = settings.sidecar.name, secrets.token_bytes(16)
    try:
        reading = read_ledger(settings.sidecar.ledger, seal_by(settings.sidecar.ledger_key))
        ledger_id, former = reading.header.ledger_id, reading.former_ledgers
    except LedgerError:
        pass  # said by another check; every statement is then another's
    devices = [device.id for device in settings.device]
    owners = Ownership(name, ledger_id, devices, lambda: None, lambda device: former.get(device, ()))
    try:
        async with connect(sidecar, client_id=probe_id(), deliver=owners.deliver) as link:
            await owners.look(link)
            copy = await owners.find_copy()
    except UnseenError:
        remedy = "Let the sidecar read eyestream/v1/+/sidecar/owner and .../status, as private.acl of a deployment"
        return bad(what, "the sidecar cannot see what others state", remedy)
    except LinkError as error:
        return bad(what, str(error), "Start the broker; check its log")
    fault = owners.fault if copy in (None, name) else owners.copied_by(copy)  # our own name is this sidecar, at work
    return good(what) if fault is None else bad(what, fault, "A device belongs to one sidecar")
