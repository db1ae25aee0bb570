"""How the readers in other languages are built and started."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES, GOLDEN = ROOT / "examples", ROOT / "tests" / "golden"
CORE = ROOT / "unity" / "com.eyestream.client" / "Runtime" / "Core"

Command = Callable[[Path], list[str]]
"""Builds what has to be built in a folder, and says how it is started."""


def python(program: str) -> Command:
    return lambda folder: [sys.executable, str(EXAMPLES / "python" / program)]


def node(program: str, *options: str) -> Command:
    return lambda folder: ["node", *options, str(EXAMPLES / "javascript" / program)]


def c(target: str) -> Command:
    def build(folder: Path) -> list[str]:
        copy = shutil.copytree(EXAMPLES / "c", folder / "c", dirs_exist_ok=True)
        subprocess.run(["make", "-s", "-C", copy, target], check=True, timeout=120)
        return [str(copy / target)]

    return build


def csharp(folder: Path) -> list[str]:
    program = folder / "check.exe"
    if not program.exists():
        sources = [ROOT / "tests" / "unity" / "Check.cs", *CORE.glob("*.cs")]
        subprocess.run(["mcs", "-warnaserror", f"-out:{program}", *sources], check=True)
    return ["mono", str(program)]
