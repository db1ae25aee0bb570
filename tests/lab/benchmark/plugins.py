"""Systems, as somebody else would write them in Python."""

import csv
import shutil
from pathlib import Path

import numpy as np

from eyestream.rim.files.recordings import Recording, save


def same(source: Path, target: Path) -> None:
    """Copies, and says so."""
    for path in source.glob("*.csv"):
        shutil.copy(path, target / path.name)
    (target / "promise.txt").write_text("nothing: recordings are copied")


def alike(source: Path, target: Path) -> None:
    """The first recording in the place of each."""
    table = list(csv.DictReader((source / "participants.tsv").open(), delimiter="\t"))
    for line in table:
        shutil.copy(source / table[0]["recording"], target / line["recording"])


def lazy(source: Path, target: Path) -> None:
    """One recording is missing."""
    same(source, target)
    min(target.glob("*.csv")).unlink()


def three(source: Path, target: Path) -> None:
    """Rows of three features, which are not ours."""
    text = (source / "participants.tsv").read_text()
    for path in source.glob("*.csv"):
        text = text.replace(path.name, f"{path.stem}.npz")
        rows = Recording(np.arange(9) / 2, np.ones((9, 3)), ("a", "b", "c"), named=True)
        save(rows, target / f"{path.stem}.npz")
    (target / "participants.tsv").write_text(text)
