"""What a wearer is told, in at most `MOST_WORDS` plain words: made of the configuration, the ledger and the grants.

It makes no promise of its own: figures are those of the guarantee and of the ledger, rounded up.
"""

import html
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from eyestream.core.meter import Odometer
from eyestream.core.scopes import duration
from eyestream.rim.plan import Plan
from eyestream.rim.plan.stream import StreamPlan
from eyestream.rim.plan.words import measured_figures
from eyestream.streams import GAZE

MOST_WORDS = 250
TITLE = "What this device tells others about your eyes"

_GUESS = 1000
"""A guess that is right once in so many tries is the example."""

_MANY = "Many messages reveal much more, and we cannot promise a limit."
_SECONDS_A_DAY = 86_400
_COARSE, _FINE = "roughly where you look", "how your eyes move"
_PARTS_OF = {
    "saccade": "how they jump",
    "fixation": "how long they rest",
    "blink": "how they blink",
    "diameter": "how wide the pupils are",
}
"""What features are about, by a part of their names."""


class Part(NamedTuple):
    """A heading and its sentences."""

    heading: str
    sentences: list[str]


class Situation(NamedTuple):
    """What is so now: who hears which streams (None: not known here), what each device has spent, since when."""

    hears: Mapping[str, Iterable[str]] | None
    odometers: Mapping[str, Odometer]
    created: int
    paused: bool
    now: float


def explanation(plan: Plan, state: Situation, config: str) -> list[Part]:
    """The whole page; `config` is how commands name the configuration."""
    streams = list(plan.streams.values())
    return [
        Part(
            "What leaves",
            [_leaves(stream) for stream in streams]
            + ["Before it leaves, random changes make much of it wrong on purpose."],
        ),
        Part("What stays here", ["Where exactly you look. This is used here, then forgotten. It is never stored."]),
        Part("Who gets it", _who(plan, state)),
        Part("What others could learn", _guesses(streams)),
        Part("For how long", ["Others can keep what they have received for ever.", *_limit(streams)]),
        Part("Sent so far", _used(plan, state)),
        Part(
            "How to stop",
            [
                *(["Sending is paused: nothing leaves now."] if state.paused else []),
                "Ask the administrator of this device to type:",
                f"{'Resume' if state.paused else 'Stop everything'}: "
                f"eyestream {'resume' if state.paused else 'pause'} --config {config}",
                *([f"Stop one program: eyestream revoke NAME --config {config}"] if state.hears else []),
                "What was already sent cannot be taken back.",
            ],
        ),
    ]


def _leaves(stream: StreamPlan) -> str:
    names, seconds = stream.mechanism.schema.names, stream.chunk_s
    every = "Every second" if seconds == 1 else f"Every {duration(seconds) if seconds >= 1 else f'{seconds:g} s'}"
    if stream_words(stream) == _COARSE:
        return f"{every}, {_COARSE}."
    found = [words for part, words in _PARTS_OF.items() if any(part in name for name in names)]
    if found:
        return f"{every}, {_FINE}: {_and(found)}."
    return f"{every}, {_FINE}: {_and(names[:3])}{' and more' if len(names) > 3 else ''}."


def stream_words(stream: StreamPlan) -> str:
    """What a stream is about, for somebody who knows nothing of it."""
    return _COARSE if GAZE.keys() <= set(stream.mechanism.schema.names) else _FINE


def _who(plan: Plan, state: Situation) -> list[str]:
    if state.hears is None:
        return [f"Any program that can connect to {plan.settings.private.url}. Nobody has limited which programs may."]
    found = [
        f"{name}: {_and(sorted({stream_words(plan.streams[one]) for one in streams}))}"
        for name, streams in sorted(state.hears.items())
        if streams
    ]
    if not found:
        return ["Nobody."]
    more = [f"{len(found) - 4} more: type eyestream grants"] if len(found) > 5 else found[4:]
    return ["These programs, and anyone they pass it on to:", *found[:4], *more]


def _guesses(streams: Sequence[StreamPlan]) -> list[str]:
    gains = [stream.guarantee.gain for stream in streams]
    known = [gain for gain in gains if gain is not None]
    said = []
    if known and len(known) == len(gains) and max(known) < _GUESS:
        said.append(
            "One message reveals little. Without it, a guess about that moment (tired? reading?) may be right 1 time "
            f"in {_GUESS:,}. With it, right up to {math.ceil(max(known))} times in {_GUESS:,}. {_MANY}"
        )
    else:
        said.append(f"One message can make a guess about that moment much better. {_MANY}")
    measured = [measured_figures(s.mechanism, s.spec.rate_hz, s.settings.privacy.calibration) for s in streams]
    tested = [found[1] for found in measured if found is not None]
    if tested and len(tested) == len(streams):
        worst = max(tested, key=lambda one: float(one["rate"]))
        said.append(
            "They may recognise you. In tests, the best attempt named "
            f"{100 * worst['rate']:.0f} of 100 people correctly. Luck alone would name {100 * worst['chance']:.0f}."
        )
    else:
        said.append("They may recognise you.")
    return [*said, "They can see when you use the device."]


def _limit(streams: Sequence[StreamPlan]) -> list[str]:
    days = [scope.seconds for stream in streams for scope in stream.guarantee.scopes if scope.unit == "day"]
    most = max((seconds for seconds in days if seconds is not None), default=None)
    if most is None or most >= _SECONDS_A_DAY:
        return []
    return [f"After {duration(most)} of sending, nothing more leaves that day."]


def _used(plan: Plan, state: Situation) -> list[str]:
    today, day = int(state.now) // _SECONDS_A_DAY, plan.ceilings.day
    mine = {device.id: state.odometers.get(device.id) for device in plan.settings.device}
    said = []
    for device, spent in mine.items():
        of = f"{device}: " if len(mine) > 1 else ""
        if spent is None or not spent.released:
            said.append(f"{of}Nothing yet.")
            continue
        on_day = spent.day_epsilon if spent.day == today else 0
        share = "" if day is None else f"{of}Today: {math.ceil(100 * on_day / day)}% of the daily limit. "
        weeks = (state.now - state.created) / (7 * _SECONDS_A_DAY)
        per_week = f", about {math.ceil(spent.released / weeks):,} a week" if state.created and weeks > 1 else ""
        since = time.strftime("%Y-%m-%d", time.gmtime(state.created)) if state.created else "the beginning"
        whose = ", of all who wore it" if len(spent.wearers) > 1 else ""
        said.append(f"{share}Since {since}: {spent.released:,} messages{whose}{per_week}.")
    return said


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def as_text(parts: Iterable[Part], width: int) -> str:
    """For a terminal of `width` columns."""
    import textwrap  # noqa: PLC0415  one of three

    lines = [TITLE.upper()]
    for part in parts:
        lines += ["", part.heading]
        for sentence in part.sentences:
            lines += textwrap.wrap(
                sentence, width, initial_indent="  ", subsequent_indent="    ", break_long_words=False
            )
    return "\n".join(lines)


def as_markdown(parts: Iterable[Part]) -> str:
    """For a page in Markdown."""
    blocks = [f"## {part.heading}\n\n" + "\n".join(f"- {one}" for one in part.sentences) for part in parts]
    return "\n\n".join([f"# {TITLE}", *blocks])


def as_html(parts: Iterable[Part]) -> str:
    """For a browser: one file, which loads nothing."""
    blocks = [
        f"<h2>{html.escape(part.heading)}</h2>\n<ul>\n"
        + "\n".join(f"<li>{html.escape(one)}</li>" for one in part.sentences)
        + "\n</ul>"
        for part in parts
    ]
    style = "body{font:1.1em/1.5 sans-serif;max-width:40em;margin:2em auto;padding:0 1em}"
    head = f'<meta charset="utf-8"><title>{TITLE}</title><style>{style}</style>'
    return (
        f'<!doctype html>\n<html lang="en">{head}\n<body>\n<h1>{TITLE}</h1>\n' + "\n".join(blocks) + "\n</body></html>"
    )
