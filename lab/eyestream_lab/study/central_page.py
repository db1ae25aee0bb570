"""Local against central as a page: the error of a mean over N people, measured and in closed form."""

from collections.abc import Sequence

from eyestream_lab.study.cells import Record
from eyestream_lab.study.report import figure_text
from eyestream_lab.study.tables_page import groups

__all__ = ["page"]


def page(records: Sequence[Record]) -> str:
    """Markdown of the records of `eyestream_lab.study.central`."""
    return f"""## How many people a mean needs

Closed form: people until the squared error of the mean is this share of the variance of one person's chunk.

{_needed([record for record in records if record.get("target")])}

## The error of a mean over N people

Squared error over the variance of one person's chunk, median feature; in brackets the closed form.

{_errors([record for record in records if not record.get("target")])}
"""


def _needed(records: Sequence[Record]) -> str:
    targets = list(dict.fromkeys(record["target"] for record in records))
    heads = " | ".join(f"local, {target:g} | central, {target:g}" for target in targets)
    lines = [f"| mechanism | epsilon of a chunk | {heads} |", "|---|---|" + "---|---|" * len(targets)]
    for (mechanism, epsilon), own in groups(records, "mechanism", "epsilon"):
        people = {(record["target"], record["model"]): record["people"] for record in own}
        cells = " | ".join(f"{people[target, model]:,}" for target in targets for model in ("local", "central"))
        lines.append(f"| {mechanism} | {epsilon:g} | {cells} |")
    return "\n".join(lines)


def _errors(records: Sequence[Record]) -> str:
    numbers = sorted({record["people"] for record in records})
    heads = " | ".join(f"N = {number}" for number in numbers)
    lines = [f"| mechanism | epsilon of a chunk | model | {heads} |", "|---|---|---|" + "---|" * len(numbers)]
    for (mechanism, epsilon, model), own in groups(records, "mechanism", "epsilon", "model"):
        by_number = {record["people"]: record for record in own}
        cells = " | ".join(_cell(by_number[number]) for number in numbers)
        lines.append(f"| {mechanism} | {epsilon:g} | {model} | {cells} |")
    return "\n".join(lines)


def _cell(record: Record) -> str:
    told = record.get("expected_median")
    beside = f" ({figure_text(told)})" if told is not None else ""
    return f"{figure_text(record['error_median'])}{beside}"
