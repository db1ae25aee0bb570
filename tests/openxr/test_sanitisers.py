"""Threads that call in any order, while the page is spoilt and the sidecar comes and goes, under gcc's sanitisers."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.openxr.machine import LAYER, layer_sources

HERE = Path(__file__).parent


@pytest.mark.long
@pytest.mark.needs("cc", "make")
@pytest.mark.parametrize("kind", ["address,undefined", "thread"])
def test_no_fault_of_memory_or_of_threads(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    subprocess.run(["make", "-s", "-C", str(LAYER), f"OUT={tmp_path}", "HEADERS=", f"{tmp_path}/policy.h"], check=True)
    words = ["cc", "-std=c11", "-g", "-O1", f"-fsanitize={kind}", "-fno-sanitize-recover=all", "-pthread"]
    words += [f'-DPLACES="{place}"', f"-I{LAYER}", f"-I{tmp_path}", "-o", str(tmp_path / "driver")]
    sources = [str(path) for path in (HERE / "driver.c", HERE / "fake_runtime.c", *layer_sources("posix"))]
    subprocess.run([*words, *sources, "-lm"], check=True)
    words = [str(tmp_path / "driver"), str(place), "turns", "4", "7"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    heard, shown = re.findall(r"\d+", done.stdout)
    assert int(heard) > 50
    assert int(shown) > 50
