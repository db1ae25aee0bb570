"""What many tests share: a real broker, the data beside the checkout, and what becomes of tests that lack something."""

import hashlib
import inspect
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

# Before numpy is there: matrices are small here and there is a worker for each core, so that threads of the linear
# algebra would wait for one another most of the time. Commands that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from eyestream.rim.files import extraction, recordings
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from tests import needs
from tests.rigs.logs import log_as_it_was
from tests.rigs.mosquitto import Mosquitto

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every machine, and no clock decides: a fresh Hypothesis makes its tables in the first example.
# `--hypothesis-profile default` explores.
hypothesis.settings.register_profile(
    "everywhere",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("everywhere")


ON_BOTH = ("tests/product/service/", "tests/product/faults/", "tests/product/cli/test_deploy")
"""Service, links and deployment, by where their tests are."""
OF_AN_INTERPRETER = {"asyncio", "signal", "socket", "ssl", "subprocess", "threading"}
"""What interpreters bring that differs: a test of these rooms runs on two where its module imports one of these."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs something that can be installed: `-m installed` runs what a bare machine skips.

    Mark also what two interpreters run: what has a loop, a link, a thread or a process of theirs. A book of the ledger,
    or a queue, is the same arithmetic on both.
    """
    if any(not needs.NEEDS[name].of_the_machine for name in needs.declared(item)):
        item.add_marker("installed")
    if item.nodeid.startswith(ON_BOTH) and _of_an_interpreter(item):
        item.add_marker("both")


def _of_an_interpreter(item: pytest.Item) -> bool:
    module, test = getattr(item, "module", None), getattr(item, "obj", None)
    return inspect.iscoroutinefunction(test) or not OF_AN_INTERPRETER.isdisjoint(vars(module))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture is made, look for what the test needs."""
    needs.require(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """At the very end, say what was skipped and what to install."""
    yield
    if lines := needs.summary(terminalreporter.stats.get("skipped", [])):
        terminalreporter.section("skipped, and what to do about it")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture(autouse=True)
def _the_log_as_it_was() -> Iterator[None]:
    """A command that a test calls in this process sets the log up for itself: the next test finds it as it was."""
    with log_as_it_was():
        yield


@pytest.fixture
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """A started broker."""
    with Mosquitto(tmp_path_factory.mktemp("mosquitto")) as broker:
        yield broker


@pytest.fixture
def shared_data() -> Path:
    """The directory of recordings beside the checkout, which is no part of the repository."""
    return needs.DATA


@pytest.fixture
def official() -> str:
    """A Python that has pupil-labs-realtime-api."""
    return needs.pupil_python()


@pytest.fixture
def peer() -> str:
    """A Python that has pymovements."""
    return needs.pymovements_python()


@pytest.fixture(scope="session")
def everyday(request: pytest.FixtureRequest) -> list[Recording]:
    """The corpus of the shipped calibrations: rows of 30 people, sorted by name.

    Made from gaze in a quarter of a minute, and kept in pytest's cache until a line of the front end changes. Tests
    that need it are marked `long`. Where two workers need it at once, they begin at different ends.
    """
    folder = needs.DATA / "hoppe2018" / "gaze"
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
