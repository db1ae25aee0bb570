"""The report as files: one self-contained page, a CSV of every number, the figures, the settings."""

import csv
import html
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eyestream.lab.study.cells import Record
from eyestream.lab.study.figures import to_data_url, to_png
from eyestream.lab.study.section import Section, Table

__all__ = ["figure_text", "write_report", "write_summary", "write_tables"]

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#111}
h1,h2{line-height:1.2} h2{margin-top:2.2em;border-bottom:1px solid #bbb}
figure{margin:1.2em 0;break-inside:avoid} figure img{max-width:100%} figcaption{color:#444;font-size:.9em}
table{border-collapse:collapse;font-size:.8em;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.5em 0} th,td{padding:.15em .6em;text-align:right}
th{border-bottom:1px solid #777;vertical-align:bottom} tr:nth-child(even){background:#f4f4f4}
td:first-child,th:first-child{text-align:left} details{margin:.8em 0} summary{cursor:pointer}
"""


def write_report(folder: Path, sections: Sequence[Section], settings: dict[str, Any], *, quick: bool = False) -> Path:
    """Write `report.html`, the figures and `settings.json` into `folder`; the path of the page, marked when `quick`."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    body = []
    for section in sections:
        body.append(f"<h2>{html.escape(section.title)}</h2>")
        body += [f"<p>{html.escape(text)}</p>" for text in section.text]
        for name, (caption, figure) in section.figures.items():
            png = to_png(figure)
            (folder / "figures" / f"{name}.png").write_bytes(png)
            alt = html.escape(f"{section.title}: {caption}")
            image = f'<img alt="{alt}" src="{to_data_url(png)}">'
            body.append(f"<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>")
        body += [_table(table) for table in section.tables]
    stated = html.escape(json.dumps(settings, indent=1))
    body.append(f"<h2>Settings</h2><details><summary>settings and seeds</summary><pre>{stated}</pre></details>")
    title = "What the mechanisms cost, and what they stop" + (" (QUICK run)" if quick else "")
    page = f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>" + "\n".join(body)
    path = folder / "report.html"
    path.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{page}</body></html>', encoding="utf-8"
    )
    (folder / "settings.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    return path


def write_summary(path: Path, summary: dict[str, Any], settings: dict[str, Any]) -> None:
    """What the page opens with, for programs; NaN is null."""
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
    head = "".join(f"<th>{html.escape(heading)}</th>" for _, heading in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(figure_text(record.get(name)))}</td>" for name, _ in table.columns)
        + "</tr>"
        for record in table.records
    )
    caption = html.escape(table.caption)
    inner = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    long = len(table.records) > 60
    return f"<details><summary>{caption}: {len(table.records)} rows</summary>{inner}</details>" if long else inner


def figure_text(value: Any) -> str:
    """A value as a table shows it: three significant figures, powers of ten beyond a hundred thousand."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isinf(value):
            return "infinite"
        return f"{value:.3g}" if abs(value) < 1000 or abs(value) >= 1e5 else f"{value:,.0f}"
    return str(value)
