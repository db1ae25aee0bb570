"""Encryption: every way in which a broker, or a client, is not who it should be is refused; both logins work."""

import asyncio
import contextlib
import itertools
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from eyestream.errors import ConfigError, LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.status import Budget, encode_budget
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.product.faults.deployment import PASSWORDS, Deployment
from tests.rigs.certificates import Authority, Certificate
from tests.rigs.pages import code_of
from tests.rigs.sidecar import running, settings_for
from tests.rigs.spoken import speaking_to
from tests.rigs.storms import traffic


@pytest.fixture
def deployment(tmp_path_factory: pytest.TempPathFactory, mosquitto: object) -> Iterator[Deployment]:
    made = Deployment(tmp_path_factory.mktemp("d"))
    yield made
    made.stop()


def present(deployment: Deployment, certificate: Certificate) -> None:
    """Let the private broker show `certificate`, and start it."""
    folder = deployment.private.socket.parent
    (folder / "broker.pem").write_bytes(certificate.pem.read_bytes())
    (folder / "broker.key").write_bytes(certificate.key.read_bytes())
    deployment.private.start()


def with_client_certificates(deployment: Deployment) -> None:
    """The variant that private.conf has in comments."""
    head, listener, tls = deployment.private.text().partition(f"listener {deployment.private.port}")
    tls = "\n".join(line for line in tls.splitlines() if not line.startswith("password_file"))
    tls = tls.replace("# require_certificate", "require_certificate").replace("# use_identity", "use_identity")
    deployment.private.write(head + listener + tls)


async def refused(settings: BrokerSettings) -> str:
    """Why the broker cannot be used; a test fails when it can."""
    try:
        async with connect(Endpoint.of(settings), client_id=None, deliver=print):
            pytest.fail("connected")
    except LinkError as error:
        return str(error)


@pytest.mark.parametrize(
    ("fault", "why"), [("expired", "expired"), ("wrong name", "mismatch"), ("self-signed", "self")]
)
async def test_a_broker_with_a_bad_certificate_is_refused(deployment: Deployment, fault: str, why: str) -> None:
    authority = deployment.authority
    certificate = {
        "expired": lambda: authority.issue("old", host="localhost", days=-2),
        "wrong name": lambda: authority.issue("other", host="broker.example"),
        "self-signed": lambda: authority.self_signed("localhost"),
    }[fault]()
    present(deployment, certificate)
    assert why in await refused(deployment.login("sidecar", deployment.private.tls_url))


async def test_a_broker_of_another_authority_is_refused(deployment: Deployment, tmp_path: Path) -> None:
    present(deployment, Authority(tmp_path, "foreign-ca").issue("foreign", host="localhost"))
    assert "certificate" in await refused(deployment.login("sidecar", deployment.private.tls_url))


async def test_the_application_of_the_page_gets_in(deployment: Deployment, tmp_path: Path) -> None:
    """`docs/deployment.md`, with the password and the certificate where it has them, until nothing is left."""
    deployment.private.start()
    shutil.copy(deployment.folder / "application.password", tmp_path)
    shutil.copy(deployment.authority.pem, tmp_path / "ca.pem")
    port = deployment.private.port
    code = code_of("docs/deployment.md").replace("NAME:8883", f"localhost:{port}").replace("hmd-...", "hmd-1")
    async with speaking_to(deployment.login("sidecar", deployment.private.tls_url)) as stream:
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-u", "-c", code, cwd=tmp_path, stdout=subprocess.PIPE
        )
        assert program.stdout is not None
        first = asyncio.create_task(program.stdout.readline())
        for index in itertools.count():
            await stream.chunk(index)
            if (await asyncio.wait({first}, timeout=0.05))[0]:
                break
        assert (await first).startswith(b"[")
        await stream.say("budget", encode_budget(Budget(0, "session")))
        await stream.status("exhausted", "session")
        rest, _ = await asyncio.wait_for(program.communicate(), PATIENCE_S)
    assert b"nothing more for now: Budget(chunks=0" in rest
    assert program.returncode == 0


@contextlib.asynccontextmanager
async def peer(context: ssl.SSLContext | None) -> AsyncIterator[tuple[int, bytearray]]:
    """A server that notes what it is told."""
    told = bytearray()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            told.extend(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1], told


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_old_versions_are_refused_by_both_sides(deployment: Deployment, version: ssl.TLSVersion) -> None:
    certificate = deployment.authority.issue("old-server", host="localhost")
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = version
    old.load_cert_chain(certificate.pem, certificate.key)
    async with peer(old) as (port, told):
        await refused(deployment.login("sidecar", f"mqtts://localhost:{port}"))
        assert told == b""
        newer = ssl.create_default_context(cafile=deployment.authority.pem)
        newer.set_ciphers("ALL:@SECLEVEL=0")
        newer.minimum_version = newer.maximum_version = version
        _, writer = await asyncio.open_connection("localhost", port, ssl=newer)  # the peer itself is sound
        writer.close()
        deployment.private.start()
        with pytest.raises((ssl.SSLError, OSError)):
            await asyncio.open_connection("localhost", deployment.private.port, ssl=newer)


async def test_no_password_is_said_in_plain(deployment: Deployment) -> None:
    """A listener without TLS, where TLS is configured, learns nothing; the other way round nobody gets in."""
    async with peer(None) as (port, told):
        await refused(deployment.login("sidecar", f"mqtts://localhost:{port}"))
        await until(lambda: bool(told))
        assert PASSWORDS["sidecar"].encode() not in told
        assert b"MQTT" not in told
    deployment.private.start()
    plain = BrokerSettings(f"mqtt://localhost:{deployment.private.port}")
    await refused(plain)


async def test_no_client_certificate_no_entry(deployment: Deployment, tmp_path: Path) -> None:
    with_client_certificates(deployment)
    deployment.private.start()
    url, ca = deployment.private.tls_url, deployment.authority.pem
    stranger = Authority(tmp_path, "foreign-ca").issue("sidecar", file="forged")
    old = deployment.authority.issue("sidecar", days=-2, file="expired")
    for certificate in (None, stranger, old):
        files = {} if certificate is None else {"cert_file": certificate.pem, "key_file": certificate.key}
        assert await refused(BrokerSettings(url, ca_file=ca, **files)) != ""


@pytest.mark.parametrize("way", ["password", "certificate"])
async def test_both_logins_carry_rows_and_chunks_end_to_end(deployment: Deployment, tmp_path: Path, way: str) -> None:
    """The deployment that we ship: raw over a Unix socket, private over TLS, ACLs on."""
    url = deployment.private.tls_url
    if way == "certificate":
        with_client_certificates(deployment)
        logins = {}
        for role in ("sidecar", "application"):
            made = deployment.authority.issue(role)
            logins[role] = BrokerSettings(url, ca_file=deployment.authority.pem, cert_file=made.pem, key_file=made.key)
    else:
        logins = {role: deployment.login(role, url) for role in ("sidecar", "application")}
    deployment.start()
    settings = msgspec.structs.replace(
        settings_for(url, tmp_path),
        private=logins["sidecar"],
        raw=deployment.login("sidecar", deployment.raw.url),
    )
    tracker = deployment.login("tracker", deployment.raw.url)
    async with running(settings) as sidecar:
        await until(lambda: sidecar.raw_stands and sidecar.private_stands)
        async with subscribe(logins["application"], "hmd-1") as chunks, traffic(tracker), asyncio.timeout(PATIENCE_S):
            taken = [(await anext(chunks)).index for _ in range(5)]
    assert taken == list(range(taken[0], taken[0] + 5))


@pytest.mark.parametrize("file", ["password_file", "key_file"])
def test_open_secrets_are_refused_with_the_mend(tmp_path: Path, file: str) -> None:
    made = Authority(tmp_path).issue("sidecar")
    secret = tmp_path / "password"
    secret.touch(0o600)
    secret.write_text("x")
    settings = BrokerSettings(
        "mqtts://localhost", username="me", password_file=secret, cert_file=made.pem, key_file=made.key
    )
    Endpoint.of(settings)
    for mode in (0o604, 0o640, 0o620):
        getattr(settings, file).chmod(mode)
        with pytest.raises(ConfigError, match="chmod go=") as caught:
            Endpoint.of(settings)
        assert "\n" not in str(caught.value)
