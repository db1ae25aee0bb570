import csv
import json
import re
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream_lab.cli import study
from eyestream_lab.study import run as tables
from eyestream_lab.study.report import figure_text
from eyestream_lab.study.run import PARTS


@pytest.mark.long
@pytest.mark.timeout(600)  # half a minute of work; a shared machine may take long over it
def test_quick_study_of_simulated_people_writes_a_page_that_stands_alone(tmp_path, capsys):
    main(["simulate", "--people", "6", "--seconds", "200", "--seed", "3", "--out", str(tmp_path / "people")])
    labels = tmp_path / "labels.csv"
    rows = "".join(f"sim-{i:03d},p{i},{'odd' if i // 2 % 2 else 'even'}\n" for i in range(6))
    labels.write_text("recording,person,pair\n" + rows)
    published = tmp_path / "published.csv"
    published.write_text("dataset,mechanism,chunk,epsilon,NMSE_R1\nA,CFPA,32,0.01,5e6\nA,CFPA,32,1,500\n")
    out = tmp_path / "out"
    words = ["study", str(tmp_path / "people"), "--out", str(out), "--quick", "--jobs", "1"]
    words += ["--labels", str(labels), "--published", str(published)]
    main(words)
    page = (out / "report.html").read_text()
    assert not re.search(r'(?:src|href)="(?!data:|#part-)', page)
    assert page.count("data:image/png;base64,") == len(list((out / "figures").glob("*.png"))) >= 10
    for title in (
        "Verdict",
        "What was run",
        "This was a quick run",
        "simulated, nobody in it exists",
        "Raw and private traces",
        "Power: 6 people",
        "Utility: the published measure",
        "Correlation",
    ):
        assert title in page
    assert page.index("Verdict") < page.index("Utility against identity") < page.index("Utility: the published measure")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["quick"] is True
    assert {row["label"] for row in summary["frontier"]} >= {"raw", "klt-anchored", "cfpa, filtered", "dcfpa, filtered"}
    assert all(row["second"] >= row["epsilon"] for row in summary["frontier"] if row["epsilon"])
    assert "Who is found cannot be judged: " in page
    assert "A way is useful when a part or most" in page
    cells = sorted(path.name for path in (out / "cells").iterdir())
    main([*(word for word in words if word != "--quick"), "--table", "frontier"])  # from the cells that are there
    assert "holds a quick study, and the table is of its cells" in capsys.readouterr().out
    assert sorted(path.name for path in (out / "cells").iterdir()) == cells
    table = (out / "tables" / "frontier.md").read_text()
    assert "| released by | epsilon a minute | of a chunk | rows a chunk | loss of any second of gaze |" in table
    assert (out / "tables" / "frontier.png").is_file()
    settings = json.loads((out / "settings.json").read_text())
    assert settings["simulated"] is True
    assert settings["people_released"] == ["p1", "p3", "p5"]
    with (out / "csv" / "utility.csv").open() as file:
        sources = {row["source"] for row in csv.DictReader(file)}
    assert sources >= {"LPA", "CFPA", "DCFPA", "FPA", "KLT"}


def test_too_few_people_are_refused_with_how_many_it_takes(tmp_path, capsys):
    main(["simulate", "--people", "4", "--seconds", "150", "--seed", "3", "--out", str(tmp_path / "people")])
    with pytest.raises(SystemExit, match="2"):
        main(["study", str(tmp_path / "people"), "--out", str(tmp_path / "out"), "--quick"])
    assert "so it needs at least 5 people" in capsys.readouterr().err


@pytest.mark.long
def test_one_part_alone_writes_its_table_and_keeps_its_cells(tmp_path, capsys):
    main(["simulate", "--people", "6", "--seconds", "150", "--seed", "3", "--out", str(tmp_path / "people")])
    words = ["study", str(tmp_path / "people"), "--out", str(tmp_path / "out"), "--quick", "--jobs", "1", "--only"]
    main([*words, "correlation"])
    assert sorted(path.name for path in (tmp_path / "out" / "csv").iterdir()) == ["correlation.csv", "settings.json"]
    with (tmp_path / "out" / "csv" / "correlation.csv").open() as file:
        assert {row["measured"] for row in csv.DictReader(file)} == {"correlation", "fifth", "leakage"}
    assert all(path.name.startswith("correlation-") for path in (tmp_path / "out" / "cells").iterdir())
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*words, "figures"])
    assert "the study has no part 'figures': frontier, utility, correlation" in capsys.readouterr().err


@pytest.mark.long
def test_tables_on_labels_and_linkage_have_a_page_each(tmp_path, capsys):
    people, labels = tmp_path / "people", tmp_path / "labels.csv"
    words = ["simulate", "--people", "6", "--seconds", "130", "--seed", "3", "--labels", str(labels)]
    main([*words, "--out", str(people)])
    words = ["study", str(people), "--out", str(tmp_path / "out"), "--quick", "--jobs", "1", "--only"]
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*words, "tables"])
    assert "part 'tables' of the study needs labels: --labels FILE" in capsys.readouterr().err
    main([*words, "linkage", "--labels", str(labels)])
    assert "demographics: gender, age" in (tmp_path / "out" / "linkage.md").read_text()
    lines = labels.read_text().splitlines(keepends=True)
    labels.write_text("".join([*lines, "p999-comic,p999,comic,f,older\n"]))
    with pytest.raises(SystemExit):
        main([*words, "tables", "--labels", str(labels)])
    assert "not there: p999-comic" in capsys.readouterr().err


def test_tables_are_listed_without_any_recording(capsys):
    main(["study", "--table", "list"])
    told = capsys.readouterr().out
    for name in tables.TABLES:
        assert f"{name} " in told
    assert "eyestream advise --table" in told


def test_every_table_of_the_list_is_one_that_a_part_makes():
    parts = {part for part, _ in tables.TABLES.values()}
    assert parts - {""} == set(PARTS)


@pytest.mark.parametrize(
    ("asked", "attacking", "expected"),
    [
        (None, True, (None, None)),
        ("nmse", False, ("nmse", None)),
        ("nmse=a/b.md", False, ("nmse", Path("a/b.md"))),
        ("attacks", True, ("attacks", None)),
        ("attacks=docs/x.md", False, ("attacks", Path("docs/x.md"))),
        ("docs/x.md", True, ("attacks", Path("docs/x.md"))),  # as version 0.1.0 had it
    ],
)
def test_a_table_is_a_name_and_perhaps_a_file(asked, attacking, expected):
    assert study._table(asked, attacking, tables) == expected


@pytest.mark.parametrize(
    ("asked", "attacking", "line"),
    [
        ("docs/x.md", False, "to have the attacks' table in a file: --table attacks=docs/x.md"),
        ("leakige", False, "did you mean leakage"),
        ("nmse", True, "expected --table attacks, or attacks=FILE"),
    ],
)
def test_a_table_that_is_not_there_is_refused_with_what_to_type(asked, attacking, line):
    with pytest.raises(ConfigError, match=re.escape(line)):
        study._table(asked, attacking, tables)


def test_nothing_to_study_is_one_line(capsys):
    with pytest.raises(SystemExit):
        main(["study", "--quick"])
    assert capsys.readouterr().err == (
        "eyestream study: RECORDINGS and --out DIR: expected what to study, and where to write\n"
    )


def test_what_cannot_be_studied_is_one_line(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["study", str(tmp_path / "empty"), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.06666, "0.0667"),
        (12345.6, "12,346"),
        (2.5e7, "2.5e+07"),
        (True, "yes"),
        (None, ""),
        (float("inf"), "infinite"),
    ],
)
def test_figures_in_tables(value, text):
    assert figure_text(value) == text
