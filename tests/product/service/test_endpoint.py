"""A broker's address and secrets are checked before the first attempt."""

import ssl
from pathlib import Path

import pytest

from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("mqtt://localhost", "localhost", 1883),
        ("mqtt://127.0.0.1:18830/", "127.0.0.1", 18830),
        ("mqtts://broker.example", "broker.example", 8883),
        ("mqtt://[::1]:1", "::1", 1),
        ("unix:///run/mosquitto/raw.sock", "/run/mosquitto/raw.sock", 0),
    ],
)
def test_what_a_url_means(url: str, host: str, port: int) -> None:
    endpoint = Endpoint.of(BrokerSettings(url))
    assert (endpoint.host, endpoint.port, endpoint.unix) == (host, port, url.startswith("unix"))


@pytest.mark.parametrize(
    "url",
    [
        "localhost",
        "localhost:1883",
        "http://x",
        "mqtt://",
        "mqtt://x:0",
        "mqtt://x:65536",
        "mqtt://x:a",
        "mqtt://x/y",
        "unix:",
        "",
    ],
)
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(ConfigError):
        Endpoint.of(BrokerSettings(url))


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint.of(BrokerSettings("mqtt://me:hunter2@localhost"))
    assert "hunter2" not in str(caught.value)


def test_a_password_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hunter2\nsecond line\n")
    secret.chmod(0o640)
    settings = BrokerSettings("mqtt://localhost", username="me", password_file=secret)
    with pytest.raises(ConfigError, match="chmod go="):
        Endpoint.of(settings)
    secret.chmod(0o600)
    endpoint = Endpoint.of(settings)
    assert endpoint.password == "hunter2"
    assert "hunter2" not in repr(endpoint)


def test_tls_checks_certificate_and_host_name() -> None:
    context = Endpoint.of(BrokerSettings("mqtts://localhost")).tls
    assert context is not None
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_certificates_without_tls_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mqtts://"):
        Endpoint.of(BrokerSettings("mqtt://localhost", ca_file=tmp_path / "ca.pem"))


def test_a_ca_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(ConfigError, match=r"ca\.pem"):
        Endpoint.of(BrokerSettings("mqtts://localhost", ca_file=tmp_path / "ca.pem"))
