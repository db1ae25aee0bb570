"""What the tests of the package share."""

from pathlib import Path

import pytest

from tests.unity.compiling import compiled, sources_of


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`Eyestream.Core`, which knows nothing of the engine."""
    return compiled(tmp_path_factory.mktemp("unity"), "Eyestream.Core.dll", sources_of("Eyestream.Core"), [])
