"""The assemblies of the package as Unity would make them, made by mono."""

import json
import shutil
import subprocess
from pathlib import Path

from tests.rigs.unity import PACKAGE

__all__ = ["HERE", "NUNIT", "compiled", "nunit_framework", "run_nunit"]

HERE = Path(__file__).parent
NUNIT = "/usr/lib/mono/gac/nunit.framework"


def nunit_framework() -> Path:
    """NUnit as Debian has it; raises StopIteration where it is not installed."""
    return next(Path(NUNIT).glob("2.6*/nunit.framework.dll"))


def compiled(folder: Path, name: str, sources: list[Path], references: list[Path], *more: str) -> Path:
    """One assembly, with every warning as an error, in C# 7: older than what Unity 2021 takes.

    Raises
    ------
    AssertionError
        What the compiler says.
    """
    out = folder / name
    kind = "exe" if out.suffix == ".exe" else "library"
    words = ["mcs", "-langversion:7", "-warnaserror", "-debug-", f"-target:{kind}", f"-out:{out}", *more]
    words += [f"-r:{path}" for path in references]
    run = subprocess.run([*words, *sources], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return out


def sources_of(assembly: str) -> list[Path]:
    """The files that Unity compiles into an assembly: those beside and below its definition."""
    (definition,) = (
        path for path in PACKAGE.rglob("*.asmdef") if json.loads(path.read_text(encoding="utf-8"))["name"] == assembly
    )
    return sorted(definition.parent.rglob("*.cs"))


def run_nunit(assembly: Path, timeout_s: float = 120) -> str:
    """What NUnit's own console says of the tests in an assembly; raises AssertionError where one fails."""
    copy = assembly.parent / "nunit.framework.dll"
    if not copy.exists():
        shutil.copy(nunit_framework(), copy)
    run = subprocess.run(
        ["nunit-console", "-nologo", "-noshadow", "-noxml", str(assembly)],
        cwd=assembly.parent,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout
