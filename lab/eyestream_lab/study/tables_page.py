"""The tables on labels as a page: figures, the published ones beside them, and a verdict in words."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from eyestream_lab.study.cells import Record
from eyestream_lab.study.classification import PERSON
from eyestream_lab.study.classifiers import CLASSIFIERS
from eyestream_lab.study.published_accuracy import DATA_SET, PUBLISHED
from eyestream_lab.study.tables import PERSON_ANEW

__all__ = ["MARGIN", "groups", "page", "two", "verdict"]

MARGIN = 0.15
"""A task is kept when its accuracy is at most this below that on raw rows."""


def page(records: Sequence[Record]) -> str:
    """Markdown of the records of `eyestream_lab.study.tables`."""
    parts = [_summary(records)]
    for task in dict.fromkeys(record["task"] for record in records):
        own = [record for record in records if record["task"] == task]
        parts += [_task(task, [r for r in own if not r["where"]]), _within([r for r in own if r["where"]])]
    return "\n\n".join(part for part in parts if part) + "\n"


def verdict(record: Record, raw: float) -> str:
    """What an accuracy by majority says: whether it is above chance, and how far below the one on raw rows."""
    words = "above chance" if _above(record) else "at chance"
    lost = round(100 * (raw - record["voted"]))
    return f"{words}, {lost} point{'s' * (lost != 1)} below raw" if lost > 0 else f"{words}, no less than raw"


def _strongest(records: Sequence[Record]) -> Record:
    """The classifier that does best by majority, then a window."""
    return max(records, key=lambda record: (record["voted"], record["per_window"]))


def groups(records: Sequence[Record], *names: str) -> list[tuple[tuple[Any, ...], list[Record]]]:
    """In the order of their first appearance."""
    order = list(dict.fromkeys(tuple(r[name] for name in names) for r in records))
    return [(key, [r for r in records if tuple(r[name] for name in names) == key]) for key in order]


def _summary(records: Sequence[Record]) -> str:
    """For each source the strongest classifier of every task, and whether tasks are kept while nobody is recognised."""
    whole = [record for record in records if not record["where"]]
    tasks = list(dict.fromkeys(record["task"] for record in whole))
    raw = {task: _strongest([r for r in whole if r["task"] == task and r["source"] == "raw"]) for task in tasks}
    lines = [
        "| source | rows a chunk | epsilon a minute | " + " | ".join(tasks) + " | verdict |",
        "|---|---|---|" + "---|" * len(tasks) + "---|",
    ]
    for (source, n, per_minute), own in groups(whole, "source", "n", "per_minute"):
        best = {task: _strongest(group) for (task,), group in groups(own, "task")}
        cells = " | ".join(_figure(best[task]) if task in best else "" for task in tasks)
        lines.append(f"| {source} | {n} | {_epsilon(per_minute)} | {cells} | {_both(source, best, raw)} |")
    return "## In one look\n\n" + "\n".join(lines)


def _both(source: str, best: dict[str, Record], raw: dict[str, Record]) -> str:
    if source == "raw":
        return "nothing is protected"
    tasks = [task for task in best if task not in (PERSON, PERSON_ANEW)]
    kept = [t for t in tasks if _above(best[t]) and best[t]["voted"] >= raw[t]["voted"] - MARGIN]
    words = f"keeps {', '.join(kept)}" if kept else "keeps no task"
    person = best.get(PERSON_ANEW)
    if person is None:
        return words
    return f"{words}; people {'recognised' if _above(person) else 'at chance'}"


def _above(record: Record) -> bool:
    """Whether an accuracy is above chance by more than its interval."""
    return bool(record["voted"] - record["voted_interval"] > max(record["chance"], record["largest"]))


def _task(task: str, records: Sequence[Record]) -> str:
    first = records[0]
    raw = _strongest([record for record in records if record["source"] == "raw"])["voted"]
    head = f"## {task}\n\nChance {two(first['chance'])}, largest class {two(first['largest'])}; "
    head += f"{first['people']} people, {first['recordings']} recordings. {_protocol(task)}"
    head += f" Published: {DATA_SET}.\n\n" if any(key[0] == task for key in PUBLISHED) else "\n\n"
    lines = [
        "| source | rows | epsilon a minute | epsilon of a chunk | a window, best | k-NN | SVM | tree | forest | "
        "published | verdict of the best |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (source, n, per_minute), own in groups(records, "source", "n", "per_minute"):
        best, by_name = _strongest(own), {record["classifier"]: record for record in own}
        window = max(own, key=lambda record: record["per_window"])
        voted = " | ".join(_figure(by_name[name]) for name in CLASSIFIERS)
        epsilon = best["epsilon"] if per_minute else 0.0
        told = PUBLISHED.get((task, source, 0 if source == "FPA" else n, round(epsilon, 6)))
        beside = "/".join(two(value) for value in told) if told else ""
        words = "" if source == "raw" else verdict(best, raw)
        key = f"| {source} | {n} | {_epsilon(per_minute)} | {_epsilon(epsilon)} | {two(window['per_window'])} "
        lines.append(f"{key}| {voted} | {beside} | {words} |")
    return head + "\n".join(lines)


def _protocol(task: str) -> str:
    if task == PERSON:
        return "First half of each recording against its second half, of one release, by majority."
    if task == PERSON_ANEW:
        return (
            "First half of each recording against its second half, each released as a session of its own, by majority."
        )
    return "Leave one person out, by majority of the windows of a recording."


def _within(records: Sequence[Record]) -> str:
    """The best by majority within each value of the other labels."""
    if not records:
        return ""
    places = list(dict.fromkeys(record["where"] for record in records))
    lines = [
        "| source | rows | epsilon a minute | " + " | ".join(places) + " |",
        "|---|---|---|" + "---|" * len(places),
    ]
    for (source, n, per_minute), own in groups(records, "source", "n", "per_minute"):
        by_place = {key: list(group) for key, group in groupby(sorted(own, key=_where), key=_where)}
        cells = " | ".join(_figure(_strongest(by_place[place])) if place in by_place else "" for place in places)
        lines.append(f"| {source} | {n} | {_epsilon(per_minute)} | {cells} |")
    return "The same within each value of the other labels, best classifier by majority:\n\n" + "\n".join(lines)


def _where(record: Record) -> str:
    return str(record["where"])


def _figure(record: Record) -> str:
    """Accuracy by majority with half of its 95 % interval over people."""
    return f"{two(record['voted'])} ± {two(record['voted_interval'])}"


def two(value: float) -> str:
    """Two decimals."""
    return f"{value:.2f}"


def _epsilon(value: float) -> str:
    return f"{value:g}" if value else ""
