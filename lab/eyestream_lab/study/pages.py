"""Parts of a study that have a page of their own, in Markdown: tables on labels, linkage, local against central.

Labels: figures, the published ones beside them, and a verdict in words. Linkage: who is linked by what, and what is
learned of them. Central: the error of a mean over N people, measured and in closed form.

Accuracies that Bozkir et al. (PLOS ONE 2021, tables 1 to 5) print, by majority vote.

Other people, other recordings, k chosen from the data and sensitivities between participants: compare orders and
slopes. Leave one person out for documents; first against second half of a recording for people. Windows of 30 s, one
row each 0.5 s, on MPIIDPEye: 20 people, three documents.
"""

from collections.abc import Sequence
from typing import Any

from eyestream_lab.study.cells import Record
from eyestream_lab.study.classification import PERSON
from eyestream_lab.study.classifiers import CLASSIFIERS
from eyestream_lab.study.report import figure_text, pipes
from eyestream_lab.study.tables import PERSON_ANEW

MARGIN = 0.15
"""A task is kept when its accuracy is at most this below that on raw rows."""

_KEY = ("source", "n", "per_minute")

DATA_SET = "MPIIDPEye, 20 people"

_Row = tuple[float, float, float, float]

PUBLISHED: dict[tuple[str, str, int, float], _Row] = {
    ("document", "FPA", 0, 0.48): (0.50, 0.63, 0.82, 0.87),
    ("document", "FPA", 0, 4.8): (0.50, 0.61, 0.81, 0.87),
    ("document", "FPA", 0, 48.0): (0.52, 0.64, 0.83, 0.88),
    ("document", "CFPA", 32, 0.48): (0.39, 0.37, 0.45, 0.44),
    ("document", "CFPA", 32, 4.8): (0.40, 0.44, 0.46, 0.44),
    ("document", "CFPA", 32, 48.0): (0.71, 0.69, 0.66, 0.66),
    ("document", "CFPA", 64, 0.48): (0.41, 0.36, 0.45, 0.45),
    ("document", "CFPA", 64, 4.8): (0.40, 0.41, 0.44, 0.45),
    ("document", "CFPA", 64, 48.0): (0.70, 0.70, 0.66, 0.66),
    ("document", "CFPA", 128, 0.48): (0.36, 0.33, 0.45, 0.45),
    ("document", "CFPA", 128, 4.8): (0.37, 0.35, 0.44, 0.45),
    ("document", "CFPA", 128, 48.0): (0.69, 0.68, 0.64, 0.66),
    ("document", "DCFPA", 32, 0.48): (0.51, 0.37, 0.46, 0.44),
    ("document", "DCFPA", 32, 4.8): (0.47, 0.35, 0.47, 0.43),
    ("document", "DCFPA", 32, 48.0): (0.48, 0.36, 0.47, 0.45),
    ("document", "DCFPA", 64, 0.48): (0.61, 0.45, 0.43, 0.41),
    ("document", "DCFPA", 64, 4.8): (0.56, 0.41, 0.43, 0.41),
    ("document", "DCFPA", 64, 48.0): (0.59, 0.40, 0.44, 0.43),
    ("document", "DCFPA", 128, 0.48): (0.64, 0.45, 0.46, 0.48),
    ("document", "DCFPA", 128, 4.8): (0.69, 0.50, 0.44, 0.46),
    ("document", "DCFPA", 128, 48.0): (0.60, 0.42, 0.45, 0.46),
    ("person", "FPA", 0, 0.48): (1.0, 1.0, 1.0, 1.0),
    ("person", "FPA", 0, 4.8): (1.0, 1.0, 1.0, 1.0),
    ("person", "FPA", 0, 48.0): (1.0, 1.0, 1.0, 1.0),
    ("person", "CFPA", 32, 0.48): (0.15, 0.08, 0.44, 0.37),
    ("person", "CFPA", 32, 48.0): (0.72, 0.16, 0.87, 0.92),
    ("person", "CFPA", 128, 0.48): (0.16, 0.05, 0.39, 0.36),
    ("person", "CFPA", 128, 48.0): (0.70, 0.16, 0.74, 0.88),
    ("person", "DCFPA", 32, 0.48): (0.06, 0.10, 0.39, 0.37),
    ("person", "DCFPA", 32, 48.0): (0.10, 0.10, 0.40, 0.38),
    ("person", "DCFPA", 128, 0.48): (0.09, 0.05, 0.24, 0.28),
    ("person", "DCFPA", 128, 48.0): (0.10, 0.05, 0.22, 0.25),
}
"""By task, mechanism, rows a chunk (0: the whole recording) and epsilon of a chunk or recording: k-NN, SVM, decision
tree, random forest."""


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
    """Words on an accuracy by majority: whether it is above chance, and how far below the one on raw rows."""
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
    """Words on what gaze adds to a link, and what a link by gaze tells."""
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
