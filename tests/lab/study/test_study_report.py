"""The page of a study: contents, tables that fold and fit, and pictures that say what they show."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from eyestream_lab.study import sections
from eyestream_lab.study.charts import CAPTIONS, trace_chart
from eyestream_lab.study.figures import panels
from eyestream_lab.study.report import Section, Table, write_report
from eyestream_lab.study.run import TABLES
from tests.rigs.browser import Browser, contrast, opened_browser

Record = dict[str, Any]


def table(columns: int, rows: int, keys: int = 1) -> Table:
    """A table of long names and ranges, as the widest ones of a study have."""
    names = [f"c{place}" for place in range(columns)]
    cells = dict.fromkeys(names, "0.123 [0.100, 0.200]") | {"c0": "klt-anchored, filtered"}
    headings = tuple((name, f"own means removed, median feature {name}") for name in names)
    return Table("wide", f"{columns} columns", headings, [cells] * rows, keys)


def written(folder: Path, *tables: Table) -> Path:
    figure, _ = panels(4, columns=4)
    pictured = {"wide": ("Utility against identity. A second sentence.", figure)}
    long = ("A word that has no end: " + "x" * 300,)
    made = [Section("Verdict & power", long, pictured), Section("Tables", ("Text.",), tables=tables)]
    return write_report(folder, made, {"seeds": "y" * 300})


def test_contents_lead_to_every_part(tmp_path: Path) -> None:
    page = written(tmp_path).read_text(encoding="utf-8")
    named = dict(re.findall(r'<a href="#(part-\d)">([^<]+)</a>', page))
    assert list(named.values()) == ["Verdict &amp; power", "Tables", "Settings"]
    assert re.findall(r'<h2 id="(part-\d)">', page) == list(named)


@pytest.mark.parametrize(
    ("columns", "keys", "parts"),
    [(3, 1, [3]), (11, 1, [11]), (12, 1, [7, 6]), (20, 4, [12, 12]), (14, 5, [14]), (1, 1, [1])],
)
def test_a_wide_table_is_cut_into_parts_that_begin_with_its_keys(
    tmp_path: Path, columns: int, keys: int, parts: list[int]
) -> None:
    page = written(tmp_path, table(columns, 2, keys)).read_text(encoding="utf-8")
    found = [re.findall(r"median feature (\w+)</th>", part) for part in re.findall(r"<table>.*?</table>", page)]
    assert [len(part) for part in found] == parts
    first = [f"c{place}" for place in range(keys)]
    assert all(part[:keys] == first for part in found)
    assert [name for part in found for name in part[keys:]] == [f"c{place}" for place in range(keys, columns)]


def test_a_long_table_is_folded(tmp_path: Path) -> None:
    page = written(tmp_path, table(3, 12), table(3, 13)).read_text(encoding="utf-8")
    assert re.findall(r"<details( open)?><summary>3 columns \((\d+) rows\)", page) == [(" open", "12"), ("", "13")]


def traces() -> list[Record]:
    t = (64 + np.arange(96)) / 2.0
    values = {"raw": np.sin(t).tolist(), "released": [None, *np.cos(t[1:]).tolist()]}
    shared = {"label": "klt-anchored", "minute": 9.0, "epsilon": 4.8, "n": 32, "error": 0.25, "t": t.tolist()}
    return [shared | values | {"feature": feature} for feature in ("blink_rate", "mean_mean_diameter")]


def test_traces_have_units_borders_of_chunks_and_error_bands() -> None:
    axes = trace_chart(traces()).axes
    assert [axis.get_ylabel() for axis in axes] == ["1/s", "mm"]
    for axis in axes:
        upright = [line.get_xdata()[0] for line in axis.lines if len(set(line.get_xdata())) == 1]  # type: ignore[index]
        assert upright == [32.0, 48.0, 64.0]
        [band] = [found for found in axis.collections if isinstance(found, PolyCollection)]
        heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
        assert float(np.ptp(heights)) == pytest.approx(2.0 + 2 * 0.25, abs=0.05)


def test_every_figure_has_a_caption_that_says_what_to_conclude() -> None:
    drawn = {name for name, (_, said) in TABLES.items() if said.startswith(("figure", "table and figure"))}
    assert drawn - {"traces"} <= set(CAPTIONS)
    for text in CAPTIONS.values():
        assert text.count(". ") >= 1


def test_why_a_way_without_levels_lies_below_zero_is_said_where_it_does() -> None:
    row: Record = {"label": "klt-anchored", "n": 64, "minute": 9.0, "explained": -0.31, "own": 0.15}
    [said] = sections._without_levels([row, row | {"n": 32}, row | {"label": "cfpa"}], 64)
    assert said.startswith("Why klt-anchored lies below zero: it subtracts the first minute")
    assert said.endswith("at 9 a minute -0.31 around the common mean, 0.15 around each person's own.")
    assert sections._without_levels([row | {"explained": 0.01}], 64) == []


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened_browser(tmp_path_factory.mktemp("browser")) as window:
        yield window


@pytest.mark.long
@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("size", "scheme"), [((1280, 800), "light"), ((1280, 800), "dark"), ((360, 740), "dark")])
def test_every_screen(tmp_path: Path, browser: Browser, size: tuple[int, int], scheme: str) -> None:
    """Nothing is wider than the screen; on a laptop no table has to be scrolled sideways; text can be read."""
    page = written(tmp_path, table(20, 48, keys=4), table(14, 3, keys=5))
    browser.show(*size, scheme)
    browser.open(page.as_uri())
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    if size[0] == 1280:
        assert (
            browser.run(
                "return [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth).length"
            )
            == 0
        )
    for text in ("p", "figcaption", "td", "a", "summary"):
        colours = browser.run(
            f"const of = (e, p) => getComputedStyle(document.querySelector(e)).getPropertyValue(p);"
            f"return [of('{text}', 'color'), of('body', 'background-color')]"
        )
        assert contrast(*colours) >= 4.5, text
    assert browser.complaints() == []


@pytest.mark.long
@pytest.mark.needs("chromium")
def test_whoever_cannot_see_it_finds_the_way(tmp_path: Path, browser: Browser) -> None:
    browser.open(written(tmp_path, table(20, 2, keys=4)).as_uri())
    assert browser.barriers() == []
    browser.run("document.querySelector('img').alt = ''; document.querySelector('img').removeAttribute('alt')")
    browser.run("document.querySelector('td').style = 'color: #bbb; background: #fff'")  # dark or light
    assert {found.partition(":")[0] for found in browser.barriers()} == {"image-alt", "color-contrast"}
