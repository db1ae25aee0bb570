"""What configurations decide on an emulated aarch64, compared with the digests that are stored.

    python -m tools.verification.aarch64 [--folder DIR] [FEW|ALL]

Needs a Debian host with apt, and network. Its packages for arm64, qemu's user-mode emulation and wheels of the
libraries are unpacked in a folder of their own; nothing of this system is changed. Half a minute for FEW
configurations, an hour for ALL of them. Exit code 1 when a digest differs, 3 when the emulation cannot be made.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)] + ["manylinux2014_aarch64"]
PACKAGES = ["python3", "python3-minimal", "libpython3-stdlib", "libstdc++6", "libgcc-s1"]
WHEELS = ["numpy", "msgspec", "cryptography", "pyfftw"]


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
    return [qemu / "usr/bin/qemu-aarch64-static", "-L", root, python_in(root)]


def python_in(root: Path) -> Path:
    return next(path for path in sorted((root / "usr/bin").glob("python3.*")) if path.name.count(".") == 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="?", choices=("FEW", "ALL"), default="FEW")
    parser.add_argument("--folder", type=Path, help="where the emulation is kept; without it, it is made and removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aarch64-") as made:
        folder = options.folder or Path(made)
        try:
            python = prepared(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"the emulation cannot be made here: {error}", file=sys.stderr)
            return 3
        variables = {"PYTHONPATH": str(folder / "site"), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        found = json.loads(run(*python, "-m", "tests.product.tape.decided", options.which, **variables))
    stored = json.loads((ROOT / "tests/product/tape/decided.json").read_text())
    differ = [
        f"{name}: {part}"
        for name, own in found["decided"].items()
        for part, digest in own.items()
        if digest != stored["decided"][name][part]
    ]
    for line in differ:
        print(line)
    print(f"aarch64, arithmetic {found['arithmetic']}: {len(found['decided'])} configurations, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
