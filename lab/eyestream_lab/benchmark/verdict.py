"""A verdict from figures alone: which system is useful for which purpose, and who is recognised in what it releases."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from eyestream_lab.benchmark.figures import Interval
from eyestream_lab.benchmark.neighbours import short_name
from eyestream_lab.benchmark.run import HELD, OTHER, RAW, Judged, Run, Setting


class Purpose(NamedTuple):
    """What somebody wants of a release: a figure of usefulness, and how far it may go."""

    name: str
    figure: str
    most: float | None = None
    least: float | None = None

    def meets(self, useful: Mapping[str, Interval]) -> bool:
        """Whether a release is useful for it; not where it lacks the figure."""
        if self.figure not in useful:
            return False
        value = useful[self.figure].value
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)

    @property
    def limit(self) -> str:
        """The figure and its limit, in words."""
        return f"{self.figure}: {f'at most {self.most:g}' if self.most is not None else f'at least {self.least:g}'}"


PURPOSES = (
    Purpose("pointing at things", "degrees from the raw gaze", most=2.0),
    Purpose("knowing the region that is looked at", "degrees from the raw gaze", most=6.0),
    Purpose("maps of where many people look", "divergence of saliency, nats", most=0.1),
    Purpose("how often eyes move", "relative error of saccades a second", most=0.25),
    Purpose("changes of features over time", "correlation of changes of rows", least=0.3),
)


_SHOWN = 3  # for each purpose: those in which least is recognised


def worst(system: Judged) -> Setting | None:
    """The situation with another session in which most is recognised of what is released.

    Parts of one session are no measure of who somebody is: they may share one draw of noise.
    """
    tested = RAW if system.name == RAW else "released"
    among = (one for one in system.settings if one.sessions == OTHER and one.tested == tested)
    return max(among, key=lambda one: one.figures.auc.value, default=None)


_FAMILY = 1.4
"""A verdict compares twelve figures, and *seen from* is for one: of 100 releases of mere noise, 56 to 60 stay within it
in all twelve. 96 to 98 stay within so many times as much (areas: above one half); with a single attacker, 92."""


def is_hidden(system: Judged) -> bool:
    """Whether in no situation more was seen than 95 of 100 releases of mere noise show."""
    counted = [one for one in system.settings if one.sessions != HELD]
    areas = all(one.figures.auc.value - 0.5 <= _FAMILY * (one.could_see_auc - 0.5) for one in counted)
    return areas and all(one.rank1 <= _FAMILY * one.could_see_rank1 for one in counted) and bool(counted)


def verdict(run: Run) -> Iterator[str]:
    """Lines of Markdown."""
    judged = [one for one in run.systems if one.settings and one.name != RAW]
    yield (
        "*Useful* means that the median person stays within the limit. *Area* is that of the strongest attacker who "
        f"knows another session. *Hidden* means that in no situation but the last an area (above one half) or a share "
        f"named was more than {_FAMILY:g} times *seen from*, as it would be in 5 of 100 releases of mere noise."
    )
    yield ""
    yield "| purpose | limit | useful, least recognised first (area) | hidden among them |"
    yield "|---|---|---|---|"
    both = False
    for purpose in PURPOSES:
        found = sorted((one for one in judged if purpose.meets(one.useful)), key=_area)
        hidden = [short_name(one.name) for one in found if is_hidden(one)]
        both = both or bool(hidden)
        named = ", ".join(f"{short_name(one.name)} ({_area(one):.2f})" for one in found[:_SHOWN]) or "nothing"
        named += f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        yield f"| {purpose.name} | {purpose.limit} | {named} | {', '.join(hidden) or 'nothing'} |"
    yield ""
    hides = [short_name(one.name) for one in judged if is_hidden(one)]
    yield f"Hidden at all: {', '.join(hides) or 'nothing'}." + (
        "" if both else " **Nothing here is both useful and hidden.**"
    )
    held = [s.figures.auc.value for one in judged for s in one.settings if s.sessions == HELD]
    if held:
        found_all = sum(value > 0.99 for value in held)
        yield (
            f"Who holds the raw recording itself recognises it in {found_all} of {len(held)} releases of gaze (area "
            "above 0.99). Most of them keep the number of samples."
        )


def _area(system: Judged) -> float:
    found = worst(system)
    return found.figures.auc.value if found is not None else 0.0
