"""Parts of a report, and the report as files: a self-contained page, CSV of every number, figures, settings."""

import csv
import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from eyestream_lab.study.cells import Record
from eyestream_lab.study.figures import to_data_url, to_png

Columns = tuple[tuple[str, str], ...]
"""Names of columns with their headings."""


@dataclass(frozen=True)
class Table:
    """Some columns of some records. Tables that belong together share a name.

    The first `keys` columns say which row it is.
    """

    name: str
    caption: str
    columns: Columns
    records: Sequence[Record]
    keys: int = 1


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    title: str
    text: tuple[str, ...]
    figures: dict[str, tuple[str, Figure]] = field(default_factory=dict)
    """For each file name the caption and the figure."""
    tables: tuple[Table, ...] = ()


_STYLE = """
:root{color-scheme:light dark;--ground:#fff;--text:#111;--soft:#444;--line:#999;--even:#f1f1f1;--link:#0645ad}
@media (prefers-color-scheme:dark){
:root{--ground:#14171a;--text:#e8e8e8;--soft:#bbb;--line:#777;--even:#1e2327;--link:#8ab4f8}}
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;
background:var(--ground);color:var(--text)}
a{color:var(--link)} h1,h2{line-height:1.2} h2{margin-top:2.2em;border-bottom:1px solid var(--line)}
p,figcaption,li{overflow-wrap:anywhere;max-width:80ch}
figure{margin:1.2em 0;break-inside:avoid} figure img{max-width:100%;height:auto;background:#fff}
figure img{min-width:640px} figcaption{color:var(--soft);font-size:.9em} nav{columns:2 20em} nav ol{margin:0}
table{border-collapse:collapse;font-size:.8em;font-variant-numeric:tabular-nums;margin:.5em 0}
th,td{padding:.15em .6em;text-align:right} td:first-child,th:first-child{text-align:left}
thead th{border-bottom:1px solid var(--line);vertical-align:bottom} tr:nth-child(even){background:var(--even)}
.wide{overflow-x:auto} pre{overflow-x:auto} details{margin:.8em 0} summary{cursor:pointer;font-weight:600}
"""

_MOST_COLUMNS = 10
"""Beside those that say which row it is: with more a table is wider than the page, and becomes several."""

_FOLDED = 12
"""Rows; a longer table is folded."""


def write_report(folder: Path, sections: Sequence[Section], settings: dict[str, Any], *, quick: bool = False) -> Path:
    """Write `report.html`, the figures and `settings.json` into `folder`; the path of the page, marked when `quick`."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    title = "What the mechanisms cost, and what they stop" + (" (QUICK run)" if quick else "")
    body = [f"<h1>{title}</h1>", _contents([*(section.title for section in sections), "Settings"])]
    for place, section in enumerate(sections):
        body.append(f'<h2 id="part-{place}">{html.escape(section.title)}</h2>')
        body += [f"<p>{html.escape(text)}</p>" for text in section.text]
        body += [_figure(folder, section.title, name, *told) for name, told in section.figures.items()]
        body += [_table(table) for table in section.tables]
    stated = html.escape(json.dumps(settings, indent=1))
    body.append(f'<h2 id="part-{len(sections)}">Settings</h2>')
    body.append(f'<details><summary>settings and seeds</summary><pre tabindex="0">{stated}</pre></details>')
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    path = folder / "report.html"
    path.write_text(
        f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head><body><main>'
        + "\n".join(body)
        + "</main></body></html>",
        encoding="utf-8",
    )
    (folder / "settings.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    return path


def _contents(titles: Sequence[str]) -> str:
    lines = (f'<li><a href="#part-{place}">{html.escape(title)}</a></li>' for place, title in enumerate(titles))
    return f'<nav aria-label="Contents"><ol>{"".join(lines)}</ol></nav>'


def _figure(folder: Path, title: str, name: str, caption: str, figure: Figure) -> str:
    png = to_png(figure)
    (folder / "figures" / f"{name}.png").write_bytes(png)
    alt, said = html.escape(f"{title}: {caption.partition('. ')[0]}"), html.escape(caption)
    image = _wide(f"Figure {name}", f'<img alt="{alt}" src="{to_data_url(png)}">')
    return f"<figure>{image}<figcaption>{said}</figcaption></figure>"


def _wide(label: str, inner: str) -> str:
    """Element that may be wider than a small screen: it is moved sideways, by keys too."""
    return f'<div class="wide" role="region" aria-label="{html.escape(label)}" tabindex="0">{inner}</div>'


def write_summary(path: Path, summary: dict[str, Any], settings: dict[str, Any]) -> None:
    """Opening of the page, for programs; NaN is null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_known(summary | {"settings": settings}), indent=1, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_known(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_tables(folder: Path, tables: Mapping[str, Sequence[Record]]) -> None:
    """Write each table of records as NAME.csv; columns in the order of their first appearance, NaN and None empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, records in tables.items():
        columns = list(dict.fromkeys(column for record in records for column in record))
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows({column: _cell(record.get(column)) for column in columns} for record in records)


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return " ".join(f"{v:g}" for v in value) if isinstance(value, list) else value


def _table(table: Table) -> str:
    """Folded where it is long, and in parts where it is wide: each part says again which row it is."""
    caption = html.escape(table.caption)
    keys, others = table.columns[: table.keys], table.columns[table.keys :]
    size = max(1, -(-len(others) // max(1, -(-len(others) // _MOST_COLUMNS))))
    parts = [_part(table, (*keys, *others[at : at + size])) for at in range(0, max(len(others), 1), size)]
    opened = "" if len(table.records) > _FOLDED else " open"
    return f"<details{opened}><summary>{caption} ({len(table.records)} rows)</summary>{''.join(parts)}</details>"


def _part(table: Table, columns: Sequence[tuple[str, str]]) -> str:
    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for _, heading in columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{html.escape(figure_text(record.get(name)))}</td>' for name, _ in columns)}</tr>"
        for record in table.records
    )
    return _wide(table.caption, f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")


def figure_text(value: Any) -> str:
    """A value as a table shows it: three significant figures, powers of ten beyond a hundred thousand.

    Examples
    --------
    >>> figure_text(0.123456), figure_text(4321.0), figure_text(2.5e6), figure_text(None)
    ('0.123', '4,321', '2.5e+06', '')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isinf(value):
            return "infinite"
        return f"{value:.3g}" if abs(value) < 1000 or abs(value) >= 1e5 else f"{value:,.0f}"
    return str(value)


def pipes(heads: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown, without a line end after the last row.

    Examples
    --------
    >>> print(pipes(["mechanism", "N"], [["klt", 3]]))
    | mechanism | N |
    |---|---|
    | klt | 3 |
    """
    lines = [heads, *rows]
    drawn = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    return "\n".join([drawn[0], "|" + "---|" * len(heads), *drawn[1:]])


def markdown(table: Table) -> str:
    """The columns of a table, under its caption."""
    rows = [[figure_text(record.get(key)) for key, _ in table.columns] for record in table.records]
    return f"**{table.caption}**\n\n{pipes([heading for _, heading in table.columns], rows)}\n"
