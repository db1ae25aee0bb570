"""The layer for Windows in wine: compiled by mingw, in one program with the runtime, and through a loader."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyestream_openxr.install import DISABLE
from tests.openxr.machine import LAYER, RUNTIME, TRACKED, VALID, layer_sources
from tests.rigs.pyopenxr import pyopenxr_python

pytestmark = [pytest.mark.long, pytest.mark.needs("mingw", "make", "wine")]

COMPILE = (
    "x86_64-w64-mingw32-gcc",
    "-std=c11",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-static",
    "-pthread",
    f"-I{LAYER}",
)
REGISTRY = r"HKLM\Software\Khronos\OpenXR\1"
OF_ANOTHER_USER = "O:WDD:P(A;;GA;;;WD)"


class Windows:
    """A fresh home of wine, with the layer, the fake headset and a program."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        variables = {"WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml="}
        self._environment = os.environ | variables
        make = ["make", "-s", "-C", str(LAYER), f"OUT={folder}", "HEADERS=", "windows"]
        subprocess.run(make, check=True, capture_output=True, text=True)
        subprocess.run([*COMPILE, "-shared", "-o", str(folder / "fake.dll"), str(RUNTIME)], check=True)
        sources = [str(path) for path in (RUNTIME.with_name("driver.c"), RUNTIME, *layer_sources("win32"))]
        libraries = ("-lole32", "-lshell32", "-luuid", "-ladvapi32")
        subprocess.run([*COMPILE, f"-I{folder}", "-o", str(folder / "driver.exe"), *sources, *libraries], check=True)
        self.run("wineboot", "-i")
        (home,) = (path for path in (folder / "wine/drive_c/users").iterdir() if path.name != "Public")
        self.place = home / "AppData/Local/eyestream-openxr"
        self.place.mkdir(parents=True)

    def run(self, *words: str, **variables: str) -> str:
        done = subprocess.run(
            words, env=self._environment | variables, capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def driver(self, *words: str, **variables: str) -> str:
        """What the program prints."""
        return self.run("wine", str(self._folder / "driver.exe"), f"Z:{self.place}", *words, **variables)

    def looks(self, *words: str, **variables: str) -> dict[str, str]:
        """What the program sees, step by step."""
        pairs = (
            re.fullmatch(r"(heard|[a-z ]+) (\d.*)", line)
            for line in self.driver("looks", *words, **variables).splitlines()
        )
        return {pair[1]: pair[2] for pair in pairs if pair is not None}

    def install(self, loader: Path) -> str:
        """As the page says it; gives the loader's path there."""
        runtime = {"file_format_version": "1.0.0", "runtime": {"name": "fake", "library_path": r".\fake.dll"}}
        (self._folder / "runtime.json").write_text(json.dumps(runtime))
        add, implicit = ("wine", "reg", "add"), rf"{REGISTRY}\ApiLayers\Implicit"
        self.run(*add, REGISTRY, "/v", "ActiveRuntime", "/d", f"Z:{self._folder}/runtime.json", "/f")
        self.run(*add, implicit, "/v", f"Z:{self._folder}/eyestream_openxr.json", "/t", "REG_DWORD", "/d", "0", "/f")
        return f"Z:{loader}"

    def end(self) -> None:
        """End what wine left running, in this home alone."""
        subprocess.run(["wineserver", "-k"], env=self._environment, check=False)


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    made = Windows(tmp_path_factory.mktemp("windows"))
    yield made
    made.end()


def fits(seen: dict[str, str]) -> bool:
    """Whether a program saw what was released alone, and the sidecar heard the eyes."""
    heard = re.fullmatch(r"(\d+), at the end 10\.00 -5\.00", seen.pop("heard"))
    return seen == {"nothing": "0", "released": f"{VALID}", "dead": "0", "other version": "0"} and heard is not None


def test_a_program_sees_nothing_or_what_was_released(windows: Windows) -> None:
    assert fits(windows.looks())


def test_threads_in_any_order(windows: Windows) -> None:
    heard, shown = map(int, re.findall(r"\d+", windows.driver("turns", "4", "7")))
    assert min(heard, shown) > 50


def test_a_pipe_of_another_user_gets_nothing(windows: Windows) -> None:
    assert windows.looks("", OF_ANOTHER_USER)["heard"].startswith("0,")


@pytest.mark.needs("root")
def test_a_page_of_another_user_shows_nothing(windows: Windows) -> None:
    page = windows.place / "page"
    page.touch()
    os.chown(page, 65534, 65534)
    try:
        assert windows.looks()["released"] == "0"
    finally:
        page.unlink()


@pytest.mark.slow
@pytest.mark.needs("pyopenxr", "libgl")
def test_through_a_loader(windows: Windows) -> None:
    words = "import pathlib, xr; print(pathlib.Path(xr.__file__).parent / 'library' / 'openxr_loader.dll')"
    done = subprocess.run([pyopenxr_python(), "-c", words], capture_output=True, text=True, check=True)
    loader = windows.install(Path(done.stdout.strip()))
    assert fits(windows.looks(loader))
    control = windows.looks(loader, **{DISABLE: "1"})
    assert (control["nothing"], control["released"]) == (f"{TRACKED}", f"{TRACKED}")
