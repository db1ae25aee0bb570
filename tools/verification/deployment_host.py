"""A Debian host for trials of deployments: a root of its own that systemd-nspawn boots, systemd as its first process.

Needs root, debootstrap and systemd-nspawn (`apt install debootstrap systemd-container`). It has no network but its own
loopback. What a reboot removes (/run, every process, mounts) is gone after `reboot`; what is on the disk stays.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["CACHE", "ROOT", "Host", "finish", "one_line", "say", "wheels"]

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path("/var/tmp/eyestream-trials")
PACKAGES = "python3,python3-venv,mosquitto,ca-certificates,systemd,dbus,procps"
SUITE = "bookworm"
BOOT_SECONDS = 60.0
_failed: list[str] = []


def say(holds: bool, what: str, said: str = "") -> None:
    """A line for each thing that was tried; `finish` counts those that do not hold."""
    print(("holds  " if holds else "FAILS  ") + what + (f": {said.strip()}" if said.strip() else ""), flush=True)
    if not holds:
        _failed.append(what)


def finish() -> None:
    """Exit with code 1 when something did not hold."""
    print(f"{len(_failed)} do not hold" if _failed else "everything holds")
    sys.exit(1 if _failed else 0)


def wheels() -> Path:
    """A folder with the wheels of eyestream, made now, and of all that it needs, in the locked versions."""
    folder = CACHE / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "-w", str(folder)]
    subprocess.run([*words, "--require-hashes", "-r", str(ROOT / "locks" / "sidecar.txt")], check=True)
    subprocess.run([*words, "--no-deps", str(ROOT)], check=True)
    return folder


def base() -> Path:
    """A Debian root that nobody writes to: made by debootstrap once."""
    found = CACHE / SUITE
    if not found.exists():
        new = CACHE / f"{SUITE}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(new)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        new.rename(found)
    return found


class Host:
    """A copy of the base in `folder`; `with Host(folder) as host`, then `boot`."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self._name = f"--machine=trial-{folder.name}-{os.getpid()}"
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._leader = 0

    def __enter__(self) -> "Host":
        shutil.rmtree(self.root, ignore_errors=True)
        subprocess.run(["cp", "-a", str(base()), str(self.root)], check=True)
        (self.root / "etc" / "hostname").write_text("trial\n")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def copy(self, source: Path, there: str) -> None:
        """Put a file or folder of ours at the path `there`."""
        target = self.root / there.removeprefix("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)

    def offline(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a shell command in the root while it is not booted."""
        words = [
            "systemd-nspawn",
            "--quiet",
            "-D",
            str(self.root),
            "--as-pid2",
            self._name,
            "--register=no",
            "--keep-unit",
        ]
        words += ["--private-network", "--console=pipe", "sh", "-euc", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=600)
        if done.returncode:
            raise RuntimeError(f"{command}: code {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def install(self, folder: Path) -> None:
        """Install eyestream from a folder of wheels into /opt/eyestream, as docs/deployment.md says."""
        self.copy(folder, "/srv/wheels")
        pip = "/opt/eyestream/bin/pip install -q --no-index --find-links /srv/wheels --force-reinstall --no-deps"
        self.offline(f"python3 -m venv /opt/eyestream && {pip} /srv/wheels/*.whl")

    def boot(self) -> None:
        """Boot, and wait until systemd says that everything runs, or that something failed."""
        words = [
            "systemd-nspawn",
            "--quiet",
            "-D",
            str(self.root),
            "--boot",
            self._name,
            "--register=no",
            "--keep-unit",
        ]
        words += ["--private-network", "--console=pipe"]
        self._nspawn = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children")
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline:
            assert self._nspawn.poll() is None, "systemd-nspawn ended"
            found = children.read_text().split()
            if found:
                self._leader = int(found[0])
                done = self.run("systemctl is-system-running")
                if done.stdout.strip() in ("running", "degraded"):
                    return
            time.sleep(0.2)
        raise RuntimeError("the host does not come up")

    def stop(self) -> None:
        """Shut it down in order, as at a reboot."""
        if self._nspawn is None:
            return
        os.kill(self._leader, signal.SIGRTMIN + 4)  # poweroff, systemd(1)
        try:
            self._nspawn.wait(timeout=BOOT_SECONDS)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        self._nspawn = None

    def reboot(self) -> None:
        """Shut down and boot."""
        self.stop()
        self.boot()

    def words(self, command: str, user: str = "root") -> list[str]:
        """Arguments of a process of this machine that runs a shell command on the host as `user`."""
        start = ["nsenter", "-t", str(self._leader), "-m", "-p", "-n", "-u", "-i", "-r", "-w", "--"]
        start += ["env", "-i", "PATH=/opt/eyestream/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
        inner = ["sh", "-c", f"cd / && {command}"]
        return [*start, *(inner if user == "root" else ["runuser", "-u", user, "--", *inner])]

    def run(self, command: str, user: str = "root", seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a shell command on the booted host."""
        words = self.words(command, user)
        return subprocess.run(
            words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=seconds
        )

    def start(self, command: str, user: str = "root") -> "subprocess.Popen[str]":
        """Start a shell command on the booted host."""
        return subprocess.Popen(
            self.words(command, user),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def active(self, *units: str) -> bool:
        """Whether all of them are active."""
        return self.run(f"systemctl is-active --quiet {' '.join(units)}").returncode == 0

    def wait_active(self, *units: str, seconds: float = 60) -> bool:
        """Wait for that."""
        deadline = time.monotonic() + seconds
        while not (up := all(self.active(unit) for unit in units)) and time.monotonic() < deadline:
            time.sleep(0.3)
        return up

    def tree(self, *folders: str) -> dict[str, tuple[int, int, int, bytes]]:
        """Mode, owner and bytes of everything below some folders of the root."""
        found = {}
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*")):
                seen = path.lstat()
                data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                found[str(path.relative_to(self.root))] = (seen.st_mode, seen.st_uid, seen.st_gid, data)
        return found


def one_line(done: subprocess.CompletedProcess[str], *needed: str) -> bool:
    """Whether a command ended with code 2 and a single line that has all words of `needed`."""
    lines = done.stderr.strip().splitlines()
    return done.returncode == 2 and len(lines) == 1 and all(re.search(word, lines[0]) for word in needed)
