"""What many tests share: a real broker, and the data beside the checkout."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyestream.testing.mosquitto import Mosquitto, program

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """A started broker. Skips where mosquitto is not installed, and fails there in CI."""
    if program() is None:
        if os.environ.get("CI"):
            pytest.fail("mosquitto is not installed")
        pytest.skip("mosquitto is not installed")
    broker = Mosquitto(tmp_path_factory.mktemp("mosquitto"))
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def shared_data() -> Path:
    """The directory of recordings beside the checkout, which is no part of the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no ../shared/data beside the checkout")
    return folder
