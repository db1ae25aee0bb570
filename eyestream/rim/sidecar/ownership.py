"""Ownership of devices: does another sidecar of the private broker state one of ours, our name or our ledger?

Every sidecar publishes a retained statement, its word: its devices and a name of its ledger. Two sidecars of a device
would each release every chunk, and each ledger would know half of what was spent. So a sidecar looks before it
publishes its word, and does not start when another one states one of its devices. At work it goes on looking, and
releases nothing of a device for as long as another one states it.

- A sidecar that has stopped still owns its devices, as its ledger has what they spent.
- A device that was moved from another ledger to ours is ours.
- A word with our own ledger is ours, of an earlier start or name.
- Of two sidecars with one name, the one that is online has it, and overwrites what the other one retained.

Whoever may write at the broker can state anything. So the words of others withhold chunks, and keep a sidecar from
starting, but end none that is at work. A copy of our ledger ends it, and has to prove that it is a copy: we ask with a
random number, and it answers with a hash of this number under a key that is made of the ledger's secret.

The private link is the lease of a ledger. Its client id is made of that secret too, so a broker lets one link of a
ledger stand. A copy that connects ends our link, and what we write afterwards reaches nobody. So a sidecar asks before
each of its private links, however the one before was lost. No clock has to notice that it was stopped meanwhile.
docs/decisions/0019 has the reasons.
"""

import asyncio
import contextlib
import hmac
import logging
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Container, Iterable, Set
from functools import partial

from eyestream.errors import ConfigError, LinkError, PayloadError
from eyestream.rim.ledger.identity import ledger_name, presence_key, presence_proof
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Link, Message, RefusedError, connect
from eyestream.rim.refusals import AGAIN_S
from eyestream.wire.status import (
    Owner,
    Presence,
    decode_owner,
    decode_presence,
    decode_status,
    encode_owner,
    encode_presence,
)
from eyestream.wire.topics import OWNER_FILTER, OWNER_LEAF, QOS, owner_topic, sidecar_of, sidecar_status_topic

QUIET_SECONDS = 3.0
"""Wait for our own question to come back, which shows that all that is stated was heard; from the last message on."""

LOOK_SECONDS = 60.0
"""Wait for it in all: what goes on for longer has no end."""

ANSWER_SECONDS = 1.0
"""Wait for the proof of a copy at work."""

MOST_STATED = 100_000
"""Devices of ours in words of others that are remembered by sidecar: those of more words stay disputed."""

MOST_ANSWERS = 64
"""Answers that may be under way: whoever may write there could ask without end."""

_HEARD_QOS = 0
"""QoS of the subscription. At 1 mosquitto drops retained messages above `max_queued_messages`, and our question comes
back all the same: we would believe that we have heard all."""

_NONCE = re.compile("[0-9a-f]{26}", re.ASCII)

_LOG = logging.getLogger("eyestream.owner")


class UnseenError(LinkError):
    """The statements of others at the broker cannot be heard to their end."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"cannot see whether another sidecar states the same devices, and does not start without: {why}. Let the "
            "sidecar read and write eyestream/v1/+/sidecar/owner and read eyestream/v1/+/sidecar/status, as "
            "private.acl of a deployment does"
        )


class _Disputes:
    """Tells the operator of disputes: the first and its end at once, afterwards at most two lines in `AGAIN_S`.

    Changes in between are counted. When the time is over, one line says how it is by then. `fault` is asked what is
    wrong, and gives None where nothing is.
    """

    def __init__(self, fault: Callable[[], str | None]) -> None:
        self._fault = fault
        self._said: deque[float] = deque(maxlen=2)
        self._changes, self._waits = 0, False

    def note(self) -> None:
        """A dispute has begun or ended; in the event loop."""
        self._changes += 1
        if self._waits:
            return
        loop = asyncio.get_running_loop()
        if len(self._said) == 2 and loop.time() < self._said[0] + AGAIN_S:
            self._waits = True
            loop.call_at(self._said[0] + AGAIN_S, self._say)
        else:
            self._say()

    def _say(self) -> None:
        self._said.append(asyncio.get_running_loop().time())
        more = f" ({self._changes} changes since it was last said)" if self._changes > 1 else ""
        self._changes, self._waits = 0, False
        fault = self._fault()
        if fault is None:
            _LOG.warning("nobody else states a device of ours or is at work under our name any more%s", more)
        else:
            _LOG.error("%s; nothing of what is disputed is released%s", fault, more)


class Ownership:
    """Statements at a broker about our devices and our name.

    Parameters
    ----------
    name, devices
        Of this sidecar.
    ledger_id
        The id of its ledger, a secret.
    changed
        Called when `disputed` has changed.
    former_ledgers
        Gives, for a device, the names of ledgers that it was exported from: what their sidecars state of it is past.
    """

    def __init__(
        self,
        name: str,
        ledger_id: bytes,
        devices: Iterable[str],
        changed: Callable[[], None],
        former_ledgers: Callable[[str], Container[str]] = lambda device: (),
    ) -> None:
        self._former_ledgers, self._changed = former_ledgers, changed
        self._name, self._own, self._key = name, Owner(ledger_name(ledger_id), tuple(devices)), presence_key(ledger_id)
        self._devices = frozenset(self._own.devices)
        self._question_prefix = f"look-{self._own.ledger}-"
        self._words: dict[str, frozenset[str]] = {}  # by sidecar: devices of ours that it states
        self._rivals: dict[str, set[str]] = {}  # by device of ours: who else states it; "" is not remembered
        self._remembered = 0
        self._usurped = False  # whether another ledger's sidecar has stated our name
        self._offline = False  # whether the last that was said of our name is that it is offline
        self._stated = self._namesake = False  # whether our ledger stands in words of our name, and of another one
        self._heard, self._nonce = 0, ""
        self._marked, self._proved, self._name_free = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._copy: str | None = None
        self._link: Link | None = None
        self._answering = 0
        self._disputes = _Disputes(lambda: self.fault)
        self.disputed: Set[str] = self._rivals.keys()
        """Our devices that somebody else states; it changes."""

    @property
    def statement(self) -> tuple[str, bytes]:
        """Topic and payload of our own word."""
        return owner_topic(self._name), encode_owner(self._own)

    def deliver(self, message: Message) -> None:
        """Take a message about a sidecar. An empty payload takes its word back; one that cannot be read is ignored."""
        self._heard += 1
        try:
            sidecar, leaf = sidecar_of(message.topic)
            if leaf != OWNER_LEAF:
                self._note_status(sidecar, message.payload)
            elif sidecar.startswith(self._question_prefix):
                self._note_question(sidecar.removeprefix(self._question_prefix), message.payload)
            else:
                self._note_word(sidecar, decode_owner(message.payload) if message.payload else None)
        except PayloadError:
            return

    def _note_status(self, sidecar: str, payload: bytes) -> None:
        if sidecar == self._name:
            self._offline = bool(payload) and decode_status(payload).state == "offline"
            self._weigh_name()

    def _note_question(self, nonce: str, payload: bytes) -> None:
        """Hear our own question come back, answer that of another one with our ledger, or look at an answer to ours."""
        if not payload:
            if nonce == self._nonce:
                self._marked.set()
            elif _NONCE.fullmatch(nonce):
                self._answer(nonce)
        elif nonce == self._nonce:
            presence = decode_presence(payload)
            if hmac.compare_digest(presence_proof(self._key, nonce, presence.sidecar), presence.proof):
                self._copy = presence.sidecar
                self._proved.set()

    def _answer(self, nonce: str) -> None:
        if self._link is None or self._answering >= MOST_ANSWERS:
            return
        answer = Presence(self._name, presence_proof(self._key, nonce, self._name))
        settled = partial(self._settle, self._link)
        try:
            topic = owner_topic(f"{self._question_prefix}{nonce}")
            self._link.send(topic, encode_presence(answer), settled, lambda why: settled())
        except LinkError:
            return  # the link is lost, and the task that serves it is about to learn that
        self._answering += 1

    def _settle(self, link: Link) -> None:
        if link is self._link:
            self._answering -= 1

    def _note_word(self, sidecar: str, word: Owner | None) -> None:
        ours = word is not None and word.ledger == self._own.ledger
        if sidecar == self._name:
            self._stated, self._usurped = ours, word is not None and not ours
            self._weigh_name()
        elif word is None or ours:
            self._namesake = self._namesake or ours
            self._remember(sidecar, frozenset())
        else:
            both = self._devices.intersection(word.devices)
            self._remember(sidecar, frozenset(d for d in both if word.ledger not in self._former_ledgers(d)))

    def _remember(self, sidecar: str, stated: frozenset[str]) -> None:
        """Replace what `sidecar` states of our devices."""
        known, before = self._words.pop(sidecar, frozenset()), len(self._rivals)
        self._remembered -= len(known)
        if self._remembered + len(stated) > MOST_STATED:
            # Too much to remember. A flood must not hide a rival, so these devices stay disputed until the next start.
            by, gone = "", known
        else:
            by, gone = sidecar, known - stated
            self._remembered += len(stated)
            if stated:
                self._words[sidecar] = stated
        come = [device for device in stated if device not in self._rivals]
        for device in stated:
            self._rivals.setdefault(device, set()).add(by)
        for device in gone:
            self._rivals[device].discard(sidecar)
        free = [device for device in gone if not self._rivals[device]]
        for device in free:
            del self._rivals[device]
        if come or free:
            if not before or not self._rivals:  # the log has the first device and the last; the status tells of each
                self._disputes.note()
            self._changed()

    def _weigh_name(self) -> None:
        """Dispute all devices while another ledger's sidecar is at work under our name."""
        taken = self._usurped and not self._offline
        if taken == (self.disputed is self._devices):
            return
        if taken:
            self.disputed = self._devices
            self._name_free.clear()
        else:
            self.disputed = self._rivals.keys()
            self._name_free.set()
        self._disputes.note()
        self._changed()

    @property
    def fault(self) -> str | None:
        """The conflict with the statements of others, and what to do about it; None: there is none."""
        if self.disputed is self._devices:
            return f"[sidecar] name: another sidecar with another ledger is at work as {self._name}; give each its own"
        if not self._rivals:
            return None
        device = min(self._rivals)
        sidecar = min(self._rivals[device]) or "one of very many"
        return (
            f"[[device]] {device}: the sidecar {sidecar} states it, and its ledger has what it spent; move it "
            f"(eyestream budget --export there, --import here), or, when {sidecar} is gone for good and nothing of "
            f"its ledger is left, clear what is retained at eyestream/v1/{sidecar}/sidecar/owner"
        )

    def copied_by(self, sidecar: str) -> str:
        """Advice on a copy of our ledger that is at work under the name `sidecar`."""
        return (
            f"[sidecar] name: {sidecar} is at work already, with a copy of this ledger, and neither ledger would know "
            "what the other one's sidecar spends; stop one of them for good"
        )

    async def ask_around(self, endpoint: Endpoint, *, name_wait_s: float | None) -> None:
        """Look whose our devices are, and whether a copy is at work, on a link that takes nobody's place.

        Parameters
        ----------
        endpoint
            The private broker.
        name_wait_s
            Before the first private link: wait so many seconds for our name, as who has died is not yet said to be
            gone. None: a link was lost, and what others state ends nobody who is at work.

        Raises
        ------
        ConfigError
            A copy of our ledger is at work; before the first link also: others state our name or one of our devices.
        LinkError
            The question was not asked, or its answers could not be heard: nobody knows.
        """
        async with connect(endpoint, client_id=None, deliver=self.deliver) as link:
            await self.look(link)
            if name_wait_s is not None and self.disputed is self._devices:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(name_wait_s):
                        await self._name_free.wait()
            copy = await self.find_copy(at_work=name_wait_s is None)
        if copy is not None:
            raise ConfigError(self.copied_by(copy))
        if name_wait_s is not None and self.fault is not None:
            raise ConfigError(self.fault)

    @contextlib.asynccontextmanager
    async def answering(self, link: Link) -> AsyncIterator[None]:
        """Hear what is stated, and answer who asks, while the body runs. Raises as `look`."""
        await self._subscribe(link)
        self._link, self._answering = link, 0
        try:
            yield
        finally:
            self._link = None

    async def _subscribe(self, link: Link) -> None:
        try:
            await link.subscribe_all([sidecar_status_topic(self._name), OWNER_FILTER], _HEARD_QOS)
        except RefusedError as error:
            raise UnseenError(str(error)) from None

    async def look(self, link: Link) -> None:
        """Hear all that is stated, and ask for a copy: the question comes back after what was there before it.

        Raises
        ------
        UnseenError
            The broker does not let us, or the question does not come back.
        LinkError
            The link is lost.
        """
        self._nonce, self._copy = secrets.token_hex(13), None
        self._marked.clear()
        self._proved.clear()
        await self._subscribe(link)
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await link.publish(owner_topic(f"{self._question_prefix}{self._nonce}"), b"", qos=QOS)
                await self._wait_for_marker()
        except RefusedError as error:
            raise UnseenError(str(error)) from None
        except TimeoutError:
            raise UnseenError("what is published there does not come back in time") from None

    async def _wait_for_marker(self) -> None:
        """Wait for as long as something comes: a broker may have much to hand over."""
        while not self._marked.is_set():
            heard = self._heard
            try:
                async with asyncio.timeout(QUIET_SECONDS):
                    await self._marked.wait()
            except TimeoutError:
                if heard == self._heard:
                    raise

    async def find_copy(self, *, at_work: bool = False) -> str | None:
        """After `look`, while its link stands: name of a sidecar that has proved to be at work with our ledger.

        Who was `at_work` waits for an answer. Who begins waits where our ledger stands in words of another name, or of
        ours without a goodbye. That can be forged. Then a copy begins: the first one loses its link to it, and asks.
        """
        if self._copy is None and (at_work or self._namesake or (self._stated and not self._offline)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._proved.wait()
        return self._copy
