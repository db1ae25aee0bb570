"""One page of many runs of the benchmark."""

from collections.abc import Iterator, Sequence
from inspect import cleandoc
from pathlib import Path

import msgspec

from eyestream_lab.benchmark.figures import Interval
from eyestream_lab.benchmark.neighbours import short_name, source_of
from eyestream_lab.benchmark.picture import draw
from eyestream_lab.benchmark.run import HELD, OTHER, RAW, SAME, Judged, Run, Setting
from eyestream_lab.benchmark.verdict import is_hidden, verdict, worst

_HEADS = (
    "system", "learned, tested", "area (AUC)", "strongest", "named (rank 1)", "EER", "FRR at FAR 0.01", "seen from",
)  # fmt: skip


def schema() -> str:
    """The schema of the JSON file of a run, as JSON; the same under every Python."""
    made = msgspec.json.schema(Run)
    for one in made["$defs"].values():
        if "description" in one:
            one["description"] = cleandoc(one["description"])  # up to Python 3.12, with the margin of the source
    return msgspec.json.format(msgspec.json.encode(made), indent=1).decode()


def write_page(runs: Sequence[Run], folder: Path) -> Path:
    """Write benchmark-figures.md and a picture of each run into `folder`; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "benchmark-figures.md"
    lines = ["# Benchmark of gaze privacy: figures", ""]
    for number, run in enumerate(runs):
        picture = f"benchmark-{number + 1}.svg"
        draw(run, folder / picture)
        lines += [*_of_run(run, picture), ""]
    lines += _cards(runs)
    target.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return target


def _of_run(run: Run, picture: str) -> Iterator[str]:
    corpus = run.corpus
    yield f"## {corpus.name}"
    yield ""
    yield (
        f"{corpus.people} people, {corpus.recordings} recordings at {corpus.rate_hz:g} Hz, {corpus.hours:g} h; "
        f"tasks are {corpus.tasks_are}. Attackers: list {run.attackers}"
        + (f", and {', '.join(run.others_attackers)}" if run.others_attackers else "")
        + f". Seed {run.seed}, {run.trials} trials. eyestream {run.version}, {run.made_on}. "
        f"sha256 of the recordings: `{corpus.sha256[:16]}`. Intervals hold 95 % of draws of people."
    )
    yield from ("", f"![Usefulness of each system against the area of the strongest attacker]({picture})", "")
    yield from ("### Verdict", "", *verdict(run))
    for sessions in (OTHER, SAME, HELD):
        yield from ("", f"### Attackers know {sessions}", "")
        yield f"| {' | '.join(_HEADS)} |"
        yield "|---|---|---|---|---|---|---|---|"
        for one in run.systems:
            for setting in one.settings:
                if setting.sessions == sessions:
                    yield _line(one, setting)
    yield from ("", "### What is left, and what it costs", "")
    names = list(dict.fromkeys(name for one in run.systems for name in one.useful))
    yield f"| system | {' | '.join(names)} | processor s | MB |"
    yield "|---" * (len(names) + 3) + "|"
    for one in run.systems:
        told = [_told(one.useful[name]) if name in one.useful else "" for name in names]
        cost = one.cost
        spent = [f"{cost.processor_s}" if cost and cost.processor_s is not None else ""]
        spent.append(f"{cost.peak_mb:.0f}" if cost and cost.peak_mb is not None else "")
        yield (
            f"| {short_name(one.name)} | "
            + (one.refused.replace("|", "/") if one.refused else " | ".join([*told, *spent]))
            + " |"
        )


def _cards(runs: Sequence[Run]) -> Iterator[str]:
    """The promise of each system, and for each corpus its cost and what was found."""
    yield from ("## Systems", "")
    yield "What each promises, what it costs, and what was found where attackers know another session."
    judged = {one.name: one for run in reversed(runs) for one in run.systems if one.name != RAW}
    for name, one in sorted(judged.items(), key=lambda pair: short_name(pair[0])):
        source, differs = source_of(name)
        told = {"system": f"`{name}`"} if short_name(name) != name else {}
        told |= {"source": source, "differs": differs} if source else {"source": one.source, "differs": one.missing}
        told["promises"] = one.promise or "it says nothing"
        told |= {run.corpus.name: finding(own) for run in runs for own in run.systems if own.name == name}
        yield from ("", f"### {short_name(name)}", "", "| | |", "|---|---|")
        yield from (f"| {key} | {' '.join(text.split()).replace('|', '/')} |" for key, text in told.items() if text)


def finding(one: Judged) -> str:
    """The strongest attacker of a system who knows another session, and the cost of the system, in words."""
    found = worst(one)
    if found is None:
        return f"refused: {one.refused}"
    cost = one.cost
    spent = "" if cost is None or cost.processor_s is None else f" {cost.processor_s:.1f} s, {cost.peak_mb:.0f} MB."
    return (
        f"area {_told(found.figures.auc)} by {found.strongest} ({found.learned} learned, {found.tested} tested), "
        f"{found.rank1:.2f} named by {found.most_named}."
        + (" Hidden: nothing was seen that mere noise would not show." if is_hidden(one) else "")
        + spent
    )


def _line(one: Judged, setting: Setting) -> str:
    figures = setting.figures
    strongest = f"{setting.strongest}{', inverted' if setting.inverted else ''}"
    named = f"{setting.rank1:.2f}, {setting.most_named}"
    rejected = "; ".join(_told(rate) + f" at {far}" * (far != "0.01") for far, rate in figures.frr_at_far.items())
    seen = f"{setting.could_see_auc:.2f}; {setting.could_see_rank1:.2f}"
    both = f"{setting.learned}, {setting.tested}"
    cells = (short_name(one.name), both, _told(figures.auc), strongest, named, _told(figures.eer), rejected, seen)
    return f"| {' | '.join(cells)} |"


def _told(value: Interval) -> str:
    return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"
