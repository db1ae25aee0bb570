"""Where the audited processes find the planted mechanisms."""

from pathlib import Path

import pytest


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audited processes find the module of planted mechanisms."""
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{Path(__file__).parents[3]}")
