"""Pages of figures are what their cells say."""

import json
import subprocess
import sys
from pathlib import Path

from eyestream_lab.releases.page import figures

DOCS = Path(__file__).parents[2] / "docs"


def test_the_figures_of_releases_are_those_of_their_cells() -> None:
    found = json.loads((DOCS / "releases-figures.json").read_text(encoding="utf-8"))
    corpora = [{cell["line"]: cell for cell in cells} for cells in found["corpora"]]
    assert (DOCS / "releases-figures.md").read_text(encoding="utf-8") == figures(corpora, found["hours"])


def test_the_tables_of_a_fleet_follow_from_its_figures() -> None:
    code = "from tools.verification import fleet_figures as f; import json; page = f.PAGE.read_text(); "
    code += "raise SystemExit(page != f.with_tables(page, json.loads(f.FIGURES.read_text())))"
    assert subprocess.run([sys.executable, "-c", code], cwd=DOCS.parent, check=False).returncode == 0
