"""The sidecar: raw rows in from one link, private chunks out through another, for many devices.

The two links are two connections even where there is one broker: the private one has a last will, the two have
different rights, and neither may stall the other. Both have clean sessions, so a broker keeps nothing for us: raw rows
must never be kept, and what was released is kept by the outbox. Their client ids are secrets of the ledger: who knew
one could take the link's place. That of the private link is the same for every copy of the ledger, whatever its name,
and what comes in is taken only after the first private link stands: what a copy released was released before.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from eyestream.core.remaining import Left
from eyestream.core.wearers import MOST_WEARERS
from eyestream.errors import ConfigError
from eyestream.rim.ledger.identity import client_id, ledger_name, wearer_number
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message, Will
from eyestream.rim.plan import Plan
from eyestream.rim.sidecar.boards import LAST_WILL, BudgetBoard, Odometers, StatusBoard
from eyestream.rim.sidecar.moments import Moments
from eyestream.rim.sidecar.off import Off, pause_of
from eyestream.rim.sidecar.ownership import Ownership
from eyestream.rim.sidecar.pipeline import Pipeline
from eyestream.rim.sidecar.sender import Outbox, Sender
from eyestream.rim.sidecar.spending import SpendingLedger
from eyestream.rim.sidecar.wearing import Wearing
from eyestream.rim.sidecar.worker import Worker
from eyestream.streams import StreamKey
from eyestream.wire.release import claim_hash, encode_meta
from eyestream.wire.topics import RAW_QOS, meta_topic, private_topic, raw_topic

if TYPE_CHECKING:
    from eyestream.rim.sidecar.source_runner import SourceRunner
    from eyestream.rim.sources.source import Feeder, Source

_LOG = logging.getLogger("eyestream.sidecar")

GOODBYE_SECONDS = 3.0
"""At the end: wait for the broker to take what was released and our goodbye."""

WILL_DELAY_SECONDS = 5
"""A link that is back within this time was never "lost" to applications, where the broker speaks MQTT 5."""

AGAIN_SECONDS = (1.0, 10.0)
"""Republish the sidecar's own status this many seconds after connecting: soon, and once more for a slow broker."""

DISPUTE_SECONDS = 0.2
"""Disputed devices are withheld at once, and their status is published after this time."""


class RawLink(ReconnectingLink):
    """The link to the raw broker, for the streams that no source of ours serves.

    Parameters
    ----------
    endpoint, client_id, deliver
        As for `ReconnectingLink`.
    keys
        The streams that come over it.
    changed
        Called when the link begins or ceases to stand.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        client_id: str,
        keys: Sequence[StreamKey],
        deliver: Callable[[Message], None],
        changed: Callable[[], None],
    ) -> None:
        super().__init__(endpoint, self._hear, what="raw broker", client_id=client_id, deliver=deliver)
        self._keys, self._changed = keys, changed
        self.stands = False

    async def _hear(self, link: Link) -> None:
        try:
            filters = [raw_topic(*key) for key in self._keys]
            await link.subscribe_all(filters, RAW_QOS)
            self.stands = True
            self._changed()
            await asyncio.Event().wait()  # messages go to `deliver`; a lost link, or the end, cancels this wait
        finally:
            self.stands = False
            self._changed()


class Sidecar:
    """One process's work; `run` does it until it is asked to stop.

    Parameters
    ----------
    plan
        What the configuration says, resolved.
    ledger
        Open, and ours alone.
    today
        Days since 1970, UTC: the host's clock, and the only use of it.
    sources
        What serves a stream in this process, by its key; all others come from the raw broker.
    ledger_id
        The id of the ledger, a secret.
    former_ledgers
        Gives, for a device, the names of the ledgers that it was exported from before it came to ours, in order.
    beside
        The ledger beside which a pause is remembered (`eyestream.rim.sidecar.off`); None: none is.

    Attributes
    ----------
    pipeline, worker, outbox : its parts, to be read for metrics.
    off : the wearer's switch.
    wearing : who wears each device, by the runtime's word.

    Raises
    ------
    ConfigError
        A broker's settings cannot be used.
    """

    def __init__(
        self,
        plan: Plan,
        ledger: SpendingLedger,
        *,
        today: Callable[[], int],
        sources: "Mapping[StreamKey, Source | Feeder]" = MappingProxyType({}),
        ledger_id: bytes,
        former_ledgers: Callable[[str], Sequence[str]],
        beside: Path | None = None,
    ) -> None:
        settings = plan.settings
        name, limits = settings.sidecar.name, settings.limits
        self._plan, self._id, self._former = plan, ledger_id, former_ledgers
        self._numbers: dict[tuple[str, str], int] = {}
        self.outbox = Outbox(limits.released_chunks, limits.deadline_s)
        self._sender = Sender(self.outbox)
        self._moments = Moments(self._say_rest)
        self.pipeline = Pipeline(
            [(device, stream.mechanism) for device, stream in plan.served.values()],
            ledger,
            today=today,
            publish=self._publish,
            changed=self._note_change,
            over=self._say_rest,
            hold=self._moments.hold,
            levels=settings.budget.levels,
            number=self.number,
        )
        odometers = {key.device: ledger.odometer(key.device) for key in self.pipeline.keys}
        self._known = {device: frozenset(one.wearers if one else ()) for device, one in odometers.items()}
        self.worker = Worker(self.pipeline, limits.raw_messages)
        pause = None if beside is None else pause_of(beside)
        self.pipeline.paused, self.pipeline.resumed = pause == "paused", pause == "resumed"
        self.wearing = Wearing(
            beside,
            dict.fromkeys(key.device for key in self.pipeline.keys),
            number=self.number,
            switch=self._switch,
            come_round=self.pulse,
            wear=self.pipeline.wear,
        )
        self.pipeline.worn = self.wearing.remembered()
        self.off = Off(beside, halt=self._halt, come_round=self.pulse, go=self._go)
        self._status = StatusBoard(name, self.pipeline.keys, self._sender.retain)
        self._budgets = BudgetBoard(
            plan,
            condition=self.pipeline.condition,
            spent=self.pipeline.spent,
            today=today,
            odometers=Odometers(ledger_id, former_ledgers),
            say=self._sender.retain_after_chunks,
        )
        self._device_of = {private_topic(*key): key.device for key in self.pipeline.keys}
        self._leaving = self._status_is_due = self._dispute_is_due = False
        from_broker = [key for key in self.pipeline.keys if key not in sources]
        self._raw = (
            RawLink(
                Endpoint.of(settings.raw_broker),
                client_id(ledger_id, f"raw {name}"),
                from_broker,
                self.worker.receive,
                self._note_change,
            )
            if from_broker
            else None
        )
        self._sources = self._runner_of(sources)
        self._owners = Ownership(
            name,
            ledger_id,
            dict.fromkeys(key.device for key in self.pipeline.keys),
            self._note_dispute,
            former_ledgers,
        )
        self._private = ReconnectingLink(
            Endpoint.of(settings.private),
            self._serve_private,
            what="private broker",
            client_id=client_id(ledger_id, "private"),
            deliver=self._owners.deliver,
            clean_session=True,  # nothing to keep; and in a kept session the outbox would have to resend with
            # the DUP flag under the old packet ids (3.3.1-1, 4.4.0-1). In a new one its bytes are a new message.
            will=Will(self._status.own_topic, LAST_WILL, WILL_DELAY_SECONDS),
            before=self._ask_around,  # a copy has our client id, and the broker lets each take the other's place
        )
        self._owned = asyncio.Event()
        self._sender.retain(*self._owners.statement)  # first: who has our name learns that before our status
        self._describe(plan)
        self._say_status()

    def _runner_of(self, sources: "Mapping[StreamKey, Source | Feeder]") -> "SourceRunner | None":
        """The runner of this process' sources; None where all rows come from the raw broker."""
        if not sources:
            return None
        from eyestream.rim.sidecar.source_runner import SourceRunner  # noqa: PLC0415  for who has a source

        return SourceRunner(sources, self.worker.receive_rows, self._note_change, lambda: self.pipeline.paused)

    @property
    def raw_stands(self) -> bool:
        """Whether the link to the raw broker is up, if one is needed."""
        return self._raw is None or self._raw.stands

    @property
    def private_stands(self) -> bool:
        """Whether the link to the private broker is up."""
        return self._sender.stands

    @property
    def left(self) -> Mapping[StreamKey, Left]:
        """The rest of each stream's budget, live, as applications read it."""
        return self._budgets.left

    @property
    def feeders(self) -> "dict[StreamKey, Feeder]":
        """The feeders that make rows of gaze in this process, by stream: for the log alone."""
        return {} if self._sources is None else self._sources.feeders

    @property
    def gaze(self) -> tuple[int, int, int]:
        """Samples that came of all sources, messages that they refused, and samples whose time cannot be true."""
        links = {id(feeder.link): feeder for feeder in self.feeders.values()}.values()
        return (
            sum(feeder.heard for feeder in links),
            sum(feeder.refused for feeder in links),
            sum(feeder.untimed for feeder in links),
        )

    def is_read(self, key: StreamKey) -> bool:
        """Whether rows or gaze of a stream would be read if its tracker sent them: for the log alone."""
        reads = self._sources is None or self._sources.is_read(key)
        return reads and self.raw_stands and not self.pipeline.paused

    @property
    def unread(self) -> int:
        """Messages that a pause dropped."""
        return self.worker.paused + (0 if self._sources is None else self._sources.unheard)

    @property
    def links(self) -> dict[str, int]:
        """Links that stood since the start, by side."""
        return {"raw": 0 if self._raw is None else self._raw.links, "private": self._private.links}

    @property
    def cut(self) -> dict[str, int]:
        """Messages that were too large, or whose properties or topic could not be read, by side."""
        return {"raw": 0 if self._raw is None else self._raw.cut, "private": self._private.cut}

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set; then finish what is reserved, deliver it, say offline, and return.

        Raises
        ------
        ConfigError
            Another sidecar was there first, with one of our devices or with our name.
        """
        try:
            await self._run(stop)
        except BaseExceptionGroup as errors:
            refused = errors.subgroup(ConfigError)
            if refused is None:
                raise
            raise ConfigError(str(refused.exceptions[0])) from None
        finally:
            await self.off.end()
        self._log_totals()

    async def _run(self, stop: asyncio.Event) -> None:
        await self.off.begin(paused=self.pipeline.paused)
        async with asyncio.TaskGroup() as group:
            inputs = [
                group.create_task(self._once_owned(rows.run), name=name)
                for name, rows in (("sources", self._sources), ("raw link", self._raw))
                if rows is not None
            ]
            work = group.create_task(self.worker.run(), name="streams")
            private = group.create_task(self._private.run(), name="private link")
            await stop.wait()
            # In this order: no more rows, then the end of every session, then what that released, then the goodbye. The
            # private link stands until the last, because only over it released bytes and the goodbye get out.
            for task in inputs:
                task.cancel()
            self._leaving = True
            self.worker.stop()
            await work
            self._moments.leave_all()
            self._sender.leave(self._status.goodbye())
            self._private.leave()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS if self._private.links else 0):
                    await private

    async def _ask_around(self) -> None:
        """Ask whose the devices are; before the first link, wait for a name whose sidecar has died."""
        first = self._private.links == 0
        await self._owners.ask_around(
            Endpoint.of(self._plan.settings.private),
            name_wait_s=WILL_DELAY_SECONDS + GOODBYE_SECONDS if first else None,
        )

    async def _once_owned(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run an input when the devices are ours: rows from before are in what a copy released, perhaps."""
        await self._owned.wait()
        await run()

    def _note_dispute(self) -> None:
        self.pipeline.disputed = self._owners.disputed
        if not self._dispute_is_due:  # soon, and not with the next rows: a flood of words would state all in each turn
            self._dispute_is_due = True
            asyncio.get_running_loop().call_later(DISPUTE_SECONDS, self._say_dispute)

    def _say_dispute(self) -> None:
        self._dispute_is_due = False
        self._say_status()

    def _halt(self) -> None:
        if not self.pipeline.paused:
            self.worker.pause()
            self._cut()  # gaze that a front end holds is not released, and so lost like the rest
            self._moments.leave_all()  # to `_publish`, which drops them
            self.outbox.pause()
            self._budgets.note_all()
            self._note_change()

    def _go(self) -> None:
        if self.pipeline.paused:
            self._cut()  # what was seen before now may still be on its way
            self.pipeline.resume(asyncio.get_running_loop().time())
            self._note_change()

    def _switch(self, device: str) -> int:
        switch = self.pipeline.switch(device, asyncio.get_running_loop().time())
        self._cut(device)
        self._budgets.note(device)
        self._note_change()
        return switch

    def _cut(self, device: str | None = None) -> None:
        if self._sources is not None:
            self._sources.cut(device)

    def number(self, device: str, handle: str) -> int:
        """The number of a wearer of a device; that of a message itself where a ledger has it from an older version."""
        number = self._numbers.get((device, handle))
        if number is None:
            first = next(iter(self._former(device)), ledger_name(self._id))
            is_old = handle.isdecimal() and int(handle) in self._known[device]
            number = int(handle) if is_old else wearer_number(first, device, handle)
            if len(self._numbers) < MOST_WEARERS:
                self._numbers[device, handle] = number
        return number

    def _publish(self, topic: str, payload: bytes) -> None:
        """The chunk, for which somebody waits; what it leaves of the budget is said with the rest of the turn."""
        if self.pipeline.paused:  # its noise was drawn, and it has not left
            self.outbox.paused += 1
            return
        self._sender.post(topic, payload)
        self._budgets.note(self._device_of[topic])

    def _say_rest(self) -> None:
        """After the chunks of a turn, and before anything that depends on rows: statuses, then what is left."""
        if self._status_is_due:
            self._say_status()
        self._budgets.say_due()

    async def pulse(self) -> None:
        """Return when the work on what arrives and falls due has come round once more: a sign of life."""
        await self.worker.pulse()

    def take_over(self, plan: Plan) -> None:
        """Tell applications of lower ceilings; all else of `plan` is as it was."""
        self._plan = plan
        self._budgets.take_over(plan)
        self._describe(plan)

    def _describe(self, plan: Plan) -> None:
        for key, meta in plan.metas.items():
            self._sender.retain(meta_topic(*key), encode_meta(meta))
            self._sender.claims[private_topic(*key)] = claim_hash(meta.guarantee)

    async def _serve_private(self, link: Link) -> None:
        """Serve; some time into the link, state again what a last will of the link before it may have overwritten.

        A broker of many threads may take our new status first and publish that will after it.
        """
        loop, own = asyncio.get_running_loop(), self._status.own_topic
        if self._private.links > 1:
            self._budgets.begin_life()
        again = [loop.call_later(after_s, self._sender.resend, own) for after_s in AGAIN_SECONDS]
        try:
            async with self._owners.answering(link):
                self._owned.set()
                await self._sender.serve(link)
        finally:
            for timer in again:
                timer.cancel()

    def _note_change(self) -> None:
        """The condition of a stream has changed, perhaps of a thousand at once: say all of them once in this turn."""
        if not self._status_is_due:
            self._status_is_due = True
            asyncio.get_running_loop().call_soon(self._say_rest)

    def _say_status(self) -> None:
        self._status_is_due = False
        if not self._leaving:  # then the goodbye is all that is left to say
            self._status.update(
                stands=lambda key: self.raw_stands and (self._sources is None or self._sources.stands(key)),
                ledger=not self.pipeline.failed,
                condition=self.pipeline.condition,
                paused=self.pipeline.paused,
            )
            self._budgets.note_changes()

    def _log_totals(self) -> None:
        counters = self.pipeline.counters
        _LOG.info(
            "stopped: %d messages taken, %d rejected, %d dropped; %d chunks due, %d released, %d withheld, %d dropped; "
            "%d delivered, %d undelivered",
            counters.taken,
            counters.rejected.total() + (0 if self._sources is None else self._sources.refused),
            self.worker.dropped,
            counters.due,
            counters.released,
            counters.withheld.total(),
            counters.dropped.total(),
            self.outbox.delivered,
            counters.released - self.outbox.delivered,
        )
