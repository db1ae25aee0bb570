"""Layer and runtime, compiled once for each process that runs tests."""

from collections.abc import Iterator

import pytest

from tests.openxr.machine import Built


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(tmp_path_factory.mktemp("openxr"))


@pytest.fixture
def built(once: Built) -> Iterator[Built]:
    once.as_before()
    yield once
    once.as_before()
