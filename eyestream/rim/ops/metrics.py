"""Counters of a sidecar as Prometheus text, and whether it is healthy.

An allow-list: envelopes, rows by what became of them, chunks, messages, links. All of them follow from when messages
came and how large they were, none from a value in them. Missing values, imputations, projections are counted nowhere.
"""

from collections.abc import Iterator, Mapping

from eyestream.privacy.charge import Ceilings, decimal
from eyestream.privacy.odometer import Odometer
from eyestream.rim.sidecar.sidecar import Sidecar

__all__ = ["PLANNED", "health", "metrics"]

Sample = tuple[str, int | str]

_WITHHELD = ("owner", "lifetime", "day", "wearer", "session", "change")
"""Conditions in which nothing of a stream is released until something changes: the one that lasts longest first."""

PLANNED = frozenset({"lifetime", "day", "wearer", "session", "change"})
"""Words of `health` that no restart mends: the budget works as it should."""


def metrics(sidecar: Sidecar, odometers: Mapping[str, Odometer], ceilings: Ceilings) -> str:
    """All counters, and what devices have spent, in the text format 0.0.4 of Prometheus."""
    return "".join((*_lines(sidecar), *_budgets(odometers, ceilings)))


def _budgets(odometers: Mapping[str, Odometer], ceilings: Ceilings) -> Iterator[str]:
    spent: list[Sample] = [
        (f'{{device="{device}",scope="{scope}"}}', decimal(getattr(odometer, field)))
        for device, odometer in sorted(odometers.items())
        for scope, field in _SCOPES.items()
    ]
    allowed: list[Sample] = [
        (f'{{scope="{scope}"}}', decimal(ceiling))
        for scope in _SCOPES
        if (ceiling := getattr(ceilings, scope)) is not None
    ]
    yield from _family("epsilon_spent", "gauge", "epsilon that the ledger has for a device, by scope", spent)
    yield from _family("epsilon_ceiling", "gauge", "what it may be at most", allowed)


_SCOPES = {
    "window": "window_epsilon",
    "session": "session_epsilon",
    "day": "day_epsilon",
    "lifetime": "epsilon",
}


def health(sidecar: Sidecar) -> str:
    """``ok``, or what is wrong, in one word of a fixed list."""
    if sidecar.pipeline.failed:
        return "ledger"
    if not sidecar.raw_stands:
        return "raw_link"
    if not sidecar.private_stands:
        return "private_link"
    conditions = {sidecar.pipeline.condition(key) for key in sidecar.pipeline.keys}
    return next((word for word in _WITHHELD if word in conditions), "ok")


def _lines(sidecar: Sidecar) -> Iterator[str]:
    counters, outbox = sidecar.pipeline.counters, sidecar.outbox
    yield from _counter("raw_messages_received", "raw messages that came in", [("", sidecar.worker.received)])
    yield from _counter("raw_messages_taken", "raw messages whose rows went to their device", [("", counters.taken)])
    yield from _counter("raw_messages_rejected", "raw messages refused", _by("reason", counters.rejected))
    yield from _counter("raw_messages_dropped", "raw messages dropped: too many waited", [("", sidecar.worker.dropped)])
    rows = {
        kind: sum(getattr(sidecar.pipeline.rows(key), kind) for key in sidecar.pipeline.keys)
        for kind in ("accepted", "late", "duplicate", "stale_session", "refused", "jump", "wearer")
    }
    yield from _counter("rows", "rows by what became of them", _by("fate", rows))
    yield from _counter("chunks_due", "chunks that fell due", [("", counters.due)])
    yield from _counter("chunks_released", "chunks released", [("", counters.released)])
    yield from _counter(
        "chunks_withheld", "chunks the budget did not allow, or of a baseline", _by("ceiling", counters.withheld)
    )
    yield from _counter("chunks_dropped", "chunks lost to a fault", _by("reason", counters.dropped))
    yield from _counter("chunks_delivered", "chunks the broker acknowledged", [("", outbox.delivered)])
    stale = {"overflow": outbox.overflow, "expired": outbox.expired, "refused": outbox.refused}
    yield from _counter("chunks_undelivered", "released chunks no broker took in time", _by("reason", stale))
    yield from _counter("links", "connections made", _by("side", sidecar.links))
    up = {"raw": int(sidecar.raw_stands), "private": int(sidecar.private_stands)}
    yield from _family("link_up", "gauge", "1 when the link stands", _by("side", up))
    yield from _family("raw_messages_waiting", "gauge", "raw messages that wait", [("", sidecar.worker.held)])
    yield from _family("chunks_waiting", "gauge", "released chunks that wait for the broker", [("", len(outbox))])
    yield from _family("ledger_failed", "gauge", "1 when nothing is released", [("", int(sidecar.pipeline.failed))])


def _by(label: str, counts: Mapping[str, int]) -> list[Sample]:
    """Samples of a family by one label; all words come from fixed lists of ours."""
    return [(f'{{{label}="{word}"}}', count) for word, count in sorted(counts.items())]


def _counter(name: str, text: str, samples: list[Sample]) -> Iterator[str]:
    yield from _family(f"{name}_total", "counter", text, samples)


def _family(name: str, kind: str, text: str, samples: list[Sample]) -> Iterator[str]:
    yield f"# HELP eyestream_{name} {text}\n# TYPE eyestream_{name} {kind}\n"
    for labels, count in samples:
        yield f"eyestream_{name}{labels} {count}\n"
