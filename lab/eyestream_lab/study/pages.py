"""Parts of a study that have a page of their own, in Markdown: tables on labels, linkage, local against central.

Labels: figures, the published ones beside them, and a verdict in words. Linkage: who is linked by what, and what is
learned of them. Central: the error of a mean over N people, measured and in closed form.
"""

from collections.abc import Sequence
from typing import Any

from eyestream_lab.study.cells import Record
from eyestream_lab.study.classification import PERSON
from eyestream_lab.study.classifiers import CLASSIFIERS
from eyestream_lab.study.published_accuracy import DATA_SET, PUBLISHED
from eyestream_lab.study.report import figure_text, pipes
from eyestream_lab.study.tables import PERSON_ANEW

__all__ = ["MARGIN", "central_page", "linkage_page", "linkage_verdict", "tables_page", "verdict"]

MARGIN = 0.15
"""A task is kept when its accuracy is at most this below that on raw rows."""

_KEY = ("source", "n", "per_minute")


def _groups(records: Sequence[Record], *names: str) -> list[tuple[tuple[Any, ...], list[Record]]]:
    """In the order of their first appearance."""
    order = list(dict.fromkeys(tuple(r[name] for name in names) for r in records))
    return [(key, [r for r in records if tuple(r[name] for name in names) == key]) for key in order]


def _two(value: float) -> str:
    """Two decimals."""
    return f"{value:.2f}"


def _figure(record: Record, name: str = "voted") -> str:
    """With half of its 95 % interval over people."""
    return f"{_two(record[name])} ± {_two(record[f'{name}_interval'])}"


def _epsilon(value: float) -> str:
    return f"{value:g}" if value else ""


def tables_page(records: Sequence[Record]) -> str:
    """Page of the records of `eyestream_lab.study.tables`."""
    parts = [_summary(records)]
    for (task,), own in _groups(records, "task"):
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


def _summary(records: Sequence[Record]) -> str:
    """For each source the strongest classifier of every task, and whether tasks are kept while nobody is recognised."""
    whole = [record for record in records if not record["where"]]
    tasks = list(dict.fromkeys(record["task"] for record in whole))
    raw = {task: _strongest([r for r in whole if r["task"] == task and r["source"] == "raw"]) for task in tasks}
    rows = []
    for (source, n, per_minute), own in _groups(whole, *_KEY):
        best = {task: _strongest(group) for (task,), group in _groups(own, "task")}
        cells = [_figure(best[task]) if task in best else "" for task in tasks]
        rows.append([source, n, _epsilon(per_minute), *cells, _both(source, best, raw)])
    heads = ["source", "rows a chunk", "epsilon a minute", *tasks, "verdict"]
    return "## In one look\n\n" + pipes(heads, rows)


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


_PROTOCOLS = {
    PERSON: "First half of each recording against its second half, of one release, by majority.",
    PERSON_ANEW: "First half of each recording against its second half, each released as a session of its own, by "
    "majority.",
}
_OF_LABELS = "Leave one person out, by majority of the windows of a recording."


def _task(task: str, records: Sequence[Record]) -> str:
    first = records[0]
    raw = _strongest([record for record in records if record["source"] == "raw"])["voted"]
    head = f"## {task}\n\nChance {_two(first['chance'])}, largest class {_two(first['largest'])}; "
    head += f"{first['people']} people, {first['recordings']} recordings. {_PROTOCOLS.get(task, _OF_LABELS)}"
    head += f" Published: {DATA_SET}.\n\n" if any(key[0] == task for key in PUBLISHED) else "\n\n"
    heads = ["source", "rows", "epsilon a minute", "epsilon of a chunk", "a window, best", "k-NN", "SVM", "tree"]
    rows = []
    for (source, n, per_minute), own in _groups(records, *_KEY):
        best, by_name = _strongest(own), {record["classifier"]: record for record in own}
        window = max(own, key=lambda record: record["per_window"])
        epsilon = best["epsilon"] if per_minute else 0.0
        told = PUBLISHED.get((task, source, 0 if source == "FPA" else n, round(epsilon, 6)))
        row = [source, n, _epsilon(per_minute), _epsilon(epsilon), _two(window["per_window"])]
        row += [_figure(by_name[name]) for name in CLASSIFIERS]
        rows.append([*row, "/".join(map(_two, told or ())), "" if source == "raw" else verdict(best, raw)])
    return head + pipes([*heads, "forest", "published", "verdict of the best"], rows)


def _within(records: Sequence[Record]) -> str:
    """The best by majority within each value of the other labels."""
    if not records:
        return ""
    places = list(dict.fromkeys(record["where"] for record in records))
    rows = []
    for (source, n, per_minute), own in _groups(records, *_KEY):
        best = {place: _strongest(group) for (place,), group in _groups(own, "where")}
        cells = [_figure(best[place]) if place in best else "" for place in places]
        rows.append([source, n, _epsilon(per_minute), *cells])
    said = "The same within each value of the other labels, best classifier by majority:\n\n"
    return said + pipes(["source", "rows", "epsilon a minute", *places], rows)


def linkage_page(records: Sequence[Record]) -> str:
    """Page of the records of `eyestream_lab.study.linkage`."""
    first, rows = records[0], []
    for (source, n, per_minute), own in _groups(records, *_KEY):
        [alone] = [r for r in own if r["uses"] == "demographics"]
        for (known,), group in _groups([r for r in own if r["uses"] != "demographics"], "known"):
            gaze, both, learned = (
                max((r for r in group if r["uses"] == uses), key=lambda r: float(r[name]))
                for uses, name in (("gaze", "right"), ("both", "right"), ("gaze", "learned"))
            )
            shown = [_two(alone["right"]), _figure(gaze, "right"), _figure(both, "right"), _figure(learned, "learned")]
            rows.append([source, n, _epsilon(per_minute), known, *shown, linkage_verdict(alone, gaze, both, learned)])
    heads = ["source", "rows a chunk", "epsilon a minute", "known data set", "demographics alone", "gaze alone"]
    chance, told = _two(first["chance"]), _two(first["chance_learned"])
    return f"""## Linkage

{first["people"]} people; demographics: {first["demographics"]}. Chance of a right link {chance}; a random
link tells the right demographics of {told}. Each figure is of the strongest attacker, with half
of its 95 % interval over people.

{pipes([*heads, "both", "demographics learned by gaze", "verdict"], rows)}
"""


def linkage_verdict(alone: Record, gaze: Record, both: Record, learned: Record) -> str:
    """What gaze adds to a link, and what a link by gaze tells, in words."""
    links = gaze["right"] - gaze["right_interval"] > gaze["chance"]
    adds = both["right"] - both["right_interval"] > alone["right"]
    tells = learned["learned"] - learned["learned_interval"] > learned["chance_learned"]
    words = ["gaze links" if links else "gaze alone at chance"]
    words.append("adds to demographics" if adds else "adds nothing to demographics")
    words.append("tells demographics" if tells else "tells no demographics")
    return ", ".join(words)


def central_page(records: Sequence[Record]) -> str:
    """Page of the records of `eyestream_lab.study.central`."""
    return f"""## How many people a mean needs

Closed form: people until the squared error of the mean is this share of the variance of one person's chunk.

{_needed([record for record in records if record.get("target")])}

## The error of a mean over N people

Squared error over the variance of one person's chunk, median feature; in brackets the closed form.

{_errors([record for record in records if not record.get("target")])}
"""


def _needed(records: Sequence[Record]) -> str:
    columns = [(target, model) for (target,), _ in _groups(records, "target") for model in ("local", "central")]
    rows = []
    for (mechanism, epsilon), own in _groups(records, "mechanism", "epsilon"):
        people = {(record["target"], record["model"]): record["people"] for record in own}
        rows.append([mechanism, f"{epsilon:g}", *(f"{people[column]:,}" for column in columns)])
    heads = ["mechanism", "epsilon of a chunk", *(f"{model}, {target:g}" for target, model in columns)]
    return pipes(heads, rows)


def _errors(records: Sequence[Record]) -> str:
    numbers, rows = sorted({record["people"] for record in records}), []
    for (mechanism, epsilon, model), own in _groups(records, "mechanism", "epsilon", "model"):
        by_number = {record["people"]: record for record in own}
        rows.append([mechanism, f"{epsilon:g}", model, *(_error(by_number[number]) for number in numbers)])
    return pipes(["mechanism", "epsilon of a chunk", "model", *(f"N = {number}" for number in numbers)], rows)


def _error(record: Record) -> str:
    told = record.get("expected_median")
    return figure_text(record["error_median"]) + (f" ({figure_text(told)})" if told is not None else "")
