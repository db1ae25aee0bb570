"""The deployment that `eyestream deploy` lays out, on a Debian host that boots: first start, reboot, faults, renewal.

    sudo python -m tools.verification.deployment

Makes a root with debootstrap (once, in /var/tmp), installs eyestream there from wheels, boots it with
systemd-nspawn, and does what docs/deployment.md says. Takes about three minutes. The exit code is 1 unless

- all units start, `check` passes whole, a tracker's rows become chunks of an application, each under a user of its own
  who is in one group; who is in neither gets in nowhere;
- the same through the two ports for other machines, by somebody who is in no group and has the logins and ca.pem;
- the same holds after a reboot, and the ledger goes on;
- every file whose owner or rights are changed, or that is gone, is named by `check`; systemd-tmpfiles mends
  rights;
- the wrong user, a port that is taken, a full disk, a second `deploy` and one without rights are one line each and
  leave everything as it was; a `deploy` that was killed is finished by the next one;
- a deployment of another version is named by `check` and renewed by `--upgrade`, which keeps logins, ledger and edits;
- `systemd-analyze verify` says nothing, and `security` gives each unit less than 2 of 10.
"""

import hashlib
import json
import re
import subprocess
import time
from pathlib import Path

from tools.verification.deployment_host import CACHE, ROOT, Host, finish, one_line, say, wheels

UNITS = ("eyestream-raw", "eyestream-private", "eyestream")
CONFIG = "/etc/eyestream/sidecar.toml"
LOGINS = "--tracker /etc/eyestream/logins/tracker.toml --application /etc/eyestream/logins/application.toml"
CHECK = f"eyestream check --config {CONFIG}"
NAME = "eyes.example"
LAID = ("etc", "var/lib/eyestream")
MOST_EXPOSED = 2.0


def main() -> None:
    """Try everything."""
    folder = wheels()
    with Host(CACHE / "deployment") as host:
        host.install(folder)
        host.boot()
        refuse(host)
        first(host)
        people(host)
        analyse(host)
        flow(host, "after the first start")
        documented(host)
        elsewhere(host)
        host.reboot()
        say(host.wait_active(*UNITS), "after a reboot every unit is active by itself")
        whole(host, "after a reboot")
        flow(host, "after a reboot")
        faults(host)
        reloads(host)
        again(host)
        renewal(host)
    interrupted(folder)
    finish()


def refuse(host: Host) -> None:
    """What cannot be done leaves nothing."""
    host.run("useradd -m someone")
    before = host.tree(*LAID)
    done = host.run("eyestream deploy /", user="someone")
    say(one_line(done, "root"), "deploy without rights is one line", done.stderr)
    taken = host.start(
        "timeout 4 python3 -c \"import socket,time; s=socket.create_server(('', 8883)); time.sleep(60)\""
    )
    time.sleep(1)
    done = host.run("eyestream deploy / --host eyes.example")
    say(one_line(done, "8883", "in use"), "a port that is taken is one line", done.stderr)
    taken.wait()
    say(host.tree(*LAID) == before, "and nothing is left of both")
    host.run("mount -t tmpfs -o size=8k tmpfs /etc/tmpfiles.d && dd if=/dev/zero of=/etc/tmpfiles.d/full bs=8k count=2")
    done = host.run("eyestream deploy /")
    host.run("umount /etc/tmpfiles.d")
    left = [path for path in host.tree(*LAID) if "eyestream" in path and path not in before]
    say(one_line(done, "tmpfiles", "nothing is left") and left == [], "a full disk is one line", f"{done.stderr}{left}")


def first(host: Host) -> None:
    """The steps of the documentation."""
    begin = time.monotonic()
    done = host.run(f"eyestream deploy / --host {NAME} --tracker-host {NAME}")
    say(done.returncode == 0, "deploy", done.stderr)
    print(done.stdout)
    done = host.run(f"systemctl daemon-reload && systemctl enable --now {' '.join(UNITS)}")
    say(done.returncode == 0 and host.wait_active(*UNITS), "every unit starts")
    if not host.active(*UNITS):
        print(host.run("journalctl --no-pager -n 60 -u eyestream").stdout)
    print(f"       {time.monotonic() - begin:.1f} s for both")
    whole(host, "after the first start")


def whole(host: Host, when: str) -> None:
    """`check` passes, as root with all logins and as the sidecar's user without."""
    for command, user in ((f"{CHECK} {LOGINS}", "root"), (CHECK, "eyestream")):
        done = host.run(command, user=user)
        lines = done.stdout.splitlines()
        passed = sum(line.startswith("pass") for line in lines)
        failed = [line for line in lines if line.startswith("fail")]
        say(done.returncode == 0 and passed > 20, f"check as {user} {when}", f"{passed} pass {failed}{done.stderr}")


def people(host: Host) -> None:
    """A tracker, an application and a stranger, with the steps that `deploy` prints."""
    for user, role in (("eyes", "tracker"), ("app", "application")):
        host.run(f"useradd -m {user} && usermod -aG eyestream-{role} {user}")
        host.run(f"install -o {user} -m 400 /etc/eyestream/logins/{role}.password /home/{user}/password")
    host.run("eyestream simulate --people 1 --seconds 200 --seed 3 --out /srv/people && chmod -R a+rX /srv/people")


def device(host: Host) -> str:
    """The pseudonym in the configuration."""
    return re.findall(r'^id = "(.*)"', (host.root / CONFIG[1:]).read_text(), re.M)[0]


def flow(host: Host, when: str) -> None:
    """A tracker's rows become chunks of an application; who is not in the groups gets in nowhere."""
    private, raw = "unix:///run/eyestream-private/private.sock", "unix:///run/eyestream-raw/raw.sock"
    ends = (f"--device {device(host)} --broker", "--password-file /home/{}/password")
    listen = f"eyestream listen {ends[0]} {private} --username application {ends[1].format('app')} --chunks 2"
    replay = f"eyestream replay {ends[0]} {raw} --username tracker {ends[1].format('eyes')} --speed max"
    ear = host.start(f"timeout 30 {listen}", user="app")
    time.sleep(2)
    sent = host.run(f"{replay} /srv/people/sim-000.npz", user="eyes")
    heard, _ = ear.communicate()
    fine = sent.returncode == 0 and ear.returncode == 0
    say(fine, f"a tracker's rows become an application's chunks {when}", "" if fine else f"{sent.stderr} {heard}")
    for user, side in (("someone", private), ("someone", raw), ("app", raw), ("eyes", private)):
        done = host.run(f"eyestream listen {ends[0]} {side} --wait 1 --chunks 1", user=user)
        say(
            one_line(done, "sock"), f"{user} does not get in at {side} {when}", "" if done.returncode == 2 else "got in"
        )
    spent = json.loads(host.run("eyestream budget --json --ledger /var/lib/eyestream/ledger").stdout)
    print(f"       spent: epsilon {spent['devices'][device(host)]['epsilon']}")


def documented(host: Host) -> None:
    """The commands under "Try it" of docs/deployment.md, as they stand there."""
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    commands = page.split("## 5. Try it")[1].split("```")[1]
    (host.root / "srv/try.sh").write_text(commands)
    done = host.run("timeout 60 sh -eu /srv/try.sh 2>&1")
    chunks = re.findall(r"^ +(\d+) ", done.stdout, re.M)
    fine = done.returncode == 0 and chunks == ["2", "3", "4"] and "left: " in done.stdout
    say(fine, "what the page proposes to try works as it stands there", "" if fine else done.stdout)


def elsewhere(host: Host) -> None:
    """As another machine does: by name and port, with TLS, the deployment's authority and a login."""
    host.run(f"echo 127.0.0.1 {NAME} >> /etc/hosts; useradd -m far")
    for name in ("logins/tracker.password", "logins/application.password", "certificates/ca.pem"):
        host.run(f"install -o far -m 400 /etc/eyestream/{name} /home/far/")
    # TCP on the loopback, where the namespaces of the units meet
    ports = {"tracker": f"mqtts://{NAME}:8884", "application": f"mqtts://{NAME}:8883"}
    words = {
        role: f"--device {device(host)} --broker {port} --ca-file /home/far/ca.pem --username {role} "
        f"--password-file /home/far/{role}.password"
        for role, port in ports.items()
    }
    ear = host.start(f"timeout 30 eyestream listen {words['application']} --chunks 2", user="far")
    time.sleep(2)
    sent = host.run(f"eyestream replay {words['tracker']} --speed max /srv/people/sim-000.npz", user="far")
    heard, _ = ear.communicate()
    fine = sent.returncode == 0 and ear.returncode == 0
    say(fine, "a tracker elsewhere is heard by an application elsewhere", "" if fine else f"{sent.stderr} {heard}")
    say("left: " in heard, "who is told what is left", heard)
    for role, port in ports.items():
        wrong = words[role].replace(f"--broker {port}", f"--broker {port.replace(NAME, '127.0.0.1')}")
        done = host.run(f"eyestream listen {wrong} --wait 1 --chunks 1", user="far")
        say(one_line(done, "certificate"), f"{role}: under another name the certificate does not hold", done.stderr)
        bare = re.sub(r" --username.*", "", words[role])
        done = host.run(f"eyestream listen {bare} --wait 1 --chunks 1", user="far")
        say(one_line(done, "refuse|not authorised"), f"{role}: nobody gets in without a login", done.stderr)


def analyse(host: Host) -> None:
    """What systemd says of the units."""
    files = " ".join(f"/etc/systemd/system/{unit}.service" for unit in UNITS)
    done = host.run(f"systemd-analyze verify {files}")
    say(done.returncode == 0 and not done.stderr.strip(), "systemd-analyze verify says nothing", done.stderr)
    for unit in UNITS:
        said = host.run(f"systemd-analyze security --no-pager {unit}").stdout
        found = re.search(r"exposure level for \S+: ([\d.]+)", said)
        exposed = float(found[1]) if found else 10.0
        say(exposed < MOST_EXPOSED, f"systemd-analyze security of {unit}", f"{exposed} of 10")


FAULTS = [
    ("chmod 666 {}", CONFIG),
    ("chmod 644 {}", "/var/lib/eyestream/ledger"),
    ("chmod 755 {}", "/var/lib/eyestream"),
    ("chown root {}", "/etc/eyestream/sidecar/raw.password"),
    ("chmod 644 {}", "/etc/eyestream/sidecar/private.password"),
    ("chmod 777 {}", "/etc/eyestream/raw"),
    ("chown root:root {}", "/etc/eyestream/raw/raw.passwd"),
    ("chmod 444 {}", "/etc/eyestream/private/private.passwd"),
    ("chmod 444 {}", "/etc/eyestream/private/broker.key"),
    ("chmod 444 {}", "/etc/eyestream/raw/broker.key"),
    ("chmod 755 {}", "/etc/eyestream/logins"),
    ("chmod 444 {}", "/etc/eyestream/certificates/ca.key"),
]


def faults(host: Host) -> None:
    """Each change of a right is named, and mended by what a boot does; a missing file is named."""
    for change, path in FAULTS:
        host.run(change.format(path))
        done = host.run(f"{CHECK} {LOGINS}")
        named = [line for line in done.stdout.splitlines() if line.startswith("fail") and path in line]
        say(
            bool(named) and done.returncode == 1,
            f"check names {change.format(path)}",
            named[0] if named else done.stderr,
        )
        host.run("systemd-tmpfiles --create eyestream.conf")
        mended = host.run(f"{CHECK} {LOGINS}")
        say(mended.returncode == 0, "and systemd-tmpfiles mends it", mended.stderr)
    host.run("chmod 755 /run/eyestream-raw")
    done = host.run(CHECK)
    say("/run/eyestream-raw has mode 755" in done.stdout, "check names a socket that is open to all")
    host.run("systemctl restart eyestream-raw && mv /etc/eyestream/private/private.acl /tmp/acl")
    done = host.run(CHECK)
    say("/etc/eyestream/private/private.acl" in done.stdout, "check names a file that is gone")
    host.run("mv /tmp/acl /etc/eyestream/private/private.acl; systemctl stop eyestream-private")
    done = host.run(CHECK)
    say("systemctl start eyestream-private" in done.stdout, "check names a broker that does not run")
    host.run("systemctl start eyestream-private")
    for side in ("raw", "private"):  # the last listener of its file is that for other machines
        conf = host.root / f"etc/eyestream/{side}/{side}.conf"
        text = conf.read_bytes()
        head, _, tail = text.rpartition(b"allow_anonymous false")
        conf.write_bytes(head + b"allow_anonymous true" + tail)
        host.run(f"systemctl restart eyestream-{side}")
        done = host.run(f"{CHECK} {LOGINS}")
        seen = f"fail  {side} broker, from other machines: nobody gets in without a login" in done.stdout
        say(seen, f"check names a port of the {side} broker that is open to all", "" if seen else done.stdout)
        conf.write_bytes(text)
        host.run(f"systemctl restart eyestream-{side}")
    done = host.run(CHECK, user="someone")
    say(one_line(done, "Permission denied", CONFIG), "check as the wrong user is one line", done.stderr)
    host.wait_active(*UNITS)
    whole(host, "after all that")


def reloads(host: Host) -> None:
    """A reload fails where the file cannot be used, and says what it took over and what it did not."""
    path = host.root / CONFIG[1:]
    text = path.read_text()
    path.write_text(text.replace("day_epsilon", "day_epsilom"))
    done = host.run("systemctl reload eyestream")
    told = host.run("journalctl --no-pager -n 20 -u eyestream").stdout
    say(done.returncode != 0 and "day_epsilom: unknown key" in told, "a reload of a wrong file fails", done.stderr)
    for ceiling, line in (("9999.0", "the old configuration stays"), ("2000.0", "the ceilings of /etc/eyestream")):
        path.write_text(text.replace("day_epsilon = 2304.0", f"day_epsilon = {ceiling}"))
        done = host.run("systemctl reload eyestream; sleep 2; systemctl show -p StatusText eyestream")
        say(done.returncode == 0 and line in done.stdout, f"systemctl tells: {line}", done.stdout + done.stderr)
    path.write_text(text)
    host.run("systemctl restart eyestream")
    say(host.wait_active(*UNITS), "and nothing of it stops the service")


def again(host: Host) -> None:
    """A second deployment over the first."""
    before = host.tree("etc")
    done = host.run("eyestream deploy /")
    say(one_line(done, "already", "--upgrade"), "a second deploy is one line", done.stderr)
    say(host.tree("etc") == before, "and changes nothing")


def renewal(host: Host) -> None:
    """A deployment that another version wrote, with an edit."""
    manifest = host.root / "etc/eyestream/deployment.json"
    kept = {path: seen for path, seen in host.tree("etc/eyestream").items() if path.endswith((".password", ".passwd"))}
    found = json.loads(manifest.read_text())
    unit = host.root / "etc/systemd/system/eyestream-raw.service"
    older = unit.read_text().replace("TasksMax=16", "TasksMax=15")
    unit.write_text(older)
    found["version"] = "0.0.9"
    found["written"]["/etc/systemd/system/eyestream-raw.service"] = hashlib.sha256(older.encode()).hexdigest()
    manifest.write_text(json.dumps(found))
    acl = host.root / "etc/eyestream/raw/raw.acl"
    acl.write_text(acl.read_text() + "\n# ours\n")
    done = host.run(CHECK)
    say("are of 0.0.9" in done.stdout, "check names a deployment of another version")
    done = host.run("eyestream deploy --upgrade /")
    fine = "renewed  /etc/systemd/system/eyestream-raw.service" in done.stdout and "raw.acl: edited here" in done.stdout
    say(fine, "deploy --upgrade renews, and keeps what was edited", done.stdout + done.stderr)
    say("TasksMax=16" in unit.read_text() and "# ours" in acl.read_text(), "as it says")
    now = host.tree("etc/eyestream")
    say(all(now[path] == seen for path, seen in kept.items()), "and keeps every login")
    host.run(f"systemctl daemon-reload && systemctl restart {' '.join(UNITS)}")
    say(host.wait_active(*UNITS), "the units start again")
    whole(host, "after the renewal")
    flow(host, "after the renewal")


def interrupted(folder: Path) -> None:
    """`deploy`, killed at any moment, and run again: whole."""
    with Host(CACHE / "interrupted") as host:
        host.install(folder)
        host.boot()
        for after_s in (0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 1.0):
            host.run("rm -rf /etc/eyestream /etc/eyestream.new")
            host.run(f"timeout -s KILL {after_s} eyestream deploy /")
            whole_or_none = (host.root / "etc/eyestream").exists() == (
                host.root / "etc/eyestream/deployment.json"
            ).exists()
            say(whole_or_none, f"killed after {after_s} s: /etc/eyestream is there whole or not at all")
        host.run("rm -rf /etc/eyestream")
        done = host.run("eyestream deploy /")
        host.run(f"systemctl daemon-reload && systemctl enable --now {' '.join(UNITS)}")
        say(done.returncode == 0 and host.wait_active(*UNITS), "the next one finishes it", done.stderr)
        whole(host, "after interrupted ones")
        later(host)


def later(host: Host) -> None:
    """Trackers on other machines are let in where nobody was."""
    done = host.run(f"eyestream deploy --upgrade / --tracker-host {NAME}")
    say("renewed  /etc/systemd/system/eyestream-raw.service" in done.stdout, "trackers elsewhere, later", done.stderr)
    host.run(f"systemctl daemon-reload && systemctl restart {' '.join(UNITS)}")
    say(host.wait_active(*UNITS), "the units start again")
    seen = host.run(f"{CHECK} {LOGINS}")
    line = "pass  raw broker: rows of the tracker on another machine reach the sidecar"
    say(seen.returncode == 0 and line in seen.stdout, "and check tries the new port", seen.stderr)


if __name__ == "__main__":
    try:
        main()
    except subprocess.TimeoutExpired as error:
        say(False, "a command takes too long", str(error))
        finish()
