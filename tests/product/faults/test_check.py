"""`eyestream check`: every fault of a deployment is seen and named, with a remedy; a sound one passes."""

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Request
from eyestream.errors import PayloadError
from eyestream.ops.check_brokers import broker_findings, others_of
from eyestream.ops.check_host import configuration_findings, host_findings
from eyestream.ops.check_private import size_finding
from eyestream.rim import config
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.plan import resolved
from eyestream.streams import StreamKey
from eyestream.wire.release import PrivateChunk, decode_meta, decode_private, encode_private
from eyestream.wire.status import decode_status
from eyestream_lab.testing.clocks import until
from tests.product.faults.deployment import Deployment
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.spy import spying

COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]
SHIPPED = Path(__file__).resolve().parents[3] / "config" / "sidecar.toml"


def check(path: Path, *more: str) -> tuple[int, list[str], list[str]]:
    """Exit code, and what passes and fails."""
    words = [*COMMAND, "check", "--config", str(path), *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    lines = done.stdout.splitlines()
    assert all(line.startswith(("pass  ", "fail  ")) for line in lines), done
    assert "Traceback" not in done.stderr
    return done.returncode, [x[6:] for x in lines if x[0] == "p"], [x[6:] for x in lines if x[0] == "f"]


def configure(folder: Path, *edits: tuple[str, str]) -> Path:
    """The shipped configuration, edited, in a private directory, with its ledger."""
    folder.mkdir(mode=0o700)
    text = SHIPPED.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "sidecar.toml"
    path.write_text(text)
    path.chmod(0o600)
    create_ledger(config.load(path).sidecar.ledger, created=int(time.time()))
    return path


@pytest.fixture
def deployment(tmp_path_factory: pytest.TempPathFactory, mosquitto: Mosquitto) -> Iterator[Deployment]:
    made = Deployment(tmp_path_factory.mktemp("d"))
    yield made
    made.stop()


def hard(deployment: Deployment, folder: Path) -> Path:
    """A configuration for the brokers that we ship."""
    secret = f'username = "sidecar"\npassword_file = "{deployment.folder}/sidecar.password"\n'
    private = f'url = "{deployment.private.tls_url}"\nca_file = "{deployment.authority.pem}"\n{secret}'
    raw = f'\n[raw]\nurl = "{deployment.raw.url}"\n{secret}\n[[stream]]'
    for role in ("tracker", "application"):
        login = f'username = "{role}"\npassword_file = "{role}.password"\n'
        (deployment.folder / f"{role}.toml").write_text(login)
    [line] = [line for line in SHIPPED.read_text().splitlines() if line.startswith("url = ")]
    return configure(folder, (line, private), ("\n[[stream]]", raw))


def test_a_demo_broker_fails_where_it_should(mosquitto: Mosquitto, tmp_path: Path) -> None:
    code, passed, failed = check(configure(tmp_path / "conf", ("mqtt://localhost:1883", mosquitto.url)))
    assert code == 1
    faults = "\n".join(failed)
    for what in (
        "raw rows have a listener of their own",
        "raw broker: a Unix socket, or TLS",
        "raw broker: nobody gets in without a login",
        "raw broker: nobody gets in with a wrong login",
        "raw broker: the sidecar writes no raw rows",
        "raw broker: a stranger writes no raw rows",
        "raw broker: a stranger reads no raw rows",
        "raw broker: raw rows are not retained",
        "private broker: nobody gets in without a login",
        "private broker: a stranger writes no private chunks",
    ):
        assert what in faults
    for remedy in ("allow_anonymous false", "acl_file", "retain_available false", "password_file", "mqtts://"):
        assert remedy in faults
    assert "the ledger opens and fits" in passed
    assert "no core dumps, no debugger" in passed
    assert not any("ledger" in line or "clock" in line for line in failed)


SOURCE = """
[[source]]
kind = "{kind}"
device = "hmd-4f1c07a9d2"

[source.options]
file = "{file}"

[[stream]]"""


@pytest.mark.long
def test_where_a_source_serves_every_stream_no_raw_broker_is_asked_for(
    mosquitto: Mosquitto, tmp_path: Path, shared_data: Path
) -> None:
    broker = ("mqtt://localhost:1883", mosquitto.url)
    recording = shared_data / "hoppe2018" / "features" / "P01.npz"
    source = SOURCE.format(kind="recording", file=recording)
    _, passed, failed = check(configure(tmp_path / "with", broker, ("\n[[stream]]", source)))
    assert "raw rows cross no broker: every stream has a source in this process" in passed
    assert "calibration, epsilon, budget and sources fit" in passed
    assert not any(line.startswith("raw") for line in failed)
    path = configure(tmp_path / "wrong", broker, ("\n[[stream]]", source))
    path.write_text(path.read_text().replace('kind = "recording"', 'kind = "no.such:SOURCE"'))
    _, _, failed = check(path)
    assert any("[[source]] kind: there is no 'no.such:SOURCE' to import" in line for line in failed), failed


def test_a_mechanism_that_is_not_there_is_not_the_ledgers_fault(mosquitto: Mosquitto, tmp_path: Path) -> None:
    path = configure(tmp_path / "conf", ("mqtt://localhost:1883", mosquitto.url))
    text = path.read_text().replace("[stream.privacy]\n", '[stream.privacy]\nmechanism = "no.such:ENTRY"\n')
    path.write_text(text)
    _, _, failed = check(path)
    [ledger] = [line for line in failed if "the ledger opens and fits" in line]
    assert "Correct the configuration first" in ledger
    assert "budget --new" not in ledger


@pytest.mark.long
def test_the_brokers_that_we_ship_pass(deployment: Deployment, tmp_path: Path) -> None:
    deployment.start()
    path = hard(deployment, tmp_path / "conf")
    code, passed, failed = check(path)
    assert (code, failed) == (0, [])
    assert len(passed) > 15
    folder = deployment.folder
    logins = ("--tracker", f"{folder}/tracker.toml", "--application", f"{folder}/application.toml")
    code, passed, failed = check(path, *logins)
    assert (code, failed) == (0, [])
    for what in (
        "raw broker: rows of the tracker reach the sidecar",
        "raw broker: the tracker reads no raw rows",
        "raw broker: the application reads no raw rows",
        "raw broker: the application writes no raw rows",
        "raw broker: raw rows are not retained",
        "private broker: what the sidecar writes reaches the application",
        "private broker: what is left of a budget reaches the application",
        "private broker: what was spent reaches the application",
        "private broker: it takes a chunk of this configuration, and hands it on",
        "private broker: the application writes no private chunks",
        "private broker: the tracker writes no private chunks",
    ):
        assert what in passed


FAULTS = [
    ("raw", "conf", "allow_anonymous false", "allow_anonymous true", "raw broker: nobody gets in without"),
    ("raw", "conf", "acl_file", "# acl_file", "raw broker: the application reads no raw rows"),
    ("raw", "acl", "user sidecar", "user application", "raw broker: rows of the tracker reach the sidecar"),
    ("raw", "conf", "retain_available false", "", "raw broker: raw rows are not retained"),
    ("private", "acl", "topic read", "topic readwrite", "private broker: the application writes no private"),
    ("private", "acl", "topic write", "# topic write", "private broker: what the sidecar writes reaches"),
    ("private", "acl", "topic write eyestream/v1/+/+/budget", "", "private broker: what is left of a budget reaches"),
    ("private", "acl", "topic write eyestream/v1/+/+/odometer", "", "private broker: what was spent reaches"),
    ("raw", "passwd", None, "", "raw broker: the sidecar gets in"),
    ("raw", "acl", None, "\n", "raw broker: rows of the tracker reach the sidecar"),
]
"""Broker, its file, what is replaced in it (None: all) by what, and how the fault that is found begins."""


@pytest.mark.long
@pytest.mark.needs("mosquitto")
async def test_every_fault_of_a_broker_is_seen(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A deployment for each fault, all checked at once."""

    async def faulty(side: str, file: str, old: str | None, new: str, what: str) -> None:
        deployment = Deployment(tmp_path_factory.mktemp("d"))
        path = (deployment.raw if side == "raw" else deployment.private).socket.parent / f"{side}.{file}"
        text = path.read_text()
        assert old is None or old in text
        path.write_text(new if old is None else text.replace(old, new))
        await asyncio.to_thread(deployment.start)  # else the others' connections wait for all of these
        try:
            settings = config.load(hard(deployment, deployment.folder / "conf"))
            plan = await asyncio.to_thread(resolved, settings)
            logins = [config.load_login(deployment.folder / f"{role}.toml") for role in ("tracker", "application")]
            failed = [
                str(finding)
                for finding in await broker_findings(settings, plan, others_of(settings, *logins))
                if not finding.passed
            ]
        finally:
            deployment.stop()
        assert any(line.startswith(f"fail  {what}") for line in failed), (what, failed)

    await asyncio.gather(*(faulty(*fault) for fault in FAULTS))


def host(
    path: Path, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
) -> list[str]:
    """What fails on this machine."""
    settings = config.load(path)
    made = configuration_findings(settings, path)
    found = host_findings(settings, path, made, wall=wall, monotonic=monotonic, pause=time.sleep)
    return [str(finding) for finding in found if not finding.passed]


def test_every_fault_of_the_machine_is_seen(tmp_path: Path) -> None:
    path = configure(tmp_path / "conf", ("# username", "username"), ("# password_file", "password_file"))
    secret = path.parent / "password"
    secret.touch(0o600)
    secret.write_text("x")
    assert host(path) == []
    for file, mode, remedy in (
        (path, 0o622, "chmod go-w"),
        (secret, 0o640, "chmod go="),
        (path.parent, 0o755, "chmod go="),
        (path.parent / "ledger", 0o644, "chmod go="),
    ):
        before = file.stat().st_mode
        file.chmod(mode)
        [fault] = host(path)
        assert remedy in fault
        assert str(file) in fault
        file.chmod(before)
    if os.geteuid() == 0:
        os.chown(secret, 12345, -1)
        assert "chown" in host(path)[0]
        os.chown(secret, 0, -1)
    assert "it says 1970" in host(path, wall=lambda: 0.0)[0]
    assert "monotonic" in host(path, monotonic=lambda: 5.0)[0]
    jumps = iter([1_800_000_000.0] * 2 + [1_900_000_000.0] * 9)
    assert "was set while we looked" in host(path, wall=lambda: next(jumps))[0]
    request = Request(StreamKey(config.load(path).device[0].id, "features"), 1, 0, 63, 64, Charge(1))
    with Ledger(path.parent / "ledger", ceilings=Ceilings(2)) as ledger:
        ledger.reserve([request], int(time.time()) // 86_400)
    path.write_text(path.read_text().replace("klt-anchored-64", "cfpa-32"))
    assert "/features in chunks of 64 rows and windows of 2, the configuration in 32 and 2" in host(path)[0]
    (path.parent / "ledger").unlink()
    (fault,) = (fault for fault in host(path) if "the ledger opens and fits" in fault)
    assert "there is no ledger" in fault
    assert fault.endswith("put the backup back")


def test_a_broker_that_is_down_is_one_fault_and_usage_is_another_code(tmp_path: Path, mosquitto: Mosquitto) -> None:
    path = configure(tmp_path / "conf", ("mqtt://localhost:1883", mosquitto.url))
    mosquitto.stop()
    code, _, failed = check(path)
    assert code == 1
    assert sum("gets in" in line for line in failed) == 2
    assert check(tmp_path / "none.toml")[0] == 2


@pytest.mark.parametrize(
    ("limit", "fate"),
    [
        ("message_size_limit 4000", "Packet too large (0x95)"),
        ("max_packet_size 4000", "it is refused: of"),
    ],
)
@pytest.mark.needs("mosquitto")
async def test_a_broker_that_takes_no_chunk_is_seen_and_its_limit_named(tmp_path: Path, limit: str, fate: str) -> None:
    (tmp_path / "broker").mkdir()
    broker = Mosquitto(tmp_path / "broker", limit)
    broker.start()
    try:
        settings = config.load(configure(tmp_path / "conf", ("mqtt://localhost:1883", broker.url)))
        found = await broker_findings(settings, resolved(settings), others_of(settings, None, None))
        [finding] = [f for f in found if "takes a chunk" in f.what]
    finally:
        broker.stop()
    assert finding.fault is not None
    assert fate in finding.fault
    numbers = re.search(r"one of (\d+) bytes .*; it takes (\d+) bytes and not (\d+)$", finding.fault)
    assert numbers is not None
    size, taken, refused = map(int, numbers.groups())
    assert 13_000 < size < 16_000  # 52 features x 64 rows of four bytes, and what goes with them
    assert taken <= 4000 <= refused + 60  # a packet is some bytes longer than its payload
    assert refused - taken <= 64
    assert "max_packet_size" in finding.remedy
    raised = int(re.search(r"above (\d+)", finding.remedy)[1])  # type: ignore[index]
    broker = Mosquitto(tmp_path / "broker", f"{limit.split(maxsplit=1)[0]} {raised}")
    broker.start()
    try:
        settings = config.load(configure(tmp_path / "more", ("mqtt://localhost:1883", broker.url)))
        found = await broker_findings(settings, resolved(settings), others_of(settings, None, None))
        [finding] = [f for f in found if "takes a chunk" in f.what]
    finally:
        broker.stop()
    assert str(finding) == "pass  private broker: it takes a chunk of this configuration, and hands it on"


async def test_the_probe_of_a_chunk_s_size_is_nobody_s_message(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """It is no chunk and no status, on the topic of no device and no sidecar, larger than any chunk, and not kept."""
    settings = config.load(configure(tmp_path / "conf", ("mqtt://localhost:1883", mosquitto.url)))
    plan = resolved(settings)
    async with spying(mosquitto.url) as spy:
        finding = await size_finding(Endpoint.of(settings.private), [Endpoint.of(settings.private)], plan)
        await until(lambda: len(spy.messages) == 4)
    assert finding.passed
    [topic] = {topic for topic, _, _ in spy.messages}
    assert re.fullmatch(r"eyestream/v1/check-[0-9a-f]{8}/sidecar/status", topic)
    [mechanism] = plan.mechanisms.values()
    chunk = PrivateChunk(2**64 - 1, 0, 0.0, 0.5, np.zeros((52, mechanism.n), np.float32), 4.8, 0.0)
    largest = max(len(payload) for _, payload, _ in spy.messages)
    assert largest >= len(encode_private(chunk))
    for _, payload, retained in spy.messages:
        assert not retained
        for decode in (decode_status, decode_private, decode_meta):
            with pytest.raises(PayloadError):
                decode(payload)
    async with spying(mosquitto.url) as late:
        await asyncio.sleep(0.3)
        assert late.messages == []


def test_a_login_that_cannot_be_used_hides_no_other_fault(
    tmp_path: Path, mosquitto: Mosquitto, capsys: pytest.CaptureFixture[str]
) -> None:
    path = configure(tmp_path / "conf")
    path.write_text(path.read_text().replace("mqtt://localhost:1883", mosquitto.url))
    login, secret = tmp_path / "tracker.toml", tmp_path / "tracker.password"
    login.write_text('username = "tracker"\npassword_file = "tracker.password"\n')
    secret.write_text("x\n")
    secret.chmod(0o644)
    path.chmod(0o622)
    with pytest.raises(SystemExit):
        main(["check", "--config", str(path), "--tracker", str(login)])
    said = capsys.readouterr().out
    assert f"others can read or write this secret; chmod go= {secret}" in said
    assert f"chmod go-w {path}" in said
    assert "the sidecar gets in" in said
