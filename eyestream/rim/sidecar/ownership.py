"""A device belongs to one sidecar: who else on the private broker states one of ours, or has our name.

Every sidecar says, retained, which devices it serves and under which ledger. Two that serve the same device would each
release every chunk, and each ledger would know of half of what was spent. So a sidecar looks before it says its own,
and does not start when another one was there first; and it goes on looking, and releases nothing of a device for as
long as somebody else states it.

A sidecar that has stopped still owns its devices, as its ledger has what they spent. A device that was moved from its
ledger to ours is ours. A sidecar with our own ledger is this one before it had another name or, while it is online, one
with a copy of our ledger. Of two with one name the one that is online has it: what an earlier one retained is
overwritten.

A copy of a whole folder has our name and our ledger: what it states is what we stated before we were started again. So
it is asked. The words of a sidecar that does not exist, whose name has our ledger's, are a question, and who is at work
with that ledger states its own again.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Iterable

from eyestream.errors import PayloadError
from eyestream.rim.mqtt.transport import Link, Message, RefusedError
from eyestream.wire.messages import decode_status
from eyestream.wire.status import Owner, decode_owner, encode_owner
from eyestream.wire.topics import OWNER_FILTER, OWNER_LEAF, QOS, SIDECAR_STATUS_FILTER, owner_topic, sidecar_of

__all__ = ["Ownership"]

LOOK_SECONDS = 1.0
"""Wait for our own words to come back, which shows that others' would have."""

ANSWER_SECONDS = 1.0
"""Wait for the answer of a copy at work; only where the last that was said of our name is that it is at work."""

MOST_OTHERS = 10_000
"""Sidecars of a broker that are remembered; whoever may write there could invent more."""

_ASKED = 2
"""How often a copy must answer: what this sidecar said at the end of its last link may come late, once."""

_LOG = logging.getLogger("eyestream.owner")


class Ownership:
    """What is stated at a broker about our devices and our name.

    Parameters
    ----------
    name, ledger, devices
        Of this sidecar; `ledger` is its `ledger_name`.
    changed
        Called when `disputed` has changed.
    former_ledgers
        Gives, for a device, the names of ledgers that it was exported from: what their sidecars state of it is past.
    asked
        Called when somebody with our ledger looks around: it is owed our statement.
    """

    def __init__(
        self,
        name: str,
        ledger: str,
        devices: Iterable[str],
        changed: Callable[[], None],
        former_ledgers: Callable[[str], frozenset[str]] = lambda device: frozenset(),
        *,
        asked: Callable[[], None] = lambda: None,
    ) -> None:
        self._former_ledgers, self._asked = former_ledgers, asked
        self._name, self._own, self._changed = name, Owner(ledger, tuple(devices)), changed
        self._look = f"look-{ledger}-"
        self._others: dict[str, Owner] = {}
        self._offline = False  # whether the last that was said of our name is that it is offline
        self._online: set[str] = set()
        self._marker, self._marked = "", asyncio.Event()
        self._answered, self._copied = asyncio.Event(), False
        self._warned = False
        self._undisputed = asyncio.Event()
        self.disputed: frozenset[str] = frozenset()
        """Our devices that somebody else states."""

    @property
    def statement(self) -> tuple[str, bytes]:
        """Topic and payload of our own word."""
        return owner_topic(self._name), encode_owner(self._own)

    def deliver(self, message: Message) -> None:
        """Take what somebody states, an empty payload for nothing any more; what is no word of a sidecar is no word."""
        try:
            sidecar, leaf = sidecar_of(message.topic)
            if leaf != OWNER_LEAF:
                self._note_status(sidecar, message.payload)
            elif not message.payload:
                self._others.pop(sidecar, None)
                if sidecar == self._marker:
                    self._marked.set()
                elif sidecar.startswith(self._look):
                    self._asked()
            elif sidecar in self._others or len(self._others) < MOST_OTHERS:
                self._others[sidecar] = owner = decode_owner(message.payload)
                if sidecar == self._name and owner.ledger == self._own.ledger and not message.retain:
                    self._answered.set()
        except PayloadError:
            return
        self._weigh()

    def _note_status(self, sidecar: str, payload: bytes) -> None:
        offline = bool(payload) and decode_status(payload).state == "offline"
        if sidecar == self._name:
            self._offline = offline
        elif offline or not payload:
            self._online.discard(sidecar)
        elif len(self._online) < MOST_OTHERS:
            self._online.add(sidecar)

    def _rivals(self) -> dict[str, str]:
        """By device: who else states it."""
        found: dict[str, str] = {}
        for sidecar, other in self._others.items():
            if sidecar == self._name:
                if self._copied or (other.ledger != self._own.ledger and not self._offline):
                    found |= dict.fromkeys(self._own.devices, sidecar)
            elif other.ledger != self._own.ledger or sidecar in self._online:
                both = set(self._own.devices) & set(other.devices)
                found |= {device: sidecar for device in both if other.ledger not in self._former_ledgers(device)}
        return found

    def _weigh(self) -> None:
        disputed = frozenset(self._rivals())
        if disputed == self.disputed:
            return
        self.disputed = disputed
        if not disputed:
            self._undisputed.set()
        if (fault := self.fault) is not None:
            _LOG.error("%s; nothing of what is disputed is released", fault)
        else:
            _LOG.warning("nobody else states a device of ours any more")
        self._changed()

    @property
    def fault(self) -> str | None:
        """What is wrong, and what to do about it; None: nothing."""
        for device, sidecar in sorted(self._rivals().items()):
            if sidecar == self._name and self._copied:
                return (
                    f"[sidecar] name: {sidecar} is at work already, with a copy of this ledger, and neither ledger "
                    "would know what the other one's sidecar spends; stop one of them for good"
                )
            if sidecar == self._name:
                return f"[sidecar] name: another sidecar with another ledger is at work as {sidecar}; give each its own"
            if self._others[sidecar].ledger == self._own.ledger:
                return (
                    f"[[device]] {device}: the sidecar {sidecar} is at work with a copy of this ledger, and neither "
                    "ledger would know what the other one's sidecar spends; stop one of them for good"
                )
            return (
                f"[[device]] {device}: the sidecar {sidecar} states it, and its ledger has what it spent; move it "
                f"(eyestream budget --export there, --import here), or, when {sidecar} is gone for good and nothing of "
                f"its ledger is left, clear what is retained at {owner_topic(sidecar)}"
            )
        return None

    async def wait_for_name(self, wait_s: float) -> None:
        """Return when nobody else has our name, or after `wait_s` seconds: who has died is not yet said to be gone."""
        self._undisputed.clear()
        if self._name in self._rivals().values():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._undisputed.wait()

    async def listen(self, link: Link) -> bool:
        """Hear what is stated from now on; whether the broker lets us."""
        try:
            await link.subscribe_all([SIDECAR_STATUS_FILTER, OWNER_FILTER], QOS)
        except RefusedError as error:
            self._warn(str(error))
            return False
        return True

    async def look(self, link: Link) -> bool:
        """Hear all that is stated: words of a sidecar that does not exist come back after it. Whether they do."""
        self._marker = f"{self._look}{secrets.token_hex(8)}"
        self._marked.clear()
        if not await self.listen(link):
            return False
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await link.publish(owner_topic(self._marker), b"", qos=QOS)
                await self._marked.wait()
                return True
        except RefusedError as error:
            self._warn(str(error))
        except TimeoutError:
            self._warn("what is published there does not come back")
        return False

    async def find_copy(self, link: Link) -> bool:
        """Ask whether a copy of this sidecar is at work, while this one has no link of its own that would answer."""
        if self._name not in self._others or self._offline:
            return False
        with contextlib.suppress(TimeoutError):
            for _ in range(_ASKED):
                self._answered.clear()
                async with asyncio.timeout(ANSWER_SECONDS):
                    if not await self.look(link):
                        return False
                    await self._answered.wait()
            self._copied = True
            self._weigh()
        return self._copied

    def _warn(self, why: str) -> None:
        if not self._warned:
            _LOG.warning("nobody sees whether another sidecar states the same devices: %s; see private.acl", why)
        self._warned = True
