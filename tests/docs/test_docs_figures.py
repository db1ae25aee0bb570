"""Pages of figures are what their cells say."""

import json
from pathlib import Path

from eyestream_lab.releases.page import figures

DOCS = Path(__file__).parents[2] / "docs"


def test_the_figures_of_releases_are_those_of_their_cells() -> None:
    found = json.loads((DOCS / "releases-figures.json").read_text(encoding="utf-8"))
    corpora = [{cell["line"]: cell for cell in cells} for cells in found["corpora"]]
    assert (DOCS / "releases-figures.md").read_text(encoding="utf-8") == figures(corpora, found["hours"])
