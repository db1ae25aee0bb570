"""The notebook runs from top to bottom, as by `Run all`, and is committed without what it shows."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb"
RUN = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def codes(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_nothing_that_it_shows_is_committed() -> None:
    assert [cell["id"] for cell in codes(NOTEBOOK) if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.long
@pytest.mark.needs("notebook")
def test_it_runs_from_top_to_bottom(tmp_path: Path) -> None:
    words = [sys.executable, "-c", RUN, str(NOTEBOOK), str(tmp_path / "run.ipynb")]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    shown = {cell["id"]: json.dumps(cell["outputs"]) for cell in codes(tmp_path / "run.ipynb")}
    assert "(1, 1), 4.8" in shown["chunks"]
    assert "in short: changes, no levels" in shown["words"]
    assert "rate_saccades" in shown["pandas"]
    assert "text/html" in shown["xarray"]
    assert "image/png" in shown["plot"]
