"""What an emulated aarch64 decides, publishes, calibrates and tests, compared with this machine.

    python -m tools.verification.aarch64 [--folder DIR] [FEW|ALL|2/7]

Decisions are compared with the digests that are stored. Published messages and a calibration are compared with those
that this machine makes of the same words and rows. ALL is every shipped calibration and every case of the tape, and
the tests of some rooms run there too. It goes part by part, and 2/7 is the third of its seven parts alone. Needs a
Debian host with apt, and network. Its packages for arm64, qemu's user-mode emulation and wheels of the libraries are
unpacked in a folder of their own; nothing of this system is changed. A minute for FEW, an hour for ALL. Exit code 1
when something differs or fails, 3 when the emulation cannot be made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)] + ["manylinux2014_aarch64"]
PACKAGES = ["python3", "python3-minimal", "libpython3-stdlib", "libstdc++6", "libgcc-s1"]
WHEELS = ["numpy", "msgspec", "pyfftw", "paho-mqtt", "pytest", "pytest-asyncio", "pytest-timeout", "hypothesis"]
WHEELS += ["aiomqtt", "msgpack", "cryptography", "scikit-learn", "nats-py"]
ROOMS = [f"tests/product/{room}" for room in ("core", "gaze", "release", "spectrum", "tape", "tiles", "wire")]
DISTRIBUTIONS = ["", "lab", "fleet"]
FEW, ALL = "FEW", "ALL"
PARTS = {f"{turn}/{len(ROOMS)}": room for turn, room in enumerate(ROOMS)}
"""What a part of ALL tests, beside its share of the configurations and sessions."""


def run(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        env=os.environ | variables,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def unpack(folder: Path, architecture: str, packages: list[str], into: Path) -> None:
    """Debian packages with what they depend on, by an apt that has its own lists."""
    apt = folder / f"apt-{architecture}"
    for below in ("state/lists/partial", "cache/archives/partial"):
        (apt / below).mkdir(parents=True, exist_ok=True)
    (apt / "state/status").touch()
    (apt / "apt.conf").write_text(
        f'Dir::State "{apt}/state";\nDir::State::status "{apt}/state/status";\nDir::Cache "{apt}/cache";\n'
        f'APT::Architecture "{architecture}";\nAPT::Architectures {{ "{architecture}"; }};\n'
        'APT::Sandbox::User "root";\n'
    )
    own = {"APT_CONFIG": str(apt / "apt.conf")}
    run("apt-get", "-q", "update", **own)
    run("apt-get", "-qy", "--no-install-recommends", "--download-only", "install", *packages, **own)
    for package in sorted((apt / "cache/archives").glob("*.deb")):
        run("dpkg", "-x", package, into)


def prepared(folder: Path) -> list[str | Path]:
    """The command of an emulated Python, with the libraries beside it."""
    qemu, root, site = folder / "qemu", folder / "root", folder / "site"
    if not site.is_dir():
        own = run("dpkg", "--print-architecture").strip()
        unpack(folder, own, ["qemu-user-static"], qemu)
        unpack(folder, "arm64", PACKAGES, root)
        platforms = [word for one in PLATFORMS for word in ("--platform", one)]
        version = python_in(root).name.removeprefix("python")
        pip = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "--python-version", version]
        run(*pip, "--implementation", "cp", *platforms, "-d", folder / "wheels", *WHEELS)
        for wheel in sorted((folder / "wheels").glob("*.whl")):
            zipfile.ZipFile(wheel).extractall(site)
    for own_folder in DISTRIBUTIONS:
        register(ROOT / own_folder / "pyproject.toml", site)
    # A program of its own, so that tests can start another process of it.
    python = folder / "python"
    emulated = [qemu / "usr/bin/qemu-aarch64-static", "-L", root, "-0", '"$0"', python_in(root)]
    python.write_text(f'#!/bin/sh\nexec {" ".join(map(str, emulated))} "$@"\n')
    python.chmod(0o755)
    return [python]


def register(project_file: Path, site: Path) -> None:
    """Metadata of a distribution whose code is in this checkout: its entry points are how its parts are found."""
    project = tomllib.loads(project_file.read_text())["project"]
    info = site / f"{project['name'].replace('-', '_')}-0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
    points = project.get("entry-points", {})
    lines = [f"[{group}]\n" + "".join(f"{name} = {of}\n" for name, of in own.items()) for group, own in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


def differing(found: dict[str, Any], here: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
    """What is not the same there; float64 before rounding, and last bits of a calibration, may differ."""
    for name, own in found["decided"].items():
        yield from (f"{name}: {part}" for part, one in own.items() if one != stored[name][part])
    for name, (messages, _) in found["published"].items():
        if messages != here["published"][name][0]:
            yield f"{name}: messages"
    for table, values in found["book"].items():
        if not np.allclose(values, here["book"][table], rtol=1e-6, atol=1e-9):
            yield f"book: {table}"


def python_in(root: Path) -> Path:
    return next(path for path in sorted((root / "usr/bin").glob("python3.*")) if path.name.count(".") == 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="?", choices=(FEW, ALL, *PARTS), default=FEW)
    parser.add_argument("--folder", type=Path, help="where the emulation is kept; without it, it is made and removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aarch64-") as made:
        folder = (options.folder or Path(made)).resolve()
        try:
            python = prepared(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"the emulation cannot be made here: {error}", file=sys.stderr)
            return 3
        site = os.pathsep.join(map(str, (folder / "site", ROOT / "lab", ROOT / "fleet")))
        variables = {"PYTHONPATH": site, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        variables["PYTHONHOME"] = str((folder / "root/usr").resolve())
        asked = list(PARTS) if options.which == ALL else [options.which]
        wrong = [part for part in asked if not holds(part, python, variables)]
    return 1 if wrong else 0


def holds(part: str, python: list[str | Path], variables: dict[str, str]) -> bool:
    """Whether nothing of a part differs and no test of its rooms fails; says what it found as it goes."""
    began = time.monotonic()
    found = json.loads(run(*python, "-m", "tests.product.tape.decided", part, **variables))
    found |= json.loads(run(*python, "-m", "tests.product.tape.payloads", part, **variables))
    here = json.loads(run(sys.executable, "-m", "tests.product.tape.payloads", part, PYTHONPATH=str(ROOT / "lab")))
    stored = json.loads((ROOT / "tests/product/tape/decided.json").read_text())["decided"]
    differ = list(differing(found, here, stored))
    for line in differ:
        print(line)
    rounded = sum(own[1] != here["published"][name][1] for name, own in found["published"].items())
    print(
        f"{part}: aarch64, arithmetic {found['arithmetic']}: {len(found['decided'])} configurations, "
        f"{len(found['published'])} sessions of messages ({rounded} differ before they are rounded to float32) and a "
        f"book; {len(differ)} differ; {time.monotonic() - began:.0f} s",
        flush=True,
    )
    failed = part in PARTS and tests_fail(PARTS[part], python, variables)
    return not differ and not failed


def tests_fail(room: str, python: list[str | Path], variables: dict[str, str]) -> bool:
    """Whether a test of the room fails there; the last lines of what pytest says are printed."""
    command = [*python, "-m", "pytest", "-q", "--timeout=0", room]
    done = subprocess.run(
        [str(word) for word in command], env=os.environ | variables, cwd=ROOT, stdout=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    print(f"{room}:", *(lines[-20:] if done.returncode else lines[-1:]), sep="\n", flush=True)
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
