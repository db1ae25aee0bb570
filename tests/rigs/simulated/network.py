"""Virtual time, links and brokers: an event loop whose clock jumps to what is due next, and MQTT 5 without a socket."""

import asyncio
import contextvars
import functools
import random
from asyncio import base_events
from collections.abc import Callable
from typing import Any

from tests.rigs.simulated.disk import Killed

__all__ = ["PROCESS", "Broker", "Link", "Process", "VirtualLoop"]


class Process:
    """What a link or a call to the disk belongs to. One that is gone does nothing any more."""

    def __init__(self, killed: Callable[[], None]) -> None:
        self.alive, self.links, self.killed = True, list["Link"](), killed


PROCESS: contextvars.ContextVar[Process] = contextvars.ContextVar("process")


_MOST_TURNS = 10_000
"""Turns of the loop in one moment: some hundreds are what a burst takes."""


class VirtualLoop(base_events.BaseEventLoop):
    """A loop for which no time passes but that for which everybody waits.

    Attributes
    ----------
    ports : who listens, by path.
    disk_s : how long a call to the disk takes.
    """

    def __init__(self, luck: random.Random) -> None:
        super().__init__()
        self._selector = self
        self._now, self._turns = 1000.0, 0
        self.ports: dict[str, Broker] = {}
        self.disk_s = luck.choice([0.0, 0.001, 0.001, 0.3])
        self.faults: list[str] = []
        self.set_exception_handler(self._note)

    def _note(self, loop: object, context: dict[str, Any]) -> None:
        if not isinstance(error := context.get("exception"), Killed | asyncio.CancelledError):
            self.faults.append(f"{context['message']}: {error!r}")

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing will ever happen")
        self._turns = 0 if self._now + timeout > self._now else self._turns + 1
        if self._turns > _MOST_TURNS:
            for task in asyncio.all_tasks(self):  # so that the world can be closed
                task.cancel()
            self._turns = 0
            raise RuntimeError("somebody asks again and again, and no time passes")
        self._now += timeout
        return []

    def advance(self, seconds: float) -> None:
        """Somebody sleeps, and the loop does not turn."""
        self._now += seconds

    def _process_events(self, events: object) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(self, executor: object, function: Callable[..., Any], *given: Any) -> Any:  # type: ignore[override]
        """A thread, which takes its time before and after what it does."""
        answer, process = self.create_future(), PROCESS.get()

        def work() -> None:
            if not process.alive or answer.done():
                return
            try:
                done, failed = function(*given), None
            except Killed:
                process.killed()
                return
            except Exception as error:
                done, failed = None, error
            self.call_later(self.disk_s / 2, tell, done, failed)

        def tell(done: Any, failed: Exception | None) -> None:
            if not answer.done():
                answer.set_result(done) if failed is None else answer.set_exception(failed)

        self.call_later(self.disk_s / 2, work)
        return answer

    async def create_unix_connection(self, factory: Callable[[], Any], path: str | None = None, **_: Any) -> Any:  # type: ignore[override]
        broker = self.ports[path or ""]
        if broker.away:
            raise ConnectionRefusedError(111, "Connection refused")
        link = Link(self, factory(), broker, PROCESS.get())
        link.protocol.connection_made(link)
        return link, link.protocol


class Link(asyncio.Transport):
    """One connection: the client's transport, and what the broker has of it. Each way keeps its order."""

    def __init__(self, loop: VirtualLoop, protocol: Any, broker: "Broker", process: Process) -> None:
        super().__init__()
        self.loop, self.protocol, self.broker, self.process = loop, protocol, broker, process
        self.closing = self.gone = self.silent = self.deaf = False
        self.held = b""
        self._due = [0.0, 0.0]
        self.client_id, self.will, self.filters = "", None, dict[str, int]()
        self.owed, self.kept_s = 0, 0
        self.unanswered: dict[bytes, tuple[str, bytes]] = {}  # what was handed on, and not acknowledged
        process.links.append(self)
        broker.links.append(self)

    def _later(self, way: int, call: Callable[..., None], *given: Any) -> None:
        """After what the network takes, and not before what went the same way before."""
        self._due[way] = max(self._due[way] + 1e-6, self.loop.time() + self.broker.delay())
        self.loop.call_at(self._due[way], call, *given)

    def write(self, data: Any) -> None:
        if not (self.closing or self.silent) and self.process.alive:
            self._later(0, self._arrive, bytes(data))

    def _arrive(self, data: bytes) -> None:
        if not (self.gone or self.silent):
            self.broker.read(self, data)

    def send(self, data: bytes) -> None:
        """The broker writes."""
        if not (self.gone or self.silent):
            self._later(1, self._deliver, data)

    def _deliver(self, data: bytes) -> None:
        if not (self.closing or self.silent) and self.process.alive:
            self.protocol.data_received(data)

    def cut(self) -> None:
        """The network, the broker or the end of the process ends the connection."""
        self.broker.lose(self)
        self.abort()

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            self._later(0, self.broker.lose, self)
            self.loop.call_soon(self.protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        pass  # what is due is delivered all the same: a broker here sends little

    resume_reading = pause_reading


def _text(body: bytes, at: int) -> tuple[bytes, int]:
    end = at + 2 + int.from_bytes(body[at : at + 2], "big")
    return body[at + 2 : end], end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return value, at


_SIZES = {0x11: 4, 0x21: 2, 0x22: 2, 0x27: 4}
"""Bytes of the properties of CONNECT and DISCONNECT that a client of ours sends."""


def _kept_s(said: bytes, otherwise: int) -> int:
    """For how long a session is kept, by the properties of a packet."""
    at = 0
    while at < len(said):
        size = _SIZES[said[at]]
        if said[at] == 0x11:
            return int.from_bytes(said[at + 1 : at + 1 + size], "big")
        at += 1 + size
    return otherwise


def _packet(head: int, body: bytes) -> bytes:
    size, length = len(body), b""
    while True:
        size, digit = size >> 7, size & 0x7F
        length += bytes([digit | (0x80 if size else 0)])
        if not size:
            return bytes([head]) + length + body


@functools.lru_cache(4096)
def _matches(topic_filter: str, topic: str) -> bool:
    wanted, levels = topic_filter.split("/"), topic.split("/")
    return len(wanted) == len(levels) and all(one in ("+", other) for one, other in zip(wanted, levels, strict=True))


class Broker:
    """As little of MQTT 5 as we ask of a broker: retained messages, last wills, sessions, one link for a client id.

    Attributes
    ----------
    away : nobody can connect.
    slow_s, doubles : how long messages take at most; how often one comes twice.
    hears : is given topic, payload, the process that published, and whether it says to have sent it before (DUP).
    """

    def __init__(self, loop: VirtualLoop, luck: random.Random) -> None:
        self._loop, self._luck = loop, luck
        self.away = False
        self.slow_s, self.doubles = 0.01, 0.0
        self.links: list[Link] = []
        self.retained: dict[str, bytes] = {}
        self.hears: Callable[[str, bytes, Process | None, bool], None] = lambda *given: None
        self._wills: dict[str, asyncio.TimerHandle] = {}
        self._sessions: dict[str, tuple[float, dict[str, int], list[tuple[str, bytes]]]] = {}

    def delay(self) -> float:
        """Seconds on the way."""
        return self._luck.random() * self.slow_s

    def read(self, link: Link, data: bytes) -> None:
        """Bytes of a client."""
        link.held += data
        while len(link.held) > 1 and not link.gone:
            try:
                size, start = _number(link.held, 1)
            except IndexError:
                return
            if len(link.held) < start + size:
                return
            head, body, link.held = link.held[0], link.held[start : start + size], link.held[start + size :]
            kinds = {1: self._connect, 3: self._publish, 4: self._settle, 8: self._subscribe, 14: self._leave}
            if head >> 4 == 12:
                link.send(b"\xd0\x00")
            elif (take := kinds.get(head >> 4)) is not None:
                take(link, head, body)

    def _connect(self, link: Link, _: int, body: bytes) -> None:
        flags, (size, at) = body[7], _number(body, 10)
        link.kept_s = _kept_s(body[at : at + size], 0)
        client_id, at = _text(body, at + size)
        link.client_id = client_id.decode() or f"made-{self._luck.randbytes(4).hex()}"
        for other in [one for one in self.links if one is not link and one.client_id == link.client_id]:
            other.cut()
        if (timer := self._wills.pop(link.client_id, None)) is not None:
            timer.cancel()
        if flags & 4:
            size, at = _number(body, at)
            said, at = body[at : at + size], at + size
            topic, at = _text(body, at)
            payload, _ = _text(body, at)
            delay = int.from_bytes(said[1:5], "big") if said[:1] == b"\x18" else 0
            link.will = (topic.decode(), payload, delay)  # type: ignore[assignment]
        name = link.client_id.encode()
        said = b"" if client_id else b"\x12" + len(name).to_bytes(2, "big") + name
        until, filters, waiting = self._sessions.pop(link.client_id, (0.0, {}, []))
        resumed = not flags & 2 and until > self._loop.time()
        link.send(_packet(0x20, bytes([resumed, 0, len(said)]) + said))
        if resumed:
            link.filters = filters
            for waits, payload in waiting:
                self._hand(link, waits, payload, 1)

    def _subscribe(self, link: Link, _: int, body: bytes) -> None:
        size, at = _number(body, 2)
        at, codes, fresh = at + size, b"", list[str]()
        while at < len(body):
            topic, at = _text(body, at)
            link.filters[topic.decode()] = body[at] & 3
            codes, at = codes + bytes([body[at] & 3]), at + 1
            fresh.append(topic.decode())
        link.send(_packet(0x90, body[:2] + b"\0" + codes))
        for name, payload in list(self.retained.items()):
            if any(_matches(one, name) for one in fresh):
                self._hand(link, name, payload, 0, retain=True)

    def _publish(self, link: Link, head: int, body: bytes) -> None:
        topic, at = _text(body, 0)
        qos, number = head >> 1 & 3, b""
        if qos:
            number, at = body[at : at + 2], at + 2
        size, at = _number(body, at)
        self.say(topic.decode(), body[at + size :], retain=bool(head & 1), process=link.process, again=bool(head & 8))
        if qos and not link.deaf:
            link.send(b"\x40\x02" + number)

    def _settle(self, link: Link, _: int, body: bytes) -> None:
        link.unanswered.pop(body[:2], None)

    def _leave(self, link: Link, _: int, body: bytes) -> None:
        if not body or body[0] != 4:
            link.will = None
        size, at = _number(body, 1) if len(body) > 1 else (0, 0)
        link.kept_s = _kept_s(body[at : at + size], link.kept_s)
        self.lose(link)

    def say(
        self, topic: str, payload: bytes, *, retain: bool = False, process: Process | None = None, again: bool = False
    ) -> None:
        """A message, from a link or from somebody beside the world."""
        if retain:
            self.retained.pop(topic, None)
            if payload:
                self.retained[topic] = payload
        for _ in range(2 if self._luck.random() < self.doubles else 1):
            self.hears(topic, payload, process, again)
            for link in list(self.links):
                qos = max((one for name, one in link.filters.items() if _matches(name, topic)), default=-1)
                if qos >= 0:
                    self._hand(link, topic, payload, qos)
            for _, filters, waiting in self._sessions.values():
                if any(qos and _matches(name, topic) for name, qos in filters.items()):
                    waiting.append((topic, payload))

    def _hand(self, link: Link, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> None:
        link.owed += 1
        number = (link.owed % 65_535 + 1).to_bytes(2, "big") if qos else b""
        if qos:
            link.unanswered[number] = topic, payload
        name = topic.encode()
        body = len(name).to_bytes(2, "big") + name + number + b"\0" + payload
        link.send(_packet(0x30 | qos << 1 | retain, body))

    def lose(self, link: Link) -> None:
        """A link is over: its will is said, later where it asked for that."""
        if link.gone:
            return
        link.gone = True
        self.links.remove(link)
        if link.kept_s:
            until = self._loop.time() + link.kept_s
            self._sessions[link.client_id] = until, link.filters, list(link.unanswered.values())
        if link.will is not None:
            topic, payload, delay = link.will
            say = lambda: self.say(topic, payload, retain=True)  # noqa: E731
            self._wills[link.client_id] = self._loop.call_later(delay, say)

    def stop(self, *, forget: bool) -> None:
        """The broker ends; nobody can connect until `away` is False again."""
        self.away = True
        for timer in self._wills.values():
            timer.cancel()
        for link in list(self.links):
            link.will = None
            link.cut()
        if forget:
            self.retained.clear()
            self._sessions.clear()
