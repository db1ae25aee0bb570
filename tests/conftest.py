"""What many tests share: a real broker, and the data beside the checkout."""

import hashlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before numpy is there: matrices are small here and there is a worker for each core, so that threads of the linear
# algebra would wait for one another most of the time. Commands that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from eyestream.rim.files import extraction, recordings
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from tests.rigs.logs import log_as_it_was
from tests.rigs.mosquitto import Mosquitto, program

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _the_log_as_it_was() -> Iterator[None]:
    """A command that a test calls in this process sets the log up for itself: the next test finds it as it was."""
    with log_as_it_was():
        yield


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


@pytest.fixture(scope="session")
def everyday(request: pytest.FixtureRequest) -> list[Recording]:
    """The corpus of the shipped calibrations: rows of 30 people, sorted by name.

    Made from gaze in a quarter of a minute, and kept in pytest's cache until a line of the front end changes. Tests
    that need it are marked `long`. Where two workers need it at once, they begin at different ends.
    """
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "hoppe2018" / "gaze"
    if not folder.is_dir():
        pytest.skip("no ../shared/data beside the checkout")
    package = Path(extraction.__file__).parents[2]
    made_by = [*sorted((package / "gaze").glob("*.py")), *sorted((package / "rim" / "files").glob("*.py"))]
    profile = package / "data" / "profiles" / "smi-glasses.toml"
    key = hashlib.sha256(b"".join(path.read_bytes() for path in (*made_by, profile))).hexdigest()[:16]
    kept = Path(request.config.cache.mkdir(f"everyday-{key}"))
    targets = {path: kept / f"{extraction.stem(path)}.npz" for path in sorted(folder.glob("P*.csv.gz"))}
    backward = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw1"
    for path in sorted(targets, reverse=backward):
        target = targets[path]
        if not target.is_file():
            half = target.with_name(f"{os.getpid()}-{target.name}")
            recordings.save(extraction.load_rows(path, load_profile("smi-glasses")), half)
            os.replace(half, target)
    return [recordings.load(target) for target in targets.values()]
