"""What the tests of the examples share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs are built, each once."""
    return tmp_path_factory.mktemp("built")
