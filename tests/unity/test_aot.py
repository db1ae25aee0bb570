"""Decoder and feed run where nothing is compiled at run time: in the full ahead-of-time mode of mono, as on IL2CPP."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rigs.unity import PACKAGE
from tests.unity.compiling import HERE, compiled

LIBRARIES = (
    *("mscorlib", "Mono.Security", "System", "System.Configuration", "System.Core", "System.Numerics"),
    *("System.Security", "System.Xml"),
)


def mono(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A call of mono that finds its libraries in `folder` alone."""
    environment = os.environ | {"MONO_PATH": str(folder)}
    return subprocess.run(
        ["mono", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=check
    )


@pytest.mark.slow
@pytest.mark.needs("mono", "cc")
def test_nothing_is_compiled_at_run_time(core: Path, tmp_path: Path) -> None:
    own = Path(shutil.copy(core, tmp_path))
    golden = PACKAGE / "Tests" / "Editor" / "Golden.cs"
    program = compiled(tmp_path, "aot.exe", [HERE / "Aot.cs", golden], [own])
    control = compiled(tmp_path, "dynamic.exe", [HERE / "DynamicCode.cs"], [])
    said = mono(tmp_path, program.name).stdout
    assert " 0 faults; 4 rows, 4 other events" in said
    assert mono(tmp_path, control.name).stdout == "1\n"
    for name in LIBRARIES:
        shutil.copy(f"/usr/lib/mono/4.5/{name}.dll", tmp_path)
        mono(tmp_path, "--aot=full", f"{name}.dll")
    for path in (own, program, control):
        mono(tmp_path, "--aot=full", path.name)
    assert mono(tmp_path, "--full-aot", program.name).stdout == said
    refused = mono(tmp_path, "--full-aot", control.name, check=False)
    assert refused.returncode != 0
    assert "Attempting to JIT compile" in refused.stderr
