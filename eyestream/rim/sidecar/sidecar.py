"""The sidecar: raw rows in from one link, private chunks out through another, for many devices.

The two links are two connections even where there is one broker. The private one has a persistent session and a last
will, and a broker keeps messages for persistent sessions: raw rows must never be kept. Besides, the two have different
rights, and neither may stall the other.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable

from eyestream.privacy.mechanism import Mechanism
from eyestream.rim.buffer import DropOldest
from eyestream.rim.config import Settings
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message, Will
from eyestream.rim.sidecar.description import STREAM, device_settings, meta_of
from eyestream.rim.sidecar.outbox import Outbox
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline
from eyestream.rim.sidecar.reload import lowered_ceilings
from eyestream.rim.sidecar.sender import Sender
from eyestream.wire.messages import MAX_PAYLOAD_BYTES, Status, encode_meta, encode_status
from eyestream.wire.topics import meta_topic, raw_topic, sidecar_status_topic, status_topic

__all__ = ["Sidecar"]

_LOG = logging.getLogger("eyestream.sidecar")

GOODBYE_SECONDS = 3.0
"""At the end: wait for the broker to take what was released and our goodbye."""

_BATCH = 64
"""Messages that are treated together, at most: their reservations share one write to the disk."""

_STOPPED = encode_status(Status("offline", "stopped"))


class Sidecar:
    """One process's work; `run` does it until it is told to stop.

    Parameters
    ----------
    settings
        The configuration.
    mechanism
        Releases the chunks of every device; its calibration fits the stream.
    ledger
        Open, and ours alone.
    today
        Days since 1970, UTC: the host's clock, and the only use of it.

    Raises
    ------
    ConfigError
        A broker's settings cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        mechanism: Mechanism,
        ledger: Ledger,
        *,
        today: Callable[[], int],
    ) -> None:
        name, limits = settings.sidecar.name, settings.limits
        self.guarantee = mechanism.guarantee
        self.devices = tuple(device.id for device in settings.device)
        self._settings, self._mechanism, self._ledger = settings, mechanism, ledger
        self._own_topic = sidecar_status_topic(name)
        self._inbox: DropOldest[Arrival] = DropOldest(limits.raw_messages)
        self.outbox = Outbox(limits.released_chunks, limits.deadline_s)
        self.received = 0
        """Raw messages that came in: always those rejected, dropped from the inbox, taken, and still in the inbox."""
        self._sender = Sender(self.outbox)
        self._turned = asyncio.Event()
        self._asked = self._stopping = self._raw_stands = False
        self._waiting = self._fed = self._changed = False
        self._look_at = math.inf
        self.pipeline = Pipeline(
            device_settings(settings, mechanism.n),
            mechanism,
            ledger,
            today=today,
            publish=self._sender.post,
            changed=self._note_change,
        )
        self._raw = ReconnectingLink(
            Endpoint.of(settings.raw_broker),
            self._serve_raw,
            what="raw broker",
            client_id=f"{name}-raw",
            deliver=self._receive,
        )
        self._private = ReconnectingLink(
            Endpoint.of(settings.private),
            self._sender.serve,
            what="private broker",
            client_id=name,
            deliver=lambda message: None,
            clean_session=False,
            will=Will(self._own_topic, encode_status(Status("offline", "lost"))),
        )
        self._describe()
        self._say_status()

    @property
    def raw_stands(self) -> bool:
        """Whether the link to the raw broker is up."""
        return self._raw_stands

    @property
    def private_stands(self) -> bool:
        """Whether the link to the private broker is up."""
        return self._sender.stands

    @property
    def links(self) -> dict[str, int]:
        """Links that stood since the start, by side."""
        return {"raw": self._raw.links, "private": self._private.links}

    @property
    def inbox_held(self) -> int:
        """Raw messages that wait."""
        return len(self._inbox)

    @property
    def inbox_dropped(self) -> int:
        """Raw messages dropped because too many waited."""
        return self._inbox.dropped

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; then finish what is reserved, deliver it, say offline, and return."""
        async with asyncio.TaskGroup() as group:
            raw = group.create_task(self._raw.run(), name="raw link")
            devices = group.create_task(self._work(), name="devices")
            private = group.create_task(self._private.run(), name="private link")
            await stop.wait()
            raw.cancel()
            self._stopping = True
            self._inbox.wake()
            await devices
            self._sender.leave((topic, _STOPPED) for topic in self._status_topics())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS if self.private_stands else 0):
                    await private
        self._log_totals()

    async def pulse(self) -> None:
        """Return when the work on what arrives and falls due has come round once more: a sign of life."""
        self._turned.clear()
        self._asked = True  # a wake alone would be missed by a worker that is about to wait
        self._inbox.wake()
        await self._turned.wait()

    def tighten(self, settings: Settings) -> None:
        """Let the lower ceilings of another configuration hold from now on.

        Raises
        ------
        ConfigError
            It differs in anything else, or a ceiling is higher; nothing has changed.
        """
        self._ledger.lower(lowered_ceilings(self._settings, settings, self._mechanism.epsilon))
        self._settings = settings
        self._describe()

    def _describe(self) -> None:
        meta = encode_meta(meta_of(self._settings, self._mechanism))
        for device in self.devices:
            self._sender.say(meta_topic(device, STREAM), meta)

    def _receive(self, message: Message) -> None:
        """From the raw link, in the event loop: bounded in number and size, and nothing retained is a live row."""
        self.received += 1
        if len(message.payload) > MAX_PAYLOAD_BYTES:
            self.pipeline.counters.rejected["oversize"] += 1
        elif message.retain:
            self.pipeline.counters.rejected["retained"] += 1
        else:
            loop = asyncio.get_running_loop()
            arrival = Arrival(message.topic, message.payload, loop.time())
            if self._waiting and not self._fed and not self._inbox:  # nothing is before it: no detour
                self._fed = True  # one in a turn of the loop; in a flood the others queue up
                self.pipeline.feed(arrival)
                loop.call_soon(self._go_on)
            else:
                self._inbox.put(arrival)

    def _go_on(self) -> None:
        """After a message that was treated as it came: wake the worker if there is more to do than to wait."""
        self._fed = False
        due = self.pipeline.next_due()
        if self._inbox or self.pipeline.waits or (due is not None and due < self._look_at):
            self._inbox.wake()

    async def _serve_raw(self, link: Link) -> None:
        try:
            for device in self.devices:  # at QoS 1 mosquitto 2.0 counts what it drops as under way, and falls silent
                await link.subscribe(raw_topic(device, STREAM), 0)
            self._raw_stands = True
            self._say_status()
            await asyncio.Event().wait()
        finally:
            self._raw_stands = False
            self._say_status()

    async def _work(self) -> None:
        """Take what arrives and what the clock makes due, in batches, until we stop."""
        loop = asyncio.get_running_loop()
        while not self._stopping:
            if not self._inbox and not self._asked:
                due = self.pipeline.next_due()
                self._waiting, self._look_at = True, math.inf if due is None else due
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        await self._inbox.wait()
                self._waiting = False
            self._asked = False
            await self.pipeline.take(self._inbox.take_most(_BATCH), loop.time())
            self._turned.set()
            await asyncio.sleep(0)  # a flood of messages leaves the links their turn
        self.pipeline.close(loop.time())

    def _note_change(self) -> None:
        """The status of a device has changed, perhaps of a thousand at once: say all of them once in this turn."""
        if not self._changed:
            self._changed = True
            asyncio.get_running_loop().call_soon(self._say_status)

    def _say_status(self) -> None:
        """State of the sidecar and of each device: a fault of the chunks weighs more than one of the raw link."""
        self._changed = False
        if self._stopping:  # the goodbye is all that is left to say
            return
        link = Status("online", "ready") if self._raw_stands else Status("degraded", "raw_link")
        worst = link
        for device in self.devices:
            status = self.pipeline.status(device)
            if status.state == "online":
                status = link
            elif status.state == "degraded":
                worst = status
            self._sender.say(status_topic(device, STREAM), encode_status(status))
        self._sender.say(self._own_topic, encode_status(worst))

    def _status_topics(self) -> list[str]:
        return [*(status_topic(device, STREAM) for device in self.devices), self._own_topic]

    def _log_totals(self) -> None:
        counters = self.pipeline.counters
        _LOG.info(
            "stopped: %d messages taken, %d rejected, %d dropped; %d chunks due, %d released, %d withheld, %d dropped; "
            "%d delivered, %d undelivered",
            counters.taken,
            counters.rejected.total(),
            self._inbox.dropped,
            counters.due,
            counters.released,
            counters.withheld.total(),
            counters.dropped.total(),
            self.outbox.delivered,
            counters.released - self.outbox.delivered,
        )
