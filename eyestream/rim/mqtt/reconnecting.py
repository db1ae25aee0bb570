"""Keep a link up: connect, serve, and connect again for as long as the caller wants it.

Theory of operation. A link is in one of these states, and `ReconnectingLink.run` goes from one to the next:

========== =================================== ==================================================================
state      what happens                        and then
========== =================================== ==================================================================
asking     `before` is awaited                 connecting; waiting, when it raises LinkError
connecting socket, TLS, CONNECT, CONNACK       serving; waiting, when any of it fails or takes too long
serving    `serve` runs, cancelled when the    over, when `serve` returns; waiting, when the link is lost. After a
           link is lost                        link of `STEADY_SECONDS` the next wait is the shortest again
waiting    the pause of `Backoff`              asking; at once, when `leave` is called
over       nothing any more                    `run` has returned
========== =================================== ==================================================================

After `leave`, a link that serves goes on until `serve` returns. One that is away makes one attempt more: what was
released and a goodbye may still get out. While a will is delayed (MQTT 5), a steady link's session is resumed, so that
what was under way keeps its packet ids. The session of a link that was lost soon is left: it may have been lost over
what would be sent again.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from eyestream.errors import LinkError
from eyestream.rim.mqtt.carrier import Outgoing
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.messages import TOO_LARGE
from eyestream.rim.mqtt.transport import Backoff, Link, Message, Will, connect
from eyestream.rim.refusals import AGAIN_S

_LOG = logging.getLogger("eyestream.link")

STEADY_SECONDS = 2.0
"""A link that stood for so long was a good one: the next outage begins with the shortest wait again."""


class ReconnectingLink:
    """Connects and serves, again and again.

    A broker that is away is waited for and said once in the log, under the name `what`; so is its return. That messages
    are cut is said once in ten minutes.

    Parameters
    ----------
    endpoint
        The broker.
    serve
        Called with each new link; cancelled when the link is lost. When it returns, the work is done.
    what
        Name of the link in the log.
    client_id, deliver, clean_session, will
        As for `eyestream.rim.mqtt.transport.connect`.
    before
        Awaited before each attempt to connect; a `LinkError` of it ends the attempt.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        serve: Callable[[Link], Awaitable[None]],
        *,
        what: str,
        client_id: str | None,
        deliver: Callable[[Message], None],
        clean_session: bool = True,
        will: Will | None = None,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._serve = serve
        self._what = what
        self._client_id = client_id
        self._deliver = deliver
        self._clean_session = clean_session
        self._will, self._before = will, before
        self._outgoing = Outgoing()
        self._resume = False
        self._stood, self._leaving = asyncio.Event(), asyncio.Event()
        self._trouble: LinkError | None = None
        self._silent = False
        self.links = 0
        """Links that stood since the start."""
        self.cut = 0
        """Messages that were too large, or whose properties or topic could not be read."""
        self._cut_said_at: float | None = None

    async def run(self) -> None:
        """Keep the link up until the serving function returns, or until `leave` and one attempt more."""
        backoff = Backoff()
        while True:
            last = self._leaving.is_set()  # before the attempt: a `leave` during it lets one more follow
            if await self._once(backoff) or last:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff.pause()):
                    await self._leaving.wait()  # ends the pause at once, and makes the next attempt the last

    def leave(self) -> None:
        """Let `run` end soon: a link that stands is served to its end; one that is away is tried once more, at once."""
        self._leaving.set()

    async def _once(self, backoff: Backoff) -> bool:
        """One attempt; whether the work is done."""
        loop = asyncio.get_running_loop()
        began = None
        try:
            if self._before is not None:
                await self._before()
            async with connect(
                self._endpoint,
                client_id=self._client_id,
                deliver=self._note_and_deliver,
                clean_session=self._clean_session,
                will=self._will,
                outgoing=self._outgoing,
                resume=self._resume,
            ) as link:
                began = loop.time()
                self._note_link()
                await self._serve(link)  # a lost link cancels it, and `connect` makes a LinkError of that
                return True
        except LinkError as error:
            self._note_trouble(error)
        if began is not None:
            steady = loop.time() - began > STEADY_SECONDS
            self._resume = steady and self._will is not None and self._will.delay_s > 0
            if steady:
                backoff.reset()
        return False

    def _note_and_deliver(self, message: Message) -> None:
        if message.payload is TOO_LARGE:
            self._note_cut(asyncio.get_running_loop().time())
        self._deliver(message)

    def _note_cut(self, now: float) -> None:
        """Count a message that is cut; nothing of it is said, as a stranger may have written it."""
        self.cut += 1
        if self._cut_said_at is None or now - self._cut_said_at >= AGAIN_S:
            self._cut_said_at = now
            why = "its MQTT 5 properties or its topic cannot be read, or it is too large"
            _LOG.warning("%s: a message of others is left out (%d so far): %s", self._what, self.cut, why)

    def _note_link(self) -> None:
        again = self._trouble is not None and not self._silent
        _LOG.log(logging.WARNING if again else logging.INFO, "%s: connected to %s", self._what, self._endpoint)
        self._trouble, self._silent = None, False
        self.links += 1
        self._stood.set()

    def _note_trouble(self, error: LinkError) -> None:
        if self._trouble is None and not self._silent:
            _LOG.warning("%s: %s; trying again until it is back", self._what, error)
        self._trouble = error

    @contextlib.asynccontextmanager
    async def beside(self, wait_s: float) -> AsyncIterator[None]:
        """Keep the link up beside the body, which begins when the first link stands.

        Raises
        ------
        LinkError
            No link within `wait_s` seconds.
        """
        self._silent = True  # until the first link stands: without one, the error says it
        task = asyncio.create_task(self.run(), name=f"{self._what} keeper")
        try:
            try:
                async with asyncio.timeout(wait_s):
                    await self._stood.wait()
            except TimeoutError:
                raise self._trouble or LinkError(f"no answer from the broker at {self._endpoint}") from None
            yield
        finally:
            task.cancel()
            # `asyncio.wait`, not `await task`: a CancelledError out of `await task` could be the task's or our own, and
            # ours must not be lost.
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()
