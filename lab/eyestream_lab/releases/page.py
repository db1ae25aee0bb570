"""Pages of studies of systems that release corpora."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.releases.gaze import EVENTS, STATISTICS
from eyestream_lab.releases.known import NUMBER
from eyestream_lab.releases.published import ACTIVITY, PUBLISHED, verdict

Cell = Mapping[str, Any]
_BEFORE = "matched, all tasks"
"""In cells from before the attackers of `eyestream_lab.releases.known`."""
_MINUTES = {
    "k-same-synth": 2.2,
    "event-synth-pd": 14.8,
    "event-synth-pd-centred": 14.8,
    "marginals-pd": 30.0,
    "kaleido": 5.2,
}
"""Minutes as published: for 15 hours of 30 people (EHTask) on an i7-6800K; of Marginals no more is said."""


def page(cells: Mapping[str, Cell]) -> str:
    """Tables of the cells of one corpus, by the line that each stands in; `raw` is the corpus as it is."""
    return "\n".join(["# Systems that release corpora", "", *_tables(cells, "##")]) + "\n"


def figures(corpora: Sequence[Mapping[str, Cell]], hours: Sequence[Cell]) -> str:
    """One page of several corpora, and of what releases of many hours took (`tools.verification.release_hours`)."""
    lines = [
        "# Releases of whole corpora: figures",
        "",
        "Made by `python -m tools.make.release_figures` from the cells in `releases-figures.json`. "
        "[releases-of-corpora.md](releases-of-corpora.md) explains the systems.",
    ]
    for cells in corpora:
        lines += ["", f"## {cells['raw']['corpus']}", "", *_tables(cells, "###")]
    return "\n".join([*lines, "", "## Time and memory", "", *_hours(hours)]) + "\n"


def _hours(cells: Sequence[Cell]) -> Iterator[str]:
    yield (
        "Simulated gaze at 100 Hz, one task, one process; seconds of its processor, and its largest memory. The "
        "machine had other work. Published minutes are for 15 hours on another machine."
    )
    yield ""
    yield "| system | hours | people | processor s | minutes | published minutes, 15 hours | MB |"
    yield "|---|---|---|---|---|---|---|"
    for cell in cells:
        seconds, published = cell["processor_s"], _MINUTES.get(cell["system"], "")
        told = (cell["system"], f"{cell['hours']:g}", cell["people"], f"{seconds:.0f}", f"{seconds / 60:.1f}")
        yield f"| {' | '.join(map(str, told))} | {published} | {cell['peak_mb']} |"


def _tables(cells: Mapping[str, Cell], heading: str) -> list[str]:
    """Under headings of a level."""
    raw = cells["raw"]
    days = sorted({cell["made_on"] for cell in cells.values()})
    lines = [
        f"Corpus: {raw['corpus']}, {raw['people']} people, {raw['tasks']} tasks, {raw['splits']} ways to cut the tasks "
        f"into a half to learn from and one to test. Made {' to '.join(days[:: max(1, len(days) - 1)])}, one release a "
        "line. Errors are standard errors over people; none is given where all people have one value."
    ]
    parts = {"Who is recognised": _recognised(cells), "What is left": _useful(cells)}
    if raw.get("chance_traits"):
        parts["What is told of people"] = _traits(cells)
    parts["Beside the papers"] = _beside(cells)
    for name, part in parts.items():
        lines += ["", f"{heading} {name}", "", *part]
    return lines


def _recognised(cells: Mapping[str, Cell]) -> Iterator[str]:
    yield (
        f"Shares of people who are named rightly; chance is {cells['raw']['chance_person']:.2f}. Attackers learn from "
        "released recordings, and are tested on raw or on released ones. *All known*: the attacker has all raw "
        "recordings, of one task or of all. The strongest attacker of those tried is shown by name. Another one may be "
        "stronger, so no share here is a limit. A star marks a line that was made before these attackers: "
        "by assigning rows alone, or not at all. *Number*: by the number of samples, which most claims list."
    )
    yield ""
    tested = (f"{EVENTS}, raw tested", "best, raw tested", "best, released tested")
    heads = ("epsilon of a person", *tested, "all known, one task", "all known, all tasks", "number, one task")
    yield f"| system | {' | '.join(heads)} |"
    yield "|---|" + "---|" * len(heads)
    for key, cell in cells.items():
        if "refused" in cell:
            yield f"| {key} | refused: {cell['refused']} | | | | | | |"
            continue
        loss = cell.get("claim", {}).get("loss")
        epsilon = f"{loss['epsilon']:.3g}" if loss else ""
        both = [_best(cell, (tested,)) for tested in ("raw", "released")]
        both += _known(cell)
        yield f"| {key} | {epsilon} | {_share(_values(cell, EVENTS))} | {' | '.join(both)} |"


def _known(cell: Cell) -> tuple[str, str, str]:
    """The strongest who hold raw recordings, of one task and of all, and who read the number of samples alone."""
    if _BEFORE in cell:
        return "", f"{cell[_BEFORE]:.2f}, rows \\*", ""
    if "known" not in cell:
        return "", "\\*", ""
    known = dict(cell["known"])
    number = f"{known.pop(NUMBER)[0]:.2f}" if NUMBER in known else ""
    if not known:
        return "", "", number
    one, every = (max(known, key=lambda name: float(known[name][i])) for i in (0, 1))
    return f"{known[one][0]:.2f}, {one}", f"{known[every][1]:.2f}, {every}", number


def _traits(cells: Mapping[str, Cell]) -> Iterator[str]:
    """Labels of people, each by the attacker who names most."""
    chances = cells["raw"]["chance_traits"]
    yield (
        "Labels of people, learned from released recordings of other people. Each class counts as much as another. "
        f"Chance is {', '.join(f'{chance:.2f} for {name}' for name, chance in chances.items())}. The stronger of two "
        "attackers is shown."
    )
    silent = [name for name, chance in chances.items() if _by_chance(cells["raw"]["traits"][name], chance)]
    if silent:
        yield (
            f"Raw recordings are within two standard errors of chance for {' and '.join(silent)}. So this corpus "
            "cannot show what a release hides of it, and larger values below are those of many tries."
        )
    yield ""
    yield f"| system | {' | '.join(f'{name}, {tested} tested' for name in chances for tested in ('raw', 'released'))} |"
    yield "|---|" + "---|" * (2 * len(chances))
    for key, cell in cells.items():
        if "traits" in cell:
            both = [_strongest(cell["traits"][name], (one,)) for name in chances for one in ("raw", "released")]
            yield f"| {key} | {' | '.join(both)} |"


def _by_chance(attackers: Mapping[str, Any], chance: float) -> bool:
    """Whether no attacker on raw recordings is two standard errors above chance."""
    found = [values for both in attackers.values() if (values := _array(both["raw"])) is not None]
    return all(values.mean() <= chance + 2 * values.std(ddof=1) / np.sqrt(len(values)) for values in found)


def _useful(cells: Mapping[str, Cell]) -> Iterator[str]:
    yield (
        "Beside the strongest attacker of all. Activities by a random forest of the other people; chance is "
        f"{cells['raw']['chance_task']:.2f}. The error of prediction is of other people's raw gaze 0.15 s later."
    )
    yield ""
    heads = ("strongest attacker", ACTIVITY, *STATISTICS, "KL of saliency", "prediction, degrees", "processor s")
    yield f"| system | {' | '.join(heads)} |"
    yield "|---|" + "---|" * len(heads)
    for key, cell in cells.items():
        if "refused" in cell:
            continue
        told = [_best(cell, ("raw", "released")), _share(_values(cell, ACTIVITY))]
        told += [_share(_array(cell.get("statistics", {}).get(name))) for name in STATISTICS]
        told += [f"{cell['kl']:.3f}" if "kl" in cell else "", _share(_array(cell.get("predicted_deg")))]
        told += [f"{cell['processor_s']:.0f}" if "processor_s" in cell else ""]
        yield f"| {key} | {' | '.join(told)} |"


def _beside(cells: Mapping[str, Cell]) -> Iterator[str]:
    named = sorted({one.paper.corpus for one in PUBLISHED})
    yield (
        "A paper's share is judged on the paper's own corpus alone: give its folder, and its name "
        f"(--corpus {', '.join(named)}). On another corpus it is judged in kind: what a system leaves of the share "
        "above chance that raw gaze has. Published lines that were not released here are left out."
    )
    yield ""
    lines = list(_judged(cells))
    said = [line[-1].partition(": ")[2] if line[-1].startswith("in kind") else line[-1] for line in lines]
    counts = [(way, sum(one.startswith(way) for one in said)) for way in _WAYS]
    yield (
        f"Of {len(lines)} lines: {', '.join(f'{count} {way}' for way, count in counts)}. *Not decided*: raw gaze or a "
        "guess would pass the same comparison in the place of ours."
    )
    yield ""
    yield "| system | what | corpus of the paper | published | ours, here | verdict |"
    yield "|---|---|---|---|---|---|"
    yield from (f"| {' | '.join(line)} |" for line in lines)


_WAYS = ("reproduced", "not reproduced", "not decided", "not judged")


def _judged(cells: Mapping[str, Cell]) -> Iterator[tuple[str, ...]]:
    """The cells of each line beside the papers, the verdict last."""
    raw = cells["raw"]
    for one in PUBLISHED:
        before, own = _values(raw, one.paper.measure), _values(cells.get(one.line, {}), one.paper.measure)
        if raw["corpus"] != one.paper.corpus and (own is None or one.paper.raw is None):
            continue
        if before is None:
            said = "not judged: this corpus has no such measure"
        else:
            chance = raw["chance_task" if one.paper.measure == ACTIVITY else "chance_person"]
            said = verdict(one, raw["corpus"], own, before, chance)
        what = one.paper.measure if one.paper.measure == ACTIVITY else f"person, {one.paper.measure}"
        yield one.line, what, one.paper.corpus, f"{one.share:.2f}", _share(own), said


def _values(cell: Cell, measure: str) -> NDArray[np.float64] | None:
    """(N,) of an attacker on raw recordings, or of activities."""
    if measure == ACTIVITY:
        return _array(cell.get(ACTIVITY))
    return _array(cell.get("recognised", {}).get(measure, {}).get("raw"))


def _array(values: Sequence[float | None] | None) -> NDArray[np.float64] | None:
    found = np.array([value for value in values or () if value is not None])
    return found if len(found) else None


def _best(cell: Cell, tested: Sequence[str]) -> str:
    """Share of the attacker who names most people."""
    return _strongest(cell.get("recognised", {}), tested)


def _strongest(attackers: Mapping[str, Any], tested: Sequence[str]) -> str:
    """The attacker who names most."""
    found = [_array(both[which]) for both in attackers.values() for which in tested]
    there = [values for values in found if values is not None]
    return _share(max(there, key=np.mean)) if there else ""


def _share(values: NDArray[np.float64] | None) -> str:
    """Mean and standard error over people."""
    if values is None:
        return ""
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}" if np.ptp(values) > 0 else ""
    return f"{values.mean():.2f}{error}"
