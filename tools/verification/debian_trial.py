"""The Debian package, on a Debian host that boots: installed, enabled, checked, upgraded with its ledger, purged.

    sudo python -m tools.verification.debian_trial

Builds two versions of it with `tools/make/debian_package.py` inside the host's own root, and then runs the steps of the
Containerfile in another one. About two minutes. The exit code is 1 unless

- installing lays the deployment out, the units start, and `check` passes;
- the newer one keeps ledger, logins and configuration, and `check` passes again, with the units restarted;
- removing keeps them, purging leaves no file;
- every step of the Containerfile runs, and its user, who is not root, starts the program.
"""

import re
import shlex
from pathlib import Path

from tools.verification.deployment_host import CACHE, ROOT, Host, finish, say, wheels

CHECK = (
    "eyestream check --config /etc/eyestream/sidecar.toml --tracker /etc/eyestream/logins/tracker.toml "
    "--application /etc/eyestream/logins/application.toml"
)
UNITS = ("eyestream-raw", "eyestream-private", "eyestream")
SOURCES = ("tools", "docs", "locks", "LICENSE")
STAYS = ("etc/eyestream/sidecar.toml", "etc/eyestream/logins/tracker.password", "etc/eyestream/raw/raw.passwd")


def main() -> None:
    """Try both."""
    folder = wheels()
    package(folder)
    container(folder)
    finish()


def package(folder: Path) -> None:
    """Install, upgrade, remove, purge."""
    with Host(CACHE / "package") as host:
        host.copy(folder, "/srv/wheels")
        for name in SOURCES:
            host.copy(ROOT / name, f"/srv/eyestream/{name}")
        host.offline("python3 -m venv /srv/build && /srv/build/bin/pip install -q --no-index -f /srv/wheels eyestream")
        for number in ("0.1.0-1", "0.1.0-2"):
            make = "/srv/build/bin/python /srv/eyestream/tools/make/debian_package.py --wheels /srv/wheels"
            said = host.offline(f"{make} --out /srv/dist --version {number}").stdout
            say(f"eyestream_{number}_" in said, f"built: {said.strip()}")
        host.boot()
        done = host.run("dpkg -i /srv/dist/eyestream_0.1.0-1_*.deb")
        say(done.returncode == 0, "installed", done.stderr)
        done = host.run(f"systemctl enable --now {' '.join(UNITS)}")
        say(host.wait_active(*UNITS), "enabled and started", done.stderr[-300:])
        passed(host, "after the installation")
        kept = {path: (host.root / path).read_bytes() for path in STAYS}
        ledger = (host.root / "var/lib/eyestream/ledger").read_bytes()[:24]
        manifest = host.root / "etc/eyestream/deployment.json"
        manifest.write_text(manifest.read_text().replace('"version": "0.1.0"', '"version": "0.0.9"'))
        before = host.run("systemctl show -p MainPID --value eyestream").stdout
        done = host.run("dpkg -i /srv/dist/eyestream_0.1.0-2_*.deb")
        say(done.returncode == 0, "upgraded", done.stderr)
        say(host.wait_active(*UNITS), "the units are active after the upgrade")
        say(host.run("systemctl show -p MainPID --value eyestream").stdout != before, "and were restarted")
        say(
            all((host.root / path).read_bytes() == data for path, data in kept.items()), "configuration and logins stay"
        )
        say((host.root / "var/lib/eyestream/ledger").read_bytes()[:24] == ledger, "the ledger stays")
        passed(host, "after the upgrade")
        done = host.run("dpkg -r eyestream")
        stays = (host.root / "var/lib/eyestream/ledger").exists() and (host.root / "etc/eyestream").exists()
        say(done.returncode == 0 and stays, "removed; ledger and configuration stay", done.stderr)
        say(not host.active("eyestream"), "nothing runs any more")
        done = host.run("dpkg -P eyestream")
        left = [path for path in host.tree("etc", "var/lib", "opt", "usr/bin") if "eyestream" in path]
        left = [path for path in left if "/dpkg/" not in path and "deb-systemd" not in path]
        say(done.returncode == 0 and left == [], "purged: nothing is left", f"{done.stderr}{left}")


def passed(host: Host, when: str) -> None:
    """`check` passes whole."""
    done = host.run(CHECK)
    say(done.returncode == 0, f"check {when}", f"{done.stdout.count('pass  ')} pass {done.stderr}")


def steps_of(stage: str, text: str) -> list[list[str]]:
    """Words of the steps of one stage of a Containerfile."""
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    begin = next(i for i, (word, rest) in enumerate(steps) if word == "FROM" and rest.endswith(f" AS {stage}"))
    end = next(i for i in range(begin + 1, len(steps)) if steps[i][0] == "FROM")
    return steps[begin + 1 : end]


def container(folder: Path) -> None:
    """The steps of the Containerfile, in a root of Debian."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Containerfile").read_text())
    steps = steps_of("product", text)
    user, entry, command = "root", [], []
    with Host(CACHE / "container") as host:
        for word, rest in steps:
            if word == "COPY":
                *sources, target = rest.split()
                for source in sources:
                    place = folder if source == "dist" else ROOT / source
                    host.copy(place, f"{target.rstrip('/')}/{place.name}" if len(sources) > 1 else target)
            elif word == "RUN" and "apt-get" not in rest:  # those packages are in the root already
                host.offline(rest)
            elif word == "USER":
                user = rest.strip()
            elif word == "ENTRYPOINT":
                entry = [part.strip(' "') for part in rest.strip("[]").split(",")]
            elif word == "CMD":
                command = [part.strip(' "') for part in rest.strip("[]").split(",")]
        say(user == "eyestream" and bool(entry) and bool(command), "the Containerfile says user, entry and command")
        start = shlex.join([*entry, "--version"])
        done = host.offline(f"runuser -u {user} -- {start}")
        say("eyestream" in done.stdout, f"{start} as {user}", done.stdout)
        host.offline(f"runuser -u {user} -- {shlex.join([*entry, 'init', '/var/lib/eyestream/sidecar'])}")
        run = f"runuser -u {user} -- {shlex.join([*entry, *command])}"
        said = host.offline(f"{run} >/srv/said 2>&1 & sleep 6; kill $!; wait || true; cat /srv/said").stdout
        say("differential privacy" in said, f"{shlex.join(command)} starts, and waits for a broker", said[-160:])


if __name__ == "__main__":
    main()
