"""Linkage as a page: who is linked by what, and what is learned of them."""

from collections.abc import Sequence

from eyestream_lab.study.cells import Record
from eyestream_lab.study.tables_page import groups, two

__all__ = ["page", "verdict"]


def page(records: Sequence[Record]) -> str:
    """Markdown of the records of `eyestream_lab.study.linkage`: the strongest attacker of each kind."""
    first = records[0]
    head = f"""## Linkage

{first["people"]} people; demographics: {first["demographics"]}. Chance of a right link {two(first["chance"])}; a random
link tells the right demographics of {two(first["chance_learned"])}. Each figure is of the strongest attacker, with half
of its 95 % interval over people.
"""
    lines = [
        "| source | rows a chunk | epsilon a minute | known data set | demographics alone | gaze alone | both | "
        "demographics learned by gaze | verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (source, n, per_minute), own in groups(records, "source", "n", "per_minute"):
        [alone] = [r for r in own if r["uses"] == "demographics"]
        for (known,), group in groups([r for r in own if r["uses"] != "demographics"], "known"):
            gaze, both = (max((r for r in group if r["uses"] == uses), key=_right) for uses in ("gaze", "both"))
            learned = max((r for r in group if r["uses"] == "gaze"), key=lambda r: float(r["learned"]))
            told = [two(alone["right"]), _figure(gaze, "right"), _figure(both, "right"), _figure(learned, "learned")]
            epsilon = f"{per_minute:g}" if per_minute else ""
            lines.append(
                f"| {source} | {n} | {epsilon} | {known} | {' | '.join(told)} | {verdict(alone, gaze, both, learned)} |"
            )
    return head + "\n" + "\n".join(lines) + "\n"


def verdict(alone: Record, gaze: Record, both: Record, learned: Record) -> str:
    """What gaze adds to a link, and what a link by gaze tells, in words."""
    links = gaze["right"] - gaze["right_interval"] > gaze["chance"]
    adds = both["right"] - both["right_interval"] > alone["right"]
    tells = learned["learned"] - learned["learned_interval"] > learned["chance_learned"]
    words = ["gaze links" if links else "gaze alone at chance"]
    words.append("adds to demographics" if adds else "adds nothing to demographics")
    words.append("tells demographics" if tells else "tells no demographics")
    return ", ".join(words)


def _right(record: Record) -> float:
    return float(record["right"])


def _figure(record: Record, name: str) -> str:
    return f"{two(record[name])} ± {two(record[f'{name}_interval'])}"
