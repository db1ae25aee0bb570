"""One page of many runs of the benchmark."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from eyestream_lab.benchmark.figures import Interval
from eyestream_lab.benchmark.neighbours import source_of
from eyestream_lab.benchmark.picture import draw
from eyestream_lab.benchmark.run import HELD, OTHER, SAME, Judged, Run, Setting
from eyestream_lab.benchmark.verdict import is_hidden, verdict, worst

__all__ = ["schema", "write_page"]


_HEADS = (
    "system", "learned, tested", "area (AUC)", "strongest", "named (rank 1)", "EER", "FRR at FAR 0.01", "seen from",
)  # fmt: skip


def schema() -> str:
    """The schema of the JSON file of a run, as JSON."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Run)), indent=1).decode()


def write_page(runs: Sequence[Run], folder: Path) -> Path:
    """Write benchmark-figures.md and a picture of each run into `folder`; the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "benchmark-figures.md"
    lines = ["# Benchmark of gaze privacy: figures", ""]
    for number, run in enumerate(runs):
        picture = f"benchmark-{number + 1}.svg"
        draw(run, folder / picture)
        lines += [*_of_run(run, picture), ""]
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
            f"| {one.name} | {' | '.join([*told, *spent])} |" if not one.refused else f"| {one.name} | {one.refused} |"
        )


def _card(one: Judged) -> Iterator[str]:
    """What it promises, what it costs, what was found."""
    yield f"#### {one.name}"
    yield ""
    known = source_of(one.name)
    source, missing = one.source or known[0], one.missing or known[1]
    if source:
        yield f"- **Source**: {source}." + (f" Not taken from it: {missing}." if missing else "")
    if one.refused:
        yield f"- **Not judged**: {one.refused.replace('|', '/')}."
        yield ""
        return
    yield f"- **Promises**: {' '.join(one.promise.split()) or 'it says nothing'}"
    if one.cost is not None and one.cost.processor_s is not None:
        yield f"- **Costs**: {one.cost.processor_s:.1f} s of a processor, at most {one.cost.peak_mb:.0f} MB."
    found = worst(one)
    if found is not None:
        area = found.figures.auc
        yield (
            f"- **Found**: area {_told(area)} by {found.strongest}, where attackers know {found.sessions} "
            f"({found.learned} learned, {found.tested} tested); {found.rank1:.2f} of the people are named, by "
            f"{found.most_named}. "
            + ("Nothing was seen that exchanged people would not show." if is_hidden(one) else "")
        )
    yield ""


def _line(one: Judged, setting: Setting) -> str:
    figures = setting.figures
    strongest = f"{setting.strongest}{', inverted' if setting.inverted else ''}"
    named = f"{setting.rank1:.2f}, {setting.most_named}"
    rejected = _told(figures.frr_at_far["0.01"])
    seen = f"{setting.could_see_auc:.2f}; {setting.could_see_rank1:.2f}"
    both = f"{setting.learned}, {setting.tested}"
    cells = (one.name, both, _told(figures.auc), strongest, named, _told(figures.eer), rejected, seen)
    return f"| {' | '.join(cells)} |"


def _told(value: Interval) -> str:
    return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"
