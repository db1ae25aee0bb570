"""The books that come with the package: points for scores of joint transform coding, for calibrations to come."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.core.mechanisms.klt.books import ScoreBook, read_books
from eyestream_lab.parts import part_of

_BOOKS = Path(__file__).resolve().parents[1] / "data" / "books.npz"


@cache
def shipped_books() -> tuple[ScoreBook, ...]:
    """Those of `tools/make/make_books.py`."""
    with np.load(_BOOKS, allow_pickle=False) as stored:
        return read_books({name: stored[name] for name in stored.files})


def with_shipped_books(mechanism: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a calibration, with the shipped books where its mechanism takes any; `books` False: with none."""
    if "books" not in part_of(mechanism).calibration_options:
        return dict(options)
    return dict(options) | {"books": shipped_books() if options.get("books", True) else ()}
