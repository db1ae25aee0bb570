"""The log of a sidecar for its operator: a line for each change that people wait for, then one line a minute.

A clock looks once a second at what every stream has come to: the countdown needs a clock, and what happens to a
thousand streams in one second is one line. Each line is made of sessions, of numbers of rows and chunks, and of what
the ledger has left. No value of a row enters, nor whether one is missing: a row of NaN is a row.

One kind of line is an exception: that rows can hardly be what they should be. It has a word of a fixed list, and the
clock says it, once a minute at most. The same clock looks at the rows, and not the release of their chunk: nothing that
depends on rows runs between a chunk and what is sent beside it.

Before the first row, gaze that comes is a line too, with its rate: the profile's rate, unless it is another one by far.

How many samples or rows came tells whether the tracker sent them, and a doubt tells something about the rows. So the
lines belong to the log, which stays on the tracker's side. Nothing of them goes to the private broker.
"""

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import NDArray

from eyestream.core.release.doubt import DOUBTS, RowDoubts
from eyestream.core.remaining import Left
from eyestream.core.scopes import duration
from eyestream.rim.plan import Plan
from eyestream.rim.refusals import ABSENT, Refusals
from eyestream.rim.sidecar.pipeline import Pipeline
from eyestream.streams import StreamKey

if TYPE_CHECKING:
    from eyestream.rim.sources.source import Feeder

_LOG = logging.getLogger("eyestream.talk")

LOOK_S = 1.0
MINUTE_S = 60.0

_MOST_NAMED = 3
"""Streams that one line names; of more it says how many."""

_LONGEST_S = 1e12
_SLOWEST, _FASTEST = 0.5, 1.25
_SILENT_S = 5.0
_OFTEN = 4
_STARTS_S = 8.0
"""For so long after the start nothing need have come."""
_GAZE_S = 2.0
"""For so long samples are counted before their rate is said."""
_DOUBTFUL = "implausible rows; chunks are still released and charged"
_IMPLAUSIBLE = "implausible gaze; any chunks of it are still released and charged"
_SCOPES = {"window": "now", "session": "of this session", "day": "of this day", "lifetime": "of all time"}


@dataclass(slots=True)
class _Seen:
    """Observations of one stream."""

    session: int | None = None
    rows: int = 0
    released: int = 0
    due: float | None = None
    """When the first chunk of the session is due; None: it is out, or there is no session."""
    grew_at: float = 0.0
    """When a row was seen last."""
    grew_by: int = 0
    """Rows that came then."""
    heard_at: float = 0.0
    """When samples were seen last."""
    heard_by: int = 0
    twice: int = 0
    twice_at: list[float] = field(default_factory=list)
    """Rows that came twice, and when there were more of them."""
    minute: tuple[int | None, int] = None, 0
    """Session and rows when the last minute was over."""
    heard: int = 0
    gaze: float | None = None
    """Samples that had come when gaze was first seen before a session, and when that was; None: no gaze yet."""
    doubt: str | None = None
    doubtful_s: float = 0.0
    """Doubts that the last chunks have in common, and how many seconds they are."""


class OperatorLog:
    """Says what has changed since it last looked.

    Parameters
    ----------
    plan
        What the configuration says, resolved.
    pipeline
        At work.
    left
        What is left of the budget of each stream, live.
    show
        Takes the countdown, one line that replaces the one before; "": there is nothing to count.
    feeders
        What makes rows of gaze, by stream.
    is_read
        Whether rows or gaze of a stream would be read if its tracker sent them.
    """

    def __init__(
        self,
        plan: Plan,
        pipeline: Pipeline,
        left: Mapping[StreamKey, Left],
        show: Callable[[str], None] = lambda text: None,
        feeders: "Mapping[StreamKey, Feeder]" = MappingProxyType({}),
        *,
        is_read: Callable[[StreamKey], bool] = lambda key: True,
    ) -> None:
        self._is_read = is_read
        self._pipeline, self._left, self._show, self._feeders = pipeline, left, show, feeders
        self._rows = Refusals(DOUBTS, "doubt", _DOUBTFUL)
        self._absent = Refusals(ABSENT, "absent", "its tracker is not heard")
        self._expected = {name: RowDoubts(stream.mechanism.calibration) for name, stream in plan.streams.items()}
        self._rate_hz = {key: stream.spec.rate_hz for key, (_, stream) in plan.served.items()}
        self._unseen: list[tuple[StreamKey, NDArray[np.float64]]] = []
        pipeline.look = lambda key, rows: self._unseen.append((key, rows))
        self._chunk_s = {key: stream.chunk_s for key, (_, stream) in plan.served.items()}
        self._first_s = {key: stream.withheld_s + stream.chunk_s for key, (_, stream) in plan.served.items()}
        self._seen = {key: _Seen() for key in plan.served}
        self._began: float | None = None
        self._minute_at: float | None = None
        self._before = (0, 0, 0)
        for stream in plan.streams.values():
            keys = [key for key in plan.served if key.stream == stream.name]
            window = f"; a row describes {stream.spec.window_s:g} s of gaze" if stream.spec.window_s else ""
            _say("waiting", keys, f"waiting for the first row of {_names(keys)}{window}")

    @cached_property
    def _gaze(self) -> Refusals:
        from eyestream.gaze.doubt import GAZE_DOUBTS  # noqa: PLC0415  for who has gaze

        return Refusals(GAZE_DOUBTS, "doubt", _IMPLAUSIBLE)

    async def run(self) -> NoReturn:
        """Look again and again until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                self.look(loop.time())
                await asyncio.sleep(LOOK_S)
        finally:
            self._show("")

    def look(self, now: float) -> None:
        """Say what has changed, the minute when it is over, and how long it is to the next first chunk."""
        unseen, self._unseen = self._unseen, []
        for key, rows in unseen:
            self._look_at_rows(key, rows)
        self._began = now if self._began is None else self._began
        began, over, chunked = self._changes(now)
        self._say_gaze(now)
        self._say_absent(now)
        for first_s, keys in sorted(began.items()):
            words = f"{_names(keys)}: first row; first chunk in {duration(first_s)}"
            _say("first_row", keys, words, first_chunk_s=first_s)
        if chunked:
            _say("first_chunk", chunked, f"{_names(chunked)}: first chunk of this session")
        if over:
            _say("session_over", over, f"{_names(over)}: the session is over; waiting for the next first row")
        self._minute_at = now + MINUTE_S if self._minute_at is None else self._minute_at
        if now >= self._minute_at:
            self._minute_at += MINUTE_S
            self._say_minute()
            self._say_doubts(now)
        self._show(self._countdown(now))

    def _changes(self, now: float) -> tuple[dict[float, list[StreamKey]], list[StreamKey], list[StreamKey]]:
        """Streams with a first row, by the seconds to their first chunk; with a session that is over; with a chunk."""
        began: dict[float, list[StreamKey]] = defaultdict(list)
        over, chunked = [], []
        for key, seen in self._seen.items():
            session, rows, released = self._pipeline.progress(key)
            if session is not None and session != seen.session:
                began[self._first_s[key]].append(key)
                seen.due = now + self._first_s[key]
            elif session is None and seen.session is not None:
                over.append(key)
            if seen.due is not None and released > seen.released:
                chunked.append(key)
                seen.due = None
            if session is None:
                seen.due = None
            if rows > seen.rows:
                seen.grew_at, seen.grew_by = now, rows - seen.rows
            seen.session, seen.rows, seen.released = session, rows, released
        return began, over, chunked

    def _say_gaze(self, now: float) -> None:
        """Once before each first row: that gaze comes, and how fast."""
        said: dict[str, list[StreamKey]] = defaultdict(list)
        for key, feeder in self._feeders.items():
            seen = self._seen[key]
            if seen.session is not None:
                seen.gaze, seen.heard = None, feeder.heard
            elif seen.gaze is None and feeder.heard > seen.heard:
                seen.gaze, seen.heard = now, feeder.heard
            elif seen.gaze is not None and now - seen.gaze >= _GAZE_S:
                said[_rate((feeder.heard - seen.heard) / (now - seen.gaze), feeder.expected_hz)].append(key)
                seen.gaze = math.inf  # said
        for rate, keys in said.items():
            _say("gaze", keys, f"{_names(keys)}: gaze comes, {rate}")

    def _say_absent(self, now: float) -> None:
        """Note what nobody sends, what has stopped, rows that come twice, and gaze that is implausible."""
        assert self._began is not None
        late = now - self._began >= _STARTS_S
        for key, seen in self._seen.items():
            feeder, reads = self._feeders.get(key), self._is_read(key)
            if feeder is None:
                rows = self._pipeline.rows(key)
                if seen.session is not None and now - seen.grew_at > self._longest_s(key, seen):
                    self._absent.note(key, "stopped", now)
                elif late and reads and not (rows.rows or self._pipeline.counters.rejected):
                    self._absent.note(key, "silent", self._began)
                self._note_twice(key, seen, rows.duplicate, now)
                continue
            if feeder.heard > seen.heard_by or not reads:
                seen.heard_at, seen.heard_by = now, feeder.heard
            if feeder.heard and now - seen.heard_at > _SILENT_S:
                self._absent.note(key, "stopped", now)
            elif late and reads and not (feeder.heard or feeder.refused):
                self._absent.note(key, "silent", self._began)
            elif feeder.doubt is not None:
                self._gaze.note(key, feeder.doubt, now)

    def _longest_s(self, key: StreamKey, seen: _Seen) -> float:
        """How long a tracker may be silent: one that sends many rows at once sends seldom."""
        return max(_SILENT_S, 2.0 * seen.grew_by / self._rate_hz[key])

    def _note_twice(self, key: StreamKey, seen: _Seen, twice: int, now: float) -> None:
        """Note rows that come twice again and again; after a lost link a tracker may send some once more."""
        if twice > seen.twice:
            seen.twice, seen.twice_at = twice, [at for at in seen.twice_at if now - at < _STARTS_S] + [now]
            if len(seen.twice_at) >= _OFTEN:
                self._rows.note(key, "two", now)

    def _look_at_rows(self, key: StreamKey, rows: NDArray[np.float64]) -> None:
        """Note what is doubtful in one chunk, in the second after it was closed."""
        seen, doubt = self._seen[key], self._expected[key.stream].of(rows)
        seen.doubtful_s = self._chunk_s[key] + (seen.doubtful_s if doubt == seen.doubt else 0.0)
        seen.doubt = doubt

    def _say_doubts(self, now: float) -> None:
        """Note the doubts of the last minute; the clock decides when they are said."""
        for key, seen in self._seen.items():
            if key in self._feeders:
                continue  # a front end makes its rows, in order and in degrees: what is wrong is the gaze
            session, rows = seen.minute
            if seen.session is not None and seen.session == session:
                share = (seen.rows - rows) / (self._rate_hz[key] * MINUTE_S)
                silent = now - seen.grew_at > _SILENT_S
                if share > _FASTEST or (share < _SLOWEST and not silent):
                    self._rows.note(key, "rate", now)
            seen.minute = seen.session, seen.rows
            if seen.doubt is not None and seen.doubtful_s >= MINUTE_S:
                self._rows.note(key, seen.doubt, now)

    def _countdown(self, now: float) -> str:
        """To the first chunk that is expected next."""
        waiting = sorted((seen.due, key) for key, seen in self._seen.items() if seen.due is not None)
        if not waiting:
            return ""
        due, key = waiting[0]
        more = f" ({len(waiting) - 1} more wait)" if len(waiting) > 1 else ""
        when = f"in {duration(due - now)}" if due - now >= 1.0 else "is due"
        return f"first chunk of {key} {when}{more}"

    def _say_minute(self) -> None:
        """Sums over the streams; of the budgets the least."""
        counters, rows_of = self._pipeline.counters, [self._pipeline.rows(key) for key in self._seen]
        refused = counters.rejected.total() + sum(one.rows - one.accepted for one in rows_of)
        refused += sum({id(feeder.link): feeder.refused for feeder in self._feeders.values()}.values())
        now = (sum(one.rows for one in rows_of), counters.released, refused)
        rows, chunks, rejected = (new - old for new, old in zip(now, self._before, strict=True))
        self._before = now
        keys = [key for key, one in self._seen.items() if one.session is not None]
        if not (keys or rows or rejected):
            return
        words = f"last minute: {_count(rows, 'row')}, {_count(chunks, 'chunk')}, {rejected} rejected"
        if len(self._seen) > 1:
            words += f", {len(keys)} of {_count(len(self._seen), 'stream')} at work"
        lasting = ((self._left[key].chunks * self._chunk_s[key], key) for key in keys or self._seen)
        seconds, key = min(lasting, default=(0.0, None))
        fields: dict[str, object] = {"rows": rows, "chunks": chunks, "rejected": rejected}
        if key is not None and seconds < _LONGEST_S:
            scope = self._left[key].scope
            whose = f" ({key})" if len(self._seen) > 1 else ""
            words += f"; {duration(seconds)} of releases left {_SCOPES[scope]}{whose}"
            fields |= {"left_s": round(seconds), "left_of": scope}
        _say("minute", keys, words, **fields)


def _say(event: str, keys: Sequence[StreamKey], words: str, **fields: object) -> None:
    """One line; as JSON it has the event and its fields too."""
    _LOG.info(words, extra={"fields": {"event": event, "streams": [str(key) for key in keys], **fields}})


def _names(keys: Sequence[StreamKey]) -> str:
    named = ", ".join(map(str, keys[:_MOST_NAMED]))
    return named if len(keys) <= _MOST_NAMED else f"{named} and {len(keys) - _MOST_NAMED} more"


def _rate(found_hz: float, expected_hz: float) -> str:
    """The rate that is expected, unless the one that was found is far from it; of that one digit."""
    if _SLOWEST <= found_hz / expected_hz <= _FASTEST:
        return f"about {expected_hz:g} samples a second"
    return f"about {float(f'{found_hz:.1g}'):g} samples a second, and its profile says {expected_hz:g}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
