"""`eyestream deploy`: all of a deployment or nothing, looked at by `check`, renewed by the next version."""

import asyncio
import datetime
import json
import os
import re
import shutil
import ssl
from datetime import UTC
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError, LinkError
from eyestream.ops.check_brokers import broker_findings, others_of
from eyestream.ops.check_deployment import deployment_findings, root_of
from eyestream.ops.deployment import layout
from eyestream.ops.deployment.credentials import new_authority, new_certificate, password_line
from eyestream.ops.deployment.layout import Manifest, Outside, at, read_manifest
from eyestream.ops.deployment.writing import deploy, renew
from eyestream.rim import config
from eyestream.rim.config import BrokerSettings, LoginSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto, program

NOW = datetime.datetime(2026, 11, 1, tzinfo=UTC)
PROGRAM = "/usr/bin/eyestream"
Seen = dict[str, tuple[int, int, bytes]]

needs_root = pytest.mark.needs("root", "systemd-sysusers")


BOTH = {"raw": ("10.0.0.7", 8884), "private": ("eyes.example", 8883)}


def laid_out(root: Path, outside: Outside = BOTH) -> Manifest:
    (root / "etc").mkdir(parents=True, exist_ok=True)
    return deploy(root, version="1", program=PROGRAM, outside=outside, now=NOW)


def tree(root: Path) -> Seen:
    """Everything but the lists of users, which a refused deployment may have made."""
    found = {path: path.lstat() for path in root.rglob("*")}
    return {
        str(path.relative_to(root)): (seen.st_mode, seen.st_uid, path.read_bytes() if path.is_file() else b"")
        for path, seen in found.items()
        if path.parent != root / "etc" or path.is_dir()
    }


def faults(root: Path, version: str = "1", now: datetime.datetime = NOW) -> list[str]:
    settings = config.load(at(root, layout.SETTINGS))
    found = deployment_findings(root, settings, version, now)
    return [str(one) for one in found if not one.passed and "socket is for its group" not in one.what]


@needs_root
def test_it_is_laid_out_and_passes(tmp_path: Path) -> None:
    manifest = laid_out(tmp_path)
    assert faults(tmp_path) == []
    assert len(manifest.places) > 25
    assert read_manifest(tmp_path) == manifest
    assert root_of(at(tmp_path, layout.SETTINGS)) == tmp_path
    for path in (p for p in tmp_path.rglob("*") if p.is_file() and p.name.endswith((".password", ".key", ".passwd"))):
        assert path.stat().st_mode & 0o077 == 0, path
    settings = config.load(at(tmp_path, layout.SETTINGS))
    assert settings.raw is not None
    assert (settings.raw.url, settings.private.url) == (
        "unix:///run/eyestream-raw/raw.sock",
        "unix:///run/eyestream-private/private.sock",
    )
    assert str(settings.sidecar.ledger) == layout.LEDGER
    assert re.fullmatch(r"hmd-[0-9a-f]{10}", settings.device[0].id)
    secret = at(tmp_path, "/etc/eyestream/sidecar/raw.password").read_text()
    assert secret not in at(tmp_path, layout.MANIFEST).read_text()


@needs_root
def test_each_place_that_is_changed_is_named(tmp_path: Path) -> None:
    for place in laid_out(tmp_path).places:
        path = at(tmp_path, place.path)
        path.chmod(place.mode ^ 0o002)
        assert any(f"{path} has mode" in line and f"chmod {place.mode:o}" in line for line in faults(tmp_path)), path
        path.chmod(place.mode)
        owner = path.stat()
        os.chown(path, 54321, -1)
        assert any(f"{path} belongs to others" in line for line in faults(tmp_path)), path
        os.chown(path, owner.st_uid, owner.st_gid)
    assert faults(tmp_path) == []
    at(tmp_path, "/etc/eyestream/raw/raw.acl").unlink()
    assert any("raw.acl: No such file" in line for line in faults(tmp_path))


@needs_root
def test_a_certificate_that_ends_and_another_version_are_named(tmp_path: Path) -> None:
    laid_out(tmp_path)
    [line] = faults(tmp_path, version="2")
    assert "of 1, this is 2" in line
    assert line.endswith(f"eyestream deploy --upgrade {tmp_path}")
    lines = faults(tmp_path, now=NOW + datetime.timedelta(days=800))
    for side, line in zip(BOTH, lines, strict=True):
        assert f"the {side} broker's certificate is valid: for 25 days more" in line


@needs_root
@pytest.mark.parametrize("stone", ["etc/tmpfiles.d", "etc/systemd", "var/lib", "etc/eyestream.new"])
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, stone: str) -> None:
    """A file where a directory must be; `eyestream.new` is left by one that was killed, and no hindrance."""
    for folder in (tmp_path / "etc", (tmp_path / stone).parent):
        folder.mkdir(parents=True, exist_ok=True)
    before = tree(tmp_path)
    if stone.endswith(".new"):
        (tmp_path / stone).mkdir()
        (tmp_path / stone / "half").write_text("")
        laid_out(tmp_path)
        assert not (tmp_path / stone).exists()
        assert faults(tmp_path) == []
        return
    (tmp_path / stone).write_text("")
    with pytest.raises(ConfigError, match=f"{stone}.*nothing is left"):
        laid_out(tmp_path)
    (tmp_path / stone).unlink()
    assert tree(tmp_path) == before


@needs_root
def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    laid_out(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(ConfigError, match=r"version 1 already.*--upgrade"):
        laid_out(tmp_path)
    assert tree(tmp_path) == before
    other = tmp_path / "other"
    (other / "etc/systemd/system").mkdir(parents=True)
    (other / "etc/systemd/system/eyestream.service").write_text("[Service]\n")
    with pytest.raises(ConfigError, match=r"eyestream\.service is there and not by"):
        laid_out(other)
    (other / "etc/systemd/system/eyestream.service").unlink()
    (other / "etc/eyestream").mkdir()
    with pytest.raises(ConfigError, match="etc/eyestream is there and not by"):
        laid_out(other)
    assert not (other / "var").exists()


@needs_root
def test_a_ledger_that_is_there_stays(tmp_path: Path) -> None:
    laid_out(tmp_path)
    ledger = at(tmp_path, layout.LEDGER)
    kept = ledger.read_bytes()
    shutil.rmtree(tmp_path / "etc/eyestream")
    laid_out(tmp_path)
    assert ledger.read_bytes() == kept
    assert faults(tmp_path) == []


@needs_root
def test_the_next_version_renews_what_is_its_own(tmp_path: Path) -> None:
    laid_out(tmp_path)
    unit, acl = tmp_path / "etc/systemd/system/eyestream.service", at(tmp_path, "/etc/eyestream/raw/raw.acl")
    mine = acl.read_text() + "# mine\n"
    acl.write_text(mine)
    before = tree(tmp_path)
    lines = renew(tmp_path, version="2", program="/opt/new/bin/eyestream", now=NOW)
    assert [line.split()[:2] for line in lines] == [
        ["renewed", "/etc/systemd/system/eyestream.service"],
        ["kept", "/etc/eyestream/raw/raw.acl:"],
    ]
    assert "/opt/new/bin/eyestream run" in unit.read_text()
    assert acl.read_text() == mine
    assert acl.with_name("raw.acl.new").read_text() == layout.acl_text("raw")
    after = tree(tmp_path)
    assert {path for path in before if after[path] != before[path]} == {
        "etc/systemd/system/eyestream.service",
        "etc/eyestream/deployment.json",
    }
    assert faults(tmp_path, version="2") == []
    later = NOW + datetime.timedelta(days=780)
    lines = renew(tmp_path, version="2", program=None, now=later)
    assert all(any(name in line for line in lines) for name in ("broker.pem", "raw.pem", "raw/broker.key"))
    assert faults(tmp_path, version="2", now=later) == []
    with pytest.raises(ConfigError, match="there is no deployment"):
        renew(tmp_path / "etc", version="2", program=None, now=NOW)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/", "--port", "1"], "--port goes with --host"),
        (["/", "--host", "a b"], "expected a name or an address"),
        (["/", "--host", "a", "--port", "99999"], "expected a port between"),
        (["/nowhere-at-all"], "with a directory etc"),
        (["/tmp", "--program", "eyestream"], "expected an absolute path"),
        (["/nowhere-at-all", "--upgrade", "--tracker-port", "1"], "--tracker-port goes with --tracker-host"),
        (["/", "--tracker-port", "1"], "--tracker-port goes with --tracker-host"),
        (["/", "--tracker-host", "a/b"], "--tracker-host a/b: expected a name or an address"),
        (
            ["/nowhere-at-all", "--host", "a", "--tracker-host", "a", "--port", "8884"],
            "expected another port than that",
        ),
    ],
)
@needs_root
def test_a_mistake_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["deploy", *words])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


def test_without_rights_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit):
        main(["deploy", str(tmp_path)])
    assert "expected to be run as root" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs("mosquitto")
async def test_mosquitto_knows_our_password_lines(tmp_path: Path) -> None:
    passwords, own = tmp_path / "passwd", tmp_path / "own"
    passwords.write_text(password_line("tracker", "right"))
    broker = Mosquitto(tmp_path, f"password_file {passwords}")
    broker.start()
    try:
        for password in ("right", "wrong"):
            own.write_text(password)
            own.chmod(0o600)
            endpoint = Endpoint.of(BrokerSettings(broker.url, username="tracker", password_file=own))
            try:
                async with connect(endpoint, client_id=None, deliver=lambda message: None):
                    entered = True
            except LinkError:
                entered = False
            assert entered == (password == "right")
    finally:
        broker.stop()


async def test_a_certificate_is_for_its_host_alone(tmp_path: Path) -> None:
    now = datetime.datetime.now(UTC)
    authority = new_authority(now)
    for host, names in (("eyes.example", ("eyes.example", "other.example")), ("127.0.0.1", ("127.0.0.1", "127.0.0.2"))):
        made = new_certificate(authority, host, now)
        (tmp_path / "pem").write_bytes(made.pem)
        (tmp_path / "key").write_bytes(made.key)
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(tmp_path / "pem", tmp_path / "key")
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=serving)
        port = server.sockets[0].getsockname()[1]
        context = ssl.create_default_context(cadata=authority.pem.decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=names[0])
        writer.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=names[1])
        server.close()


def test_units_files_and_users_agree() -> None:
    """Each path that a unit or a broker's file names is laid out, or made by the unit; each user is made."""
    made = {place.path for place in layout.places(BOTH)}
    users = set(re.findall(r"^[ug] (\S+)", layout.sysusers_text(), re.M))
    texts = {unit: layout.unit_text(unit, PROGRAM) for unit in layout.UNITS}
    texts |= {side: layout.conf_text(side, 8883) for side in ("raw", "private")}
    for name, text in texts.items():
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        named = set(re.findall(r"(/etc/eyestream\S*|/var/lib/eyestream\S*)", "\n".join(lines)))
        assert {path.rstrip("/") for path in named} <= made, name
        told = re.findall(r"^(?:User|Group|SupplementaryGroups)=(.*)$", "\n".join(lines), re.M)
        assert {user for words in told for user in words.split()} <= users
    for side, group in (("raw", layout.TRACKER), ("private", layout.APPLICATION)):
        unit = layout.unit_text(f"eyestream-{side}", PROGRAM)
        assert f"RuntimeDirectory=eyestream-{side}\nRuntimeDirectoryMode=0750" in unit
        assert f"Group={group}\n" in unit
        assert f"listener 0 /run/eyestream-{side}/{side}.sock" in layout.conf_text(side, None)
    assert "listener 8" not in re.sub(r"^#.*", "", layout.conf_text("private", None), flags=re.M)
    assert "listener 9999\n" in layout.conf_text("private", 9999)


def test_columns_of_the_list_stand_apart() -> None:
    listed = layout.places(("raw", "private"))
    lines = layout.readme_text(listed).splitlines()[2:]
    for place, line in zip(listed, lines, strict=False):
        assert line.endswith(f"  {place.what}")
        assert line.partition(f"{place.user}:{place.group}")[2].startswith("  ")


@needs_root
def test_without_names_nothing_listens_on_a_network(tmp_path: Path) -> None:
    """And each name opens its own broker, and no other."""
    for number, outside in enumerate(({}, {"raw": BOTH["raw"]}, {"private": BOTH["private"]}, BOTH)):
        root = tmp_path / str(number)
        manifest = laid_out(root, outside)
        assert manifest.outside == outside
        for side in BOTH:
            lines = at(root, f"/etc/eyestream/{side}/{side}.conf").read_text().splitlines()
            listeners = [line for line in lines if line.startswith("listener")]
            ports = [f"listener {outside[side][1]}"] if side in outside else []
            assert listeners == [f"listener 0 /run/eyestream-{side}/{side}.sock", *ports]
            for guard in ("allow_anonymous false", "password_file", "acl_file"):  # each listener has its own
                assert sum(line.startswith(guard) for line in lines) == len(listeners), (side, guard)
            assert at(root, layout.CERTIFICATES[side]).exists() == (side in outside)
        unit = at(root, "/etc/systemd/system/eyestream-raw.service").read_text()
        assert ("PrivateNetwork=yes" in unit) == ("raw" not in outside)
        assert ("AF_INET" in unit) == ("raw" in outside)
        assert faults(root) == []


def test_a_deployment_of_before_there_were_far_trackers_is_read(tmp_path: Path) -> None:
    at(tmp_path, "/etc/eyestream").mkdir(parents=True)
    old = {"version": "0.1.0", "program": PROGRAM, "host": "eyes.example", "port": 8883, "written": {}}
    at(tmp_path, layout.MANIFEST).write_text(json.dumps(old))
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert manifest.outside == {"private": BOTH["private"]}


@needs_root
def test_other_machines_can_be_let_in_later_and_under_another_name(tmp_path: Path) -> None:
    laid_out(tmp_path, {})
    logins = at(tmp_path, "/etc/eyestream/raw/raw.passwd").read_bytes()
    lines = renew(tmp_path, version="1", program=None, now=NOW, outside={"raw": BOTH["raw"]})
    assert any("eyestream-raw.service" in line for line in lines)
    assert faults(tmp_path) == []
    authority = at(tmp_path, "/etc/eyestream/certificates/ca.pem").read_bytes()
    other = {"raw": ("other.example", 9999)}
    assert any("raw.pem" in line for line in renew(tmp_path, version="1", program=None, now=NOW, outside=other))
    assert read_manifest(tmp_path).outside == other
    assert "listener 9999" in at(tmp_path, "/etc/eyestream/raw/raw.conf").read_text()
    assert faults(tmp_path) == []
    assert at(tmp_path, "/etc/eyestream/certificates/ca.pem").read_bytes() == authority, "trackers have a copy"
    assert at(tmp_path, "/etc/eyestream/raw/raw.passwd").read_bytes() == logins
    assert renew(tmp_path, version="1", program=None, now=NOW) == []
    at(tmp_path, "/etc/eyestream/certificates/ca.key").unlink()
    before = tree(tmp_path)
    with pytest.raises(ConfigError, match="one port"):
        renew(tmp_path, version="1", program=None, now=NOW, outside={"private": ("eyes.example", 9999)})
    with pytest.raises(ConfigError, match=r"ca\.key: is not there"):
        renew(tmp_path, version="1", program=None, now=NOW, outside=BOTH)
    assert tree(tmp_path) == before


@needs_root
@pytest.mark.needs("mosquitto")
async def test_grants_in_what_is_laid_out(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the page says: a login of its own for a game, none for everybody; a renewal keeps it all."""
    root = tmp_path_factory.mktemp("d")  # the path of a socket is short
    laid_out(root, {})
    home, binary = root / "etc" / "eyestream", program()
    assert binary is not None
    for file in (home / "sidecar.toml", home / "private" / "private.conf"):  # on the host itself this root is /
        text = file.read_text().replace("/etc/eyestream/", f"{home}/").replace("/var/lib/", f"{root}/var/lib/")
        file.write_text(text.replace("/run/eyestream-private/", f"{root}/"))
    conf = root / "run.conf"
    conf.write_text(f"user root\n{(home / 'private/private.conf').read_text()}")
    broker = await asyncio.create_subprocess_exec(binary, "-c", str(conf), stderr=asyncio.subprocess.DEVNULL)
    (root / "bin").mkdir()
    (root / "bin" / "systemctl").write_text(f"#!/bin/sh\nkill -HUP {broker.pid}\n")
    (root / "bin" / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")
    config_file = home / "sidecar.toml"
    settings = config.load(config_file)
    try:
        await until((root / "private.sock").exists)
        for words in (("grant", "game", "features", "--new", str(root / "game.password")), ("revoke", "application")):
            await asyncio.to_thread(main, [*words, "--config", str(config_file)])
        assert faults(root) == []
        game = LoginSettings("game", root / "game.password")
        found = await broker_findings(settings, None, others_of(settings, None, game))
        about = [str(one) for one in found if "application" in one.what]
        assert len(about) >= 4
        assert all(line.startswith("pass") for line in about), about
        capsys.readouterr()
        await asyncio.to_thread(main, ["explain", "--config", str(config_file)])
        told = capsys.readouterr().out
        assert "  game: how your eyes move\n" in told
        assert "application:" not in told
        before = [(home / "private" / f"private.{end}").read_bytes() for end in ("acl", "passwd")]
        assert any("private.acl: edited here" in line for line in renew(root, version="2", program=None, now=NOW))
        assert [(home / "private" / f"private.{end}").read_bytes() for end in ("acl", "passwd")] == before
    finally:
        broker.terminate()
        await broker.wait()
