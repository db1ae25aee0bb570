"""Costs of units larger than a chunk in a deployment: a gaze event, a window, a session, a day, a lifetime.

A device may have several streams. They are released from the same eyes, so their losses add up, and all ceilings are
on the sum. Where a device has one stream, the window's ceiling also bounds what consecutive chunks of it cost. Where it
has several, it does not: w consecutive chunks of one stream may lie in more than one window of the device, for chunks
of the others lie between them (`eyestream.core.accountant`).

Where something is taken off the rows (`eyestream.core.session.OffsetSpec`), what lies in it enters releases that are
not its own. Where a baseline is taken off each session (`eyestream.core.anchor`), what lies in the baseline enters
every chunk of its session. So of an event, a second and a window only the session's sum is a bound, and beside it
stands what holds of those that enter no baseline. A session of the tracker may have several baselines; no event and no
second enters two. Where a history of earlier sessions is taken off (`eyestream_lab.words`), what lies in a session
enters every release of its pseudonym's later sessions. A pseudonym has N sessions, of which the first is withheld, and
each is within the session's ceiling: so N - 1 times that ceiling is a bound of whatever lies in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from eyestream.core.charge import DELTA_UNITS, EPSILON_UNITS, Ceilings, bounds, charge_of
from eyestream.core.kinds import Loss
from eyestream.streams import StreamSpec

if TYPE_CHECKING:
    from eyestream.core.session import OffsetSpec

Pair = tuple[int | None, int | None]
"""Ceilings on epsilon and on delta, in fixed point (`eyestream.core.charge`)."""

_NO_CEILING: Pair = None, None


@dataclass(frozen=True, slots=True)
class Reach:
    """How far what an offset holds is carried: into every release of its session, or of several.

    Attributes
    ----------
    given : the chunk that a loss is stated of, in words: ``one chunk, given ...,``.
    why : what a unit that enters the offset costs, in words.
    outside : what a unit that does not enter it is called beside its name.
    sessions : how many times a session's ceilings bound all of these releases.
    unit : name of these releases as a unit of their own, and what it costs, in words; None: they are one already.
    """

    given: str
    why: str
    outside: str
    sessions: int = 1
    unit: tuple[str, str] | None = None

    def limited(self, unit: str, session: Pair, why: str) -> "Scope":
        """A unit that is carried as far, given the ceilings of a session."""
        epsilon, delta = (None if ceiling is None else self.sessions * ceiling for ceiling in session)
        return limited(unit, (epsilon, delta), why)


@dataclass(frozen=True, slots=True)
class SiblingStream:
    """Another stream of the same device.

    Attributes
    ----------
    stream : what its rows are.
    n : rows of a chunk.
    loss : of one chunk.
    takes_off : its rows, as the calibration says; None: nothing is.
    """

    stream: StreamSpec
    n: int
    loss: Loss
    takes_off: "OffsetSpec | None" = None

    @property
    def name(self) -> str:
        """Name of the stream."""
        return self.stream.name


@dataclass(frozen=True, slots=True)
class Deployment:
    """Surroundings of a mechanism: its stream, the ceilings, and the streams beside it.

    Attributes
    ----------
    stream : what its rows are.
    ceilings : what the ledger holds its device to; with a window.
    beside : the other streams of the device.
    """

    stream: StreamSpec
    ceilings: Ceilings
    beside: tuple[SiblingStream, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """Most that one unit costs.

    Attributes
    ----------
    unit : `gaze event`, `window`, ...
    chunks : how many released chunks it can take part in; None where only a ceiling bounds them.
    loss : of so many chunks; None where nothing bounds them, or where their deltas sum to 1.
    ceiling, ceiling_delta : of the deployment, on epsilon and on delta.
    why : what the count comes from, in words.
    seconds : for how long the ceiling on epsilon lets releases go on, when rows come without a pause; None: none does.
    """

    unit: str
    chunks: int | None
    loss: Loss | None
    ceiling: float | None
    why: str
    ceiling_delta: float | None = None
    seconds: float | None = None


def scopes_of(loss: Loss, n: int, deployment: Deployment, takes_off: "OffsetSpec | None" = None) -> tuple[Scope, ...]:
    """Scopes of chunks of `n` rows that cost `loss` each; `takes_off` as in `SiblingStream`."""
    events = (("gaze event", 0.0, "one blink or saccade"), ("second of gaze", 1.0, "one second"))
    streams = (SiblingStream(deployment.stream, n, loss, takes_off), *deployment.beside)
    together = [_all_streams(streams, *event) for event in events] if deployment.beside else []
    touched = [_touched(streams[0], deployment, *event) for event in events]
    ceilings = deployment.ceilings
    limits, today = ceilings.on("session"), ceilings.on("day")
    touched = [found for scope in touched for found in _carried(scope, limits, streams[:1])]
    together = [found for scope in together for found in _carried(scope, limits, streams)]
    hourly = sum(float(s.loss.epsilon) * 3600 * s.stream.rate_hz / s.n for s in streams)
    hourly *= _window_share(streams, deployment)
    daily, day = 24 * hourly, _plain(today)[0]
    levels = level_seconds(loss, n, deployment)
    what = "the sum over the chunks of all its streams" if deployment.beside else "the sum over its chunks"
    return (
        *touched,
        *together,
        *_carried(_window(loss, deployment), limits, streams),
        limited("session", limits, what, lasting_s(limits, loss, n, deployment)),
        *_own_unit(takes_off, limits),
        limited("hour", _NO_CEILING, f"about epsilon {hourly:g} at {_rates(streams)}"),
        limited(
            "day",
            today,
            f"about epsilon {daily if day is None else min(daily, day):g}, in UTC by the host's clock",
            lasting_s(today, loss, n, deployment),
        ),
        limited(
            "lifetime",
            ceilings.on("lifetime"),
            "the sum over everything since the ledger began" + _fading(loss, levels),
            sum(levels) if levels else None,
        ),
    )


def _own_unit(takes_off: "OffsetSpec | None", session: Pair) -> Iterator[Scope]:
    """What an offset carries on as a unit of its own, where it is one."""
    if takes_off is not None and takes_off.reach.unit is not None:
        name, why = takes_off.reach.unit
        yield takes_off.reach.limited(name, session, why)


def _fading(loss: Loss, levels: list[float]) -> str:
    if len(levels) < 2:
        return ""
    last = float(loss.epsilon / 2 ** (len(levels) - 1))
    return (
        f", which fades: a chunk costs epsilon {float(loss.epsilon):g} until half of the ceiling is spent "
        f"({duration(levels[0])} of releases), then half as much until half of the rest is, and so on: {len(levels)} "
        f"levels, on the last of which ({duration(levels[-1])}) a chunk costs {last:.3g}. The level follows from what "
        "the ledger has charged, and from nothing else; no word is kept and sent again"
    )


def level_seconds(loss: Loss, n: int, deployment: Deployment) -> list[float]:
    """For how long each level of the lifetime lets releases go on, as `lasting_s` says; empty without a ceiling."""
    found, (whole, delta) = [], deployment.ceilings.on("lifetime")
    limits = () if whole is None else bounds(whole, deployment.ceilings.levels)
    parts = [after - before for before, after in pairwise((0, *limits))]
    for level, part in enumerate(parts or [None]):
        beside = tuple(replace(s, loss=replace(s.loss, epsilon=s.loss.epsilon / 2**level)) for s in deployment.beside)
        own = replace(loss, epsilon=loss.epsilon / 2**level)
        found.append(lasting_s((part, delta), own, n, replace(deployment, beside=beside)))
    return [seconds for seconds in found if seconds is not None]


def lasting_s(ceilings: Pair, loss: Loss, n: int, deployment: Deployment) -> float | None:
    """For how many seconds of rows without a pause `ceilings` let releases go on; None where there are none.

    Where the window withholds some of the chunks, the time is longer by as much.
    """
    streams = (SiblingStream(deployment.stream, n, loss), *deployment.beside)
    share = _window_share(streams, deployment)
    found = []
    for ceiling, name in zip(ceilings, ("epsilon", "delta"), strict=True):
        costs = [getattr(charge_of(s.loss), name) for s in streams]
        if ceiling is None or not sum(costs) or not share:
            continue
        if len(streams) == 1:  # whole chunks
            found.append(ceiling // costs[0] * n / deployment.stream.rate_hz / share)
        else:
            a_second = sum(cost * s.stream.rate_hz / s.n for cost, s in zip(costs, streams, strict=True)) * share
            found.append(ceiling / a_second)
    return min(found, default=None)


def duration(seconds: float) -> str:
    """``2 h 08 min``; ``34 min``; ``45 s``; ``12 days``: rounded down, as in a budget."""
    whole = int(seconds + 1e-6)
    if whole < 120:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60:02d} min" if hours < 48 else f"{hours // 24} days"


def _carried(scope: Scope, session: Pair, streams: tuple[SiblingStream, ...]) -> tuple[Scope, ...]:
    """Bounds of a unit, and its own cost, where an offset of the session carries it on; the furthest counts."""
    found = [stream.takes_off.reach for stream in streams if stream.takes_off is not None]
    if not found:
        return (scope,)
    reach = max(found, key=lambda one: one.sessions)
    outside = replace(scope, unit=f"{scope.unit}, {reach.outside}")
    return reach.limited(scope.unit, session, reach.why), outside


def allowed_chunks(loss: Loss, deployment: Deployment) -> int:
    """Chunks that a window lets through, where the device has one stream."""
    found, window = chunks_within(loss, deployment.ceilings.on("window")), deployment.ceilings.window_chunks
    return window if found is None else min(found, window)


def chunks_within(loss: Loss, ceilings: Pair) -> int | None:
    """Chunks that ceilings let through, as the ledger counts, when no other stream takes of them; None: any number."""
    charge = charge_of(loss)
    both = zip(ceilings, (charge.epsilon, charge.delta), strict=True)
    return min((ceiling // cost for ceiling, cost in both if ceiling is not None and cost), default=None)


def _window_share(streams: tuple[SiblingStream, ...], deployment: Deployment) -> float:
    """At most what share of everything that falls due the window's ceiling lets through in the long run."""
    window, chunks = _plain(deployment.ceilings.on("window"))[0], deployment.ceilings.window_chunks
    if len(streams) == 1:
        return allowed_chunks(streams[0].loss, deployment) / chunks
    if window is None:
        return 1.0
    rates = [s.stream.rate_hz / s.n for s in streams]
    spent = sum(rate * float(s.loss.epsilon) for rate, s in zip(rates, streams, strict=True))
    return min(1.0, window / chunks * sum(rates) / spent)


def _rates(streams: tuple[SiblingStream, ...]) -> str:
    if len(streams) == 1:
        return f"{streams[0].stream.rate_hz:g} rows a second"
    return " and ".join(f"{s.stream.rate_hz:g} rows a second of {s.name}" for s in streams)


def _touched(own: SiblingStream, deployment: Deployment, unit: str, seconds: float, what: str) -> Scope:
    """Cost of `seconds` of gaze in the chunks of one stream."""
    stream, loss, window = own.stream, own.loss, deployment.ceilings.window_chunks
    chunks = stream.chunks_touched(own.n, seconds)
    alone = not deployment.beside and deployment.ceilings.levels == 1  # a later level has room for more
    if alone and chunks <= window:
        chunks = min(chunks, allowed_chunks(loss, deployment))
    of = " of this stream" if deployment.beside else ""
    reach = f"enters every row of its session within {stream.window_s + stream.memory_s:g} s of it"
    return _counted(unit, chunks, loss, _NO_CEILING, f"{what} {reach}, hence up to {chunks} chunks{of}")


def _all_streams(streams: tuple[SiblingStream, ...], unit: str, seconds: float, what: str) -> Scope:
    """Cost of `seconds` of gaze in the chunks of all streams of the device."""
    unit = f"{unit}, all streams"
    counts = [max(s.stream.chunks_touched(s.n, seconds), 1) for s in streams]
    listed = " and ".join(f"{count} chunks of {s.name}" for count, s in zip(counts, streams, strict=True))
    epsilon = sum((s.loss.epsilon * count for count, s in zip(counts, streams, strict=True)), Fraction(0))
    delta = sum((s.loss.delta * count for count, s in zip(counts, streams, strict=True)), Fraction(0))
    if delta >= 1:
        return Scope(unit, sum(counts), None, None, f"no bound: the deltas sum to 1 or more; {what} enters {listed}")
    total = Loss(unit, epsilon, delta)
    return Scope(unit, sum(counts), total, None, f"{total.figures()}: {what} enters up to {listed}")


def _window(loss: Loss, deployment: Deployment) -> Scope:
    window, ceilings = deployment.ceilings.window_chunks, deployment.ceilings.on("window")
    if deployment.beside or deployment.ceilings.levels > 1:
        return limited("window", ceilings, f"in any {window} consecutive chunks of the device, of whichever stream")
    return _counted("window", allowed_chunks(loss, deployment), loss, ceilings, f"in any {window} consecutive chunks")


def _counted(unit: str, chunks: int, loss: Loss, ceilings: Pair, why: str) -> Scope:
    """A unit that takes part in so many chunks."""
    plain = _plain(ceilings)
    if chunks * loss.delta >= 1:
        why = f"no bound: the deltas of {chunks} chunks sum to 1 or more; {why}"
        return Scope(unit, chunks, None, plain[0], why, plain[1])
    total = loss.of(unit, max(chunks, 1))
    limit = "" if ceilings == _NO_CEILING else f" (ceiling {_ceiling_words(ceilings)})"
    return Scope(unit, chunks, total, plain[0], f"{total.figures()}: {why}{limit}", plain[1])


def limited(unit: str, ceilings: Pair, why: str, seconds: float | None = None) -> Scope:
    """A unit whose chunks are bounded by a ceiling alone, if at all."""
    limit = "no ceiling" if ceilings == _NO_CEILING else f"at most {_ceiling_words(ceilings)}"
    enough = "" if seconds is None else f", enough for {duration(seconds)} of releases"
    epsilon, delta = _plain(ceilings)
    return Scope(unit, None, None, epsilon, f"{why}; {limit}{enough}", delta, seconds)


def _plain(ceilings: Pair) -> tuple[float | None, float | None]:
    """Ceilings as they were written."""
    epsilon, delta = ceilings
    return None if epsilon is None else epsilon / EPSILON_UNITS, None if delta is None else delta / DELTA_UNITS


def _ceiling_words(ceilings: Pair) -> str:
    named = zip(("epsilon", "delta"), _plain(ceilings), strict=True)
    return " and ".join(f"{name} {ceiling:g}" for name, ceiling in named if ceiling is not None)
