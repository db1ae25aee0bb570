"""A Debian package of eyestream with a virtual environment of its own, in /opt/eyestream.

    python -m tools.make.debian_package --out dist [--version 0.1.0-1]

Needs dpkg-deb, and the Python of the Debian release that it is for: the environment has its compiled packages. The
package depends on that Python, on mosquitto and on systemd. Installing it makes /opt/eyestream, /usr/bin/eyestream and,
where there is none, a deployment (`eyestream deploy /`); a newer one renews that (`--upgrade`). Removing it keeps
configuration and ledger; purging it removes both: what was spent is then forgotten.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = "/opt/eyestream"
UNITS = "eyestream-raw eyestream-private eyestream"

CONTROL = """\
Package: eyestream
Version: {version}
Section: science
Priority: optional
Architecture: {architecture}
Depends: python3 (>= {python}~), python3 (<< {next_python}~), mosquitto (>= 2.0), systemd (>= 245), adduser
Maintainer: eyestream
Description: privacy sidecar for eye tracking
 Differentially private release of eye-movement features over MQTT: a sidecar, two brokers that keep raw and
 private data apart, and a ledger of what was spent. Its Python packages are in /opt/eyestream.
"""

POSTINST = f"""\
#!/bin/sh
set -e
case "$1" in configure) ;; *) exit 0 ;; esac
if [ -e /etc/eyestream/deployment.json ]; then
    {HOME}/bin/eyestream deploy --upgrade --program {HOME}/bin/eyestream /
elif [ -e /etc/eyestream ]; then
    echo "eyestream: /etc/eyestream is there and not by eyestream deploy; see docs/upgrading.md" >&2
else
    {HOME}/bin/eyestream deploy --program {HOME}/bin/eyestream /
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    for unit in {UNITS}; do
        systemctl is-active --quiet "$unit" && systemctl restart "$unit" || true
    done
fi
"""

PRERM = f"""\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now eyestream eyestream-private eyestream-raw || true
fi
if [ "$1" = remove ] || [ "$1" = upgrade ]; then
    find {HOME} -name __pycache__ -prune -exec rm -rf {{}} + || true
fi
"""

POSTRM = """\
#!/bin/sh
set -e
if [ "$1" = purge ]; then
    rm -rf /etc/eyestream /var/lib/eyestream /var/lib/eyestream-private
    rm -f /etc/systemd/system/eyestream.service /etc/systemd/system/eyestream-raw.service
    rm -f /etc/systemd/system/eyestream-private.service /etc/sysusers.d/eyestream.conf /etc/tmpfiles.d/eyestream.conf
    if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
fi
"""


def main() -> None:
    """Build it; prints the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")
    parser.add_argument("--version", default=f"{version('eyestream')}-1", help="of the package")
    parser.add_argument("--wheels", type=Path, metavar="DIR", help="install from these wheels, without an index")
    parser.add_argument("--python", default="/usr/bin/python3", help="of the Debian release (default /usr/bin/python3)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print(package(options.out, options.version, options.wheels, options.python))


def package(out: Path, number: str, wheels: Path | None, python: str) -> Path:
    """Build the package with version `number` into `out`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir(mode=0o755)
        if Path(HOME).exists():
            raise SystemExit(f"{HOME} is there: an environment knows its own place, so it is made there and moved away")
        try:
            environment(wheels, python)
            (root / "opt").mkdir()
            shutil.move(HOME, root / "opt" / "eyestream")
        finally:
            shutil.rmtree(HOME, ignore_errors=True)
        (root / "usr/bin").mkdir(parents=True)
        (root / "usr/bin/eyestream").symlink_to(f"{HOME}/bin/eyestream")
        papers = root / "usr/share/doc/eyestream"
        papers.mkdir(parents=True)
        shutil.copy(ROOT / "LICENSE", papers / "copyright")
        for name in ("deployment.md", "upgrading.md"):
            shutil.copy(ROOT / "docs" / name, papers / name)
        control(root / "DEBIAN", number, python)
        subprocess.run(["chmod", "-R", "go+rX,go-w", root], check=True)
        file = out / f"eyestream_{number}_{architecture()}.deb"
        words = ["dpkg-deb", "--root-owner-group", "--build", "-Zgzip", "-z1", str(root), str(file)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return file


def environment(wheels: Path | None, python: str) -> None:
    """A virtual environment at its place, without pip and without compiled files."""
    subprocess.run([python, "-m", "venv", "--without-pip", HOME], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", f"{HOME}/bin/python"]
    found = [] if wheels is None else ["--no-index", "--find-links", str(wheels)]
    locked = ["--require-hashes", "-r", str(ROOT / "locks" / "sidecar.txt")]
    for what in (locked, ["--no-deps", str(ROOT) if wheels is None else "eyestream"]):
        subprocess.run([*pip, "install", "--no-compile", *found, *what], check=True)


def control(folder: Path, number: str, python: str) -> None:
    """The files that dpkg reads."""
    folder.mkdir(mode=0o755)
    code = "import sys; print(*sys.version_info[:2])"
    major, minor = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    now, later = f"{major}.{minor}", f"{major}.{int(minor) + 1}"
    text = CONTROL.format(version=number, architecture=architecture(), python=now, next_python=later)
    (folder / "control").write_text(text)
    for name, script in (("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)


def architecture() -> str:
    """Debian's name of this machine's."""
    done = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
