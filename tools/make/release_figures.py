"""`docs/releases-figures.json` and the page made of it, from cells that studies and measurements of time keep.

python -m tools.make.release_figures OUT      OUT of tools.verification.release_systems and release_hours
python -m tools.make.release_figures          the page alone, again

Lines that OUT has take the place of those that were there, and the others stay.
"""

import json
import sys
from pathlib import Path
from typing import Any

from eyestream_lab.corpora.attacked import CELLS
from eyestream_lab.releases.page import figures
from eyestream_lab.releases.plans import key_of, systems

DOCS = Path(__file__).resolve().parents[2] / "docs"
CORPORA = ("gazegraph", "nlgem", "everyday")


def cells_of(study: Path, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cells of a study in the place of those from before, all lines of a system together; of a claim the loss alone."""
    every = systems()
    order = ["raw", *(key_of(*one) for name in dict(every) for one in every if one[0] == name)]
    found = {cell["line"]: cell for cell in before}
    for path in sorted((study / "cells").glob(f"*{CELLS}")):
        cell = json.loads(path.read_text(encoding="utf-8"))
        loss = cell.pop("claim", {}).get("loss")
        found[cell["line"]] = cell | ({"claim": {"loss": loss}} if loss else {})
    return [found[line] for line in order if line in found]


def main() -> None:
    """Collect where there is a folder, and write the page."""
    target = DOCS / "releases-figures.json"
    if len(sys.argv) > 1:
        out = Path(sys.argv[1])
        before = json.loads(target.read_text(encoding="utf-8"))
        known = {cells[0]["corpus"]: cells for cells in before["corpora"]}
        corpora = [cells for name in CORPORA if (cells := cells_of(out / f"{name}-study", known.get(name, [])))]
        hours = out / "hours.json"
        taken = json.loads(hours.read_text(encoding="utf-8")).values() if hours.exists() else before["hours"]
        blocks = [",\n".join(json.dumps(cell, separators=(",", ":")) for cell in own) for own in (*corpora, taken)]
        text = '{"corpora": [\n[' + "],\n[".join(blocks[:-1]) + ']],\n"hours": [\n' + blocks[-1] + "]}\n"
        target.write_text(text, encoding="utf-8")
    found = json.loads(target.read_text(encoding="utf-8"))
    by_line = [{cell["line"]: cell for cell in cells} for cells in found["corpora"]]
    (DOCS / "releases-figures.md").write_text(figures(by_line, found["hours"]), encoding="utf-8")


if __name__ == "__main__":
    main()
